#!/usr/bin/env bash
# Runs Clang's check of the lock annotations (-Wthread-safety) on the sources whose classes hold a lock, i.e. those that
# include common/base/mutex.h themselves, or through a header whose name theirs begins with. Only parses, so it takes
# seconds. Needs the generated headers of an optimised build: bazel build //...
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."

generated=".bz/out/k8-opt/bin"
# Headers are included as "lockstep/common/..." (build_defs.bzl).
include="$(mktemp -d)"
trap 'rm -rf "${include}"' EXIT
mkdir "${include}/lockstep"
for folder in */; do ln -s "${PWD}/${folder%/}" "${include}/lockstep/${folder%/}"; done
mapfile -t proto_folders < <(find -L "${generated}/proto" "${generated}/tests" -type d \( -path '*/_virtual_imports/*_proto' -o -name _grpc \) -prune)
flags=(-std=c++17 -march=x86-64-v3 -Wthread-safety -Werror=thread-safety -Wno-unknown-warning-option
  -I. "-I${generated}" "-I${include}" "${proto_folders[@]/#/-I}" -isystem /usr/include/eigen3)

mapfile -t sources < <(
  git ls-files '*.h' '*.cc' | xargs -r grep -l '"lockstep/common/base/mutex.h"' |
    while read -r file; do
      if [[ "${file}" == *.h && -f "${file%.h}.cc" ]]; then
        # A class may have several sources, e.g. sync_replicas.cc and sync_replicas_frames.cc.
        grep -l "\"lockstep/${file}\"" "${file%.h}".cc "${file%.h}"_*.cc 2>/dev/null | grep -v "_test.cc$" || true
      else
        echo "${file}"
      fi
    done | sort -u
)
[[ ${#sources[@]} -gt 0 ]] || { echo "no source includes common/base/mutex.h" >&2; exit 1; }
# Precompiles third-party headers, so that they are read only once.
libraries="${include}/libraries.pch"
clang++-14 -x c++-header "${flags[@]}" third_party/precompiled/libraries.h -o "${libraries}"
printf '%s\0' "${sources[@]}" | xargs -0 -P "$(nproc)" -n 1 clang++-14 -include-pch "${libraries}" -x c++ -fsyntax-only "${flags[@]}"
