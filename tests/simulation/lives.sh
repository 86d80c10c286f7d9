#!/usr/bin/env bash
# Lives many lives, and some of them twice: two processes must tell the same story of a seed, to the letter.
set -euo pipefail
simulate="$1"

first="$("${simulate}" --seeds=60 --seed=20001 --jobs=1 --trace)"
second="$("${simulate}" --seeds=60 --seed=20001 --jobs=1 --trace)"
if [[ "${first}" != "${second}" ]]; then
  diff <(printf '%s\n' "${first}") <(printf '%s\n' "${second}") | head -n 20
  echo "a seed does not replay"
  exit 1
fi

"${simulate}" --seeds=6000 --seed=1 | tee "${TEST_TMPDIR}/lives" | tail -n 200
tail -n 1 "${TEST_TMPDIR}/lives" | grep -qx '6000 lives, 0 failed'
