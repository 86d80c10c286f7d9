#!/usr/bin/env bash
# The benchmarks run, every group of them, with the programs and sockets that they always have. No time is judged.
set -euo pipefail

readonly folder="${TEST_SRCDIR}/${TEST_WORKSPACE}"
readonly report="${TEST_TMPDIR}/report.json" table="${TEST_TMPDIR}/table" plot="${TEST_TMPDIR}/plot.svg"
export LOCKSTEP_CHIEF_BINARY="${folder}/server/chief_main" LOCKSTEP_WORKER_BINARY="${folder}/worker/worker_main"

"${folder}/tests/benchmark/benchmarks" --quick --seconds=0.1 --json="${report}" \
  --plot="${plot}" --plot_script="${folder}/tests/benchmark/plot.py" >"${table}"
cat "${table}"

# expect PATTERN FILE: fails when no line matches.
expect() {
  grep -qE "$1" "$2" || {
    echo "no line of $2 matches: $1"
    exit 1
  }
}

for group in step training saving start memory "chief CPU"; do
  expect "^${group} " "${table}"
  expect "\"group\": \"${group}\"" "${report}"
done
expect '^Machine: [0-9]+ cores, .*, (AVX2|AVX-512|NEON) of [1-9][0-9]* GFLOP/s each; load before' "${table}"
# Every kind of contestant took part.
for against in "raw sockets" "gRPC round trip" "protobuf stub" "bare Eigen loop" "one process" "bare read into fresh memory" \
  "bare read into one small buffer" "bare gRPC stream"; do
  expect "\"against\": \"${against}\"" "${report}"
done
expect "1.05 MB, 2 workers, unix" "${table}"
expect "16 workers" "${table}"
expect '<= .* (met|MISSED)' "${table}"
# The picture has a pair of bars for each row of training, and a line for each number of workers and wire.
for text in "softmax, batch 64, 2 workers" "bare Eigen loop: [0-9,]+" "2 workers, shared memory" "1 worker, raw tcp sockets"; do
  expect ">${text}</text>" "${plot}"
done

status=0
"${folder}/tests/benchmark/benchmarks" --only=nothing 2>"${TEST_TMPDIR}/errors" || status=$?
[[ "${status}" == 2 ]]
expect "no group \"nothing\"" "${TEST_TMPDIR}/errors"
status=0
"${folder}/tests/benchmark/benchmarks" --peers --only=step 2>"${TEST_TMPDIR}/errors" || status=$?
[[ "${status}" == 2 ]]
expect "no group \"step\"; there are peers, models, products" "${TEST_TMPDIR}/errors"
