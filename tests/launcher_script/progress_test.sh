#!/usr/bin/env bash
# Tests the progress of installing and building, as computed from the logs of apt and Bazel.
set -euo pipefail

failures=0
say() { printf 'lockstep: %s\n' "$*" >&2; }
LOG="${TEST_TMPDIR:-/tmp}/progress.log"
# shellcheck source=tools/progress.sh
source tools/progress.sh

expect() {
  if [[ "$2" != "$3" ]]; then
    printf 'FAILED: %s\n  expected: %s\n  is:       %s\n' "$1" "$2" "$3"
    failures=$((failures + 1))
  fi
}

expect "apt has not counted yet" "" "$(apt_progress <<<"Reading package lists...")"
apt_log="Reading package lists...
1 upgraded, 3 newly installed, 0 to remove and 132 not upgraded.
Get:1 http://deb.debian.org/debian bookworm/main amd64 libre2-dev amd64 20220601+dfsg-1 [200 kB]
Get:2 http://deb.debian.org/debian bookworm/main amd64 libre2-9 amd64 20220601+dfsg-1 [100 kB]"
expect "apt fetches" "2 of 4 packages fetched" "$(apt_progress <<<"${apt_log}")"
apt_log+=$'\nUnpacking libre2-9:amd64 (20220601+dfsg-1) ...'
expect "apt unpacks" "1 of 4 packages unpacked" "$(apt_progress <<<"${apt_log}")"
apt_log+=$'\nUnpacking libre2-dev:amd64 ...\nSetting up libre2-9:amd64 (20220601+dfsg-1) ...'
expect "apt sets up" "1 of 4 packages set up" "$(apt_progress <<<"${apt_log}")"

expect "bazel loads" "" "$(bazel_progress <<<"Loading: 3 packages loaded")"
expect "bazel builds" "1,153 of 2,160 actions" "$(bazel_progress <<<"[4 / 14] Compiling a.cc; 2s
[1,153 / 2,160] Compiling b.cc; 12s remote-cache, linux-sandbox ... (4 actions running)
b.cc:3: warning: [3 / 4] is no progress")"
expect "bazel tests" "143 of 150 tests, 1,153 of 1,160 actions" \
  "$(bazel_progress <<<"[1,153 / 1,160] 143 / 150 tests, 1 failed; Testing //a:b; 3s")"
expect "what says nothing" "" "$(no_progress <<<"[4 / 14] Compiling")"

expect "seconds" "59s" "$(in_minutes 59)"
expect "minutes" "10m05s" "$(in_minutes 605)"

: >"${LOG}"
status=0
with_progress "working" no_progress bash -c 'exit 7' || status=$?
expect "the status of the command" 7 "${status}"
expect "a short command shows nothing" "" "$(with_progress "working" no_progress true 2>&1)"

[[ "${failures}" == 0 ]] && echo "all as expected"
