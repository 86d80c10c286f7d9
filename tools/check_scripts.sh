#!/usr/bin/env bash
# Runs shellcheck on all of our scripts.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."

# A sourced file's variables are used by the file that sources it (SC2034).
{ git ls-files '*.sh' '*.sbatch' && git ls-files -s | awk '$1 == 100755 { print $4 }' | xargs -r grep -lE '^#!.*\b(ba)?sh\b'; } |
  sort -u | xargs -d '\n' shellcheck -x -e SC2034 -S warning
