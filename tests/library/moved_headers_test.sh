#!/usr/bin/env bash
# Each moved header causes an error at its old path, and exists at the path in the error, in a folder filled like
# ./lockstep install-library does. CHANGELOG.md names the same paths for the public headers.
# Usage: moved_headers_test.sh CHANGELOG OLD=NEW...   (paths after "lockstep/")
set -euo pipefail
changelog="$1"
shift
include="install_tree/include"
[[ $# -gt 100 ]] || { echo "only $# headers have moved"; exit 1; }

source="${TEST_TMPDIR}/stale.cc"
printf '#include "lockstep/%s"\n' "${@%%=*}" >"${source}"
status=0
g++ -fsyntax-only -I"${include}" "${source}" 2>"${TEST_TMPDIR}/errors" || status=$?
[[ "${status}" != 0 ]] || { echo "stale includes compile"; exit 1; }
grep -oE '#error ".*"' "${TEST_TMPDIR}/errors" | sort -u >"${TEST_TMPDIR}/said"

failed=0
fail() {
  echo "$1"
  failed=1
}
for moved in "$@"; do
  old="${moved%%=*}" new="${moved#*=}"
  grep -qxF "#error \"lockstep/${old} moved to lockstep/${new}\"" "${TEST_TMPDIR}/said" || fail "${old}: no error names ${new}"
  [[ -s "${include}/lockstep/${new}" ]] && ! grep -q '^#error "lockstep/' "${include}/lockstep/${new}" || fail "${new} is no header"
done

mapfile -t rows < <(sed -nE 's/^\| `lockstep\/([^`]*\.h)` \| `lockstep\/([^`]*\.h)` \|$/\1=\2/p' "${changelog}")
[[ ${#rows[@]} -gt 30 ]] || fail "only ${#rows[@]} rows in ${changelog}"
for row in "${rows[@]}"; do
  [[ " $* " == *" ${row} "* ]] || fail "${changelog}: ${row} is not what tools/moved_headers.bzl says"
done
echo "$# headers, ${#rows[@]} of them public"
exit "${failed}"
