#!/usr/bin/env bash
# A real Prometheus scrapes a run (prometheus_test.py). Takes the programs from the folder of LOCKSTEP_PROMTOOL, or from
# PATH.
set -euo pipefail
promtool="${LOCKSTEP_PROMTOOL:-$(command -v promtool || true)}"
[[ -n "${promtool}" ]] || { echo "promtool is not in PATH, and LOCKSTEP_PROMTOOL does not name it" >&2; exit 1; }
exec python3 tests/page/prometheus_test.py server/chief_main worker/worker_main cli/lockstep_main \
  examples/fashion_mnist.textproto "$(dirname "${promtool}")" deploy
