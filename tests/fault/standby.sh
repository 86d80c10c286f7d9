#!/usr/bin/env bash
# Tests a standby with real processes: it replaces a killed chief and a frozen one. The workers of the frozen chief join
# the standby while it is frozen. When it wakes, it ends without changing a file. Under DETERMINISTIC, the weights are the same as in an undisturbed run. Under ASYNC, every
# checkpoint contains each update once (asynchronous.sh describes how that is counted).
# Usage: standby.sh CHIEF WORKER LOCKSTEP CONFIG COUNT_BATCHES   (the binaries and a run's configuration)
set -uo pipefail

readonly CHIEF="$1" WORKER="$2" LOCKSTEP="$3" DETERMINISTIC="$4" COUNT="$5"
# shellcheck source=tests/fault/expectations.sh
source "$(dirname "$0")/expectations.sh"

readonly ASYNC="${WORK}/count.textproto" STEPS=100000000
count_updates "${STEPS}" 500 5 >"${ASYNC}"

# A thread in a system call, such as a rename that waits for the disk, stops later than other threads.
is_paused() {
  local states
  states="$(sed -n 's/^State:\s*\(.\).*/\1/p' "/proc/$1"/task/*/status)"
  [[ -n "${states}" && -z "${states//[T[:space:]]/}" ]]
}
pause() {
  kill -STOP "$1"
  await "process $1 is paused" 20 is_paused "$1"
}
# contents LOGDIR: prints a digest of every file.
contents() { find "$1" -type f -print0 | sort -z | xargs -0 sha256sum; }

# start_chief NAME FLAGS...: sets PID. Uses `config` and `logdir`.
start_chief() {
  : >"${WORK}/$1.log"
  start "${WORK}/$1.log" "${CHIEF}" "${config}" --steps="${STEPS}" --set=cluster.lease_seconds=5 --logdir="${logdir}" \
    --listen="unix:${WORK}/$1.sock" "${@:2}"
}

# begin NAME CONFIG: starts a chief, its standby and two workers; returns when the run has two checkpoints.
begin() {
  local first="$1-first" second="$1-second" worker
  config="$2" logdir="${WORK}/$1"
  start_chief "${first}"
  chief="${PID}"
  await_said "listening on" "${WORK}/${first}.log" "${chief}"
  start_chief "${second}" --standby
  standby="${PID}"
  await_said "stands by for the chief in ${logdir}" "${WORK}/${second}.log" "${standby}"
  workers=()
  for worker in 0 1; do
    start "${WORK}/$1-worker-${worker}.log" "${WORKER}" --master="unix:${WORK}/${first}.sock,unix:${WORK}/${second}.sock"
    workers+=("${PID}")
  done
  await "$1: it trains" 60 has_checkpoints 2
}
has_checkpoints() { (($(find "${logdir}" -name 'model.ckpt-*.index' ! -name 'model.ckpt-0.index' | wc -l) >= $1)); }

# finish NAME: the standby continues the run; then it stops, which saves the last step.
finish() {
  local worker
  await_said "saved ${logdir}/model.ckpt" "${WORK}/$1-second.log" "${standby}"
  kill -TERM "${standby}"
  ends "$1: the standby stops" 143 "${standby}"
  for worker in "${workers[@]}"; do
    kill -TERM "${worker}"
    ends "$1: a worker stops" 143 "${worker}"
  done
}

# replace_killed NAME CONFIG
replace_killed() {
  begin "$@"
  kill -KILL "${chief}"
  wait "${chief}" 2>/dev/null
  finish "$1"
}

# Both workers have found the standby.
have_left() {
  local worker
  for worker in 0 1; do
    grep -q "the chief of generation 1 is silent, and that of generation 2 answers at unix:${WORK}/$1-second.sock" \
      "${WORK}/$1-worker-${worker}.log" || return
  done
}

# replace_frozen NAME CONFIG
replace_frozen() {
  local before began
  begin "$@"
  began="${EPOCHREALTIME/./}"
  pause "${chief}"
  # A lease of 5 s, and a second each for the standby and a worker, with time to spare on a busy machine. A connection to
  # a frozen chief breaks after 35 s.
  await "$1: the workers leave the frozen chief" 20 have_left "$1"
  echo "$1: the workers left after $(((${EPOCHREALTIME/./} - began) / 1000)) ms"
  expect_said "$1: the standby says why" "generation 1 in ${logdir} is silent for 5s; takes over" "${WORK}/$1-second.log"
  # No other process changes files while the first chief wakes.
  pause "${standby}"
  before="$(contents "${logdir}")"
  kill -CONT "${chief}"
  ends "$1: the chief that wakes" 1 "${chief}"
  expect_said "$1: it says why" "the lock ${logdir}/lock was replaced by another file" "${WORK}/$1-first.log"
  expect "$1: the files are the standby's" "${before}" "$(contents "${logdir}")"
  kill -CONT "${standby}"
  finish "$1"
}

# check_weights NAME: compares the weights with those of an undisturbed run.
check_weights() {
  local step alone
  step="$(sed -n 's/^model_checkpoint_path: "model.ckpt-\(.*\)"/\1/p' "${WORK}/$1/checkpoint")"
  "${LOCKSTEP}" local "${DETERMINISTIC}" --steps="${step}" --logdir="${WORK}/$1-alone" >"${WORK}/$1-alone.log" 2>&1
  alone="$("${LOCKSTEP}" inspect "${WORK}/$1-alone" --digest)"
  echo "$1: step ${step} has the digest ${alone:?}"
  expect "$1: the weights of step ${step}" "${alone}" "$("${LOCKSTEP}" inspect "${WORK}/$1" --digest)"
}

# check_counts NAME: checks every checkpoint.
check_counts() {
  local index step value batches checked=0
  for index in "${WORK}/$1"/model.ckpt-*.index; do
    read -r step value batches < <("${COUNT}" "${index%.index}" count/kernel)
    expect "$1: $(basename "${index}"): the weight and the batches" "$((-step)) ${step}" "${value} ${batches}"
    checked=$((checked + 1))
  done
  echo "$1: ${checked} checkpoints, the last one checked has step ${step}"
  expect "$1: there are checkpoints" 1 "$((checked > 2))"
}

replace_killed killed "${DETERMINISTIC}"
check_weights killed
replace_frozen frozen "${DETERMINISTIC}"
check_weights frozen
replace_killed killed-async "${ASYNC}"
check_counts killed-async
replace_frozen frozen-async "${ASYNC}"
check_counts frozen-async

((failures == 0))
