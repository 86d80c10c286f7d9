#!/usr/bin/env bash
# Checks that kernel_digests.cc covers everything that a header of kernels/ declares: every function, and every
# enumerator and rule that affects a function's bits. Every function must also be in a test of random shapes
# (ForEachRandomCase) next to its source.
# Usage: coverage_test.sh DIGESTS FILE..., the headers and tests of kernels/.
set -euo pipefail
digests="$1"
shift

# Names that are not in kernel_digests.cc, with the reason.
declare -A no_digest=(
  [PhiloxBlock]="of integers, without vectors; FillPhiloxBlocks is tested against it"
  [RunMultiplyAdds]="only measured"
  [UseTarget]="the program runs once for each target"
  [AvailableTargets]="as UseTarget"
  [TargetNameError]="a text"
  [kAvx2]="names a target" [kAvx512]="names a target" [kNeon]="names a target"
)
# Functions that are in no test of random shapes, with the reason.
declare -A no_random_case=(
  [PhiloxBlock]="what the random streams are compared with"
  [RunMultiplyAdds]="only measured"
  [RowMajor]="a description of memory" [Transposed]="a description of memory"
  [UseTarget]="" [AvailableTargets]="" [CurrentTarget]="" [TargetName]="" [TargetError]="" [TargetNameError]=""
  # Scalar functions, whose code is the same on every target. portable_math_test.cc tests them with random arguments.
  [Exp]="" [Expm1]="" [Log]="" [Log1p]="" [Sin]="" [Cos]="" [Tanh]="" [Pow]=""
)

headers=()
tests=()
for file in "$@"; do
  case "${file}" in
    *-inl.h | */scratch.h | */targets.h) ;; # parts of sources
    */required_instructions.h) ;;           # only queries the processor
    *.h) headers+=("${file}") ;;
    *_test.cc) tests+=("${file}") ;;
  esac
done

# Functions start at the beginning of a line that does not begin with the keyword of another declaration.
functions() {
  sed 's|//.*||' "${headers[@]}" |
    sed -nE '/^(struct|class|enum|using|namespace|template|#|\}| )/! s/^[A-Za-z_][^()=]* \*?([A-Za-z_][A-Za-z_0-9]*)\(.*/\1/p' | sort -u
}
enumerators() {
  sed 's|//.*||' "${headers[@]}" | tr '\n' ' ' | grep -oE 'enum class [A-Za-z]+ \{[^}]*\}' | grep -oE '\bk[A-Z][A-Za-z0-9]*' | sort -u
}
rules() { sed -nE 's/^struct ([A-Za-z]+Rule) .*/\1/p' "${headers[@]}" | sort -u; }

has() { grep -qE "\b$2\b" <<<"$1"; }

mapfile -t functions < <(functions)
mapfile -t numbers < <(enumerators && rules)
# Checks that the patterns above find the declarations.
[[ ${#headers[@]} -ge 18 && ${#tests[@]} -ge 18 && ${#functions[@]} -ge 65 && ${#numbers[@]} -ge 25 ]] || {
  echo "only ${#headers[@]} headers, ${#tests[@]} tests, ${#functions[@]} functions, ${#numbers[@]} enumerators and rules"
  exit 1
}

digest_code="$(sed -E 's|//.*||; /^#include/d' "${digests}")"
# The tests with random cases, including the functions that they call.
random_code="$(sed -E 's|//.*||' "${tests[@]}" | awk '
  /^[A-Za-z].*[({,]$/ { text = ""; inside = 1 }
  inside { text = text $0 "\n" }
  /^}/ { if (text ~ /RandomCase/) print text; inside = 0 }')"

status=0
for name in "${functions[@]}" "${numbers[@]}"; do
  if has "${digest_code}" "${name}"; then
    [[ -z "${no_digest[${name}]+set}" ]] || { echo "${name} is in kernel_digests.cc: take it off the list"; status=1; }
  elif [[ -z "${no_digest[${name}]+set}" ]]; then
    echo "${name} is not in kernel_digests.cc"
    status=1
  fi
done
for name in "${functions[@]}"; do
  if has "${random_code}" "${name}"; then
    continue
  elif [[ -z "${no_random_case[${name}]+set}" ]]; then
    echo "${name} is in no test with ForEachRandomCase"
    status=1
  fi
done
for name in "${!no_digest[@]}" "${!no_random_case[@]}"; do
  has "${functions[*]} ${numbers[*]}" "${name}" || { echo "no header declares ${name}: take it off the list"; status=1; }
done
echo "${#functions[@]} functions, ${#numbers[@]} enumerators and rules"
exit "${status}"
