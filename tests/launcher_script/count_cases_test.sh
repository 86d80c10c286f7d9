#!/usr/bin/env bash
# Tests how ./lockstep test parses the reports of GoogleTest and of Bazel.
set -euo pipefail
source tools/run_tests.sh

report="$(mktemp "${TEST_TMPDIR:-/tmp}/report.XXXX")"
failures=0
expect() {
  local counts
  cat >"${report}"
  counts="$(count_cases "${report}")"
  [[ "${counts}" == "$2" ]] && return
  printf 'FAILED: %s: expected "%s", is "%s"\n' "$1" "$2" "${counts}"
  failures=$((failures + 1))
}

expect "the text of a failure is no case" "1 1 0" <<'XML'
<?xml version="1.0" encoding="UTF-8"?>
<testsuites tests="2" failures="1" disabled="0" errors="0" time="0.1" name="AllTests">
  <testsuite name="A" tests="2" failures="1" disabled="0" skipped="0" errors="0" time="0.1">
    <testcase name="Bad" file="a.cc" line="3" status="run" result="completed" time="0." classname="A">
      <failure message="x" type=""><![CDATA[a.cc:3
result="skipped"
<testcase name="None" status="run" result="completed">
<failure ]]></failure>
    </testcase>
    <testcase name="Good" file="a.cc" line="4" status="run" result="completed" time="0." classname="A" />
  </testsuite>
</testsuites>
XML

expect "two passed, one failed twice, one skipped, one disabled" "2 1 1" <<'XML'
<?xml version="1.0" encoding="UTF-8"?>
<testsuites tests="5" failures="1" disabled="1" errors="0" time="0.1" name="AllTests">
  <testsuite name="A" tests="5" failures="1" disabled="1" skipped="1" errors="0" time="0.1">
    <testcase name="One" file="a.cc" line="1" status="run" result="completed" time="0." classname="A" />
    <testcase name="Two" file="a.cc" line="2" status="run" result="completed" time="0." classname="A" />
    <testcase name="Bad" file="a.cc" line="3" status="run" result="completed" time="0." classname="A">
      <failure message="x" type=""><![CDATA[a.cc:3]]></failure>
      <failure message="y" type=""><![CDATA[a.cc:4]]></failure>
    </testcase>
    <testcase name="Skip" file="a.cc" line="5" status="run" result="skipped" time="0." classname="A">
      <skipped message="why"><![CDATA[]]></skipped>
    </testcase>
    <testcase name="DISABLED_X" file="a.cc" line="6" status="notrun" result="suppressed" time="0." classname="A" />
  </testsuite>
</testsuites>
XML
expect "a script, whatever it printed" "1 0 0" <<'XML'
<?xml version="1.0" encoding="UTF-8"?>
<testsuites>
  <testsuite name="ok_sh" tests="1" failures="0" errors="0">
    <testcase name="ok_sh" status="run" duration="0" time="0"></testcase>
      <system-out>
Generated test.log (if the file is not UTF-8, then this may be unreadable):
<![CDATA[<testcase <error >
<failure ]]>
      </system-out>
    </testsuite>
</testsuites>
XML
expect "a script that failed" "0 1 0" <<'XML'
<testsuites>
  <testsuite name="bad_sh" tests="1" failures="0" errors="1">
    <testcase name="bad_sh" status="run" duration="0" time="0"><error message="exited with error code 3"></error></testcase>
      <system-out></system-out>
    </testsuite>
</testsuites>
XML
# With errexit and pipefail, as in ./lockstep: truncated reports must not end the run.
say() { :; }
TIMES="$(mktemp "${TEST_TMPDIR:-/tmp}/times.XXXX")"
much() { seq 100000; return 1; }
run_check "much to say" much >"${report}"
if [[ "${FAILED}" != 1 || "$(wc -l <"${report}")" != 80 || "$(head -n 2 "${report}")" != $'---- much to say\n1' ]]; then
  printf 'FAILED: a check with much to say: %d failed, %d lines\n' "${FAILED}" "$(wc -l <"${report}")"
  failures=$((failures + 1))
fi

((failures == 0))
