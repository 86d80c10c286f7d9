#!/usr/bin/env bash
# Clang's check of the lock annotations (-Wthread-safety) over the sources whose classes hold a lock: those that include
# common/base/mutex.h, themselves or through the header of the same name. Only parses, so it takes seconds.
# Needs the generated headers of an optimised build: bazel build //...
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."

generated=".bz/out/k8-opt/bin"
flags=(-std=c++17 -march=x86-64-v3 -fsyntax-only -Wthread-safety -Werror=thread-safety -Wno-unknown-warning-option
  -I. "-I${generated}" -isystem /usr/include/eigen3)

mapfile -t sources < <(
  git ls-files '*.h' '*.cc' | xargs -r grep -l '"common/base/mutex.h"' |
    while read -r file; do
      if [[ "${file}" == *.h && -f "${file%.h}.cc" ]]; then
        echo "${file%.h}.cc"
      else
        echo "${file}"
      fi
    done | sort -u
)
[[ ${#sources[@]} -gt 0 ]] || { echo "no source includes common/base/mutex.h" >&2; exit 1; }
printf '%s\0' "${sources[@]}" | xargs -0 -P "$(nproc)" -n 1 clang++-14 -x c++ "${flags[@]}"
