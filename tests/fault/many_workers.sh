#!/usr/bin/env bash
# Tests that a thousand workers return within 3 s after their chief was killed, with at most 1.5 OpenSession calls each
# (many_workers.cc). Usage: many_workers.sh MANY_WORKERS CHIEF   (the binaries)
set -euo pipefail

# The workers, in one process, and the chief need a descriptor for each connection.
ulimit -n "$(ulimit -H -n)"
exec "$1" --chief="$2" --directory="${TEST_TMPDIR}"
