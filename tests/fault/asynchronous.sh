#!/usr/bin/env bash
# Tests the policies that are not deterministic with real processes. Gradients are exactly 1 and SGD has rate 1, so the
# weight is minus the number of updates. Under ASYNC, in every checkpoint this number must equal the sum of the
# positions of all streams, and the global step, whatever was killed or frozen. Under FIRST_ARRIVALS, a step of R
# batches counts once, and stale batches are spent in addition.
# Usage: asynchronous.sh CHIEF WORKER LOCKSTEP COUNT_BATCHES   (the binaries)
set -uo pipefail

readonly CHIEF="$1" WORKER="$2" LOCKSTEP="$3" COUNT="$4"
# shellcheck source=tests/fault/expectations.sh
source "$(dirname "$0")/expectations.sh"

readonly ADDRESS="${WORK}/address" CONFIG="${WORK}/count.textproto"
readonly STEPS=60000
POLICY=ASYNC
REPLICAS=1

count_updates "${STEPS}" 2000 1 >"${CONFIG}"

# start_chief LOGDIR FLAGS...: returns when the chief listens or has ended; sets PID.
start_chief() {
  : >"${WORK}/chief.log"
  start "${WORK}/chief.log" "${CHIEF}" "${CONFIG}" --listen=127.0.0.1:0 --address_file="${ADDRESS}" --logdir="$1" "${@:2}"
  await_said "listening on" "${WORK}/chief.log" "${PID}"
}

start_worker() { start "${WORK}/worker.log" "${WORKER}" --master="file:${ADDRESS}"; }

# await_step STEP PID: waits until the run has reached the step or the chief has ended.
await_step() {
  local step=0
  while ((step < $1)) && kill -0 "$2" 2>/dev/null; do
    step="$("${LOCKSTEP}" status --master="file:${ADDRESS}" --json 2>/dev/null | sed -n 's/.*"global_step": *"\{0,1\}\([0-9]*\).*/\1/p')"
    step="${step:-0}"
  done
}

# kill_process PID: kills the process as if its machine had lost power.
kill_process() {
  kill -KILL "$1"
  wait "$1" 2>/dev/null
}

# disturbed_run LOGDIR FLAGS...: kills workers and the chief, and freezes a worker, until the run ends.
disturbed_run() {
  local chief step worker disturbances=0
  local -a workers
  start_chief "$@"
  chief="${PID}"
  expect "the first line names the policy" 1 "$(head -n 1 "${WORK}/chief.log" | grep -c "policy ${POLICY}: .*not reproducible")"
  for worker in 0 1 2; do
    start_worker
    workers[worker]="${PID}"
  done
  for ((step = 3000; step < STEPS - 6000; step += 6000)); do
    await_step "${step}" "${chief}"
    kill -0 "${chief}" 2>/dev/null || break
    disturbances=$((disturbances + 1))
    worker=$((step / 6000 % 3))
    case $((step / 6000 % 4)) in
      0 | 2)
        kill_process "${workers[worker]}"
        start_worker
        workers[worker]="${PID}"
        ;;
      1)
        kill_process "${chief}"
        start_chief "$@"
        chief="${PID}"
        ;;
      3)
        kill -STOP "${workers[worker]}"
        await_step $((step + 2000)) "${chief}"
        kill -CONT "${workers[worker]}"
        ;;
    esac
  done
  ends "the run finishes" 0 "${chief}"
  expect "the run was disturbed at least five times" 1 "$((disturbances >= 5))"
  for worker in "${workers[@]}"; do ends "its workers finish" 0 "${worker}"; done
}

# check_counts LOGDIR: checks every checkpoint.
check_counts() {
  local index step value batches checked=0
  for index in $(find "$1" -name 'model.ckpt-*.index' | sort -V); do
    read -r step value batches < <("${COUNT}" "${index%.index}" count/kernel)
    expect "$(basename "${index}"): the weight" "$((-step))" "${value}"
    [[ "${POLICY}" == FIRST_ARRIVALS ]] || expect "$(basename "${index}"): one step for each batch" "${step}" "${batches}"
    expect "$(basename "${index}"): enough batches for the steps" 1 "$((step * REPLICAS <= batches))"
    checked=$((checked + 1))
  done
  expect "the last checkpoint is the end" "${STEPS}" "${step}"
  expect "there is a checkpoint for every 2,000 steps" 1 "$((checked > STEPS / 2000))"
}

echo "values in shared memory"
disturbed_run "${WORK}/shared"
check_counts "${WORK}/shared"

echo "values over sockets"
disturbed_run "${WORK}/sockets" --set=cluster.shared_memory=false
check_counts "${WORK}/sockets"

echo "another policy"
sed -i 's/ async { max_staleness: 8 }//' "${CONFIG}"
start_chief "${WORK}/shared"
ends "a deterministic chief is refused" 2 "${PID}"
expect_said "by name" "a run with policy ASYNC, and this configuration has policy DETERMINISTIC" "${WORK}/chief.log"

echo "the first arrivals"
POLICY=FIRST_ARRIVALS
REPLICAS=2
sed -i 's/seed: 3/& replicas_to_aggregate: 2 first_arrivals { total_replicas: 3 }/' "${CONFIG}"
disturbed_run "${WORK}/arrivals"
check_counts "${WORK}/arrivals"

((failures == 0))
