#!/usr/bin/env bash
# The example of a model of one's own: a chief and workers that know the model reach the accuracy and the bits of one
# process; a worker without the model says what is missing.
set -euo pipefail

program=examples/own_model
config=examples/own_model.textproto
runs="$(mktemp -d "${TEST_TMPDIR:-/tmp}/own.XXXX")"
export LOCKSTEP_CHIEF_BINARY=server/chief_main

"${program}" check "${config}" | grep -q 'weight *variable *\[30\]'
"${program}" run "${config}" --workers=2 --logdir="${runs}/cluster"
"${program}" local "${config}" --logdir="${runs}/local"
[[ "$("${program}" inspect --digest "${runs}/cluster")" == "$("${program}" inspect --digest "${runs}/local")" ]]

evaluation="$("${program}" eval --logdir="${runs}/cluster" --json)"
echo "${evaluation}"
accuracy="$(sed -nE 's/.*"accuracy": ([0-9.]+).*/\1/p' <<<"${evaluation}")"
awk -v accuracy="${accuracy}" 'BEGIN { exit !(accuracy >= 0.95) }'
