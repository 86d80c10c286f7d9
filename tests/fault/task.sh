#!/usr/bin/env bash
# Runs `lockstep task` as several launchers do, with real processes that are killed and stopped. The digest must be the
# same as with a single process.
# Usage: task.sh LOCKSTEP CONFIG   (the program, and a run's configuration)
set -uo pipefail

LOCKSTEP="$(readlink -f "$1")"
CONFIG="$(readlink -f "$2")"
readonly LOCKSTEP CONFIG STEPS=500
# The master file:PATH makes the chief listen on all interfaces, for tasks on other machines.
export LOCKSTEP_ADVERTISE=127.0.0.1 LOCKSTEP_INSECURE=1
# shellcheck source=tests/fault/expectations.sh
source "$(dirname "$0")/expectations.sh"
export TMPDIR="${WORK}"

digest() { "${LOCKSTEP}" inspect "$1" --digest 2>&1; }

# start_task NAME VARIABLES... -- FLAGS...: starts a task; sets PID. Its output goes to ${WORK}/NAME.log.
start_task() {
  local log="${WORK}/$1.log"
  shift
  local -a variables=()
  while [[ "$1" != -- ]]; do
    variables+=("$1")
    shift
  done
  shift
  start "${log}" env --default-signal "${variables[@]}" "${LOCKSTEP}" task "$@"
}

# child_of PROCESS WORD: prints the task's child whose command line has the word.
child_of() {
  local child
  for child in $(cat "/proc/$1/task/$1/children"); do
    if tr '\0' ' ' <"/proc/${child}/cmdline" | grep -qF -- "$2"; then echo "${child}"; fi
  done
}

# kill_child TASK WORD: kills the child as soon as it runs.
kill_child() {
  local child
  until child="$(child_of "$1" "$2")" && [[ -n "${child}" ]]; do
    kill -0 "$1" 2>/dev/null || return 1
    sleep 0.02
  done
  kill -KILL "${child}"
  while kill -0 "${child}" 2>/dev/null; do sleep 0.02; done
}

echo "one task computes alone"
start_task alone -- "${CONFIG}" --steps="${STEPS}" --logdir="${WORK}/alone"
ends "a task without a launcher" 0 "${PID}"
expected="$(digest "${WORK}/alone")"

echo "an Indexed Job: the worker of one pod is killed twice, and the chief"
at="file:${WORK}/job/address"
mkdir "${WORK}/job"
tasks=()
for index in 0 1 2; do
  start_task "job-${index}" JOB_COMPLETION_INDEX="${index}" HOSTNAME="job-${index}" LOCKSTEP_MASTER="${at}" \
    -- "${CONFIG}" --steps="${STEPS}" --logdir="${WORK}/job" --set=cluster.linger_seconds=2
  tasks+=("${PID}")
done
start_task ps TF_CONFIG='{"task": {"type": "ps"}}' LOCKSTEP_MASTER="${at}" -- "${CONFIG}"
ps="${PID}"
await_said "saved ${WORK}/job/model.ckpt-20" "${WORK}/job-0.log" "${tasks[0]}"
kill_child "${tasks[1]}" "--name=worker-1"
kill_child "${tasks[1]}" "--name=worker-1"
kill_child "${tasks[0]}" "--listen="
for index in 0 1 2; do ends "pod ${index}" 0 "${tasks[index]}"; done
expect_said "a worker is started again" "worker-0 was killed by SIGKILL; starting it again (2 of 10)" "${WORK}/job-1.log"
expect_said "the chief is started again" "chief was killed by SIGKILL; starting it again (1 of 10)" "${WORK}/job-0.log"
expect "the weights of the job" "${expected}" "$(digest "${WORK}/job")"
ends "a ps" 0 "${ps}"

echo "two workers of TF_CONFIG and a program; both stop and resume"
at="unix:${WORK}/socket"
cluster() { echo '{"cluster": {"worker": ["a:1", "b:1"]}, "task": {"type": "worker", "index": '"$1"'}}'; }
begin_two() {
  start_task two-0 TF_CONFIG="$(cluster 0)" LOCKSTEP_MASTER="${at}" -- "${CONFIG}" --steps="${STEPS}" \
    --logdir="${WORK}/two" --set=cluster.linger_seconds=2
  first="${PID}"
  start_task two-1 TF_CONFIG="$(cluster 1)" LOCKSTEP_MASTER="${at}" -- "${CONFIG}" -- "${LOCKSTEP}" worker --compute_threads=1
  second="${PID}"
}
begin_two
await_said "saved ${WORK}/two/model.ckpt-20" "${WORK}/two-0.log" "${first}"
kill -USR1 "${second}" # A worker has nothing to save.
kill -TERM "${first}" "${second}"
ends "the leading worker stops" 143 "${first}"
ends "the program stops" 143 "${second}"
begin_two
ends "the leading worker resumes" 0 "${first}"
ends "the program resumes" 0 "${second}"
expect "the weights of two workers" "${expected}" "$(digest "${WORK}/two")"
expect_said "the program was named" "worker-1 opened session" "${WORK}/two-0.log"

echo "two tasks over TLS, and a chief that computes alone"
at="file:${WORK}/tls/address"
mkdir "${WORK}/tls"
"${LOCKSTEP}" certs init "${WORK}/ca" >"${WORK}/certs.log"
for role in chief worker viewer; do
  "${LOCKSTEP}" certs issue "${WORK}/ca" --role="${role}" --out="${WORK}/${role}-kit" >>"${WORK}/certs.log"
done
start_task tls-0 LOCKSTEP_INSECURE=false LOCKSTEP_TLS_DIR="${WORK}/chief-kit" JOB_COMPLETION_INDEX=0 HOSTNAME=job-0 \
  LOCKSTEP_MASTER="${at}" -- "${CONFIG}" --steps="${STEPS}" --logdir="${WORK}/tls" --set=cluster.linger_seconds=2 --workers=0
first="${PID}"
await_said "grpc://" "${WORK}/tls/address" "${first}" 2>/dev/null
start "${WORK}/trace.log" "${LOCKSTEP}" trace --master="${at}" --tls_dir="${WORK}/viewer-kit" --steps=2 --out="${WORK}/trace.json"
trace="${PID}"
start_task tls-ps TF_CONFIG='{"task": {"type": "ps"}}' LOCKSTEP_MASTER="${at}" -- "${CONFIG}" --tls_dir="${WORK}/worker-kit"
ps="${PID}"
start_task tls-1 LOCKSTEP_INSECURE=false LOCKSTEP_TLS_DIR="${WORK}/worker-kit" JOB_COMPLETION_INDEX=1 HOSTNAME=job-1 \
  LOCKSTEP_MASTER="${at}" -- "${CONFIG}"
second="${PID}"
ends "a viewer's trace" 0 "${trace}"
ends "the chief's task" 0 "${first}"
ends "the worker's task" 0 "${second}"
ends "a ps over TLS" 0 "${ps}"
expect "the weights over TLS" "${expected}" "$(digest "${WORK}/tls")"
expect_said "a worker came over TLS" "worker-1 opened session" "${WORK}/tls-0.log"
start_task tls-alone LOCKSTEP_INSECURE=false LOCKSTEP_TLS_DIR="${WORK}/chief-kit" LOCKSTEP_ROLE=chief LOCKSTEP_MASTER="${at}" \
  -- "${CONFIG}" --steps="${STEPS}" --logdir="${WORK}/tls-alone" --workers=1
ends "a chief with TLS and a worker of its own" 0 "${PID}"
expect "the weights over its socket" "${expected}" "$(digest "${WORK}/tls-alone")"
at="unix:${WORK}/socket"

echo "mistakes"
# refuses WHAT CODE TEXT VARIABLES... -- FLAGS...
refuses() {
  start_task mistake "${@:4}"
  ends "$1" "$2" "${PID}"
  expect_said "$1" "$3" "${WORK}/mistake.log"
}
refuses "contradicting launchers" 2 "say whom to follow with --launcher=kubernetes or --launcher=torch" \
  JOB_COMPLETION_INDEX=0 RANK=1 WORLD_SIZE=2 -- "${CONFIG}"
refuses "a sparse cluster" 2 'TF_CONFIG has a "sparseCluster"' TF_CONFIG='{"sparseCluster": {}}' -- "${CONFIG}"
refuses "a chief without a configuration" 2 "this task is the chief (no launcher's variables) and needs CONFIG" --
refuses "a chief without its file" 2 "nothing.textproto" -- "${WORK}/nothing.textproto"
refuses "a chief that other machines reach" 2 "other machines can reach 0.0.0.0:0" LOCKSTEP_INSECURE=false \
  LOCKSTEP_ROLE=chief LOCKSTEP_MASTER="file:${WORK}/nobody" -- "${CONFIG}"
refuses "a program that fails" 1 "worker-0 ended with exit code 3" LOCKSTEP_MASTER="${at}" -- -- bash -c 'exit 3'
refuses "a program that does not exist" 1 "worker-0 ended with exit code 127" LOCKSTEP_MASTER="${at}" -- -- no-such-program
refuses "a chief that stays away" 138 "worker-0 ended with exit code 138" LOCKSTEP_MASTER="${at}" \
  LOCKSTEP_CHIEF_WAIT_SECONDS=0.1 -- --max_restarts=0

long="${WORK}/$(printf 'x%.0s' {1..100})"
mkdir "${long}"
refuses "a directory too deep for a socket" 2 "set TMPDIR to a shorter path" TMPDIR="${long}" LOCKSTEP_INSECURE=false \
  LOCKSTEP_TLS_DIR="${WORK}/chief-kit" LOCKSTEP_ROLE=chief LOCKSTEP_MASTER="file:${WORK}/nobody" -- "${CONFIG}"
expect "directories that the refused task left" "" "$(ls "${long}")"

expect "directories of the tasks that are left" "" "$(find "${WORK}" -maxdepth 1 -name 'lockstep-*')"
((failures == 0)) || echo "${failures} failures"
((failures == 0))
