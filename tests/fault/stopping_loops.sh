#!/usr/bin/env bash
# Runs loops whose own code ends the run as real processes: alone, and as a chief and two workers, with the chief killed
# twice and a worker once. All must end at the same step with the same bits, and return the loss of that step. Loops
# that transform the same gradients in different ways must have the same bits. When restarted, most programs change
# nothing. A run whose input is empty ends successfully every time.
#   LOOPS_SEED=N in the environment repeats the kills of seed N.
set -uo pipefail

PROGRAM="$(readlink -f "$1")" LOCKSTEP="$(readlink -f "$2")"
readonly PROGRAM LOCKSTEP STEPS=6000 LIMIT_S=60
SEED="${LOOPS_SEED:-$((EPOCHSECONDS % 32768))}"
WORK="$(mktemp -d)"
readonly SEED WORK MASTER="unix:${WORK}/chief.socket"
RANDOM="${SEED}"
chief="" workers=("" "") loop="" logdir=""

end_all() {
  local pid
  for pid in "${chief}" "${workers[@]}"; do
    [[ -n "${pid}" ]] && kill -KILL "${pid}" 2>/dev/null && wait "${pid}" 2>/dev/null
  done
  chief="" workers=("" "")
}
trap 'end_all; rm -rf "${WORK}"' EXIT
trap 'exit 143' TERM INT

fail() {
  printf 'FAILED: %s: %s (LOOPS_SEED=%s)\n' "${loop}" "$*" "${SEED}"
  tail -n 20 "${logdir}".*.log
  exit 1
}

until_true() {
  local end=$((SECONDS + LIMIT_S))
  until "$@"; do
    ((SECONDS < end)) || fail "$* did not come true within ${LIMIT_S} s"
    sleep 0.02
  done
}

reached() {
  local step
  step="$("${LOCKSTEP}" status --master="${MASTER}" --json 2>/dev/null |
    sed -n 's/.*"global_step": *"\{0,1\}\([0-9]*\).*/\1/p')"
  ((${step:-0} >= $1))
}

start_chief() {
  "${PROGRAM}" --logdir="${logdir}" "$@" --loop="${loop}" --last_step="${STEPS}" --seed=7 \
    >"${logdir}.out" 2>>"${logdir}.chief.log" &
  chief=$!
}

start_worker() {
  "${PROGRAM}" --master="${MASTER}" --task_index="$1" --logdir="${logdir}" --loop="${loop}" \
    >>"${logdir}.worker-$1.log" 2>&1 &
  workers[$1]=$!
}

kill_one() {
  kill -KILL "$1" 2>/dev/null || return
  wait "$1" 2>/dev/null
  return 0
}

# Prints the prefix of the newest checkpoint.
newest() { sed -n 's/^model_checkpoint_path: "\(.*\)"/\1/p' "${logdir}/checkpoint"; }

# check_end [STEP]
check_end() {
  local step="${1:-${STEPS}}"
  wait "${chief}" || fail "the chief: exit code $?"
  [[ "$(newest)" == *"model.ckpt-${step}" ]] || fail "it ended with $(newest), not at ${step}"
}

check_workers() {
  local k
  for k in 0 1; do wait "${workers[k]}" || fail "worker ${k}: exit code $?"; done
  chief="" workers=("" "")
}

digest() { "${LOCKSTEP}" inspect --digest "${logdir}"; }

disturbed() {
  local kill k killed=0
  start_chief --listen="${MASTER}"
  until_true test -S "${WORK}/chief.socket"
  start_worker 0
  start_worker 1
  for kill in 1 2 3; do
    until_true reached $((STEPS * kill / 5 + RANDOM % (STEPS / 10)))
    if ((kill == 2)); then
      k=$((RANDOM % 2))
      kill_one "${workers[k]}" || break
      start_worker "${k}"
    else
      kill_one "${chief}" || break
      start_chief --listen="${MASTER}"
    fi
    killed=$((killed + 1))
  done
  ((killed > 0)) || fail "the run was over before anything was killed"
  check_end
  check_workers
}

same=""
for loop in kwargs step_function hook monitor supervisor; do
  logdir="${WORK}/${loop}.alone"
  start_chief
  check_end
  alone="$(digest)" loss="$(<"${logdir}.out")"
  [[ "${loss}" == "loss "[0-9]* ]] || fail "it returned \"${loss}\""
  # The step function changes the bias, so its digest differs.
  if [[ "${loop}" != step_function ]]; then
    same="${same:-${alone}}"
    [[ -n "${same}" && "${alone}" == "${same}" ]] || fail "digest ${alone}, of another loop ${same}"
  fi
  logdir="${WORK}/${loop}.disturbed"
  disturbed
  [[ -n "${alone}" && "$(digest)" == "${alone}" ]] || fail "digest $(digest), alone ${alone}"
  [[ "$(<"${logdir}.out")" == "${loss}" ]] || fail "it returned $(<"${logdir}.out"), alone ${loss}"
  case "${loop}" in
    kwargs | step_function | hook)
      start_chief
      check_end
      [[ "$(digest)" == "${alone}" ]] || fail "started again, it has digest $(digest), not ${alone}"
      ;;
  esac
  printf '%-14s step %d  digest %s\n' "${loop}" "${STEPS}" "${alone:0:16}"
done

loop=experiment logdir="${WORK}/experiment"
for round in 1 2 3; do
  start_chief
  check_end
  [[ "$(digest)" == "${same}" ]] || fail "start ${round}: digest $(digest), of another loop ${same}"
done
printf '%-14s step %d  digest %s\n' "${loop}" "${STEPS}" "${same:0:16}"

loop=empty
for round in 1 2 3 4 5; do
  logdir="${WORK}/empty.${round}"
  start_chief --listen="${MASTER}"
  start_worker 0
  start_worker 1
  check_end 0
  check_workers
  [[ "$(<"${logdir}.out")" == "loss none" ]] || fail "it returned $(<"${logdir}.out")"
done
printf '%-14s step 0\n' "${loop}"
