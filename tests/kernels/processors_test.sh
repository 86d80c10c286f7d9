#!/usr/bin/env bash
# On a processor without the required instructions, programs must end with an error message and exit code 2, not with
# SIGILL. Runs them in an emulator (qemu-user). Without it, the test is skipped, or fails if CI is true.
# Usage: processors_test.sh LOCKSTEP PROGRAM...
set -euo pipefail
lockstep="$1"
ulimit -c 0

if ! command -v qemu-x86_64 >/dev/null; then
  echo "SKIPPED: qemu-x86_64 is missing (apt-get install qemu-user)"
  [[ "${CI:-}" != true ]]
  exit
fi

# expect PROCESSOR CODE TEXT COMMAND...: expects an exit code, and an output line that ends with TEXT.
expect() {
  local processor="$1" code="$2" text="$3" output status=0
  shift 3
  output="$(qemu-x86_64 -cpu "${processor}" "$@" 2>&1)" || status=$?
  [[ "${status}" == "${code}" && "${output}" == *"${text}" ]] && return
  printf '%s on %s\n  expected: %s, exit code %s\n  is:       %s, exit code %s\n' "$*" "${processor}" "${text}" "${code}" \
    "${output}" "${status}"
  exit 1
}

# refused PROCESSOR WHAT COMMAND...: expects the error for a processor without WHAT.
refused() {
  expect "$1" 2 "$3: this processor has no $2, which Lockstep is compiled for (x86-64-v3)" "${@:3}"
}

for program in "$@"; do
  refused Nehalem AVX2 "${program}"
  refused Haswell,-fma FMA "${program}" --version
done
refused Nehalem AVX2 "${lockstep}" run a.textproto

# x86-64-v3 does not include AES.
for processor in Haswell Haswell,-aes; do
  expect "${processor}" 0 ", AVX2" "${lockstep}" --version
done
# Without BMI1, the emulated C library does not even start.
for feature in avx2=AVX2 avx=AVX bmi2=BMI2 f16c=F16C abm=LZCNT movbe=MOVBE popcnt=POPCNT "xsave=AVX registers that the system saves"; do
  refused "Haswell,-${feature%=*}" "${feature#*=}" "${lockstep}" --version
done
