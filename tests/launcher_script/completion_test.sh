#!/usr/bin/env bash
# Loads the script of `lockstep completion bash` and completes words as bash does. If zsh is installed, it must be able
# to parse its script.
# Usage: completion_test.sh LOCKSTEP
set -uo pipefail
# shellcheck source=tests/fault/expectations.sh
source "$(dirname "$0")/../fault/expectations.sh"
lockstep="$(readlink -f "$1")"

# completes EXPECTED WORD...: expects these choices for the last word.
completes() {
  COMP_WORDS=("${lockstep}" "${@:2}")
  COMP_CWORD=$(($# - 1))
  COMPREPLY=()
  _lockstep
  expect "lockstep ${*:2}" "$1" "${COMPREPLY[*]}"
}

eval "$("${lockstep}" completion bash)"
expect "the command that bash completes" "complete -o bashdefault -o default -F _lockstep lockstep" "$(complete -p lockstep)"
completes "run" ru
completes "page probe predict" p
completes "--tls_dir" worker --tls
completes "--log_format" worker --master=file:x --log
completes "" worker file
completes "" unknown --

"${lockstep}" completion zsh >"${WORK}/zsh"
expect "the first line for zsh" "#compdef lockstep" "$(head -n 1 "${WORK}/zsh")"
if command -v zsh >/dev/null; then expect "zsh's errors" "" "$(zsh -n "${WORK}/zsh" 2>&1)"; fi
"${lockstep}" completion fish >/dev/null 2>&1
expect "the exit code for another shell" 2 $?
((failures == 0))
