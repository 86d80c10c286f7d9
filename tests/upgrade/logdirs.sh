#!/usr/bin/env bash
# Reads the logdirs of earlier releases in FOLDER, each with the configuration and the digest that its release printed. A
# run with this release's arithmetic version is resumed, and must get the same bits as a run computed by this release
# alone. A run with another arithmetic version is refused by name.
# Usage: logdirs.sh LOCKSTEP FOLDER
set -uo pipefail
# shellcheck source=tests/fault/expectations.sh
source "$(dirname "$0")/../fault/expectations.sh"
readonly LOCKSTEP="$1" FOLDER="$2"
arithmetic="$("${LOCKSTEP}" --version | sed -n 's/^arithmetic version \([0-9]*\),.*/\1/p')"

digest() { "${LOCKSTEP}" inspect "$1" --digest 2>&1; }
train() { "${LOCKSTEP}" local "${release}/run.textproto" --logdir="$1" >"$1.log" 2>&1; }

# refused RELEASE VERSION: expects that a run with another arithmetic version is not resumed.
refused() {
  train "${WORK}/$1"
  expect "the exit code for the logdir of $1, of arithmetic version $2" 2 $?
  expect_said "the logdir of $1" "holds a run of arithmetic version $2" "${WORK}/$1.log"
}

# resumed RELEASE: expects that the run is trained to its last step.
resumed() {
  train "${WORK}/$1" || expect "the exit code for the logdir of $1" 0 $?
  expect_said "the logdir of $1" "resuming from step 20" "${WORK}/$1.log"
  rm -rf "${WORK}/fresh"
  train "${WORK}/fresh" || expect "the exit code for the configuration of $1" 0 $?
  expect "the digest of the logdir of $1, resumed" "$(digest "${WORK}/fresh")" "$(digest "${WORK}/$1")"
}

count=0
for release in "${FOLDER}"/*/; do
  release="${release%/}"
  name="${release##*/}"
  mkdir "${WORK}/${name}"
  cp -L "${release}"/{checkpoint,events.*,generation,lockstep.textproto,model.*} "${WORK}/${name}"
  chmod -R u+w "${WORK}/${name}"
  expect "the digest of the logdir of ${name}" "$(<"${release}/digest")" "$(digest "${WORK}/${name}")"
  recorded="$(sed -n 's/^  arithmetic_version: //p' "${WORK}/${name}/lockstep.textproto")"
  if [[ "${recorded}" == "${arithmetic}" ]]; then
    resumed "${name}"
    recorded=$((arithmetic - 1)) # The version in the record of a release with different arithmetic.
    sed -i "s/^  arithmetic_version: .*/  arithmetic_version: ${recorded}/" "${WORK}/${name}/lockstep.textproto"
  fi
  refused "${name}" "${recorded}"
  count=$((count + 1))
done
expect "there are logdirs of earlier releases" 1 $((count > 0))
((failures == 0))
