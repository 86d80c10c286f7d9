#!/usr/bin/env bash
# Tests the image's entry point without a container: every command listed by --help, with the built programs.
# Usage: entrypoint_test.sh ENTRYPOINT LOCKSTEP CHIEF
set -uo pipefail

# shellcheck source=tests/fault/expectations.sh
source "$(dirname "$0")/../fault/expectations.sh"
mkdir "${WORK}/bin"
ln -s "$(readlink -f "$2")" "${WORK}/bin/lockstep_main"
ln -s "$(readlink -f "$3")" "${WORK}/bin/chief_main"
sed "s|^bin=.*|bin=${WORK}/bin|" "$1" >"${WORK}/lockstep"

# expect_runs BEGINNING WORDS...: expects that the entry point succeeds and its output begins with BEGINNING.
expect_runs() {
  local beginning="$1" code=0
  shift
  sh "${WORK}/lockstep" "$@" >"${WORK}/out" 2>"${WORK}/err" || code=$?
  expect "lockstep $*: exit code" 0 "${code}"
  expect "lockstep $*: output" "${beginning}" "$(head -c "${#beginning}" "${WORK}/out")"
}

mapfile -t commands < <("${WORK}/bin/lockstep_main" --help | sed -n 's/^  \([a-z]*\) .*/\1/p')
expect "commands of --help" 1 "$((${#commands[@]} >= 12))"
for command in "${commands[@]}" chief; do expect_runs "Usage: lockstep ${command}" "${command}" --help; done
for version in version --version; do expect_runs "lockstep " "${version}"; done
for help in help --help -h; do
  expect_runs "In this image lockstep chief serves a run" "${help}"
  for command in "${commands[@]}"; do expect_said "${help} lists ${command}" "  ${command} " "${WORK}/out"; done
done
expect_runs "In this image lockstep chief serves a run"
expect_runs "of another program" /bin/echo of another program

code=0
sh "${WORK}/lockstep" reda >"${WORK}/out" 2>&1 || code=$?
expect "an unknown command" 2 "${code}"
expect_said "it is named" 'no command "reda"; did you mean read?' "${WORK}/out"

((failures == 0))
