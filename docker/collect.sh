#!/usr/bin/env bash
# Copies the built programs and their shared libraries, except glibc's own, to FOLDER/bin and FOLDER/lib.
# Usage: docker/collect.sh FOLDER   (after ./lockstep build)
set -euo pipefail

root="$(dirname "$(dirname "$(readlink -f "$0")")")"
out="$1"
bin="${root}/.bz/out/k8-opt/bin"
programs=("${bin}/server/chief_main" "${bin}/worker/worker_main" "${bin}/cli/lockstep_main")

mkdir -p "${out}/bin" "${out}/lib"
install -m 755 "${programs[@]}" "${out}/bin"
strip "${out}/bin"/*
ldd "${programs[@]}" | awk '$2 == "=>" && $3 ~ /^\// { print $3 }' | sort -u |
  grep -vE '/(libc|libm|libdl|librt|libpthread|libresolv|libnss_[a-z]+)\.so' |
  xargs -d '\n' install -m 644 -t "${out}/lib"
