# shellcheck shell=bash
# Sourced by tests of real processes: a folder for their files, their end, and what was expected of them. Sets WORK, pids (those to
# be ended) and failures.
WORK="$(mktemp -d)"
readonly WORK
pids=()
failures=0

cleanup() {
  ((${#pids[@]} == 0)) || kill -KILL "${pids[@]}" 2>/dev/null
  rm -rf "${WORK}"
}
trap cleanup EXIT

expect() {
  [[ "$2" == "$3" ]] && return
  printf 'FAILED: %s\n  expected: %s\n  is:       %s\n' "$1" "$2" "$3"
  failures=$((failures + 1))
}

# start LOG PROGRAM ARGUMENTS...: sets PID.
start() {
  local log="$1"
  shift
  "$@" >"${log}" 2>&1 &
  PID=$!
  pids+=("${PID}")
}

# ends WHAT CODE PID
ends() {
  local code=0
  wait "$3" || code=$?
  expect "$1" "$2" "${code}"
}

# expect_said WHAT TEXT LOG
expect_said() {
  grep -qF -- "$2" "$3" && return
  printf 'FAILED: %s\n  expected: %s\n  in the log:\n' "$1" "$2"
  tail -n 20 "$3"
  failures=$((failures + 1))
}

# await_said TEXT LOG PROCESS: until the log has the text, or the process has ended.
await_said() {
  until grep -qF -- "$1" "$2"; do
    kill -0 "$3" 2>/dev/null || break
    sleep 0.05
  done
}
