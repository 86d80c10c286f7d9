#!/usr/bin/env bash
# Tests the custom input and metric. A chief without them and workers with them reach the same bits as one process; a
# program that lacks one lists the registered ones; a run refuses different examples.
set -euo pipefail

# The weights are the same on every kind of processor.
readonly DIGEST=af3113c696cac266dbdf55e155e80987a793580275867407fd8885e45f9ae2f2

program=examples/own_input
config=examples/own_input.textproto
runs="$(mktemp -d "${TEST_TMPDIR:-/tmp}/own.XXXX")"
# This chief lacks the input and the metric.
export LOCKSTEP_CHIEF_BINARY=server/chief_main

checked="$("${program}" check "${config}")"
echo "${checked}"
grep -q '^train (spirals): 2,*000 examples of .*\[2\], 2 classes, CRC32C [0-9a-f]\{8\}$' <<<"${checked}"
"${program}" run "${config}" --workers=2 --logdir="${runs}/cluster" | tee "${runs}/run.txt"
grep -q '^test: 500 examples: accuracy [0-9.]*, brier [0-9.e-]*$' "${runs}/run.txt"
"${program}" local "${config}" --logdir="${runs}/local"
digest="$("${program}" inspect --digest "${runs}/local")"
[[ "$("${program}" inspect --digest "${runs}/cluster")" == "${digest}" ]]
[[ "${digest}" == "${DIGEST}" ]] || { echo "digest ${digest}, but ${DIGEST} everywhere else"; exit 1; }

evaluation="$("${program}" eval --logdir="${runs}/cluster" --json)"
echo "${evaluation}"
brier="$(sed -nE 's/.*"brier": ([0-9.e-]+).*/\1/p' <<<"${evaluation}")"
awk -v brier="${brier}" 'BEGIN { exit !(brier > 0 && brier <= 0.1) }'

# The error names the missing metric and the registered ones.
other="$("${program}" check "${config}" --set=evaluation.metric=registered:f1 2>&1)" && exit 1
echo "${other}"
grep -q 'evaluation.metric\[0\]: registered is "f1", a metric that this program lacks; it has brier' <<<"${other}"

# A run refuses examples that differ from those it began with.
other="$("${program}" local "${config}" --logdir="${runs}/local" --steps=700 \
  --set='input.split[0].registered.parameter[examples]=1000' 2>&1)" && exit 1
echo "${other}"
grep -q 'parameter\[examples\]: "2000" -> "1000"' <<<"${other}"
