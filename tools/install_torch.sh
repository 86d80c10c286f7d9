#!/usr/bin/env bash
# install_torch.sh FOLDER: creates a virtual environment with PyTorch, without CUDA.
#
# On Linux, PyPI only has PyTorch with CUDA, whose libraries take 2 GB that are useless without a GPU. Installs only the
# wheel itself and the two small ones that it loads. Replaces the other libraries with our own library, which defines
# each of their symbols as a trap.
set -euo pipefail

TORCH=torch==2.15.0
CUDA=(nvidia-cuda-runtime==13.2.* nvidia-cuda-cupti==13.2.*)
DEPENDENCIES=(filelock typing-extensions sympy networkx jinja2 fsspec numpy)
readonly venv="$1"

# Installs the trap library in place of CUDA's libraries.
replace_cuda() {
  local lib="$1" name
  local -a needed
  cd "${lib}"
  mapfile -t needed < <(readelf -d libtorch*.so | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | sort -u |
    grep -E '^lib(cublas|cublasLt|cudnn|cufft|cufile|cusolver|cusparse|cusparseLt|nccl|nvrtc|nvshmem_host)\.so')
  nm -D --undefined-only --with-symbol-versions libtorch*.so | awk '$1 == "U" { print $2 }' |
    grep -E '^(cublas|cudnn|cufft|cuFile|cusolver|cusparse|nccl|nvrtc|nvshmem)' | sort -u >absent.symbols
  awk -F@ '{ print "void " $1 "(void) { __builtin_trap(); }" }' absent.symbols | sort -u >absent.c
  awk -F@ 'NF > 1 { of[$NF] = of[$NF] " " $1 ";" } END { for (v in of) print v " {" of[v] " };" }' absent.symbols \
    >absent.map
  gcc -shared -fPIC -fno-builtin -Wl,--version-script=absent.map -o libabsent.so absent.c
  for name in "${needed[@]}"; do
    ln -sf libabsent.so "${name}"
  done
}

rm -rf "${venv}"
/usr/bin/python3 -m venv "${venv}"
"${venv}/bin/pip" install -q --no-deps "${TORCH}" "${CUDA[@]}"
"${venv}/bin/pip" install -q "${DEPENDENCIES[@]}"
(replace_cuda "$(echo "${venv}"/lib/python3*/site-packages/torch/lib)")
"${venv}/bin/python3" -c 'import torch'
