#!/usr/bin/env bash
# Checks that the kernels have the same bits on ARM: compiles them for it (NEON), runs them in an emulator, and compares
# their digests with those required on x86. Needs g++-aarch64-linux-gnu and qemu-user.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
folder="$(mktemp -d)"
trap 'rm -rf "${folder}"' EXIT

for program in aarch64-linux-gnu-g++ qemu-aarch64; do
  command -v "${program}" >/dev/null || {
    echo "${program} is missing. Install it with: apt-get install g++-aarch64-linux-gnu qemu-user" >&2
    exit 2
  }
done
ln -s /usr/include/hwy "${folder}/hwy" # Contains only headers, for any processor.
ln -s "${PWD}" "${folder}/lockstep"
mkdir "${folder}/objects"
flags=(-std=c++17 -O2 -ffp-contract=off -DHWY_COMPILE_ONLY_STATIC -I"${folder}" -I"${PWD}")
sources=(tests/kernels/kernel_digests.cc
  kernels/{products/{convolution,gemm},images/{depthwise,pool},nn/{activation,batch_norm,dropout,layer_norm,local_response,losses},vectors/target}.cc
  kernels/{elementwise,math,normal_numbers,normalize,philox_blocks,portable_math,portable_powf,rounding,update_rules}.cc)
printf '%s\0' "${sources[@]/#/${PWD}/}" |
  (cd "${folder}/objects" && xargs -0 -P "$(nproc)" -n 1 aarch64-linux-gnu-g++ "${flags[@]}" -c)
aarch64-linux-gnu-g++ -static -o "${folder}/kernel_digests" "${folder}"/objects/*.o
qemu-aarch64 "${folder}/kernel_digests" >"${folder}/digests" 2>"${folder}/target"
grep -qx NEON "${folder}/target" || { cat "${folder}/target" >&2; exit 1; }
diff tests/kernels/digests.txt "${folder}/digests"
