#!/usr/bin/env bash
# Compares the table of `lockstep authz` with the one in docs/security.md.
# Usage: authz_page_test.sh LOCKSTEP PAGE
set -euo pipefail
diff <(sed -n '/^ *anonymous .*local$/,/^```/p' "$2" | sed '$d') <("$1" authz)
