#!/usr/bin/env bash
# Runs many lives, and some of them twice: two processes must print the same transcript for a seed, even on different
# machines. Also checks the output and exit codes of `./lockstep simulate`.
set -euo pipefail
simulate="$1"

# Runs a command as if on another machine, with a different processor and, where possible, a different host name.
elsewhere() {
  if unshare --map-root-user --uts true 2>/dev/null; then
    # shellcheck disable=SC2016
    LOCKSTEP_TARGET=avx2 unshare --map-root-user --uts bash -c 'hostname somewhere-else-altogether && exec "$@"' bash "$@"
  else
    LOCKSTEP_TARGET=avx2 "$@"
  fi
}

first="$("${simulate}" --seeds=200 --seed=20001 --trace)"
second="$(elsewhere "${simulate}" --seeds=200 --seed=20001 --trace)"
if [[ "${first}" != "${second}" ]]; then
  diff <(printf '%s\n' "${first}") <(printf '%s\n' "${second}") | head -n 20 || true
  echo "a seed does not replay"
  exit 1
fi
if [[ "$(sed -nE 's/^seed ([0-9]+): .*/\1/p' <<<"${first}")" != "$(seq 20001 20200)" ]]; then
  echo "the lives are not traced one after the other"
  exit 1
fi

for flag in --seeds=0 --seeds=-3 --jobs=0 --seed=-1 --seed=9223372036854775807 --workers=-1 --workers=2001; do
  status=0
  said="$("${simulate}" --seeds=2 "${flag}" 2>&1)" || status=$?
  if [[ "${status}" != 2 || "${said}" == *lives,* ]]; then
    echo "${flag}: exit code ${status}: ${said}"
    exit 1
  fi
done

# A life that ends its process counts as failed. The lives that would have followed in that process still run.
"${simulate}" --seeds=1000 --jobs=2 >"${TEST_TMPDIR}/crash" &
all=$!
read_children() { read -r -a children <"/proc/${all}/task/${all}/children" || true; }
children=()
until ((${#children[@]} == 2)); do read_children; done
kill -SEGV "${children[0]}"
status=0
wait "${all}" || status=$?
if [[ "${status}" != 1 || "$(tail -n 1 "${TEST_TMPDIR}/crash")" != "1000 lives, 1 failed" ]] ||
  (($(grep -c 'ended the process; replay it with' "${TEST_TMPDIR}/crash") != 1)); then
  echo "a process that crashed: exit code ${status}"
  tail -n 20 "${TEST_TMPDIR}/crash"
  exit 1
fi

"${simulate}" --workers=200 --seeds=2 | tee "${TEST_TMPDIR}/lives" | tail -n 200
tail -n 1 "${TEST_TMPDIR}/lives" | grep -qx '2 lives, 0 failed'

"${simulate}" --seeds=6000 --seed=1 | tee "${TEST_TMPDIR}/lives" | tail -n 200
tail -n 1 "${TEST_TMPDIR}/lives" | grep -qx '6000 lives, 0 failed'
