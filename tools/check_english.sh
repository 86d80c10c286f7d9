#!/usr/bin/env bash
# Compares how many comments and sentences contain expressions that plain English avoids with the numbers in
# english.txt. check_english.py documents the arguments. Also fails if a test's name has more than 45 characters, and
# prints such names.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
if git grep --untracked -nE -e 'TEST(_F|_P)?\([A-Za-z0-9_]+, [A-Za-z0-9_]{46,}\)' -e 'def test_[a-z0-9_]{41,}\(' -- '*.cc' '*.py'; then
  exit 1
fi
exec python3 tools/check_english.py "$@"
