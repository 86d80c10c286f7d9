#!/usr/bin/env bash
# Checks that clang-format would not change any C++ file of ours. --fix formats the files instead.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."

mode=(--dry-run -Werror)
[[ "${1:-}" == --fix ]] && mode=(-i)
git ls-files -z '*.h' '*.cc' | xargs -0 -r -P "$(nproc)" -n 16 clang-format-14 "${mode[@]}"
