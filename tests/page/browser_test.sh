#!/usr/bin/env bash
# Shows a real run's page in Chromium (browser_test.py).
set -euo pipefail
command -v chromium >/dev/null || { echo "this test needs chromium: apt-get install chromium"; exit 1; }
exec python3 tests/page/browser_test.py server/chief_main worker/worker_main cli/lockstep_main \
  examples/fashion_mnist.textproto
