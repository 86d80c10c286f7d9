#!/usr/bin/env bash
# Trains under Debian's Slurm with the scripts in this folder: a controller and three nodes on loopback. A worker is
# killed, a node dies, and a job is requeued and saves on USR1 and USR2. Every run must have the same digest as one
# process.
# Usage: slurm_test.sh LOCKSTEP CONFIG [long]   (the program, and a run's configuration)
# "long" instead runs the cases that take minutes: an array of workers, and a time limit.
set -uo pipefail

LOCKSTEP="$(readlink -f "$1")"
CONFIG="$(readlink -f "$2")"
SCRIPTS="$(dirname "$(readlink -f "$0")")"
readonly LOCKSTEP CONFIG SCRIPTS
export LOCKSTEP CONFIG
# Debian's daemons are there, but Bazel's PATH lacks this folder.
export PATH="${PATH}:/usr/sbin"
# Nodes must advertise this address, because their names cannot be resolved.
export LOCKSTEP_ADVERTISE=127.0.0.1

if ! command -v slurmctld >/dev/null || ! command -v munged >/dev/null; then
  echo "Slurm is not installed: apt-get install slurm-wlm munge"
  [[ "${CI:-}" != true ]]
  exit
fi
# shellcheck source=tests/fault/expectations.sh
source "$(dirname "$0")/../../tests/fault/expectations.sh"
# shellcheck source=deploy/slurm/cluster.sh
source "$(dirname "$0")/cluster.sh"
trap 'end_cluster; cleanup' EXIT

say() { printf '%3ds %s\n' "${SECONDS}" "$*"; }
digest() { "${LOCKSTEP}" inspect "$1" --digest 2>&1; }
newest() { sed -n 's/^model_checkpoint_path: "model.ckpt-\(.*\)"/\1/p' "$1/checkpoint" 2>/dev/null; }
saved_beyond() { (($(newest "$1" | grep . || echo -1) > $2)); }

# submit NAME SCRIPT OPTIONS... -- FLAGS...: submits a job of the run NAME; sets JOB and LOGDIR.
submit() {
  export LOGDIR="${WORK}/$1"
  local script="${SCRIPTS}/$2"
  shift 2
  local -a options=()
  while [[ "$1" != -- ]]; do
    options+=("$1")
    shift
  done
  JOB="$(sbatch --parsable --output="${LOGDIR}.%j.log" --cpus-per-task=1 "${options[@]}" "${script}" "${@:2}")"
}

# child_of NODE WORD: prints the process on a node whose command line has the word.
child_of() {
  local process
  for process in $(processes_of_node "$1"); do
    if tr '\0' ' ' <"/proc/${process}/cmdline" 2>/dev/null | grep -qF -- "$2"; then echo "${process}"; fi
  done
}

# finishes WHAT [SECONDS]: waits for the end of the job.
finishes() {
  await "$1 ends well" "${2:-40}" job_is "${JOB}" COMPLETED || tail -n 30 "${LOGDIR}".*.log | cut -c1-200
  expect "$1: the weights" "${expected}" "$(digest "${LOGDIR}")"
}

killed_worker() {
  say "a job of three nodes; a worker is killed, and the chief saves on USR1 and USR2"
  submit killed lockstep.sbatch --nodes=3 -- --steps="${steps}"
  await "it trains" 20 saved_beyond "${LOGDIR}" 0
  kill -KILL "$(child_of n2 --name=worker-1)"
  local signal before
  for signal in USR1 USR2; do
    before="$(newest "${LOGDIR}")"
    scancel --signal="${signal}" "${JOB}"
    await "it saves on ${signal}" 10 saved_beyond "${LOGDIR}" "${before}"
  done
  finishes "a job with a killed worker"
  expect_said "the worker is started again" "worker-0 was killed by SIGKILL; starting it again (1 of 10)" \
    "${LOGDIR}.${JOB}.log"
}

dead_node() {
  say "a node dies"
  submit dead lockstep.sbatch --nodes=3 -- --steps="${steps}"
  await "it trains" 20 saved_beyond "${LOGDIR}" 0
  end_node n3
  finishes "a job with a dead node"
  start_node n3
}

requeued_job() {
  say "a job is requeued"
  submit requeued lockstep.sbatch --nodes=2 -- --steps="${steps}"
  await "it trains" 20 saved_beyond "${LOGDIR}" 0
  local before
  before="$(newest "${LOGDIR}")"
  scontrol requeue "${JOB}"
  await "it waits" 20 job_is "${JOB}" PENDING
  await "the chief saved" 0 saved_beyond "${LOGDIR}" "${before}"
  start_now "${JOB}"
  finishes "a requeued job"
  expect_said "it resumed" "restored step" "${LOGDIR}.${JOB}.log"
}

worker_array() {
  say "a chief, and an array of workers of which one is requeued"
  submit array chief.sbatch -- --steps="${steps}"
  local chief="${JOB}"
  submit array worker.sbatch --array=0-1 --
  local workers="${JOB}"
  await "it trains" 20 saved_beyond "${LOGDIR}" 0
  scontrol requeue "${workers}_1"
  await "a worker waits" 20 job_is "${workers}_1" PENDING
  local before
  before="$(newest "${LOGDIR}")"
  await "the other one trains" 20 saved_beyond "${LOGDIR}" "${before}"
  start_now "${workers}_1"
  JOB="${workers}_1" finishes "the requeued worker"
  JOB="${workers}_0" finishes "the other worker"
  JOB="${chief}" finishes "the chief"
  expect_said "the workers have names" "worker-1 opened session" "${LOGDIR}.${chief}.log"
}

# The run takes longer than the limit of one minute.
time_limit() {
  say "the time limit"
  submit limit lockstep.sbatch --nodes=2 --time=1 --signal=B:USR1@30 -- --steps="${steps}"
  await "it trains" 20 saved_beyond "${LOGDIR}" 0
  await "the job goes back to the queue" 100 job_is "${JOB}" PENDING
  expect_said "the script did it" "requeued: the time limit is near" "${LOGDIR}.${JOB}.log"
  scontrol update "JobId=${JOB}" TimeLimit=10
  start_now "${JOB}"
  finishes "a job beyond its time limit" 200
}

# run_cases STEPS CASE...: runs the cases with runs of STEPS steps.
run_cases() {
  steps="$1"
  say "one process, ${steps} steps"
  "${LOCKSTEP}" local "${CONFIG}" --steps="${steps}" --logdir="${WORK}/alone-${steps}" >"${WORK}/alone.log" 2>&1
  expected="$(digest "${WORK}/alone-${steps}")"
  local case
  for case in "${@:2}"; do "${case}"; done
}

say "starting Slurm"
start_cluster || {
  tail -n 20 "${WORK}"/{munged,slurmctld,n1}.log
  exit 1
}
if [[ "${3:-}" == long ]]; then
  run_cases 3000 worker_array
  run_cases 12000 time_limit
else
  run_cases 1500 killed_worker dead_node requeued_job
fi
say "${failures} failures"
((failures == 0))
