#!/usr/bin/env bash
# A real Prometheus scrapes a run (prometheus_test.py). Takes the programs from the folder of LOCKSTEP_PROMTOOL, or from
# PATH.
set -euo pipefail
promtool="${LOCKSTEP_PROMTOOL:-$(command -v promtool)}"
exec python3 tests/page/prometheus_test.py server/chief_main worker/worker_main cli/lockstep_main \
  examples/fashion_mnist.textproto "$(dirname "${promtool}")" deploy
