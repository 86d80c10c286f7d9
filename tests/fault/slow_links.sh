#!/usr/bin/env bash
# Tests a worker behind a link of 800 kbit/s whose gradient takes 40 s, and one behind a round trip of 1.2 s.
# Usage: slow_links.sh CHIEF WORKER LOCKSTEP LINK   (the binaries, and slow_link.py)
# Needs network namespaces. Without them, skips the test, or fails if CI is true.
set -uo pipefail

export PATH="${PATH}:/usr/sbin" # for ip
if [[ "${SLOW_LINKS_INSIDE:-}" != 1 ]]; then
  export SLOW_LINKS_INSIDE=1
  for flag in "" --map-root-user; do
    # shellcheck disable=SC2086  # the flag may be none
    unshare --net ${flag} true 2>/dev/null && exec unshare --net ${flag} "$0" "$@"
  done
  echo "SKIPPED: no network namespace here"
  [[ "${CI:-}" != true ]]
  exit
fi

readonly CHIEF="$1" WORKER="$2" LOCKSTEP="$3" LINK="$4"
# shellcheck source=tests/fault/expectations.sh
source "$(dirname "$0")/expectations.sh"

namespace_differs() { [[ "$(readlink "/proc/$1/ns/net")" != "$(readlink /proc/self/ns/net)" ]]; }
has_accepted() { "${LOCKSTEP}" status --master="${MASTER}" --json 2>/dev/null | grep -qE '"accepted": *"?[1-9]'; }

# joins NAME KILOBITS DELAY UNITS SECONDS: expects that a worker behind the link contributes to a step within SECONDS,
# with its first session. The model has 4 kB for each unit.
joins() {
  local log="${WORK}/$1" other
  echo "$1"
  unshare --net sleep infinity &
  other=$!
  pids+=("${other}")
  await "the other namespace is there" 5 namespace_differs "${other}"
  start "${log}.link" python3 "${LINK}" "${other}" "$2" "$3"
  await "the link is there" 5 grep -q ready "${log}.link"
  cat >"${log}.textproto" <<END
model { layer { name: "logits" dense { units: $4 no_bias: true } } loss { softmax_cross_entropy {} } }
input { split { name: "train" synthetic { kind: CLASSIFICATION examples: 8 shape: 1000 classes: 2 } } batch_size: 8 }
optimizer { sgd {} learning_rate { initial: 0.1 } }
training { steps: 1000000 replicas_to_aggregate: 1 seed: 1 }
END
  start "${log}.chief" "${CHIEF}" "${log}.textproto" --listen=192.0.2.1:0 --insecure --port_file="${log}.port"
  await "the chief listens" 20 test -s "${log}.port"
  MASTER="grpc://192.0.2.1:$(cat "${log}.port")"
  start "${log}.worker" nsenter --target "${other}" --net "${WORKER}" --master="${MASTER}"
  local began="${SECONDS}"
  await "$1: the worker contributes" "$5" has_accepted
  echo "$1: after $((SECONDS - began)) s"
  expect "$1: sessions" 1 "$(grep -c "opened session" "${log}.chief")"
  ((failures == 0)) || tail -n 20 "${log}".{link,chief,worker}
  kill -KILL "${pids[@]}"
  wait
  pids=()
}

ip link set lo up
joins "800 kbit a second" 800 0 1000 300
joins "a round trip of 1.2 s" 100000 0.6 2 60
((failures == 0))
