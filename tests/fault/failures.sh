#!/usr/bin/env bash
# Tests what happens to a run when its chief's program fails (each cell of both tables in "Failures" of
# docs/library.md), with real processes: a chief, two workers, a parameter server and an evaluator. After a failure, the
# others wait. Then a chief that does not fail continues the run, and all processes succeed.
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

# start_ps: sets ps.
start_ps() {
  start ps --job_name=ps --master="unix:${dir}/socket"
  ps="${PID}"
}

# begin LOOP FAIL FLAGS...: starts all processes and makes the chief fail; sets dir, chief, workers, ps and evaluator.
begin() {
  local k
  loop="$1" fail="$2" dir="${WORK}/$1-$2${3:-}"
  mkdir "${dir}"
  start_chief chief --fail="${fail}" --when="${dir}/when" "${@:3}"
  chief="${PID}"
  # Workers with a limit apply it to the first chief, too.
  [[ -z "${3:-}" ]] || await "${loop}: the chief listens" 60 test -S "${dir}/socket"
  start_workers --fail="${fail}" --when="${dir}/when" "${@:3}"
  start_ps
  start evaluator --job_name=evaluator
  evaluator="${PID}"
  case "${fail}" in
    init* | local_init | begin) ;; # fails before a worker has a session
    *)
      for k in 0 1; do await_said ": session " "${dir}/worker${k}.log" "${workers[k]}"; done
      await_said " answers: step " "${dir}/ps.log" "${ps}"
      ;;
  esac
  touch "${dir}/when"
}

# Prints "row|column|cell" for each cell of the page's table whose first column is $1.
cells_of() {
  awk -F' *[|] *' -v first="$1" '
    $2 == first { inside = 1; for (k = 3; k < NF; ++k) column[k] = $k; next }
    inside && !/^[|]/ { exit }
    inside && !/^[|]-/ { for (k = 3; k < NF; ++k) print $2 "|" column[k] "|" $k }' "${PAGE}"
}

# read_table FIRST COLUMNS: reads the table into CELLS, by "row|column", and its rows into TABLE_ROWS, one per line.
# Each of COLUMNS has a check below.
declare -A CELLS=()
read_table() {
  local row column cell cells
  cells="$(cells_of "$1")"
  while IFS='|' read -r row column cell; do CELLS["${row}|${column}"]="${cell}"; done <<<"${cells}"
  TABLE_ROWS="$(cut -d'|' -f1 <<<"${cells}" | sort -u)"
  expect "the columns of \"$1\"" "$2" "$(cut -d'|' -f2 <<<"${cells}" | awk '!seen[$0]++' | paste -sd,)"
}

# Prints the regular expression for a cell that is code: … stands for $2, N for a number and NAME for a name.
pattern_of() {
  local pattern
  pattern="$(tr -d '`' <<<"$1" | sed -E 's/\bNAME\b/[A-Za-z]+/; s/\bN\b/[0-9]+/')"
  echo "${pattern//…/$2}"
}

# expect_pattern WHAT PATTERN NAME: expects that the process's log has a matching line.
expect_pattern() { expect "${loop} ${fail}: $1" yes "$(grep -qE -- "$2" "${dir}/$3.log" && echo yes)"; }

# expect_met CELL: expects that the error came from there. Loops that call Run themselves do not show it.
expect_met() {
  local log="${dir}/chief.log" met="the body"
  [[ "${loop}" != slim && "${loop}" != graph_actions ]] || return 0
  if ! grep -q "^the loop begins" "${log}"; then
    met="opening"
  elif grep -q "^Run fails" "${log}"; then
    met='`Run`'
  elif ! grep -q "^the loop fails" "${log}"; then
    met="closing"
  fi
  expect "${loop} ${fail}: where the error comes from" yes "$([[ " $1 " == *" ${met} "* ]] && echo yes)"
}

# expect_last_step CELL: checks the last step, and sets saved to the newest saved step.
expect_last_step() {
  local step failed
  step="$(sed -n 's/^fails at step //p' "${dir}/chief.log" | head -n 1)"
  saved="$(saved_step)"
  case "$1" in
    saved) expect "${loop} ${fail}: the last step is saved" 1 "$((${saved:-0} >= ${step:-20}))" ;;
    "not saved")
      # After the loop's last step, the run makes more steps until the failure, and a timer may save one of them.
      failed="$(sed -nE 's/.*model\.ckpt-([0-9]+)[^ ]*: No space left.*/\1/p' "${dir}/chief.log" | tail -n 1)"
      expect "${loop} ${fail}: the last step is not saved" 1 "$((${saved:-0} < ${failed:-0}))"
      ;;
    "as before") expect "${loop} ${fail}: no step is made" 0 "${saved:-0}" ;;
    "last finite one") expect_pattern "it is saved" "the loss of step $((${saved:-0} + 1)) is not finite" chief ;;
    *) expect "${loop} ${fail}: the last step" "a check" "$1" ;;
  esac
}

# expect_record CELL
expect_record() {
  local record="${dir}/run/lockstep.textproto" is="no end"
  if [[ -e "${record}" ]] && grep -qE '^(finished|end)\b' "${record}"; then is="an end"; fi
  expect "${loop} ${fail}: the record" "$1" "${is}"
}

# expect_other NAME CELL PID ERROR: expects that the process does what the cell says.
expect_other() {
  case "$2" in
    wait | waits)
      [[ "$1" == evaluator ]] || await_said "waiting for the chief" "${dir}/$1.log" "$3"
      expect_alive "$1" "$3"
      ;;
    *" with 1 and the error")
      ends "$1" 1 "$3"
      expect_pattern "$1 says why" "$4" "$1"
      ;;
    *) expect "${loop} ${fail}: $1" "a check" "$2" ;;
  esac
}

# succeed: a chief that does not fail continues the run for 50 steps, and all processes succeed.
succeed() {
  local k last=$((${saved:-0} + 50))
  start_chief successor --steps="${last}"
  ends "its successor" 0 "${PID}"
  for k in 0 1; do ends "worker ${k} follows the successor" 0 "${workers[k]}"; done
  ends "the parameter server" 0 "${ps}"
  ends "the evaluator" 0 "${evaluator}"
  expect_said "${loop} ${fail}: the evaluator has seen the last step" "step ${last}" "${dir}/evaluator.log"
  expect "${loop} ${fail}: the end is on record" 1 "$(grep -c '^finished: true' "${dir}/run/lockstep.textproto")"
}

# fails LOOP FAIL ROW TEXT: tests one failure, i.e. a row of the table; TEXT is the program's own error.
fails() {
  local k row="$3" error
  error="$(pattern_of "${CELLS["$3|error"]}" "$4")"
  begin "$1" "$2"
  [[ "${fail}" != sigterm ]] || stop_chief
  ends "the chief" "${CELLS["${row}|exit code"]}" "${chief}"
  expect_pattern "the chief says why" "${error}" chief
  expect_met "${CELLS["${row}|comes from"]}"
  [[ "${fail}" == end ]] || expect "${loop} ${fail}: no End" "" "$(grep "^End is called" "${dir}/chief.log")"
  expect "${loop} ${fail}: no later hook" "" "$(grep "^a later hook is called" "${dir}/chief.log")"
  expect_last_step "${CELLS["${row}|last step"]}"
  expect_record "${CELLS["${row}|record"]}"
  for k in 0 1; do expect_other "worker${k}" "${CELLS["${row}|workers"]}" "${workers[k]}" "${error}"; done
  expect_other ps "${CELLS["${row}|parameter server"]}" "${ps}" "${error}"
  expect_other evaluator "${CELLS["${row}|evaluator"]}" "${evaluator}" "${error}"
  if [[ "${CELLS["${row}|workers"]}" != wait ]]; then
    start_workers
    start_ps
  fi
  succeed
}

# Stops the chief once a step is saved.
stop_chief() {
  until (($(saved_step | grep . || echo 0) >= 20)); do sleep 0.02; done
  kill -TERM "${chief}"
}

# expect_gives_up NAME ROW PID: expects that the process ends as specified by the table of other processes.
expect_gives_up() {
  local row="$2" log limit
  log="$(tr -d '`' <<<"${CELLS["${row}|log"]}")" limit="${CELLS["${row}|wait for a successor"]}"
  if [[ "${limit}" == "without limit" ]]; then
    expect_alive "$1" "$3"
    kill -TERM "$3"
  else
    expect "${loop}: $1 has the limit that --wait_seconds sets" yes "$([[ "${limit}" == *cluster.chief_wait_seconds* ]] && echo yes)"
  fi
  ends "$1 gives up" "$(sed -E 's/^([0-9]+).*/\1/' <<<"${CELLS["${row}|exit code after that"]}")" "$3"
  [[ -n "${log}" ]] || return 0
  expect_said "${loop}: $1 says that it waits" "${log}" "${dir}/$1.log"
  expect_said "${loop}: $1 names who was missing" "${dir}/socket" "${dir}/$1.log"
}

# gives_up LOOP: expects that the other processes end after their limit if there is no successor.
gives_up() {
  local k
  begin "$1" body --wait_seconds=1
  ends "the chief" 1 "${chief}"
  for k in 0 1; do expect_gives_up "worker${k}" worker "${workers[k]}"; done
  expect_gives_up ps "parameter server" "${ps}"
  expect_gives_up evaluator evaluator "${evaluator}"
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

read_table "the others" "log,wait for a successor,exit code after that"
expect "the rows of the others" "evaluator,parameter server,worker" "$(paste -sd, <<<"${TABLE_ROWS}")"
read_table "what fails" "error,comes from,exit code,last step,record,workers,parameter server,evaluator"

# The columns are the failure, the loops in which it can occur, its row in the page, and the program's own error.
readonly FAILURES='body|session,supervisor,monitored,slim|body|body fails
exception|session,supervisor,monitored,slim|exception of the body|the body throws
hook|monitored|hook|hook fails
hook|graph_actions|hook|monitor FailingMonitor: hook fails
hook_exception|monitored|exception of a hook|the hook throws
service|monitored|hook|service fails
end|monitored|End of a hook|end fails
begin|monitored|AfterCreateSession of a hook|begin fails
thread|supervisor,monitored|thread|thread fails
service|supervisor|summary function of a Supervisor|service fails
init|session,supervisor,monitored,slim,graph_actions|init_fn|init fails
init_exception|supervisor|exception of init_fn|init_fn throws
local_init|supervisor,monitored,slim|local_init|local_init fails
timer|supervisor,monitored|checkpoint timer|No space left on device
disk|supervisor|checkpoint timer, and the disk stays full|No space left on device
nan|supervisor,monitored|loss not finite|
sigterm|supervisor,monitored,slim|SIGTERM|'
expect "the rows of the table" "$(cut -d'|' -f3 <<<"${FAILURES}" | sort -u)" "${TABLE_ROWS}"
((failures == 0)) || exit 1

while IFS='|' read -r what loops row text; do
  for loop in ${loops//,/ }; do in_background fails "${loop}" "${what}" "${row}" "${text}"; done
done <<<"${FAILURES}"
for loop in session supervisor; do in_background gives_up "${loop}"; done
for job in "${jobs[@]}"; do wait "${job}" || failures=$((failures + 1)); done

((failures == 0))
