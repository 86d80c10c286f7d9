#!/usr/bin/env bash
# Compares how many comments and sentences have expressions that plain English avoids with the numbers in english.txt.
# check_english.py documents the arguments.
set -euo pipefail
exec python3 "$(dirname "$(readlink -f "$0")")/check_english.py" "$@"
