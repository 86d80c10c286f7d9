#!/usr/bin/env bash
# A real Prometheus scrapes a run (prometheus_test.py). Takes the programs from PATH, or from Debian's package, which is
# unpacked but not installed.
set -euo pipefail
folder="${TEST_TMPDIR:?}/prometheus"
mkdir -p "${folder}"
if command -v prometheus promtool >/dev/null; then
  programs="$(dirname "$(command -v promtool)")"
else
  (cd "${folder}" && apt-get download prometheus >/dev/null && dpkg-deb -x prometheus_*.deb .)
  programs="${folder}/usr/bin"
fi
exec python3 tests/page/prometheus_test.py server/chief_main worker/worker_main cli/lockstep_main \
  examples/fashion_mnist.textproto "${programs}" deploy
