# shellcheck shell=bash
# Sourced by ./lockstep: fuzzing with clang's libFuzzer (docs/testing.md).
# Reads ROOT, CACHE and LOG. Calls the caller's say, fail, open_log, to_log, logged, choose_cache and install_packages.

# Keeps found inputs from run to run. Inputs that fail go to tests/fuzz/corpus, where they become tests.
FUZZ_CORPUS="${CACHE}/fuzz/corpus"

# Memory that an input frees is still quarantined at its end. More quarantine and longer stacks would take a third of
# the time.
FUZZ_ASAN=detect_leaks=1:quarantine_size_mb=1:thread_local_quarantine_size_kb=16:malloc_context_size=4

fuzz_usage() {
  cat <<'USAGE'
Usage: ./lockstep fuzz [--fast] [--target=NAME] [--runs=N] [--seconds=N]

Gives every reader of foreign bytes inputs that libFuzzer makes of the last ones, under the address and undefined
behaviour sanitizers. An input that fails is written to tests/fuzz/corpus/NAME, where it is a test from then on.
  --fast          inputs are made and tried without the sanitizers, several times as many in a second; then those that
                  were kept, one for everything that any of them reached, are tried once under the sanitizers. What a
                  target checks, a crash, a hang, too much memory and a wrong index of a vector or string are found as
                  before; an access out of bounds, or undefined behaviour, only where one of those kept shows it
  --target=NAME   only this one; "--target=" prints the names
  --runs=N        inputs for each target, 100000 unless --seconds is given
  --seconds=N     at most so long for each target
Exit codes: 0 nothing was found; 1 something was, and is shown; 2 wrong arguments.
USAGE
}

# build_fuzzers CONFIG TARGET: builds one of the two configurations of .bazelrc.
build_fuzzers() {
  choose_cache
  logged "building the fuzz targets ($1)" bazel_progress run_bazel build "--config=$1" "${BAZEL_FLAGS[@]}" "$2"
}

# fuzz_with PROGRAM [FLAGS OF LIBFUZZER]: runs the program with `name`, `found` and `corpus` from fuzz_one.
fuzz_with() {
  FUZZ_TARGET="${name}" ASAN_OPTIONS="${FUZZ_ASAN}" UBSAN_OPTIONS=print_stacktrace=1 "$1" -entropic=0 \
    -artifact_prefix="${found}/" -rss_limit_mb=2048 -malloc_limit_mb=512 -timeout=10 "${@:2}" "${corpus}" "${found}"
}

# fuzz_one NAME [FLAGS OF LIBFUZZER]: prints one line, and also libFuzzer's output if it has found something.
fuzz_one() {
  local name="$1" found="${ROOT}/tests/fuzz/corpus/$1" corpus="${FUZZ_CORPUS}/$1" output began="${SECONDS}" status=0
  shift
  output="$(mktemp)"
  mkdir -p "${corpus}" "${found}"
  cd "${ROOT}" || return 1 # Golden files are read as seeds.
  {
    FUZZ_TARGET="${name}" FUZZ_SEEDS="${corpus}" "${FUZZER}" &&
      if [[ -n "${FAST_FUZZERS[${name}]:-}" ]]; then
        fuzz_with "${FAST_FUZZERS[${name}]}" "$@" && fuzz_with "${FUZZER}" -runs=0
      else
        fuzz_with "${FUZZER}" "$@"
      fi
  } >"${output}" 2>&1 || status=$?
  rmdir --ignore-fail-on-non-empty "${found}"
  printf '%-18s %s runs in %d s, %d inputs kept\n' "${name}:" \
    "$(sed -nE 's/^Done ([0-9]+) runs.*/\1/p' "${output}" | head -n 1)" "$((SECONDS - began))" \
    "$(find "${corpus}" -type f | wc -l)"
  [[ "${status}" == 0 ]] || grep -vE '^#[0-9]+\s+(NEW|REDUCE|pulse|INITED|RELOAD)' "${output}" | tail -n 60
  rm -f "${output}"
  return "${status}"
}

# fuzz_all [FLAGS OF LIBFUZZER]: runs every target, as many in parallel as there are processors. Fails if one failed.
fuzz_all() {
  local failed=0 name
  for name in "${FUZZ_NAMES[@]}"; do
    while [[ "$(jobs -rp | wc -l)" -ge "$(nproc)" ]]; do wait -n || failed=1; done
    fuzz_one "${name}" "$@" &
  done
  while [[ -n "$(jobs -p)" ]]; do wait -n || failed=1; done
  return "${failed}"
}

# With --fast: the program without sanitizers, by target.
declare -A FAST_FUZZERS=()

# Builds what fuzz_one runs. Sets FUZZ_NAMES to all targets and, with --fast, also FAST_FUZZERS.
prepare_fuzzing() {
  install_packages "${BUILD_PACKAGES[@]}" "${TEST_PACKAGES[@]}"
  open_log fuzz
  drop_stale_objects
  build_fuzzers fuzz //tests/fuzz:fuzz
  FUZZER="${ROOT}/.bz/out/k8-opt-fuzz/bin/tests/fuzz/fuzz"
  mapfile -t FUZZ_NAMES < <("${FUZZER}")
  [[ ${#FUZZ_NAMES[@]} -gt 0 ]] || fail 1 "${FUZZER} names no target"
  [[ "${1:-}" == --fast ]] || return 0
  build_fuzzers fuzz_fast //tests/fuzz:fuzz_apart
  local program name
  for program in "${ROOT}"/.bz/out/k8-opt-fast/bin/tests/fuzz/fuzz_*; do
    [[ "$(basename "${program}")" != *.* && -x "${program}" ]] || continue
    while read -r name; do FAST_FUZZERS["${name}"]="${program}"; done < <("${program}")
  done
  [[ ${#FAST_FUZZERS[@]} == "${#FUZZ_NAMES[@]}" ]] || fail 1 "${#FAST_FUZZERS[@]} targets without sanitizers, of ${#FUZZ_NAMES[@]}"
}

# Fuzzes for ./lockstep test --all and --long.
fuzz_briefly() {
  prepare_fuzzing
  fuzz_all -max_total_time=3
}
fuzz_for_long() {
  prepare_fuzzing
  fuzz_all -runs=10000000
}

# count_in --FLAG=N: prints N. libFuzzer would interpret "1e6" as 1, and anything that is not a number as no limit.
count_in() {
  [[ "${1#*=}" =~ ^[1-9][0-9]*$ ]] || fail 2 "fuzz: ${1%%=*} takes a number from 1 on, not '${1#*=}'"
  printf '%s' "${1#*=}"
}

run_fuzz() {
  local word target="" limit=() names_only="" fast=""
  for word in "$@"; do
    case "${word}" in
      --fast) fast=--fast ;;
      --target=) names_only=1 ;;
      --target=*) target="${word#--target=}" ;;
      --runs=*) limit+=("-runs=$(count_in "${word}")") || exit ;;
      --seconds=*) limit+=("-max_total_time=$(count_in "${word}")") || exit ;;
      *) fail 2 "fuzz does not know '${word}'; see ./lockstep fuzz --help" ;;
    esac
  done
  prepare_fuzzing "${fast}"
  if [[ -n "${names_only}" ]]; then
    printf '%s\n' "${FUZZ_NAMES[@]}"
    return
  fi
  [[ -z "${target}" || " ${FUZZ_NAMES[*]} " == *" ${target} "* ]] || fail 2 "no fuzz target '${target}': ${FUZZ_NAMES[*]}"
  [[ -z "${target}" ]] || FUZZ_NAMES=("${target}")
  [[ ${#limit[@]} -gt 0 ]] || limit=(-runs=100000)
  fuzz_all "${limit[@]}"
}
