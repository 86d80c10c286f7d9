#!/usr/bin/env bash
# Tests a run's id with real processes: a chief has the wrong logdir when workers of the run return.
# Usage: identity.sh CHIEF WORKER LOCKSTEP PROGRAM CONFIG   (the binaries, a program that trains, and a run's
# configuration)
set -uo pipefail

readonly CHIEF="$1" WORKER="$2" LOCKSTEP="$3" PROGRAM="$4" CONFIG="$5"
# shellcheck source=tests/fault/expectations.sh
source "$(dirname "$0")/expectations.sh"

readonly ADDRESS="${WORK}/address"
STEPS=0

# start_chief LOG LOGDIR FLAGS...: returns when the chief listens or has ended; sets PID.
start_chief() {
  : >"$1"
  start "$1" "${CHIEF}" "${CONFIG}" --listen=127.0.0.1:0 --address_file="${ADDRESS}" --steps=1000000 --logdir="$2" "${@:3}"
  await_said "listening on" "$1" "${PID}"
}
start_worker() { start "$1" "${WORKER}" --master="file:${ADDRESS}" --name="$2"; }

# await_step N: waits until the run has passed step N; sets STEPS.
await_step() {
  STEPS=-1
  while ((STEPS <= $1)); do
    STEPS="$("${LOCKSTEP}" status --master="file:${ADDRESS}" --json 2>/dev/null | sed -n 's/.*"global_step": *"\{0,1\}\([0-9]*\).*/\1/p')"
    STEPS="${STEPS:--1}"
  done
}

run_of() { sed -n 's/^run_id: "\(.*\)"/\1/p' "$1/lockstep.textproto"; }
lives() { kill -0 "$1" 2>/dev/null && echo lives; }

echo "a run keeps its id"
start_chief "${WORK}/first.log" "${WORK}/a"
chief="${PID}"
for worker in 1 2; do
  start_worker "${WORK}/worker${worker}.log" "worker-${worker}"
  workers[worker]="${PID}"
done
await_step 20
run="$(run_of "${WORK}/a")"
expect "an id has sixteen digits" 16 "${#run}"
"${LOCKSTEP}" status --master="file:${ADDRESS}" >"${WORK}/status.log"
expect_said "status shows it" "${run}" "${WORK}/status.log"
kill -KILL "${chief}"
wait "${chief}"
start_chief "${WORK}/second.log" "${WORK}/a"
chief="${PID}"
await_step 200
expect "a chief that was killed has the same run" "${run}" "$(run_of "${WORK}/a")"
expect "its workers come back" "lives lives" "$(lives "${workers[1]}") $(lives "${workers[2]}")"

echo "a chief with an empty logdir"
kill -KILL "${chief}"
wait "${chief}"
for round in 1 2; do
  start_chief "${WORK}/empty${round}.log" "${WORK}/b"
  ends "it ends, start ${round}" 2 "${PID}"
  expect_said "it names the run of the workers" "has served run ${run} up to step" "${WORK}/empty${round}.log"
  expect_said "and its logdir" "the logdir ${WORK}/b was empty" "${WORK}/empty${round}.log"
  expect_said "and the way out" "--new_run" "${WORK}/empty${round}.log"
done
expect "it has trained nothing" "" "$(find "${WORK}/b" -name 'model.ckpt*')"
expect "the workers wait for the right one" "lives lives" "$(lives "${workers[1]}") $(lives "${workers[2]}")"
start_chief "${WORK}/third.log" "${WORK}/a"
chief="${PID}"
await_step $((STEPS + 20))
kill -KILL "${chief}"
wait "${chief}"

echo "a worker without memory comes first"
kill -STOP "${workers[2]}"
kill -TERM "${workers[1]}"
ends "a worker is started again" 143 "${workers[1]}"
start_worker "${WORK}/worker1.log" worker-1
workers[1]="${PID}"
start_chief "${WORK}/fresh.log" "${WORK}/c"
chief="${PID}"
await_said "the model was declared by worker-1" "${WORK}/fresh.log" "${chief}"
kill -STOP "${workers[1]}"
kill -CONT "${workers[2]}"
ends "the other one ends the chief all the same" 2 "${chief}"
expect_said "it names the worker" "worker-2 on $(uname -n) has served run ${run}" "${WORK}/fresh.log"
new="$(run_of "${WORK}/c")"
kill -STOP "${workers[2]}"
start_chief "${WORK}/fresh.log" "${WORK}/c"
ends "nor is the new run resumed" 2 "${PID}"
expect_said "it names both runs" "so run ${new} began at step 0: start the chief with the logdir whose lockstep.textproto names run ${run}" \
  "${WORK}/fresh.log"

echo "a new run"
start_chief "${WORK}/new.log" "${WORK}/c" --new_run
chief="${PID}"
kill -CONT "${workers[@]}"
ends "a worker of the old run is refused" 1 "${workers[2]}"
expect_said "it says why" "has served run ${run} up to step" "${WORK}/worker2.log"
expect_said "and by which run" "and this is run ${new}" "${WORK}/worker2.log"
start_worker "${WORK}/worker2.log" worker-2
workers[2]="${PID}"
await_step 40
expect "both train the new run" "lives lives" "$(lives "${workers[1]}") $(lives "${workers[2]}")"
kill -TERM "${chief}"
ends "its chief is stopped" 143 "${chief}"
expect "its id stays" "${new}" "$(run_of "${WORK}/c")"
start_chief "${WORK}/resumed.log" "${WORK}/c"
await_step $((STEPS + 20))
kill -KILL "${workers[@]}" "${PID}"
wait

echo "a program's chief"
rm "${ADDRESS}"
program_chief() { start "$1" "${PROGRAM}" --listen=127.0.0.1:0 --address_file="${ADDRESS}" --logdir="$2" --steps=100000000 "${@:3}"; }
program_chief "${WORK}/program.log" "${WORK}/p"
chief="${PID}"
for worker in 1 2; do
  start "${WORK}/program${worker}.log" "${PROGRAM}" --master="file:${ADDRESS}" --task_index="${worker}"
  workers[worker]="${PID}"
done
await_said "step 20000:" "${WORK}/program.log" "${chief}"
for worker in 1 2; do await_said "session" "${WORK}/program${worker}.log" "${workers[worker]}"; done
kill -KILL "${chief}"
wait "${chief}"
# The program's chief also computes, so the run begins before the workers find the chief.
program_chief "${WORK}/program.log" "${WORK}/q"
ends "it ends, too" 2 "${PID}"
expect_said "it says why" "has served run $(run_of "${WORK}/p") up to step" "${WORK}/program.log"
expect "its workers live" "lives lives" "$(lives "${workers[1]}") $(lives "${workers[2]}")"

((failures == 0))
