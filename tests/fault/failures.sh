#!/usr/bin/env bash
# Tests what happens to a run when its chief's program fails (the table "Failures" of docs/library.md), with real
# processes: a chief, two workers, a parameter server and an evaluator. After a failure the others wait; then a chief
# that does not fail continues the run, and all processes succeed.
# Usage: failures.sh PROGRAM PAGE   (failing_program, docs/library.md)
set -uo pipefail

readonly PROGRAM="$1" PAGE="$2"
# shellcheck source=tests/fault/expectations.sh
source "$(dirname "$0")/expectations.sh"

# start NAME FLAGS...: starts a process of the run in ${dir} that logs to ${dir}/NAME.log; sets PID.
start() {
  "${PROGRAM}" --loop="${loop}" --logdir="${dir}/run" "${@:2}" >>"${dir}/$1.log" 2>&1 &
  PID=$!
  pids+=("${PID}")
}

start_chief() { start "$1" --listen="unix:${dir}/socket" "${@:2}"; }

# start_workers FLAGS...: sets workers.
start_workers() {
  local k
  workers=()
  for k in 0 1; do
    start "worker${k}" --master="unix:${dir}/socket" --task_index="${k}" "$@"
    workers+=("${PID}")
  done
}

# ends WHAT CODE PID: waits for the process and expects its exit code.
ends() {
  local code=0
  wait "$3" || code=$?
  expect "${loop} ${fail}: $1" "$2" "${code}"
}

saved_step() { sed -n 's/^model_checkpoint_path: "model.ckpt-\(.*\)"/\1/p' "${dir}/run/checkpoint" 2>/dev/null; }
expect_alive() { expect "${loop} ${fail}: $1 waits" alive "$(kill -0 "$2" 2>/dev/null && echo alive)"; }

# begin LOOP FAIL: starts all processes and makes the chief fail; sets dir, chief, workers, ps and evaluator.
begin() {
  local k
  loop="$1" fail="$2" dir="${WORK}/$1-$2"
  mkdir "${dir}"
  start_chief chief --fail="${fail}" --when="${dir}/when"
  chief="${PID}"
  start_workers --fail="${fail}" --when="${dir}/when"
  start ps --job_name=ps --master="unix:${dir}/socket"
  ps="${PID}"
  start evaluator --job_name=evaluator
  evaluator="${PID}"
  case "${fail}" in
    init* | local_init | begin) ;; # before a worker has a session
    *) for k in 0 1; do await_said ": session " "${dir}/worker${k}.log" "${workers[k]}"; done ;;
  esac
  touch "${dir}/when"
}

# expect_interrupted: the record has no end of the run. Sets saved to the newest saved step.
expect_interrupted() {
  local record="${dir}/run/lockstep.textproto"
  [[ ! -e "${record}" ]] || expect "${loop} ${fail}: no end is on record" "" "$(grep -E '^(finished|end)\b' "${record}")"
  saved="$(saved_step)"
}

# succeed: a chief that does not fail continues the run for 50 steps, and all processes succeed.
succeed() {
  local k last=$((${saved:-0} + 50))
  start_chief successor --steps="${last}"
  ends "its successor" 0 "${PID}"
  for k in 0 1; do ends "worker ${k} follows the successor" 0 "${workers[k]}"; done
  [[ -z "${ps}" ]] || ends "the parameter server" 0 "${ps}"
  ends "the evaluator" 0 "${evaluator}"
  expect_said "${loop} ${fail}: the evaluator has seen the last step" "step ${last}" "${dir}/evaluator.log"
  expect "${loop} ${fail}: the end is on record" 1 "$(grep -c '^finished: true' "${dir}/run/lockstep.textproto")"
}

# fails LOOP FAIL CODE TEXT LAST_STEP: tests one failure; CODE and LAST_STEP are cells of the table.
fails() {
  local k
  begin "$1" "$2"
  [[ "${fail}" != sigterm ]] || stop_chief
  ends "the chief" "$3" "${chief}"
  expect_said "${loop} ${fail}: the chief says why" "$4" "${dir}/chief.log"
  expect_interrupted
  [[ "$5" != saved ]] || expect "${loop} ${fail}: the last step is saved" 1 "$((${saved:-0} >= 20))"
  for k in 0 1; do
    await_said "waiting for the chief" "${dir}/worker${k}.log" "${workers[k]}"
    expect_alive "worker ${k}" "${workers[k]}"
  done
  expect_alive "the parameter server" "${ps}"
  expect_alive "the evaluator" "${evaluator}"
  succeed
}

# Stops the chief once a step is saved.
stop_chief() {
  until (($(saved_step | grep . || echo 0) >= 20)); do sleep 0.02; done
  kill -TERM "${chief}"
}

# diverges LOOP: the loss of a step is not finite. The workers end, because no successor would help.
diverges() {
  local k
  begin "$1" nan
  ends "the chief" "$(cell "loss not finite" 3)" "${chief}"
  for k in 0 1; do
    ends "worker ${k}" 1 "${workers[k]}"
  done
  expect_interrupted
  for k in chief worker0 worker1; do
    expect_said "${loop} nan: ${k} says so" "the loss of step $((${saved:-0} + 1)) is not finite" "${dir}/${k}.log"
  done
  expect_alive "the evaluator" "${evaluator}"
  # The parameter server has either learned of the failure or waits like the others.
  if ! kill -0 "${ps}" 2>/dev/null; then
    ends "the parameter server" 1 "${ps}"
    ps=""
  fi
  start_workers
  succeed
}

# gives_up LOOP: without a successor the workers end after their limit.
gives_up() {
  local k
  loop="$1" fail=body dir="${WORK}/$1-gives-up"
  mkdir "${dir}"
  touch "${dir}/when"
  start_chief chief --fail=body --when="${dir}/when" --wait_seconds=1
  chief="${PID}"
  start_workers --wait_seconds=1
  ends "the chief" 1 "${chief}"
  for k in 0 1; do
    ends "worker ${k} gives up" 138 "${workers[k]}"
    expect_said "${loop}: worker ${k} names who was missing" "${dir}/socket" "${dir}/worker${k}.log"
  done
}

# in_background COMMAND...: runs at most two commands at a time.
jobs=()
in_background() {
  if ((${#jobs[@]} >= 2)); then
    wait "${jobs[0]}" || failures=$((failures + 1))
    jobs=("${jobs[@]:1}")
  fi
  (
    pids=() failures=0
    trap '((${#pids[@]} == 0)) || kill -KILL "${pids[@]}" 2>/dev/null' EXIT
    "$@"
    ((failures == 0))
  ) &
  jobs+=("$!")
}

# cell NAME COLUMN: prints a cell of the row NAME in the page's table. Column 3 is the exit code, 4 the last step.
cell() { awk -F' *[|] *' -v name="$1" -v column="$2" '$2 == name { print $(column + 1); exit }' "${PAGE}"; }

# Columns: the failure, the loops in which it can occur, its row in the page, the chief's message.
while IFS='|' read -r what loops row text; do
  code="$(cell "${row}" 3)" last="$(cell "${row}" 4)"
  expect "the page has a row for ${what}" yes "${code:+yes}"
  for loop in ${loops//,/ }; do in_background fails "${loop}" "${what}" "${code}" "${text}" "${last}"; done
done <<'ROWS'
body|session,supervisor,monitored,slim|body|body fails
exception|session,supervisor,monitored,slim|exception of the body|exception: the body throws
hook|monitored,graph_actions|hook|hook fails
hook_exception|monitored|exception of a hook|hook FailingHook: exception: the hook throws
end|monitored|End of a hook|hook FailingHook: end fails
begin|monitored|AfterCreateSession of a hook|hook FailingHook: begin fails
thread|supervisor,monitored|thread|thread fails
service|supervisor,monitored|service: a summary function|service fails
init|session,supervisor,monitored,slim,graph_actions|init_fn|init_fn: init fails
init_exception|supervisor|exception of init_fn|init_fn: exception: init_fn throws
local_init|supervisor,monitored,slim|local_init|local_init fails
timer|supervisor,monitored|checkpoint timer|No space left on device
disk|supervisor|checkpoint timer, and the disk stays full|No space left on device
sigterm|supervisor,monitored,slim|SIGTERM|terminating
ROWS
for loop in supervisor monitored; do in_background diverges "${loop}"; done
for loop in session supervisor; do in_background gives_up "${loop}"; done
for job in "${jobs[@]}"; do wait "${job}" || failures=$((failures + 1)); done

((failures == 0))
