#!/usr/bin/env bash
# The fault matrix: trains one run under every disturbance, with real processes on loopback. Compares the digests of the
# final checkpoints with the digest for these flags in CONFIG's .digests file. Prints a table. Exits with 1 if a digest
# differs.
# Usage: matrix.sh CHIEF WORKER LOCKSTEP CONFIG [FLAG...]   (the binaries, a run's configuration, flags to change it)
set -uo pipefail

readonly CHIEF="$1" WORKER="$2" LOCKSTEP="$3" CONFIG="$4"
readonly FLAGS=("${@:5}")
WORK="$(mktemp -d)"
readonly WORK
chief_pid="" port="" logdir=""
worker_pids=()
failures=0

end_all() {
  local pid
  for pid in "${worker_pids[@]:-}" "${chief_pid}"; do
    [[ -n "${pid}" ]] && kill -KILL "${pid}" 2>/dev/null && wait "${pid}" 2>/dev/null
  done
  worker_pids=()
  chief_pid=""
}
trap 'end_all; rm -rf "${WORK}"' EXIT
trap 'exit 143' TERM INT

# start_chief [flags]: starts a chief in ${logdir}, on the port of the previous chief.
start_chief() {
  rm -f "${WORK}/port"
  "${CHIEF}" "${CONFIG}" "${FLAGS[@]}" --logdir="${logdir}" --listen="127.0.0.1:${port:-0}" --port_file="${WORK}/port" \
    --linger_seconds=0 "$@" >>"${logdir}.chief.log" 2>&1 &
  chief_pid=$!
  while [[ ! -s "${WORK}/port" ]]; do
    kill -0 "${chief_pid}" 2>/dev/null || { echo "the chief ended; ${logdir}.chief.log:"; cat "${logdir}.chief.log"; exit 1; }
    sleep 0.02
  done
  port="$(<"${WORK}/port")"
}

start_worker() {
  "${WORKER}" --master="grpc://127.0.0.1:${port}" --chief_wait_seconds=60 "$@" >>"${logdir}.workers.log" 2>&1 &
  worker_pids+=($!)
}

global_step() {
  "${LOCKSTEP}" status --master="grpc://127.0.0.1:${port}" --json 2>/dev/null |
    sed -n 's/.*"global_step": *"\{0,1\}\([0-9]*\).*/\1/p'
}

# wait_for_step STEP: waits until the global step has reached STEP. Returns 1 if the chief ends first.
wait_for_step() {
  local step
  while kill -0 "${chief_pid}" 2>/dev/null; do
    step="$(global_step)"
    (( ${step:-0} >= $1 )) && return 0
  done
  return 1
}

# must_reach STEP: fails the test if the run ends before the disturbance.
must_reach() {
  wait_for_step "$1" && return
  echo "the run ended before step $1 could be disturbed"
  exit 1
}

# Prints the process ids of the workers that have a token.
busy_workers() {
  "${LOCKSTEP}" status --master="grpc://127.0.0.1:${port}" --json 2>/dev/null | awk -F'"' '
    $2 == "name" { split($4, part, "[-@]"); pid = part[2] }
    $2 == "slot_count" && ($3 $4) ~ /[1-9]/ { print pid }'
}

kill_pid() {
  kill -KILL "$1" && wait "$1" 2>/dev/null
}

plain() {  # number of workers, flags of each
  local count="$1"
  shift
  start_chief
  for ((i = 0; i < count; ++i)); do start_worker "$@"; done
  wait "${chief_pid}"
}

in_process() {
  "${LOCKSTEP}" local "${CONFIG}" "${FLAGS[@]}" --logdir="${logdir}" >>"${logdir}.chief.log" 2>&1
}

worker_killed() {
  start_chief
  start_worker
  start_worker
  for step in 20 40 60 80 100 120 140 160 180; do
    must_reach "${step}"
    kill_pid "${worker_pids[0]}"
    worker_pids=("${worker_pids[@]:1}")
    start_worker
  done
  wait "${chief_pid}"
}

worker_frozen() {
  start_chief
  start_worker
  start_worker
  must_reach 30
  kill -STOP "${worker_pids[0]}"
  # The other worker can reach this step only after the frozen worker's lease (1 s) has expired.
  must_reach 60
  kill -CONT "${worker_pids[0]}"
  wait "${chief_pid}"
}

# Starts more workers than slots and backups need. The others wait, some of them also because of their startup delay,
# until the computing workers are killed or all frozen at the same time. New workers join in the middle of a step.
spare_workers() {
  local step pid i
  local -a frozen
  start_chief --set=cluster.linger_seconds=1000
  for _ in 1 2 3 4 5 6 7 8; do start_worker; done
  start_worker --startup_delay_steps=60
  start_worker --startup_delay_steps=1000
  for step in 20 40 60 80 100 120 140 160 180; do
    must_reach "${step}"
    if ((step % 40 == 0)); then
      # Between two steps, no worker has a token, so this asks several times.
      frozen=()
      for _ in 1 2 3 4 5 6 7 8; do
        [[ ${#frozen[@]} -gt 0 ]] || mapfile -t frozen < <(busy_workers)
      done
      [[ ${#frozen[@]} -gt 0 ]] || continue
      [[ ${#frozen[@]} -lt ${#worker_pids[@]} ]] || { echo "every worker of ten has slots"; return 1; }
      kill -STOP "${frozen[@]}"
      must_reach $((step + 5))
      kill -CONT "${frozen[@]}"
      continue
    fi
    for pid in $(busy_workers | head -n 3); do
      kill_pid "${pid}"
      for i in "${!worker_pids[@]}"; do
        [[ "${worker_pids[i]}" != "${pid}" ]] || unset "worker_pids[i]"
      done
      start_worker
    done
  done
  # Workers that start after the end of the run are notified.
  for pid in "${worker_pids[@]}"; do
    wait "${pid}" || { echo "a worker that was not killed ended with $?"; return 1; }
  done
  kill -TERM "${chief_pid}"
  wait "${chief_pid}"
}

chief_killed() {
  start_chief
  start_worker
  start_worker
  for step in 50 100 150; do
    must_reach "${step}"
    kill_pid "${chief_pid}"
    start_chief
  done
  wait "${chief_pid}"
}

stopped_and_resumed() {
  start_chief --steps=100
  start_worker
  wait "${chief_pid}" || return
  start_chief
  start_worker
  start_worker
  wait "${chief_pid}"
}

chief_terminated() {
  start_chief
  start_worker
  must_reach 70
  kill -TERM "${chief_pid}"
  wait "${chief_pid}"
  [[ $? == 143 ]] || { echo "the chief's exit code was not 143"; return 1; }
  start_chief
  wait "${chief_pid}"
}

# Prints the recorded digest for these flags, or nothing if there is none.
digest_on_record() {
  local digest flags
  while read -r digest flags; do
    [[ "${digest}" == "#" || "${flags}" != "${FLAGS[*]}" ]] || echo "${digest}"
  done <"${CONFIG%.textproto}.digests"
}

# Prints the kernel targets that this processor supports.
available_targets() {
  local target
  for target in avx2 avx512 neon; do
    ! LOCKSTEP_TARGET="${target}" "${LOCKSTEP}" --version >/dev/null 2>&1 || echo "${target}"
  done
}

on_target() {  # target, command...
  local -x LOCKSTEP_TARGET="$1"
  "${@:2}"
}

# Runs two workers for each target, and a chief with the first target. One worker of each target is killed during the
# run.
mixed_targets() {
  local target i
  on_target "${targets[0]}" start_chief
  for target in "${targets[@]}"; do
    on_target "${target}" start_worker
    on_target "${target}" start_worker
  done
  must_reach 60
  for i in "${!targets[@]}"; do
    kill_pid "${worker_pids[2 * i]}"
    on_target "${targets[i]}" start_worker
    unset "worker_pids[2 * i]"
  done
  wait "${chief_pid}"
}

mapfile -t targets < <(available_targets)
readonly targets
((${#targets[@]} > 0)) || { echo "LOCKSTEP_TARGET names none that this processor has"; exit 1; }
reference="$(digest_on_record)"
against="the digest on record"
[[ -n "${reference}" ]] || against="the first" # there is no recorded digest
readonly against
scenarios=0
scenario() {  # title, command...
  local title="$1" begin="${EPOCHREALTIME/./}" digest verdict="same" seconds
  shift
  scenarios=$((scenarios + 1))
  logdir="${WORK}/${title//[^a-z0-9]/_}"
  port=""
  if ! "$@"; then
    verdict="FAILED"
  fi
  end_all
  seconds=$(((${EPOCHREALTIME/./} - begin) / 100000))
  digest="$("${LOCKSTEP}" inspect "${logdir}" --digest 2>>"${logdir}.chief.log")" || verdict="FAILED"
  [[ -n "${reference}" ]] || reference="${digest}"
  [[ "${verdict}" == FAILED || "${digest}" == "${reference}" ]] || verdict="DIFFERENT"
  printf '%-46s %4d.%d s  %-16s %s\n' "${title}" $((seconds / 10)) $((seconds % 10)) "${digest:0:16}" "${verdict}"
  if [[ "${verdict}" != same ]]; then
    failures=$((failures + 1))
    tail -n 20 "${logdir}".*.log
  fi
}

((${#FLAGS[@]} == 0)) || echo "with ${FLAGS[*]}"
printf '%-46s %8s  %-16s %s\n' "after 200 steps, R = 4" "time" "digest" "against ${against}"
scenario "in process" in_process
scenario "1 worker" plain 1
scenario "2 workers" plain 2
scenario "3 workers" plain 3
scenario "4 workers" plain 4
scenario "6 workers, two of them backups" plain 6
scenario "2 workers with 2 compute threads" plain 2 --compute_threads=2
scenario "a worker killed with -9 every 20 steps" worker_killed
scenario "10 workers, those that compute killed or frozen" spare_workers
scenario "a worker frozen for longer than its lease" worker_frozen
scenario "the chief killed with -9 three times" chief_killed
scenario "stopped at step 100 and resumed" stopped_and_resumed
scenario "the chief terminated, then started again" chief_terminated
for target in "${targets[@]}"; do
  scenario "2 workers, all processes with ${target}" on_target "${target}" plain 2
done
if ((${#targets[@]} > 1)); then
  scenario "workers with ${targets[*]}, some killed" mixed_targets
else
  echo "SKIPPED: workers with several targets, since this processor has ${targets[*]} alone"
fi
if ((failures > 0)); then
  echo "${failures} of ${scenarios} differ or failed"
  exit 1
fi
echo "all ${scenarios} have the same digest: ${reference}"
