#!/usr/bin/env bash
# Checks that clang-format would change no C++ file of ours. --fix formats them instead.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."

mode=(--dry-run -Werror)
[[ "${1:-}" == --fix ]] && mode=(-i)
git ls-files -z '*.h' '*.cc' | xargs -0 -r -P "$(nproc)" -n 16 clang-format-14 "${mode[@]}"
