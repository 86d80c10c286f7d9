#!/usr/bin/env bash
# Every kernel computes the bits in digests.txt on each target of this machine. A target that does not exist, or that
# the processor does not support, causes an error message and exit code 2.
# Usage: kernel_digests_test.sh PROGRAM DIGESTS
set -euo pipefail
program="$1"
digests="$2"
errors="$(mktemp)"
trap 'rm -f "${errors}"' EXIT

available=0
for target in "" avx2 avx512; do
  status=0
  actual="$(LOCKSTEP_TARGET="${target}" "${program}" 2>"${errors}")" || status=$?
  if [[ "${status}" == 0 ]]; then
    diff "${digests}" <(printf '%s\n' "${actual}") || { echo "other bits with LOCKSTEP_TARGET=${target}"; exit 1; }
    available=$((available + 1))
  elif [[ "${target}" != avx512 || "${status}" != 2 ]] ||
    ! grep -q 'LOCKSTEP_TARGET is avx512, but this processor has no AVX-512' "${errors}"; then
    echo "exit code ${status} with LOCKSTEP_TARGET=${target}: $(cat "${errors}")"
    exit 1
  fi
done
echo "${available} targets have the bits of ${digests}"

status=0
error="$(LOCKSTEP_TARGET=sse2 "${program}" 2>&1)" || status=$?
[[ "${status}" == 2 ]] || { echo "exit code ${status} with LOCKSTEP_TARGET=sse2"; exit 1; }
[[ "${error}" == *'LOCKSTEP_TARGET is "sse2", but must be avx2, avx512, neon or empty'* ]] || { echo "${error}"; exit 1; }
