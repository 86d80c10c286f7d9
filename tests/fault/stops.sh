#!/usr/bin/env bash
# Stops runs at random instants, in every way that a run can be stopped, and resumes each time. A stop must save the
# last committed step, exit with code 143, and not take long. The final weights must be the same as in an undisturbed
# run. Only stops save, so no timer can hide a lost step.
# Usage: stops.sh STOPS CHIEF WORKER LOCKSTEP CONFIG...   (STOPS for each configuration)
#   STOPS_SEED=N in the environment repeats the ways and delays of seed N.
set -uo pipefail

readonly STOPS="$1" CHIEF="$2" WORKER="$3" LOCKSTEP="$4"
readonly CONFIGS=("${@:5}")
# Stops that waited for anything except the disk have taken 20 s.
readonly LIMIT_MS=10000
readonly SIGNALS=(TERM INT HUP)
# Runs do not end by themselves, and only stops save.
readonly ENDLESS=(--steps=1000000000 --set=checkpoint.every_seconds=0)
SEED="${STOPS_SEED:-$((EPOCHSECONDS % 32768))}"
WORK="$(mktemp -d)"
readonly SEED WORK
RANDOM="${SEED}"
pids=()
failures=0

end_all() {
  ((${#pids[@]} == 0)) || kill -KILL "${pids[@]}" 2>/dev/null
  pids=()
}
trap 'end_all; rm -rf "${WORK}"' EXIT
trap 'exit 143' TERM INT
# Puts each job into its own process group, because a shell's background jobs otherwise ignore SIGINT.
set -m

now_ms() { echo $((${EPOCHREALTIME/./} / 1000)); }
pause_ms() { sleep "$(printf '%d.%03d' $(($1 / 1000)) $(($1 % 1000)))"; }

fail() {
  printf 'FAILED: %s\n' "$*"
  tail -n 5 "${logdir}".*.log "${logdir}"/log/*.log 2>/dev/null
  failures=$((failures + 1))
}

# Prints the step of the checkpoint that the next start restores, or nothing if there is none.
step_on_disk() { sed -n 's/^model_checkpoint_path: "model.ckpt-\(.*\)"/\1/p' "${logdir}/checkpoint" 2>/dev/null; }

# Prints the step reported by the chief at port $1, or nothing if it does not answer.
reported_step() {
  [[ -n "$1" ]] || return 0
  timeout 5 "${LOCKSTEP}" status --master="grpc://127.0.0.1:$1" --json 2>/dev/null |
    sed -n 's/.*"global_step": *"\{0,1\}\([0-9]*\).*/\1/p'
}

# start LOG PROGRAM ARGUMENTS...: sets PID.
start() {
  local log="$1"
  shift
  "$@" >>"${log}" 2>&1 &
  PID=$!
  pids+=("${PID}")
}

# start_by_hand WORKERS FLAGS...: sets CHIEF_PID, WORKER_PIDS and PORT.
start_by_hand() {
  local workers="$1"
  rm -f "${WORK}/port"
  start "${logdir}.chief.log" "${CHIEF}" "${config}" --logdir="${logdir}" --listen=127.0.0.1:0 \
    --port_file="${WORK}/port" "${@:2}"
  CHIEF_PID="${PID}"
  while [[ ! -s "${WORK}/port" ]] && kill -0 "${CHIEF_PID}" 2>/dev/null; do sleep 0.02; done
  PORT="$(cat "${WORK}/port" 2>/dev/null)"
  WORKER_PIDS=()
  for ((w = 0; w < workers; ++w)); do
    start "${logdir}.worker-${w}.log" "${WORKER}" --master="grpc://127.0.0.1:${PORT}" --name="worker-${w}"
    WORKER_PIDS+=("${PID}")
  done
}

# check_stop WHAT SIGNAL PID CHIEF_LOG REPORTED BEGAN: waits for the process that was stopped at time BEGAN, after it
# had reported step REPORTED, and checks the results.
check_stop() {
  local what="$1" signal="$2" pid="$3" chief_log="$4" reported="$5" began="$6"
  local code=0 took disk said
  wait "${pid}" 2>/dev/null || code=$?
  took=$(($(now_ms) - began))
  ((took <= slowest)) || slowest="${took}"
  disk="$(step_on_disk)"
  said="$(sed -n 's/.*stopped at step \([0-9]*\), saved .*/\1/p' "${chief_log}" 2>/dev/null | tail -n 1)"
  ((took <= LIMIT_MS)) || fail "${what}: it took ${took} ms"
  if [[ -n "${said}" ]]; then
    in_training=$((in_training + 1))
    [[ "${code}" == 143 ]] || fail "${what}: exit code ${code}, though step ${said} is saved"
    [[ "${disk}" == "${said}" ]] || fail "${what}: step ${said} was to be saved, ${disk:-none} is"
  elif [[ -n "${reported}" ]] && ((reported > saved)); then
    fail "${what}: exit code ${code}, and step ${reported} was not saved"
  elif [[ "${code}" != 143 && "${code}" != $((128 + $(kill -l "${signal}"))) ]]; then
    # The run had not begun to train, and the process may not even have installed its signal handlers.
    fail "${what}: exit code ${code}"
  fi
  ((${disk:-0} >= saved)) || fail "${what}: back from step ${saved} to ${disk:-none}"
  ((${disk:-0} >= ${reported:-0})) || fail "${what}: step ${reported} was reported, ${disk:-none} is saved"
  saved="${disk:-${saved}}"
}

# stop_run WORKERS DELAY SIGNAL FLAGS...: runs `lockstep run`, and stops it as its terminal or its user would.
stop_run() {
  local workers="$1" delay="$2" signal="$3" reported began
  rm -f "${logdir}/log/chief.log" "${logdir}/log/chief.port"
  start "${logdir}.run.log" "${LOCKSTEP}" run "${config}" --logdir="${logdir}" --workers="${workers}" \
    --listen=127.0.0.1:0 "${ENDLESS[@]}" "${@:4}"
  local run="${PID}"
  pause_ms "${delay}"
  reported="$(reported_step "$(cat "${logdir}/log/chief.port" 2>/dev/null)")"
  began="$(now_ms)"
  kill "-${signal}" "${run}"
  check_stop "run, ${workers} workers, ${signal} after ${delay} ms ${*:4}" "${signal}" "${run}" \
    "${logdir}/log/chief.log" "${reported}" "${began}"
}

# stop_by_hand ORDER WORKERS DELAY SIGNAL FLAGS...: runs a chief and workers; ORDER determines which get the signal
# first.
stop_by_hand() {
  local order="$1" workers="$2" delay="$3" signal="$4" reported began
  rm -f "${logdir}".*.log
  start_by_hand "${workers}" "${ENDLESS[@]}" "${@:5}"
  pause_ms "${delay}"
  reported="$(reported_step "${PORT}")"
  began="$(now_ms)"
  case "${order}" in
    chief) kill "-${signal}" "${CHIEF_PID}" ;;
    workers)
      kill "-${signal}" "${WORKER_PIDS[@]}"
      ((RANDOM % 2)) || wait "${WORKER_PIDS[@]}" 2>/dev/null
      began="$(now_ms)"
      kill "-${signal}" "${CHIEF_PID}"
      ;;
    all) kill "-${signal}" "${WORKER_PIDS[@]}" "${CHIEF_PID}" ;;
  esac
  check_stop "by hand, ${order} first, ${workers} workers, ${signal} after ${delay} ms ${*:5}" "${signal}" \
    "${CHIEF_PID}" "${logdir}.chief.log" "${reported}" "${began}"
  kill -TERM "${WORKER_PIDS[@]}" 2>/dev/null
  wait "${WORKER_PIDS[@]}" 2>/dev/null
}

# train_to STEPS: runs a chief and workers in ${logdir} without disturbance.
train_to() {
  start_by_hand 2 --steps="$1"
  wait "${CHIEF_PID}" || fail "training to step $1: exit code $?"
  # A worker that started after the end would look for the chief.
  kill -TERM "${WORKER_PIDS[@]}" 2>/dev/null
  wait "${WORKER_PIDS[@]}" 2>/dev/null
}

try_configuration() {
  local name began="${SECONDS}"
  config="$1"
  name="$(basename "${config}" .textproto)"
  logdir="${WORK}/${name}"
  saved=0 slowest=0 in_training=0
  # Delays are below `span` milliseconds, which increases until the run has time to begin.
  local stop workers delay signal memory span=700 in_training_before
  for ((stop = 0; stop < STOPS; ++stop)); do
    workers=$((1 + RANDOM % 2)) delay=$((RANDOM % span)) signal="${SIGNALS[RANDOM % 3]}"
    in_training_before="${in_training}"
    memory=$((RANDOM % 2 == 0))
    memory="--set=cluster.shared_memory=$( ((memory)) && echo true || echo false)"
    case $((RANDOM % 5)) in
      0 | 1) stop_run "${workers}" $((300 + delay)) "${signal}" "${memory}" ;;
      2) stop_by_hand chief "${workers}" "${delay}" "${signal}" "${memory}" ;;
      3) stop_by_hand workers "${workers}" "${delay}" "${signal}" "${memory}" ;;
      4) stop_by_hand all "${workers}" "${delay}" "${signal}" "${memory}" ;;
    esac
    pids=()
    ((in_training > in_training_before)) || span=$((span + 500))
  done
  ((in_training * 3 >= STOPS)) || fail "only ${in_training} of ${STOPS} stops came in training"
  local steps=$((saved + 3)) stopped undisturbed
  train_to "${steps}"
  stopped="$("${LOCKSTEP}" inspect --digest "${logdir}" 2>&1)"
  logdir="${logdir}.undisturbed"
  train_to "${steps}"
  undisturbed="$("${LOCKSTEP}" inspect --digest "${logdir}" 2>&1)"
  [[ "${stopped}" == "${undisturbed}" ]] || fail "${name}: digest ${stopped}, undisturbed ${undisturbed}"
  printf '%-24s %3d stops, %3d in training, the slowest %5d ms; %6d steps, digest %s  %3d s\n' "${name}" "${STOPS}" \
    "${in_training}" "${slowest}" "${steps}" "${stopped:0:16}" $((SECONDS - began))
}

echo "STOPS_SEED=${SEED}"
for file in "${CONFIGS[@]}"; do try_configuration "${file}"; done
((failures == 0)) || echo "${failures} failures"
((failures == 0))
