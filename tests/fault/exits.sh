#!/usr/bin/env bash
# Tests how real processes wait, fail and end: exit codes and messages.
# Usage: exits.sh CHIEF WORKER LOCKSTEP CONFIG   (the binaries, and a run's configuration)
set -uo pipefail

readonly CHIEF="$1" WORKER="$2" LOCKSTEP="$3" CONFIG="$4"
# shellcheck source=tests/fault/expectations.sh
source "$(dirname "$0")/expectations.sh"

# start_chief LOG FLAGS...: starts a chief that writes its port to ${WORK}/port; sets PID and MASTER.
start_chief() {
  rm -f "${WORK}/port"
  start "$1" "${CHIEF}" "${CONFIG}" --listen=127.0.0.1:0 --port_file="${WORK}/port" "${@:2}"
  while [[ ! -s "${WORK}/port" ]] && kill -0 "${PID}" 2>/dev/null; do sleep 0.02; done
  MASTER="grpc://127.0.0.1:$(cat "${WORK}/port" 2>/dev/null)"
}

global_step() {
  local step
  step="$("${LOCKSTEP}" status --master="${MASTER}" --json 2>/dev/null | sed -n 's/.*"global_step": *"\{0,1\}\([0-9]*\).*/\1/p')"
  echo "${step:-0}"
}

echo "waits"
start "${WORK}/lonely.log" "${WORKER}" --master=grpc://127.0.0.1:1 --chief_wait_seconds=2
ends "a worker gives up an absent chief" 138 "${PID}"
expect_said "it says that it waits" "waiting for the chief at grpc://127.0.0.1:1" "${WORK}/lonely.log"
expect_said "it names who was missing" "the chief at grpc://127.0.0.1:1 has been unreachable for 2s" "${WORK}/lonely.log"
expect_said "and why" "connection refused: no process listens there" "${WORK}/lonely.log"

start_chief "${WORK}/idle.log" --logdir="${WORK}/idle"
await_said "waiting for a worker to declare the model" "${WORK}/idle.log" "${PID}"
expect_said "a chief says that it waits" "waiting for a worker to declare the model" "${WORK}/idle.log"
kill -TERM "${PID}"
ends "a chief without a model is terminated" 143 "${PID}"

echo "stops and resumes"
logdir="${WORK}/run"
start_chief "${WORK}/chief.log" --logdir="${logdir}" --steps=1000000
chief="${PID}"
start "${WORK}/worker.log" "${WORKER}" --master="${MASTER}"
worker="${PID}"
await_said "saved ${logdir}/model.ckpt-20" "${WORK}/chief.log" "${chief}"

"${CHIEF}" "${CONFIG}" --logdir="${logdir}" --listen=127.0.0.1:0 >"${WORK}/second.log" 2>&1
expect "a second chief is refused" 138 "$?"
expect_said "it says why" "another chief is running in ${logdir}" "${WORK}/second.log"
expect_said "it names the other" "process ${chief} on $(uname -n)" "${WORK}/second.log"
expect "in one line" 1 "$(wc -l <"${WORK}/second.log")"

kill -TERM "${chief}"
ends "a chief is terminated" 143 "${chief}"
saved="$(sed -n 's/^model_checkpoint_path: "model.ckpt-\(.*\)"/\1/p' "${logdir}/checkpoint")"
expect_said "it saves first" "saved ${logdir}/model.ckpt-${saved}" "${WORK}/chief.log"
kill -TERM "${worker}"
ends "a worker is terminated" 143 "${worker}"

start_chief "${WORK}/chief.log" --logdir="${logdir}" --steps=1000000
kill -STOP "${PID}"
kill -TERM "${PID}" && kill -HUP "${PID}" && kill -INT "${PID}"
kill -CONT "${PID}"
ends "one stop that comes as three signals" 143 "${PID}"
expect_said "it is not a signal that ends it" "chief: terminating; Ctrl-C once more ends at once" "${WORK}/chief.log"

# If the newest checkpoint is damaged, the previous one is restored.
cp -r "${logdir}" "${WORK}/damaged"
printf 'X' | dd of="${WORK}/damaged/model.ckpt-${saved}.data-00000-of-00001" bs=1 seek=1000 conv=notrunc status=none
truncate -s -1 "$(find "${WORK}/damaged" -name '*.index' ! -name "model.ckpt-${saved}.index" | sort -V | tail -n 1)"
start_chief "${WORK}/damaged.log" --logdir="${WORK}/damaged" --steps=1000000
expect_said "a flipped bit is named" "model.ckpt-${saved} is damaged and skipped" "${WORK}/damaged.log"
expect "and so is a cut one" 2 "$(grep -c "is damaged and skipped" "${WORK}/damaged.log")"
expect_said "an older one is restored" "restored step" "${WORK}/damaged.log"
kill -TERM "${PID}"
ends "a chief that restored" 143 "${PID}"

# After a worker leaves in the middle of a step, the last step can be saved.
for round in 1 2 3; do
  log="${WORK}/round${round}.log"
  start_chief "${log}" --logdir="${logdir}" --steps=1000000
  chief="${PID}"
  start "${WORK}/worker.log" "${WORKER}" --master="${MASTER}"
  worker="${PID}"
  await_said "opened session" "${log}" "${chief}"
  next="$(($(global_step) + 3))"
  while (($(global_step) < next)) && kill -0 "${chief}" 2>/dev/null; do :; done
  kill -TERM "${worker}"
  ends "a worker is terminated in the middle of a step" 143 "${worker}"
  expect_said "it is not the signal that ends it" "terminating" "${WORK}/worker.log"
  kill -TERM "${chief}"
  ends "and the chief after it" 143 "${chief}"
  grep -F "could not be saved" "${log}" && failures=$((failures + 1))
  saved="$(sed -n 's/^model_checkpoint_path: "model.ckpt-\(.*\)"/\1/p' "${logdir}/checkpoint")"
  ((saved >= next)) || { echo "FAILED: step ${next} was reached, step ${saved} saved"; failures=$((failures + 1)); }
done

echo "cannot see"
# A symbolic link to itself cannot be opened, but is not absent: no new run begins, and no file is removed.
cp -r "${logdir}" "${WORK}/unseen"
for file in generation lockstep.textproto checkpoint "model.ckpt-${saved}.index"; do
  mv "${WORK}/unseen/${file}" "${WORK}/aside"
  ln -s "${file}" "${WORK}/unseen/${file}"
  before="$(ls "${WORK}/unseen")"
  "${CHIEF}" "${CONFIG}" --logdir="${WORK}/unseen" --listen=127.0.0.1:0 >"${WORK}/unseen.log" 2>&1
  expect "a chief that cannot read ${file}" 138 "$?"
  expect_said "it says so" "${WORK}/unseen/${file}: Too many levels of symbolic links" "${WORK}/unseen.log"
  expect "all files are there" "${before}" "$(ls "${WORK}/unseen")"
  mv -f "${WORK}/aside" "${WORK}/unseen/${file}"
done

echo "is taken over"
start_chief "${WORK}/first.log" --logdir="${WORK}/taken" --steps=1000000
first="${PID}"
start "${WORK}/worker.log" "${WORKER}" --master="${MASTER}"
worker="${PID}"
await_said "saved ${WORK}/taken/model.ckpt-20" "${WORK}/first.log" "${first}"
rm "${WORK}/taken/lock"
start_chief "${WORK}/second.log" --logdir="${WORK}/taken" --steps=1000000
ends "a chief whose lock another has" 1 "${first}"
expect_said "it says why" "the lock ${WORK}/taken/lock was replaced by another file" "${WORK}/first.log"
kill -TERM "${PID}"
ends "its successor" 143 "${PID}"
kill -TERM "${worker}"
ends "a worker that looks for a chief" 143 "${worker}"

echo "ends"
end_steps=$((saved + 40))
start_chief "${WORK}/end.log" --logdir="${logdir}" --steps="${end_steps}"
chief="${PID}"
start "${WORK}/worker1.log" "${WORKER}" --master="${MASTER}"
worker1="${PID}"
start "${WORK}/worker2.log" "${WORKER}" --master="${MASTER}"
worker2="${PID}"
ends "the first worker of a finished run" 0 "${worker1}"
ends "the second" 0 "${worker2}"
await_said "workers that start within 2s still learn of it" "${WORK}/end.log" "${chief}"
expect_said "the chief says that it lingers" "workers that start within 2s still learn of it" "${WORK}/end.log"
ends "the chief of a finished run" 0 "${chief}"
expect_said "the last step is saved" "saved ${logdir}/model.ckpt-${end_steps}" "${WORK}/end.log"

start_chief "${WORK}/linger.log" --logdir="${logdir}" --steps="${end_steps}" --set=cluster.linger_seconds=1000
chief="${PID}"
for round in 1 2; do
  start "${WORK}/late.log" "${WORKER}" --master="${MASTER}"
  ends "a worker that starts after the end, while the chief lingers" 0 "${PID}"
done
kill -TERM "${chief}"
ends "a chief that lingers is asked to stop" 0 "${chief}"
start "${WORK}/late.log" "${WORKER}" --master="${MASTER}" --chief_wait_seconds=1
ends "a worker that starts when the chief is gone" 138 "${PID}"

echo "fails"
start_chief "${WORK}/nan.log" --logdir="${WORK}/nan" --set=optimizer.learning_rate.initial=1e38
chief="${PID}"
start "${WORK}/nan_worker.log" "${WORKER}" --master="${MASTER}"
ends "a worker of a run that failed" 1 "${PID}"
ends "a run whose numbers are not finite" 1 "${chief}"
expect_said "the chief says what" "is not finite" "${WORK}/nan.log"
expect_said "and so does the worker" "is not finite" "${WORK}/nan_worker.log"
"${LOCKSTEP}" inspect "${WORK}/nan" >"${WORK}/inspect.log" 2>&1
expect "the last checkpoint is good" 0 "$?"

"${CHIEF}" "${CONFIG}" --steps=-1 >"${WORK}/bad.log" 2>&1
expect "a bad configuration" 2 "$?"
"${CHIEF}" "${CONFIG}" --logdir="${WORK}/bad" --listen=nowhere:1 --insecure >"${WORK}/bad.log" 2>&1
expect "an address that cannot be had" 138 "$?"
"${WORKER}" --master= >"${WORK}/bad.log" 2>&1
expect "a worker without a master" 2 "$?"
for master in nowhere grpc://chief:http unix: a:1,file:/b; do
  "${WORKER}" --master="${master}" >"${WORK}/bad.log" 2>&1
  expect "a worker with the master ${master}" 2 "$?"
  "${LOCKSTEP}" status --master="${master}" >"${WORK}/bad.log" 2>&1
  expect "a status of the master ${master}" 2 "$?"
done
"${CHIEF}" "${CONFIG}" --advertise=chief >"${WORK}/bad.log" 2>&1
expect "a host for no address file" 2 "$?"

"${LOCKSTEP}" worker "${CONFIG}" --master= --logdir="${WORK}/alone" --steps=20 >"${WORK}/alone.log" 2>&1
expect "a worker with an empty master has its chief in the same process" 0 "$?"
expect_said "and the run is trained" "model.ckpt-20" "${WORK}/alone.log"

echo "moves"
address="${WORK}/chief.address"
start "${WORK}/follower.log" "${WORKER}" --master="grpc://127.0.0.1:1,unix:${WORK}/none"
await_said "waiting for the chief" "${WORK}/follower.log" "${PID}"
kill -TERM "${PID}"
ends "a worker that is stopped while it looks for a chief" 143 "${PID}"
expect "and that is no error" 0 "$(grep -c '^E' "${WORK}/follower.log")"
start "${WORK}/follower.log" "${WORKER}" --master="file:${address}"
worker="${PID}"
start_chief "${WORK}/first.log" --logdir="${WORK}/moved" --address_file="${address}" --steps=100000000
chief="${PID}"
first="$(cat "${address}")"
expect "the address is in the file" "${MASTER}" "${first}"
until step="$(global_step)" && ((step > 20)); do sleep 0.05; done
kill -9 "${chief}"
wait "${chief}" || true
expect "the file keeps the address of a chief that died" "${first}" "$(cat "${address}")"
start_chief "${WORK}/second.log" --logdir="${WORK}/moved" --address_file="${address}" --steps="$((step + 1000))"
expect "another port, another address" "${MASTER}" "$(cat "${address}")"
ends "the worker follows and ends" 0 "${worker}"
ends "the chief that moved" 0 "${PID}"
expect "the end is marked" finished "$(cat "${address}")"
"${CHIEF}" "${CONFIG}" --logdir="${WORK}/moved" --address_file="${address}" --listen=nowhere:1 --insecure --steps=100000000 \
  >"${WORK}/bad.log" 2>&1
expect "a chief that cannot listen" 138 "$?"
"${CHIEF}" "${CONFIG}" --logdir="${WORK}/moved" --address_file="${address}" --set=training.seed=99 >"${WORK}/bad.log" 2>&1
expect "a chief of another configuration" 2 "$?"
expect "a chief that does not start leaves the mark" finished "$(cat "${address}")"
"${CHIEF}" "${CONFIG}" --logdir="${WORK}/moved" --address_file="${address}" --listen=unix:/s --advertise=host \
  >"${WORK}/bad.log" 2>&1
expect "an address that cannot be advertised" 2 "$?"
start "${WORK}/late.log" "${WORKER}" --master="file:${address}"
ends "a worker that comes after the end" 0 "${PID}"
expect_said "it says why" "the run is over, says ${address}" "${WORK}/late.log"
start_chief "${WORK}/nan2.log" --logdir="${WORK}/nan2" --set=optimizer.learning_rate.initial=1e38 \
  --address_file="${address}"
chief="${PID}"
start "${WORK}/nan_worker2.log" "${WORKER}" --master="file:${address}"
ends "a worker of a run that failed, found by its file" 1 "${PID}"
ends "its chief" 1 "${chief}"
start "${WORK}/late.log" "${WORKER}" --master="file:${address}"
ends "a worker that comes after the failure" 1 "${PID}"
expect_said "it says which" "is not finite" "${WORK}/late.log"

((failures == 0))
