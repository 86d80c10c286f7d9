#!/usr/bin/env bash
# Tests how real processes find a chief by its host name: names that gRPC would mistake for a scheme, a chief that
# returns at another address, a name that does not exist, and a late process that finds the ended run by name.
# Usage: names.sh CHIEF WORKER LOCKSTEP SLIM_TRAIN CONFIG DATA   (the binaries, a run's configuration, a folder of
# examples)
# Needs a mount namespace for its own /etc/hosts. Without one, the test is skipped, or fails if CI is true.
set -uo pipefail

# skip REASON: ends the test, and reports it as skipped.
skip() {
  echo "SKIPPED: $1"
  [[ -z "${XML_OUTPUT_FILE:-}" ]] || cat >"${XML_OUTPUT_FILE}" <<END
<?xml version="1.0" encoding="UTF-8"?>
<testsuites>
  <testsuite name="names" tests="1" skipped="1">
    <testcase name="names" status="run" result="skipped"/>
  </testsuite>
</testsuites>
END
  [[ "${CI:-}" != true ]]
  exit
}

if [[ "${NAMES_INSIDE:-}" != 1 ]]; then
  export NAMES_INSIDE=1
  for flag in "" --map-root-user; do
    # shellcheck disable=SC2086  # the flag may be none
    unshare --mount ${flag} true 2>/dev/null && exec unshare --mount ${flag} "$0" "$@"
  done
  skip "no mount namespace here"
fi

readonly CHIEF="$1" WORKER="$2" LOCKSTEP="$3" SLIM_TRAIN="$4" CONFIG="$5" DATA="$6"
# shellcheck source=tests/fault/expectations.sh
source "$(dirname "$0")/expectations.sh"

readonly HOSTS="${WORK}/hosts"
# hosts LINE...: replaces the contents of /etc/hosts.
hosts() { printf '%s\n' "127.0.0.1 localhost" "$@" >"${HOSTS}"; }
hosts
# Prevents queries to a name service.
echo "hosts: files" >"${WORK}/nsswitch.conf"
if ! mount --bind "${HOSTS}" /etc/hosts || ! mount --bind "${WORK}/nsswitch.conf" /etc/nsswitch.conf; then
  skip "/etc/hosts cannot be replaced"
fi

now_ms() { echo $((${EPOCHREALTIME/./} / 1000)); }

# start_chief LOG ADDRESS FLAGS...: sets PID and PORT.
start_chief() {
  rm -f "${WORK}/port"
  start "$1" "${CHIEF}" "${CONFIG}" --listen="$2" --port_file="${WORK}/port" "${@:3}"
  while [[ ! -s "${WORK}/port" ]] && kill -0 "${PID}" 2>/dev/null; do sleep 0.02; done
  PORT="$(cat "${WORK}/port" 2>/dev/null)"
}

# within WHAT BEGAN [LIMIT]: expects that less than LIMIT ms, or 2 s, have passed since BEGAN. Lockstep promises the 2 s
# under any load; without load, it takes a second.
within() {
  local took=$(($(now_ms) - $2)) limit="${3:-2000}"
  echo "$1: ${took} ms"
  ((took < limit)) || expect "$1" "in less than ${limit} ms" "${took} ms"
}

echo "a name that does not exist"
began="$(now_ms)"
start "${WORK}/nameless.log" "${WORKER}" --master=grpc://nobody.test:1 --chief_wait_seconds=20
await_said 'the host name "nobody.test" cannot be resolved' "${WORK}/nameless.log" "${PID}"
within "a worker names the host" "${began}" 5000
expect_said "a worker names the host" 'the host name "nobody.test" cannot be resolved' "${WORK}/nameless.log"
kill -KILL "${PID}"

echo "names that are schemes"
hosts "127.0.0.1 dns ipv4 ipv6 xds unix vsock"
start_chief "${WORK}/schemes.log" 127.0.0.1:0
for name in dns ipv4 ipv6 xds vsock; do
  "${LOCKSTEP}" status --master="grpc://${name}:${PORT}" >"${WORK}/status.log" 2>&1
  expect "a chief on a host called ${name} answers" 0 "$?"
done
kill -KILL "${PID}"

echo "a chief that moves"
hosts "127.0.0.2 chief.test"
start_chief "${WORK}/first.log" 127.0.0.2:0 --logdir="${WORK}/moved" --steps=1000000
chief="${PID}"
start "${WORK}/worker.log" "${WORKER}" --master="grpc://chief.test:${PORT}"
worker="${PID}"
await_said "saved ${WORK}/moved/model.ckpt-20" "${WORK}/first.log" "${chief}"
kill -KILL "${chief}"
sleep 3 # until the worker's retry delay has reached its maximum
hosts "127.0.0.3 chief.test"
start_chief "${WORK}/second.log" "127.0.0.3:${PORT}" --logdir="${WORK}/moved" --steps=1000000
moved="$(now_ms)"
await_said "opened session" "${WORK}/second.log" "${PID}"
within "the chief at its new address is found" "${moved}"
kill -KILL "${PID}" "${worker}"

echo "a chief that moves from an address that neither answers nor refuses"
hosts "127.0.0.2 chief.test"
start_chief "${WORK}/third.log" 127.0.0.2:0 --logdir="${WORK}/dead" --steps=1000000
chief="${PID}"
start "${WORK}/patient.log" "${WORKER}" --master="grpc://chief.test:${PORT}"
worker="${PID}"
await_said "saved ${WORK}/dead/model.ckpt-20" "${WORK}/third.log" "${chief}"
kill -KILL "${chief}"
# The listener's only place is taken, and nothing accepts, so the kernel drops further connections.
start "${WORK}/dead.log" python3 -c '
import signal, socket, sys
listener = socket.socket()
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listener.bind(("127.0.0.2", int(sys.argv[1])))
listener.listen(0)
first = socket.socket()
first.setblocking(False)
first.connect_ex(listener.getsockname())
print("dead", flush=True)
signal.pause()' "${PORT}"
dead="${PID}"
await_said "dead" "${WORK}/dead.log" "${dead}"
expect_said "the old address takes no connection" "dead" "${WORK}/dead.log"
sleep 32 # until a patient attempt takes ten seconds
hosts "127.0.0.3 chief.test"
start_chief "${WORK}/fourth.log" "127.0.0.3:${PORT}" --logdir="${WORK}/dead" --steps=1000000
moved="$(now_ms)"
await_said "opened session" "${WORK}/fourth.log" "${PID}"
within "the chief is found although its old address is silent" "${moved}"
kill -KILL "${PID}" "${worker}" "${dead}"

echo "an evaluator around the end of a run whose input ends early"
start_chief "${WORK}/short.log" 127.0.0.1:0 --logdir="${WORK}/short" --set=input.epochs=1
chief="${PID}"
start "${WORK}/short_worker.log" "${WORKER}" --master="grpc://127.0.0.1:${PORT}"
watch_run() { start "$1" "${LOCKSTEP}" eval --watch --split=train --logdir="${WORK}/short"; }
watch_run "${WORK}/early.log"
early="${PID}"
ends "a run whose input ends" 0 "${chief}"
over="$(now_ms)"
watch_run "${WORK}/late_eval.log"
late="${PID}"
for who in early late; do
  ends "an evaluator that starts ${who}" 0 "${!who}"
  within "an evaluator that starts ${who} has learned of the end" "${over}"
done
expect_said "it evaluates the last step" "step 6 " "${WORK}/late_eval.log"

echo "the end of a short run"
# These start before their chief, and before the name exists.
hosts
start "${WORK}/ps.log" "${SLIM_TRAIN}" --job_name=ps --master="grpc://chief.test:${PORT}"
ps="${PID}"
start "${WORK}/ps_by_number.log" "${SLIM_TRAIN}" --job_name=ps --master="grpc://127.0.0.1:${PORT}"
ps_by_number="${PID}"
sleep 3
hosts "127.0.0.1 chief.test"
start "${WORK}/slim.log" "${SLIM_TRAIN}" --data="${DATA}" --listen="127.0.0.1:${PORT}" --steps=20 --logdir="${WORK}/slim"
chief="${PID}"
await_said "workers that start within 2s still learn of it" "${WORK}/slim.log" "${chief}"
expect_said "slim's chief answers after the end" "workers that start within 2s still learn of it" "${WORK}/slim.log"
start "${WORK}/late.log" "${SLIM_TRAIN}" --data="${DATA}" --master="grpc://chief.test:${PORT}" --task_index=1
late="${PID}"
ends "slim's chief" 0 "${chief}"
# A process that missed the end would wait for minutes.
sleep 2
for who in ps ps_by_number late; do
  kill -TERM "${!who}" 2>/dev/null && echo "${who} has missed the end" >>"${WORK}/${who}.log"
  ends "${who} learns of the end" 0 "${!who}"
  cat "${WORK}/${who}.log"
done

((failures == 0)) || exit 1
echo "PASSED"
