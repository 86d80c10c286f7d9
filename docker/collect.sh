#!/usr/bin/env bash
# Copies the built program to FOLDER/bin/lockstep, and its shared libraries to FOLDER/lib, where it finds them. The
# image, the tarball and the Debian package are made from it. glibc is left to the system, and so is the runtime of C++
# with --system_cxx: a bundled one would need glibc 2.36, the program itself 2.34. The runtime of GCC 11 is then enough.
# Usage: docker/collect.sh [--system_cxx] FOLDER   (after ./lockstep build)
set -euo pipefail

root="$(dirname "$(dirname "$(readlink -f "$0")")")"
system_cxx=""
left_out='libc|libm|libdl|librt|libpthread|libresolv|libnss_[a-z]+'
if [[ "$1" == --system_cxx ]]; then
  left_out+='|libstdc\+\+|libgcc_s'
  system_cxx=1
  shift
fi
out="$1"
program="${root}/.bz/out/k8-opt/bin/cli/lockstep_main"

mkdir -p "${out}/bin" "${out}/lib"
install -m 755 --strip "${program}" "${out}/bin/lockstep"
ldd "${program}" | awk '$2 == "=>" && $3 ~ /^\// { print $3 }' | sort -u |
  grep -vE "/(${left_out})\\.so" |
  xargs -d '\n' install -m 644 -t "${out}/lib"
[[ -z "${system_cxx}" ]] || "${root}/tools/older_runtime.py" "${out}/bin/lockstep" "${out}/lib"/*
