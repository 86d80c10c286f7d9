#!/usr/bin/env bash
# Tests real processes whose results differ from their run's: a worker that is refused, a worker that an audit detects,
# and a chief whose logdir has a different arithmetic version.
# Usage: contract.sh CHIEF WORKER LOCKSTEP CONFIG   (the binaries, WORKER being erring_worker, and a run's
# configuration)
set -uo pipefail

readonly CHIEF="$1" WORKER="$2" LOCKSTEP="$3" CONFIG="$4"
# shellcheck source=tests/fault/expectations.sh
source "$(dirname "$0")/expectations.sh"
HOST="$(uname -n)"
readonly HOST

# start_chief LOG FLAGS...: sets PID and MASTER.
start_chief() {
  rm -f "${WORK}/port"
  "${CHIEF}" "${CONFIG}" --listen=127.0.0.1:0 --port_file="${WORK}/port" "${@:2}" >"$1" 2>&1 &
  PID=$!
  pids+=("${PID}")
  while [[ ! -s "${WORK}/port" ]] && kill -0 "${PID}" 2>/dev/null; do sleep 0.02; done
  MASTER="grpc://127.0.0.1:$(cat "${WORK}/port" 2>/dev/null)"
}

# start_worker NAME HOW: sets PID.
start_worker() {
  ERRING_WORKER="$2" "${WORKER}" --master="${MASTER}" --name="$1" >"${WORK}/$1.log" 2>&1 &
  PID=$!
  pids+=("${PID}")
}

# await_step N CHIEF
await_step() {
  until [[ -s "${WORK}/run/checkpoint" ]] && (($(sed -n 's/^model_checkpoint_path: "model.ckpt-\(.*\)"/\1/p' "${WORK}/run/checkpoint") >= $1)); do
    kill -0 "$2" 2>/dev/null || break
    sleep 0.05
  done
}

echo "refuses"
start_chief "${WORK}/chief.log" --logdir="${WORK}/run"
chief="${PID}"
start_worker good ""
good="${PID}"
await_step 100 "${chief}"
for how in last_bit activation; do
  start_worker "${how}" "${how}"
  ends "a worker with another ${how} ends" 1 "${PID}"
  expect_said "it knows both hosts" "of ${how} on ${HOST} differs from that of good on ${HOST}" "${WORK}/${how}.log"
  expect_said "so does the chief" "a worker is refused: the worker computes other bits than the run" "${WORK}/chief.log"
done
"${LOCKSTEP}" status --master="${MASTER}" >"${WORK}/status.log"
expect_said "status has the workers' hosts" "good    ${HOST}" "${WORK}/status.log"
kill -TERM "${chief}"
ends "the chief is terminated" 143 "${chief}"
kill -TERM "${good}"
ends "the good worker is terminated" 143 "${good}"

echo "another arithmetic"
newest="$(sed -n 's/^model_checkpoint_path: "\(.*\)"/\1/p' "${WORK}/run/checkpoint")"
sed -i 's/arithmetic_version: .*/arithmetic_version: 99/' "${WORK}/run/lockstep.textproto"
start_chief "${WORK}/arithmetic.log" --logdir="${WORK}/run"
ends "the logdir is refused" 2 "${PID}"
expect_said "the way out is named" "warm_start: \"${WORK}/run/${newest}\"" "${WORK}/arithmetic.log"

# start_audited MODE: starts a chief and three workers, the third of which errs from then on. Sets chief and workers.
start_audited() {
  rm -f "${WORK}/broken"
  start_chief "${WORK}/audit.log" --logdir="${WORK}/audit" --set=audit.fraction=1 --set=audit.on_mismatch="$1"
  chief="${PID}"
  workers=()
  for name in first second third; do
    start_worker "${name}" "$([[ "${name}" != third ]] || echo "${WORK}/broken")"
    workers+=("${PID}")
  done
  until (($("${LOCKSTEP}" status --master="${MASTER}" | grep -c "^[a-z]* *${HOST}") == 3)); do
    kill -0 "${chief}" 2>/dev/null || break
    sleep 0.05
  done
  touch "${WORK}/broken"
}

echo "audits"
start_audited FAIL
ends "a bit that flips ends the run" 1 "${chief}"
# A copy that arrives after its step can be compared with only one other.
expect_said "it names the variable" "the gradient of logits/" "${WORK}/audit.log"
for name in first second third; do
  ends "so does the ${name} worker" 1 "${workers[0]}"
  workers=("${workers[@]:1}")
  expect_said "it knows what differs" " on ${HOST} differs from that by " "${WORK}/${name}.log"
done
"${LOCKSTEP}" inspect "${WORK}/audit" >"${WORK}/inspect.log" 2>&1
expect "the last checkpoint is good" 0 "$?"

echo "outvotes"
rm -rf "${WORK}/audit"
start_audited LOG
await_said "third on ${HOST} is outvoted by first on ${HOST} and second on ${HOST}" "${WORK}/audit.log" "${chief}"
kill -TERM "${chief}"
ends "the run goes on until it is stopped" 143 "${chief}"

((failures == 0)) && echo PASSED
exit "$((failures > 0))"
