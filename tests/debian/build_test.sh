#!/usr/bin/env bash
# Builds the tree in a bare Debian, where ./lockstep installs the packages, and trains there. The digest must be the one
# that this machine's build computes.
# Usage: build_test.sh SUITE LOCKSTEP CONFIG   (bookworm or trixie; this machine's build; the run)
set -uo pipefail
readonly SUITE="$1"
lockstep="$(readlink -f "$2")"
config="$(readlink -f "$3")"
# shellcheck source=tests/debian/roots.sh
source "$(dirname "$0")/roots.sh"

expected="$(digest_of "${lockstep}" "${config}")"
make_root "${SUITE}" || exit
clone_tree "${WORK}/${SUITE}/src" || exit
cp "${config}" "${WORK}/${SUITE}/run.textproto"
expect "the compilers of a bare ${SUITE}" "" "$(in_root "${SUITE}" 'type -p cc g++ bazel git')"
say "building in ${SUITE}"
if ! in_root "${SUITE}" 'cd /src && ./lockstep build && ./lockstep --version' >"${WORK}/build.log" 2>&1; then
  tail -n 80 "${WORK}/build.log"
  exit 1
fi
tail -n 2 "${WORK}/build.log"
trains "in ${SUITE}" "${SUITE}" /src/lockstep
say "${failures} failures"
((failures == 0))
