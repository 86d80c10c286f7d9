#!/usr/bin/env bash
# Runs every group of benchmarks with the usual programs and sockets. Does not check any time.
set -euo pipefail

readonly folder="${TEST_SRCDIR}/${TEST_WORKSPACE}"
readonly report="${TEST_TMPDIR}/report.json" table="${TEST_TMPDIR}/table" plot="${TEST_TMPDIR}/plot.svg"
readonly peers="${TEST_TMPDIR}/peers.json" draw="${folder}/tests/benchmark/plot.py"
export LOCKSTEP_CHIEF_BINARY="${folder}/server/chief_main" LOCKSTEP_WORKER_BINARY="${folder}/worker/worker_main" \
  LOCKSTEP_BINARY="${folder}/cli/lockstep_main"

# A report of a run with --peers.
cat >"${peers}" <<'JSON'
{"machine": "2 cores of another kind", "row": [
  {"group": "peers", "what": "softmax, batch 64, 2 workers", "unit": "steps/s", "against": "PyTorch DDP",
   "ours": {"minimum": 90, "median": 100, "maximum": 110}, "theirs": {"minimum": 20, "median": 25, "maximum": 30},
   "ratio": {"minimum": 3, "median": 4, "maximum": 5.5}, "atLeast": 8},
  {"group": "peers", "what": "softmax, batch 64, 2 workers, FIRST_ARRIVALS", "unit": "steps/s", "against": "TensorFlow PS",
   "ours": {"minimum": 88, "median": 95, "maximum": 99}, "theirs": {"minimum": 9, "median": 10, "maximum": 11},
   "ratio": {"minimum": 9, "median": 9.5, "maximum": 10}, "atLeast": 8},
  {"group": "peers", "what": "softmax, batch 64, PyTorch DDP with 2 workers", "unit": "examples/s",
   "against": "PyTorch alone", "ours": {"minimum": 3000, "median": 3200, "maximum": 3300},
   "theirs": {"minimum": 3900, "median": 4321, "maximum": 4400}, "ratio": {"minimum": 0.7, "median": 0.8, "maximum": 0.9}},
  {"group": "models", "what": "CNN, batch 64", "unit": "passes/s", "against": "PyTorch, NHWC",
   "ours": {"minimum": 19, "median": 20, "maximum": 21}, "theirs": {"minimum": 9, "median": 10, "maximum": 11},
   "ratio": {"minimum": 1.8, "median": 2, "maximum": 2.2}, "atLeast": 1.5}]}
JSON

"${folder}/tests/benchmark/benchmarks" --quick --seconds=0.1 --json="${report}" \
  --plot="${plot}" --plot_with="${peers}" --plot_script="${draw}" >"${table}"
cat "${table}"

# expect PATTERN FILE: fails if no line matches.
expect() {
  grep -qE "$1" "$2" || {
    echo "no line of $2 matches: $1"
    exit 1
  }
}

for group in step frozen training saving start memory "chief CPU" TLS recovery watching kernels stragglers; do
  expect "^${group} " "${table}"
  expect "\"group\": \"${group}\"" "${report}"
done
expect '^Machine: [0-9]+ cores, .*, (AVX2|AVX-512|NEON) of [1-9][0-9]* GFLOP/s each; load before' "${table}"
# Every kind of contestant took part.
for against in "raw sockets" "gRPC round trip" "protobuf stub" "bare Eigen loop" "one process" "bare read into fresh memory" \
  "bare read into one small buffer" "bare gRPC stream" "the lease" "peak" "a plain copy"; do
  expect "\"against\": \"${against}\"" "${report}"
done
expect "1.05 MB, 2 workers, unix" "${table}"
for policy in ASYNC FIRST_ARRIVALS; do
  expect "^training  *MLP, batch 64, 2 workers, ${policy} .* 2 lone processes" "${table}"
done
expect "16 workers" "${table}"
expect '<= .* (met|MISSED)' "${table}"
expect "^frozen  *2.68 MB and 100 MB frozen, tcp .*bytes .*<= .* (met|MISSED)" "${table}"
for what in "one of 2 workers killed" "one of 2 workers halted" "chief killed, and started again" \
  "takeover: chief killed, with a standby" "takeover: chief halted, with a standby"; do
  expect "^recovery  *${what} .*<= .* (met|MISSED)" "${table}"
done
expect "^watching  *4 B, 1 worker, tcp, one watcher .*no watcher .*<= .* (met|MISSED)" "${table}"
for what in audit record_order; do
  expect "^watching  *MLP, batch 64, 2 workers, TLS, ${what}, everything on .*page off .*>= .* (met|MISSED)" "${table}"
done
for what in "products of the MLP, batch 64" "convolutions of the CNN, batch 64" "gradients of ReLU and bias" Adam; do
  expect "^kernels  *${what}, (AVX2 .*>=|AVX-512 .*>=|NEON) .*" "${table}"
done

for what in "DETERMINISTIC, 8 workers, 0 backups" "FIRST_ARRIVALS, 8 workers, 3 backups" "ASYNC, 8 workers"; do
  expect "^stragglers  *${what}  *batches/s .* 8 workers that never wait" "${table}"
done

# The picture shows every part, and both reports.
readonly parts=("MLP, batch 64" "bare Eigen loop" "Lockstep, 2 lone processes" "Lockstep, 2 workers, ASYNC" "[0-9,]+ \\([0-9,]+ steps/s\\)"
  "PyTorch DDP, 2 workers" "4,321" "softmax, batch 64, 2 workers, hooks that gate" "CNN, batch 64: PyTorch, NHWC"
  "2.00: 20 to 10 passes/s" "raw sockets, 2 workers" "unix sockets" "model of 4.1 kB" "16"
  "products of the MLP, batch 64, [A-Z0-9-]+: peak" "time of a step, ms" "never wait" "FIRST_ARRIVALS" "2 cores of another kind; load before: 0.00")
for text in "${parts[@]}"; do
  expect ">${text}</text>" "${plot}"
done
# A report with peers alone also makes a picture.
"${draw}" --parts=rates,models "${peers}" "${plot}"
expect ">Lockstep, 2 workers</text>" "${plot}"
expect ">Lockstep, 2 workers, FIRST_ARRIVALS</text>" "${plot}"
expect ">CNN, batch 64: PyTorch, NHWC</text>" "${plot}"
if "${draw}" --parts=step "${peers}" "${plot}" 2>"${TEST_TMPDIR}/errors"; then exit 1; fi
expect "nothing to draw" "${TEST_TMPDIR}/errors"

status=0
"${folder}/tests/benchmark/benchmarks" --only=nothing 2>"${TEST_TMPDIR}/errors" || status=$?
[[ "${status}" == 2 ]]
expect "no group \"nothing\"; there are step, .*, kernels, stragglers" "${TEST_TMPDIR}/errors"
status=0
"${folder}/tests/benchmark/benchmarks" --peers --only=step 2>"${TEST_TMPDIR}/errors" || status=$?
[[ "${status}" == 2 ]]
expect "no group \"step\"; there are peers, torch, python, models, products" "${TEST_TMPDIR}/errors"
status=0
"${folder}/tests/benchmark/benchmarks" --json="${report}" --plot="${plot}" --plot_script="${draw}" \
  --plot_with="${TEST_TMPDIR}/nothing" 2>"${TEST_TMPDIR}/errors" || status=$?
[[ "${status}" == 2 ]]
expect "there is no ${TEST_TMPDIR}/nothing" "${TEST_TMPDIR}/errors"
