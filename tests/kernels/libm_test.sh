#!/usr/bin/env bash
# Code that affects weights must not call C library functions whose last bits differ between versions: exp, log, pow,
# sin and the like. Functions that IEEE 754 rounds uniquely (sqrt, fma, floor, ...) are allowed.
# Usage: libm_test.sh OBJECTS OBJECT...   (a list of the library's object files; the programs' object files)
set -euo pipefail
objects="$1"
programs=("${@:2}")

# Sources that do not affect weights.
outside=(
  train/learn/experiment       # how long a worker waits before it starts
  worker/evaluation/prediction # the probabilities that `predict` writes
)

names='a?(sin|cos|tan)h?|atan2|sincos|exp(2|10|m1)?|log(2|10|1p|b)?|pow(10)?|cbrt|hypot|erfc?|[lt]gamma(_r)?|[jy][01n]'
functions="^(${names})[fl]?\$|^__(${names})[fl]?_finite\$|^_ZGV"

# calls FILE...: prints the object's path and the function's name for each such call.
calls() {
  nm --undefined-only --print-file-name --format=posix "$@" |
    awk -v functions="${functions}" '{ sub(/:$/, "", $1); sub(/@.*/, "", $2) } $2 ~ functions { print $1, $2 }'
}

# Checks that the test detects such calls.
source="${TEST_TMPDIR}/calls.cc"
printf '#include <cmath>\n%s\n%s\n' 'double f(double x) { return std::pow(x, 0.3) + std::sqrt(std::floor(x)); }' \
  'float g(float x) { return std::sin(x); }' >"${source}"
g++ -O2 -c -o "${source}.o" "${source}"
found="$(calls "${source}.o" | cut -d' ' -f2 | sort | xargs)"
[[ "${found}" == "pow sinf" ]] || { echo "found in an example: ${found}"; exit 1; }

mapfile -t files <"${objects}"
[[ ${#files[@]} -gt 300 ]] || { echo "only ${#files[@]} objects in ${objects}"; exit 1; }
[[ ${#programs[@]} -gt 10 && " ${programs[*]}" == *" examples/_objs/own_model/"* ]] || { echo "only ${programs[*]}"; exit 1; }
bad=""
declare -A seen
while read -r object function; do
  # The path consists of a folder, "_objs/", the target's name, and the source's name.
  name="${object%%/_objs/*}/$(basename "${object%%.*}")"
  if [[ " ${outside[*]} " == *" ${name} "* ]]; then
    seen["${name}"]=1
  else
    bad+="${name}: ${function}"$'\n'
  fi
done < <(calls "${files[@]}" "${programs[@]}")

if [[ -n "${bad}" ]]; then
  printf 'These call the C library; kernels/portable_math.h has functions of our own:\n%s' "${bad}"
  exit 1
fi
for name in "${outside[@]}"; do
  [[ -n "${seen[${name}]:-}" ]] || { echo "${name} calls none of them: take it off the list"; exit 1; }
done
echo "${#files[@]} objects, ${#programs[@]} of programs"
