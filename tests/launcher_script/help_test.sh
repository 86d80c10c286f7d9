#!/usr/bin/env bash
# Runs every command that `lockstep --help` lists.
# Usage: help_test.sh LOCKSTEP
set -uo pipefail
# shellcheck source=tests/fault/expectations.sh
source "$(dirname "$0")/../fault/expectations.sh"
readonly LOCKSTEP="$1"

# expect_runs BEGINNING WORDS...: expects that the program succeeds and its output begins with BEGINNING.
expect_runs() {
  local beginning="$1" code=0
  shift
  "${LOCKSTEP}" "$@" >"${WORK}/out" 2>"${WORK}/err" || code=$?
  expect "lockstep $*: exit code" 0 "${code}"
  expect "lockstep $*: output" "${beginning}" "$(head -c "${#beginning}" "${WORK}/out")"
}

mapfile -t commands < <("${LOCKSTEP}" --help | sed -n 's/^  \([a-z]*\) .*/\1/p')
expect "commands of --help" 1 "$((${#commands[@]} >= 12))"
for command in "${commands[@]}"; do expect_runs "Usage: lockstep ${command}" "${command}" --help; done
for role in chief worker; do expect_runs "lockstep ${role} " "${role}" --version; done
for version in version --version; do expect_runs "lockstep " "${version}"; done
for help in help --help -h; do expect_runs "Usage: lockstep COMMAND" "${help}"; done
expect_runs "Usage: lockstep COMMAND"

code=0
"${LOCKSTEP}" reda >"${WORK}/out" 2>&1 || code=$?
expect "an unknown command" 2 "${code}"
expect_said "it is named" 'no command "reda"; did you mean read?' "${WORK}/out"

((failures == 0))
