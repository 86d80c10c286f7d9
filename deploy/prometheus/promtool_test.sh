#!/usr/bin/env bash
# Checks the text of the metrics, the alerts with their tests, and the list of alerts in docs/observe.md. Uses
# LOCKSTEP_PROMTOOL, Debian's promtool (prepare_promtool in tools/install.sh). Without it, skips the test, or fails if CI
# is true.
# Usage: promtool_test.sh PRINT_METRICS OBSERVE.md   (from the folder of the test's files)
set -euo pipefail
promtool="${LOCKSTEP_PROMTOOL:-}"
if [[ ! -x "${promtool}" ]]; then
  echo "SKIPPED: there is no promtool (set LOCKSTEP_PROMTOOL)"
  [[ "${CI:-}" != true ]]
  exit
fi
rules=deploy/prometheus/alerts.yml tests=deploy/prometheus/alerts_test.yml

"$1" | "${promtool}" check metrics
"${promtool}" check rules "${rules}"
"${promtool}" check config deploy/prometheus/prometheus.yml
"${promtool}" test rules "${tests}"

alerts="$(sed -n 's/^ *- alert: //p' "${rules}" | sort)"
[[ "$(wc -l <<<"${alerts}")" -ge 7 ]]
# Each alert fires in a test, and the page explains it.
diff <(echo "${alerts}") <(grep -B 1 'exp_alerts:' "${tests}" | sed -n 's/^ *alertname: //p' | sort -u)
diff <(echo "${alerts}") <(sed -n 's/^| \(Lockstep[A-Za-z, ]*\) |.*/\1/p' "$2" | sed 's/, /\n/g' | sort)
