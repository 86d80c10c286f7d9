#!/usr/bin/env bash
# Tests how ./lockstep test parses the events of `bazel test`.
set -euo pipefail

events="${TEST_TMPDIR:-/tmp}/events.json"
failures=0
read_events() { python3 tools/test_events.py "${events}" | tr '\t' '|'; }
expect() {
  if [[ "$2" != "$3" ]]; then
    printf 'FAILED: %s\n  expected: %s\n  is:       %s\n' "$1" "$2" "$3"
    failures=$((failures + 1))
  fi
}

# configured LABEL KIND
configured() {
  printf '{"id":{"targetConfigured":{"label":"%s"}},"configured":{"targetKind":"%s rule","testSize":"SMALL"}}\n' "$@"
}
# result LABEL RUN SHARD ATTEMPT STATUS FOLDER
result() {
  printf '{"id":{"testResult":{"label":"%s","run":%d,"shard":%d,"attempt":%d}},"testResult":{"status":"%s",' "${@:1:5}"
  printf '"testActionOutput":[{"name":"test.log","uri":"file://%s/test.log"},' "$6"
  printf '{"name":"test.xml","uri":"file://%s/test.xml"}]}}\n' "$6"
}
# summary LABEL STATUS MILLISECONDS
summary() {
  printf '{"id":{"testSummary":{"label":"%s"}},"testSummary":{"overallStatus":"%s","totalRunDurationMillis":"%s"}}\n' "$@"
}

: >"${events}"
expect "nothing was tested" "" "$(read_events)"

{
  printf '{"id":{"started":{}},"children":[{"progress":{}}],"started":{"uuid":"1"}}\n'
  configured //a:library cc_library
  configured //a:broken cc_test
  configured //a:good cc_test
  printf '{"id":{"targetCompleted":{"label":"//a:broken"}},"completed":{"failureDetail":{"message":"gcc"}}}\n'
  result //a:good 1 1 1 PASSED "/a%20tree/good"
  summary //a:good PASSED 1250
} >"${events}"
expect "what was not built, and what passed, in a folder with a space" "//a:broken|BUILD|0.0
//a:good|PASSED|1.2|xml=/a tree/good/test.xml" "$(read_events)"

{
  result //a:bad 1 1 1 FAILED /bad
  summary //a:bad FAILED 10
  result //a:slow 1 1 1 TIMEOUT /slow
  summary //a:slow TIMEOUT 60000
} >"${events}"
expect "what failed has a log" "//a:bad|FAILED|0.0|xml=/bad/test.xml|log=/bad/test.log
//a:slow|TIMEOUT|60.0|xml=/slow/test.xml|log=/slow/test.log" "$(read_events)"

{
  result //a:runs 1 1 1 PASSED /run_1_of_2
  result //a:runs 2 1 1 FAILED /run_2_of_2
  summary //a:runs FAILED 100
} >"${events}"
expect "the runs of this command, and no others" \
  "//a:runs|FAILED|0.1|xml=/run_1_of_2/test.xml|xml=/run_2_of_2/test.xml|log=/run_2_of_2/test.log" "$(read_events)"

{
  result //a:flaky 1 1 1 FAILED /attempt_1
  result //a:flaky 1 1 2 PASSED /last
  summary //a:flaky FLAKY 100
} >"${events}"
expect "the last attempt counts" "//a:flaky|PASSED|0.1|xml=/last/test.xml" "$(read_events)"

{
  configured //a:waits sh_test
  summary //a:none NO_STATUS 0
  summary //a:remote REMOTE_FAILURE 0
  printf '{"id":{"testSummary":{"label":"//a:cut'
} >"${events}"
expect "what never ran, and a last line that was cut off" "//a:none|BUILD|0.0
//a:remote|FAILED|0.0
//a:waits|BUILD|0.0" "$(read_events)"

[[ "${failures}" == 0 ]] && echo "all as expected"
