#!/usr/bin/env bash
# LOCKSTEP_TARGET selects the kernel target of real programs; --version and `status` show it. A target that is unknown,
# or not supported by this processor, causes an error message and exit code 2.
# Usage: chosen_target_test.sh LOCKSTEP CHIEF WORKER PROGRAM...   (each has --version)
set -euo pipefail
lockstep="$1" chief="$2" worker="$3"
unset LOCKSTEP_TARGET
work="$(mktemp -d)"
pids=()
trap '((${#pids[@]} == 0)) || kill -KILL "${pids[@]}" 2>/dev/null || true; rm -rf "${work}"' EXIT

# expect WHAT EXPECTED IS
expect() {
  [[ "$2" == "$3" ]] && return
  printf 'FAILED: %s\n  expected: %s\n  is:       %s\n' "$1" "$2" "$3"
  exit 1
}

# has FLAG...: succeeds if /proc/cpuinfo has all flags.
has() {
  local flag
  for flag in "$@"; do grep -qm 1 "^flags.* ${flag}\( \|\$\)" /proc/cpuinfo || return 1; done
}

# version_of PROGRAM: prints the instruction set in the output of --version.
version_of() { "$1" --version | sed -nE '2s/.*, //p'; }

# refused TARGET SENTENCE PROGRAM
refused() {
  local status=0 output
  output="$(LOCKSTEP_TARGET="$1" "$3" --version 2>&1)" || status=$?
  expect "$3 with LOCKSTEP_TARGET=$1" "$3: $2, exit code 2" "${output}, exit code ${status}"
}

declare -A names=([avx2]=AVX2)
fastest=avx2
if has avx512f avx512dq avx512bw avx512vl; then
  names[avx512]=AVX-512
  fastest=avx512
fi
echo "targets: ${!names[*]}"

for program in "$@"; do
  expect "${program} without LOCKSTEP_TARGET" "${names[${fastest}]}" "$(version_of "${program}")"
  expect "${program} with an empty LOCKSTEP_TARGET" "${names[${fastest}]}" "$(LOCKSTEP_TARGET="" version_of "${program}")"
  for target in "${!names[@]}"; do
    expect "${program} with ${target}" "${names[${target}]}" "$(LOCKSTEP_TARGET="${target}" version_of "${program}")"
  done
  [[ -n "${names[avx512]:-}" ]] || refused avx512 "LOCKSTEP_TARGET is avx512, but this processor has no AVX-512" "${program}"
  refused neon "LOCKSTEP_TARGET is neon, but this processor has no NEON" "${program}"
  for word in AVX2 sse2 "avx2 "; do
    refused "${word}" "LOCKSTEP_TARGET is \"${word}\", but must be avx2, avx512, neon or empty" "${program}"
  done
done

# await_line TEXT: reads ${log}, the chief's log, up to a line with the text; sets said to that line.
await_line() {
  local before=""
  while read -r -u "${log}" said; do
    [[ "${said}" != *"$1"* ]] || return 0
    before+="${said}"$'\n'
  done
  printf 'the chief did not say "%s" but\n%s' "$1" "${before}"
  exit 1
}

# Runs a chief with the slowest target and a worker with the fastest.
cat >"${work}/config.textproto" <<'CONFIG'
model {
  layer { name: "logits" dense { units: 2 } }
  loss { softmax_cross_entropy {} }
}
input {
  split {
    name: "train"
    synthetic { kind: CLASSIFICATION examples: 100 shape: 4 classes: 2 noise: 1 }
  }
  batch_size: 10
}
optimizer { sgd {} learning_rate { initial: 0.1 } }
training { steps: 1000000000 replicas_to_aggregate: 1 seed: 1 }
CONFIG
exec {log}< <(LOCKSTEP_TARGET=avx2 exec "${chief}" "${work}/config.textproto" --logdir="${work}/run" --listen=127.0.0.1:0 2>&1)
pids+=($!)
await_line "listening on "
[[ "${said}" =~ listening\ on\ ([0-9.:]+) ]]
master="grpc://${BASH_REMATCH[1]}"
LOCKSTEP_TARGET="${fastest}" "${worker}" --master="${master}" --name=w 2>"${work}/worker.log" &
pids+=($!)
await_line "w opened session"
status="$("${lockstep}" status --master="${master}")"
expect "status of the chief" AVX2 "$(sed -nE 's/^build .*, arithmetic version [0-9]+, ([^,]*), on .*/\1/p' <<<"${status}")"
expect "status of the worker" "${names[${fastest}]}" "$(awk '$NF == "INSTRUCTIONS" { getline; print $1 == "w" ? $NF : $0 }' <<<"${status}")"
