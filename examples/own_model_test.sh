#!/usr/bin/env bash
# Tests the custom model: a chief and workers that know the model reach the same accuracy and bits as one process.
set -euo pipefail

# The weights are the same on every kind of processor.
readonly DIGEST=00e278c4c6219b5970107cfb07e47c041c1c019ea9262e599c66989417ba34eb

program=examples/own_model
config=examples/own_model.textproto
runs="$(mktemp -d "${TEST_TMPDIR:-/tmp}/own.XXXX")"

"${program}" check "${config}" | grep -q 'weight *variable *\[30\]'
"${program}" run "${config}" --workers=2 --logdir="${runs}/cluster"
"${program}" local "${config}" --logdir="${runs}/local"
digest="$("${program}" inspect --digest "${runs}/local")"
[[ "$("${program}" inspect --digest "${runs}/cluster")" == "${digest}" ]]
[[ "${digest}" == "${DIGEST}" ]] || { echo "digest ${digest}, but ${DIGEST} everywhere else"; exit 1; }

evaluation="$("${program}" eval --logdir="${runs}/cluster" --json)"
echo "${evaluation}"
accuracy="$(sed -nE 's/.*"accuracy": ([0-9.]+).*/\1/p' <<<"${evaluation}")"
awk -v accuracy="${accuracy}" 'BEGIN { exit !(accuracy >= 0.95) }'
