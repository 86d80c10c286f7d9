#!/usr/bin/env bash
# Runs the example programs as real processes: each alone in its process, and as a chief and two workers, some of which
# are killed at random and restarted, with flags and with TF_CONFIG alone. All must finish promptly, with the same bits
# as the single process, which are the same on every kind of processor.
#   PROGRAMS_SEED=N in the environment repeats the kills of seed N.
set -uo pipefail

LOCKSTEP="$(readlink -f "$1")"
readonly LOCKSTEP PROGRAMS=("${@:2}")
readonly STEPS=4000 END_LIMIT_MS=2000 LIMIT_S=60
# Digests of the weights after STEPS steps. Three of the programs train the same model.
readonly -A DIGESTS=(
  [session]=019afd445c1710b023151a742276da5f5ebbb11a944e8edb534480ae27dd6039
  [supervisor]=019afd445c1710b023151a742276da5f5ebbb11a944e8edb534480ae27dd6039
  [monitored_session]=019afd445c1710b023151a742276da5f5ebbb11a944e8edb534480ae27dd6039
  [slim_train]=850b73b7dd265aaa89780adb08af93335c92f126a7ddb09c4afa2071ddebf958
  [graph_actions_train]=d340596fa71c34a9704527627b7c6e277797cd79c7282a13fd69b573a3b8a858
  [experiment]=d030f58fb5c409d619133ae0a9997bd1d7a1175e59050671967f5885cf3beb36
)
SEED="${PROGRAMS_SEED:-$((EPOCHSECONDS % 32768))}"
WORK="$(mktemp -d)"
readonly SEED WORK
RANDOM="${SEED}"
chief="" port="" master="" program="" logdir="" digest="" told_by=""
workers=("" "") others=()

end_all() {
  local pid
  for pid in "${chief}" "${workers[@]}" "${others[@]}"; do
    [[ -n "${pid}" ]] && kill -KILL "${pid}" 2>/dev/null && wait "${pid}" 2>/dev/null
  done
  chief="" workers=("" "") others=()
}
trap 'end_all; rm -rf "${WORK}"' EXIT
trap 'exit 143' TERM INT

now_ms() { echo $((${EPOCHREALTIME/./} / 1000)); }

fail() {
  printf 'FAILED: %s: %s (PROGRAMS_SEED=%s)\n' "$(basename "${program}")" "$*" "${SEED}"
  tail -n 20 "${logdir}".*.log
  exit 1
}

# until_true COMMAND...: returns when COMMAND succeeds.
until_true() {
  local end=$((SECONDS + LIMIT_S))
  until "$@"; do
    ((SECONDS < end)) || fail "$* did not come true within ${LIMIT_S} s"
    sleep 0.02
  done
}

# Prints the program's flag for the last step. monitored_session has its own, because a hook ends it.
steps_flag() {
  case "${program}" in
    *monitored*) echo "--last_step=${STEPS}" ;;
    *) echo "--steps=${STEPS}" ;;
  esac
}

# start_task TYPE INDEX LOG: starts a task of a cluster described by TF_CONFIG; its process is $!.
start_task() {
  TF_CONFIG='{"cluster": {"chief": ["unix:'"${WORK}"'/chief.socket"], "worker": ["unix:worker-0", "unix:worker-1"],
                          "ps": ["unix:ps-0"]},
              "task": {"type": "'"$1"'", "index": '"$2"'}, "environment": "cloud", "model_dir": "'"${logdir}"'"}' \
    LOCKSTEP_SEED=7 "${program}" "$(steps_flag)" >>"${logdir}.$3.log" 2>&1 &
}

start_chief() {
  if [[ "${told_by}" == TF_CONFIG ]]; then
    start_task chief 0 chief
    chief=$!
    return
  fi
  rm -f "${WORK}/port"
  "${program}" --logdir="${logdir}" --listen="127.0.0.1:${port:-0}" --port_file="${WORK}/port" "$(steps_flag)" \
    --seed=7 >>"${logdir}.chief.log" 2>&1 &
  chief=$!
  until_true test -s "${WORK}/port"
  port="$(<"${WORK}/port")"
  master="grpc://127.0.0.1:${port}"
}

# Starts the cluster's tasks that do not train. A task that never reaches a chief assumes after a minute that the run is
# over.
start_others() {
  [[ "${told_by}" == TF_CONFIG ]] || return 0
  until_true test -S "${WORK}/chief.socket"
  start_task ps 0 ps
  others=("$!")
  [[ "${program}" == *experiment* ]] || return 0
  start_task evaluator 0 evaluator
  others+=("$!")
}

start_worker() {
  if [[ "${told_by}" == TF_CONFIG ]]; then
    start_task worker "$1" "worker-$1"
    workers[$1]=$!
    return
  fi
  "${program}" --master="grpc://127.0.0.1:${port}" --task_index="$1" --logdir="${logdir}" >>"${logdir}.worker-$1.log" 2>&1 &
  workers[$1]=$!
}

reached() {
  local step
  step="$("${LOCKSTEP}" status --master="${master}" --json 2>/dev/null |
    sed -n 's/.*"global_step": *"\{0,1\}\([0-9]*\).*/\1/p')"
  ((${step:-0} >= $1))
}

# kill_one PID: fails if the process has already exited, as it may on a busy machine.
kill_one() {
  kill -KILL "$1" 2>/dev/null || return
  wait "$1" 2>/dev/null
  return 0
}

# Checks that wrong arguments are refused: an invalid address, an unwritable file, another program's flag.
refuses_flags() {
  local address
  logdir="${WORK}/refused"
  for address in 127.0.0.1 127.0.0.1:99999 192.0.2.1:2222 unix:/no/such/folder/socket; do
    "${program}" --listen="${address}" "$(steps_flag)" >"${logdir}.chief.log" 2>&1
    (($? == 2)) || fail "--listen=${address} was not refused"
    grep -q -- "--listen: nobody can listen on \"${address}\"" "${logdir}.chief.log" || fail "it does not say why"
  done
  "${program}" --listen=127.0.0.1:0 --address_file=/no/such/folder/file "$(steps_flag)" >"${logdir}.chief.log" 2>&1
  (($? == 2)) || fail "an --address_file in no folder was not refused"
  "${program}" --master=grpc://127.0.0.1:1 --port_file="${WORK}/port" >"${logdir}.chief.log" 2>&1
  (($? == 2)) || fail "a worker's --port_file was not refused"
}

# Sets `digest`, as does run_disturbed.
run_alone() {
  logdir="${WORK}/alone"
  "${program}" --logdir="${logdir}" "$(steps_flag)" --seed=7 >"${logdir}.chief.log" 2>&1 || fail "alone: exit code $?"
  digest="$("${LOCKSTEP}" inspect --digest "${logdir}")"
}

# Checks that a run's record names its data so that other folders can find them. session, supervisor and
# monitored_session generate their own data.
check_data_are_found() {
  case "${program}" in
    *session | *supervisor) return 0 ;;
  esac
  (cd "${WORK}" && "${LOCKSTEP}" predict --logdir=alone --output=alone.answers.csv) >>"${logdir}.chief.log" 2>&1 ||
    fail "predict in another folder: exit code $?"
}

# run_disturbed flags|TF_CONFIG: runs a disturbed cluster, whose processes learn their roles from flags or TF_CONFIG.
# Sets `digest`.
run_disturbed() {
  local kill killed=0 k code ended other
  told_by="$1" logdir="${WORK}/told_by_$1" port="" master="unix:${WORK}/chief.socket"
  start_chief
  start_worker 0
  start_worker 1
  start_others
  for kill in 1 2 3; do
    until_true reached $((STEPS * kill / 6 + RANDOM % (STEPS / 10)))
    k=$((RANDOM % 2))
    if ((kill == 2)); then
      kill_one "${chief}" || break
      start_chief
    else
      kill_one "${workers[k]}" || break
      start_worker "${k}"
    fi
    killed=$((killed + 1))
  done
  ((killed > 0)) || fail "the run was over before anything was killed"
  wait "${chief}"
  code=$?
  ended="$(now_ms)"
  ((code == 0)) || fail "the chief: exit code ${code}"
  for k in 0 1; do
    wait "${workers[k]}"
    code=$?
    ((code == 0)) || fail "worker ${k}: exit code ${code}"
  done
  ended=$(($(now_ms) - ended))
  for other in "${others[@]}"; do
    wait "${other}"
    code=$?
    ((code == 0)) || fail "a task that does not train: exit code ${code}"
  done
  chief="" workers=("" "") others=()
  ((ended <= END_LIMIT_MS)) || fail "the workers ended ${ended} ms after the chief"
  digest="$("${LOCKSTEP}" inspect --digest "${logdir}")"
}

# Checks that the exported models of the single process and of the cluster give the same answers.
check_exports() {
  local run
  for run in alone told_by_TF_CONFIG; do
    "${LOCKSTEP}" predict --export="${WORK}/${run}/export/model/${STEPS}" --output="${WORK}/${run}.csv" ||
      fail "the export of ${run}: exit code $?"
  done
  cmp "${WORK}/alone.csv" "${WORK}/told_by_TF_CONFIG.csv" || fail "the exports differ"
}

for program in "${PROGRAMS[@]}"; do
  began="${SECONDS}"
  refuses_flags
  run_alone
  alone="${digest}"
  expected="${DIGESTS[$(basename "${program}")]:-none}"
  [[ "${alone}" == "${expected}" ]] || fail "digest ${alone}, but ${expected} everywhere else"
  # Restarts the finished run. Excludes monitored_session: a StopAtStepHook, like TensorFlow's, checks its limit only
  # after a step.
  [[ "${program}" == *monitored* ]] || run_alone
  [[ "${alone}" == "${digest}" ]] || fail "started again after the end: digest ${digest}, before ${alone}"
  "${program}" --logdir="${logdir}" "$(steps_flag)" --seed=8 >"${logdir}.chief.log" 2>&1
  (($? == 2)) || fail "another seed's logdir was not refused as a wrong configuration"
  check_data_are_found
  ways=(flags TF_CONFIG)
  # A bare session is tested with flags only. The other programs, which also use a session, are tested with TF_CONFIG,
  # too.
  [[ "${program}" != */session ]] || ways=(flags)
  for how in "${ways[@]}"; do
    run_disturbed "${how}"
    [[ -n "${alone}" && "${alone}" == "${digest}" ]] || fail "told by ${how}: digest ${digest}, alone ${alone}"
  done
  [[ "${program}" != *experiment* ]] || check_exports
  printf '%-20s digest %s  %3d s\n' "$(basename "${program}")" "${alone:0:16}" $((SECONDS - began))
  rm -rf "${WORK:?}"/*
done
