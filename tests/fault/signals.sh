#!/usr/bin/env bash
# Sends every signal to real processes, alone and followed by SIGTERM. The page's table has the expected results.
# Usage: signals.sh CHIEF WORKER LOCKSTEP CONFIG PAGE   (the binaries, a run's configuration, docs/signals.md)
set -uo pipefail

readonly CHIEF="$1" WORKER="$2" LOCKSTEP="$3" CONFIG="$4" PAGE="$5"
# shellcheck source=tests/fault/expectations.sh
source "$(dirname "$0")/expectations.sh"
# Puts each job into its own process group. Otherwise jobs could not be paused.
set -m
ulimit -c 0

# start LOG PROGRAM ARGUMENTS...: sets PID.
start() {
  local log="$1"
  shift
  # A background job may inherit ignored SIGINT and SIGQUIT.
  env --default-signal "$@" >"${log}" 2>&1 &
  PID=$!
  pids+=("${PID}")
}

# await_end PROCESS: sets CODE to the process's exit code. Kills a process that does not end within 20 s, which makes it
# 137.
await_end() {
  local end=$((SECONDS + 20))
  until ! kill -0 "$1" 2>/dev/null || is_in_state "$1" Z || ((SECONDS >= end)); do sleep 0.02; done
  ((SECONDS < end)) || kill -KILL "$1"
  CODE=0
  wait -f "$1" 2>/dev/null || CODE=$?
}

# meaning SIGNAL COLUMN: prints the first word of the cell.
meaning() {
  awk -F'|' -v signal="SIG$1" -v column="$2" '
    /^\| SIG/ {
      cells = "," $2 ","
      gsub(" ", "", cells)
      if (index(cells, "," signal ",") || (signal ~ /^SIGRT/ && cells ~ /,SIGRTMINtoSIGRTMAX,/)) {
        split($column, words, /[ ,]+/)
        print words[2]
      }
    }' "${PAGE}"
}

newest() { sed -n 's/^model_checkpoint_path: "model.ckpt-\(.*\)"/\1/p' "$1/checkpoint" 2>/dev/null; }
saved_beyond() { (($(newest "$1" | grep . || echo -1) > $2)); }
is_in_state() { [[ "$(sed -n 's/^State:\s*\(.\).*/\1/p' "/proc/$1/status" 2>/dev/null)" == "$2" ]]; }
has_said() { grep -qF -- "$1" "$2" 2>/dev/null; }

# Prints the step reported by the chief at the socket unix:$1, or at the port in file $1, or 0 if it does not answer.
step() {
  local step master="unix:$1"
  [[ -S "$1" ]] || master="grpc://127.0.0.1:$(cat "$1" 2>/dev/null)"
  step="$("${LOCKSTEP}" status --master="${master}" --json 2>/dev/null |
    sed -n 's/.*"global_step": *"\{0,1\}\([0-9]*\).*/\1/p')"
  echo "${step:-0}"
}
trains_beyond() { (($(step "$1") > $2)); }

# The begin_* functions set PID, the process that gets the signal, and its `log`, as well as `logdir` and `port` of the
# run.
begin_chief() {
  start "${log}" "${CHIEF}" "${CONFIG}" --logdir="${logdir}" --listen=127.0.0.1:0 --port_file="${port}"
  local chief="${PID}"
  await "a chief listens" 20 test -s "${port}"
  start "${log}.worker" "${WORKER}" --master="grpc://127.0.0.1:$(cat "${port}")"
  PID="${chief}"
  await "a chief trains" 20 trains_beyond "${port}" 3
}
begin_local() {
  start "${log}" "${LOCKSTEP}" local "${CONFIG}" --logdir="${logdir}"
  await "local trains" 20 saved_beyond "${logdir}" -1
}
begin_run() {
  port="${logdir}/log/chief.port"
  start "${log}" "${LOCKSTEP}" run "${CONFIG}" --logdir="${logdir}" --workers=1 --listen=127.0.0.1:0
  await "run trains" 20 trains_beyond "${port}" 3
  kill_children_too
}
# PID's children outlive it for a moment.
kill_children_too() {
  local children
  read -r -a children <"/proc/${PID}/task/${PID}/children"
  pids+=("${children[@]}")
}
begin_task() {
  start "${log}" "${LOCKSTEP}" task "${CONFIG}" --logdir="${logdir}" --workers=1 --listen="unix:${port}"
  await "task trains" 20 trains_beyond "${port}" 3
  kill_children_too
}
begin_launch() {
  start "${log}" "${LOCKSTEP}" launch --workers=1 --listen="unix:${port}" -- "${WORK}/declare" "${logdir}"
  await "launch trains" 20 trains_beyond "${port}" 3
  kill_children_too
}
begin_worker() {
  logdir="${WORK}/shared" port="${WORK}/shared.port"
  start "${log}" "${WORKER}" --master="grpc://127.0.0.1:$(cat "${port}")"
  await "a worker joins" 20 has_said ": session " "${log}"
}
# These watch the shared run.
begin_eval() {
  logdir="${WORK}/shared" port="${WORK}/shared.port"
  start "${log}" "${LOCKSTEP}" eval --watch --split=train --logdir="${logdir}"
  await "eval evaluates" 20 has_said "step " "${log}"
}
begin_status() {
  logdir="${WORK}/shared" port="${WORK}/shared.port"
  start "${log}" "${LOCKSTEP}" status --watch --master="grpc://127.0.0.1:$(cat "${port}")"
  await "status answers" 20 test -s "${log}"
}
begin_page() {
  logdir="${WORK}/shared" port="${WORK}/shared.port"
  await "the shared run has saved" 20 saved_beyond "${logdir}" -1
  start "${log}" "${LOCKSTEP}" page --logdir="${logdir}" --http=127.0.0.1:0
  await "page serves" 20 has_said "page: http" "${log}"
}

# Requests a save, and succeeds if there is a checkpoint of a step computed since the start. Call this repeatedly,
# because `local` has no status that shows the step.
ask_and_see() {
  kill "-$1" "${PID}"
  saved_beyond "${logdir}" 0
}

# ended_by SIGNAL NUMBER: prints the exit code of a role that ends on this signal.
ended_by() {
  case "${role} $1" in
    page\ INT | page\ TERM | page\ HUP | page\ XCPU) echo 0 ;;
    *) echo $((128 + $2)) ;;
  esac
}

# stops_by_term WHAT: expects that SIGTERM still stops the process.
stops_by_term() {
  kill -TERM "${PID}"
  await_end "${PID}"
  expect "$1, then SIGTERM" "$(ended_by TERM 15)" "${CODE}"
}

# Succeeds if the role has its own chief.
has_chief() { [[ "${role}" =~ ^(local|chief|run|task|launch)$ ]]; }
# Succeeds if that chief is a process started by the role.
launches() { [[ "${role}" =~ ^(run|task|launch)$ ]]; }

# live ROLE NUMBER SIGNAL MEANING: runs a process that receives the signal.
live() {
  local role="$1" number="$2" signal="$3" meaning="$4" what="SIG$3 to $1" before
  logdir="${WORK}/$1-$2" port="${WORK}/$1-$2.port" log="${WORK}/$1-$2.log"
  "begin_${role}"
  # The first checkpoint may still be in progress.
  await "${role} has a checkpoint" 60 saved_beyond "${logdir}" -1
  before="$(newest "${logdir}")"
  case "${meaning}" in
    stops)
      kill "-${number}" "${PID}"
      await_end "${PID}"
      expect "${what}" 143 "${CODE}"
      ! has_chief || await "${what} saves" 0 saved_beyond "${logdir}" "${before}"
      ;;
    saves)
      if [[ "${role}" == local ]]; then
        await "${what} saves" 20 ask_and_see "${number}"
      else
        kill "-${number}" "${PID}"
        await "${what} saves" 20 saved_beyond "${logdir}" "${before}"
        await "${what}: training continues" 20 trains_beyond "${port}" "$(newest "${logdir}")"
      fi
      before="$(newest "${logdir}")"
      stops_by_term "${what}"
      await "${what}, then SIGTERM saves" 0 saved_beyond "${logdir}" "${before}"
      ;;
    nothing)
      kill "-${number}" "${PID}"
      # `local` has no status.
      [[ "${role}" == local ]] || await "${what}: training continues" 20 trains_beyond "${port}" "$(step "${port}")"
      stops_by_term "${what}"
      ;;
    pauses)
      kill "-${number}" "${PID}"
      await "${what} pauses" 20 is_in_state "${PID}" T
      kill -TERM "${PID}"
      kill -CONT "${PID}"
      stops_by_term "${what}"
      ;;
    ends)
      kill "-${number}" "${PID}"
      await_end "${PID}"
      expect "${what}" "$(ended_by "${signal}" "${number}")" "${CODE}"
      ! launches || await "${what}: its chief saves" 20 saved_beyond "${logdir}" "${before}"
      ;;
    *) expect "the meaning of ${what} is in the table" "one of its words" "${meaning}" ;;
  esac
}

# live_all ROLE COLUMN NUMBERS...: exits with the number of failures.
live_all() {
  local number signal
  pids=() failures=0
  trap '((${#pids[@]} == 0)) || kill -KILL "${pids[@]}" 2>/dev/null' EXIT
  for number in "${@:3}"; do
    signal="$(kill -l "${number}")"
    [[ "${signal}" != IO ]] || signal=POLL
    live "$1" "${number}" "${signal}" "$(meaning "${signal}" "$2")"
    kill -KILL "${pids[@]}" 2>/dev/null
    wait -f 2>/dev/null
    pids=()
  done
  exit "${failures}"
}

# stop_without_threads ROLE: tests a stop of `chief` or `local` when no thread can be started, e.g. because a container
# has used up its process ids.
stop_without_threads() {
  local as=() folder="${WORK}/$1_threads" log="${WORK}/$1_threads.log" program before
  # The limit only applies to users other than root.
  ((EUID != 0)) || as=(setpriv --reuid=65534 --regid=65534 --clear-groups)
  chmod 755 "${WORK}"
  mkdir -m 777 "${folder}"
  logdir="${folder}/logdir" port="${folder}/port"
  cp "${CONFIG}" "${folder}/config.textproto"
  if [[ "$1" == local ]]; then
    cp "${LOCKSTEP}" "${folder}/program"
    start "${log}" "${as[@]}" "${folder}/program" local "${folder}/config.textproto" --logdir="${logdir}"
    program="${PID}"
  else
    cp "${CHIEF}" "${folder}/program"
    start "${log}" "${as[@]}" "${folder}/program" "${folder}/config.textproto" --logdir="${logdir}" \
      --listen=127.0.0.1:0 --port_file="${port}"
    program="${PID}"
    await "a chief listens" 20 test -s "${port}"
    start "${log}.worker" "${WORKER}" --master="grpc://127.0.0.1:$(cat "${port}")"
    await "it trains" 20 trains_beyond "${port}" 3
  fi
  await "$1 has a checkpoint" 60 saved_beyond "${logdir}" -1
  before="$(newest "${logdir}")"
  "${as[@]}" prlimit --pid "${program}" --nproc=1
  expect "there is a limit" 1 "$(awk '/^Max processes/ {print $3}' "/proc/${program}/limits")"
  kill -TERM "${program}"
  await_end "${program}"
  expect "SIGTERM to $1 where no thread can be started" 143 "${CODE}"
  await "$1 saves" 0 saved_beyond "${logdir}" "${before}"
}

start "${WORK}/shared.log" "${CHIEF}" "${CONFIG}" --logdir="${WORK}/shared" --listen=127.0.0.1:0 \
  --port_file="${WORK}/shared.port"
# A worker for the shared run, beside which the others start.
await "the shared chief listens" 20 test -s "${WORK}/shared.port"
start "${WORK}/shared.worker.log" "${WORKER}" --master="grpc://127.0.0.1:$(cat "${WORK}/shared.port")"
# The program for launch. It declares the run, and computes.
cat >"${WORK}/declare" <<END
#!/usr/bin/env bash
if [[ ! -d "\${LOCKSTEP_LAUNCH}/declared" ]]; then
  own="\$(mktemp -d -p "\${LOCKSTEP_LAUNCH}")"
  cp "$(readlink -f "${CONFIG}")" "\${own}/run.textproto"
  printf '%s' "\$1" >"\${own}/logdir"
  mv -T "\${own}" "\${LOCKSTEP_LAUNCH}/declared"
fi
exec "$(readlink -f "${WORKER}")" --master="file:\${LOCKSTEP_LAUNCH}/address"
END
chmod +x "${WORK}/declare"
# launch keeps the folder of a program that declares a run.
export TMPDIR="${WORK}"

jobs=()
# live_beside ROLE COLUMN NUMBERS...
live_beside() {
  (live_all "$@") &
  jobs+=($!)
}
# Includes the first two real-time signals and the last one.
readonly ALL=({1..31} 34 35 64)
# These launchers share `run`'s code, so one signal from each row is enough.
readonly SOME=(1 3 9 12 13 14 15 17 20)
live_beside chief 3 "${ALL[@]}"
live_beside local 3 "${ALL[@]}"
live_beside worker 4 "${ALL[@]}"
live_beside eval 4 "${ALL[@]}"
live_beside run 5 "${ALL[@]}"
live_beside task 5 "${SOME[@]}"
live_beside launch 5 "${SOME[@]}"
live_beside status 6 "${ALL[@]}"
live_beside page 6 "${ALL[@]}"
for job in "${jobs[@]}"; do
  wait -f "${job}" || failures=$((failures + $?))
done
stop_without_threads chief
stop_without_threads local

((failures == 0)) || echo "${failures} failures"
((failures == 0))
