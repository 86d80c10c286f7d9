# shellcheck shell=bash
# Sourced by ./lockstep: runs the tests, counts their cases, and shows the logs of failed ones.
# The last line is "N passed, N failed". A GoogleTest case, a script test and a check count as one each.
# Tags: "concurrent" tests also run under the thread sanitizer; "no_sanitizer" tests run under no sanitizer; "long"
# tests run only with --long, and are also tagged "manual", so that //... excludes them.

PASSED=0
FAILED=0
SKIPPED=0
TIMES="" # a file with lines "SECONDS WHAT"

# first N: prints the first N lines, like `head`, but reads all of its input, so that a command before it in a pipe does
# not die of SIGPIPE.
first() { awk -v lines="$1" 'NR <= lines'; }

# Counts the cases in one test.xml. Prints "passed failed skipped".
count_cases() {
  awk '
    # A script may print anything.
    in_output { if (!/<\/system-out>/) next; sub(/.*<\/system-out>/, ""); in_output = 0 }
    /<system-out>/ { in_output = !/<\/system-out>/; sub(/<system-out>.*/, "") }
    # So may the text of a failure.
    in_text { if (!/\]\]>/) next; sub(/.*\]\]>/, ""); in_text = 0 }
    { gsub(/<!\[CDATA\[[^]]*\]\]>/, "") }
    /<!\[CDATA\[/ { in_text = 1; sub(/<!\[CDATA\[.*/, "") }
    /<testcase / { open = !/status="notrun"/; bad = 0; if (open) cases++ }
    /<testcase / && open && /result="skipped"/ { skipped++; open = 0 }
    open && !bad && /<(failure|error)[ >]/ { failed++; bad = 1 }
    END { print cases - failed - skipped, failed + 0, skipped + 0 }' "$@"
}

# count_target LABEL STATE FILE...: adds the results of one test target, as printed by test_events.py.
count_target() {
  local label="$1" state="$2" passed=0 failed=0 skipped=0 file
  local -a reports=() logs=()
  shift 2
  for file in "$@"; do
    case "${file}" in
      xml=*) reports+=("${file#xml=}") ;;
      log=*) logs+=("${file#log=}") ;;
    esac
  done
  [[ ${#reports[@]} == 0 ]] || read -r passed failed skipped < <(count_cases "${reports[@]}")
  # If a report cannot be read, the target counts as one case.
  [[ "${state}" != PASSED && "${failed:-0}" == 0 ]] && failed=1
  [[ "${state}" == PASSED && $((passed + failed + skipped)) == 0 ]] && passed=1
  PASSED=$((PASSED + passed))
  FAILED=$((FAILED + failed))
  SKIPPED=$((SKIPPED + skipped))
  [[ "${state}" != PASSED ]] || return 0
  printf -- '---- %s: %s\n' "${label}" "${state}"
  [[ ${#logs[@]} == 0 ]] || sed -s '1,3d' "${logs[@]}" | tail -n 120
}

# run_phase NAME ARGUMENTS...: runs one `bazel test`. Fails if it could not build everything.
run_phase() {
  local name="$1" status=0 lines events began targets=0 failed_before="${FAILED}"
  shift
  began="${SECONDS}"
  say "testing: ${name}"
  lines="$(wc -l <"${LOG}")"
  events="$(mktemp)"
  with_progress "testing" bazel_progress run_bazel test "${BAZEL_FLAGS[@]}" --keep_going \
    "--build_event_json_file=${events}" --test_summary=short "$@" || status=$?
  local -a fields
  while IFS=$'\t' read -ra fields; do
    targets=$((targets + 1))
    count_target "${fields[0]}" "${fields[1]}" "${fields[@]:3}"
    printf '%s %s, %s\n' "${fields[2]}" "${fields[0]}" "${name}" >>"${TIMES}"
  done < <(python3 "${ROOT}/tools/test_events.py" "${events}")
  rm -f "${events}"
  # `bazel test` replaces the objects of the last build, and its programs have no revision.
  rm -f "${ROOT}/.bz/built"
  say "        ${targets} targets in $((SECONDS - began)) s"
  # It is not a success if the results could not be read.
  if [[ ("${status}" == 3 && "${FAILED}" == "${failed_before}") || ("${status}" == 0 && "${targets}" == 0) ]]; then
    printf -- '---- %s: bazel test ended with %d, and no result could be read\n' "${name}" "${status}"
    FAILED=$((FAILED + 1))
  fi
  # 3: a test failed, which is counted above; 4: no test has these tags.
  [[ "${status}" == 0 || "${status}" == 3 || "${status}" == 4 ]] && return 0
  printf -- '---- %s: bazel test ended with %d\n' "${name}" "${status}"
  tail -n "+$((lines + 1))" "${LOG}" | grep -E -A 12 'ERROR|FAILED:|error:' | first 80
  # A target that is not a test and could not be built is counted once.
  [[ "${FAILED}" -gt "${failed_before}" ]] || FAILED=$((FAILED + 1))
  return 1
}

# run_check NAME COMMAND...: runs a script that counts as one test.
run_check() {
  local name="$1" began="${SECONDS}" output
  shift
  say "checking: ${name}"
  if output="$("$@" 2>&1)"; then
    PASSED=$((PASSED + 1))
  else
    FAILED=$((FAILED + 1))
    printf -- '---- %s\n%s\n' "${name}" "${output}" | first 80
  fi
  printf '%s %s\n' "$((SECONDS - began))" "${name}" >>"${TIMES}"
}

# The checks that build nothing. They take seconds.
quick_checks() {
  run_check "order of the folders" "${ROOT}/tools/check_layering.sh"
  run_check "pure state machines" "${ROOT}/tools/check_pure.sh"
  run_check "format" "${ROOT}/tools/check_format.sh"
  run_check "scripts" "${ROOT}/tools/check_scripts.sh"
  run_check "English" "${ROOT}/tools/check_english.sh"
  run_check "links" "${ROOT}/tools/check_links.py"
  run_check "lists of commands" "${ROOT}/tools/check_commands.py"
  run_check "what became of TensorFlow's calls" "${ROOT}/tools/check_from_tensorflow.sh"
  run_check "planted bugs" "${ROOT}/tests/simulation/mutants.sh" --check
  run_check "pictures" "${ROOT}/docs/pictures/draw.py" --check
}

slow_checks() {
  quick_checks
  run_check "bits of the kernels on ARM" "${ROOT}/tools/check_arm.sh"
}

# prepare_environments CHECKS: fetches what the Python tests and promtool_test need while the function CHECKS runs.
prepare_environments() {
  (prepare_venv && prepare_torch_venv && prepare_deploy_venv && prepare_promtool) &
  local fetching=$!
  "$1"
  wait "${fetching}"
  # Sets the variables of those that could be fetched, and does not try the others again.
  [[ ! -f "${CACHE}/venv/lockstep-packages" ]] || prepare_venv
  [[ ! -f "${CACHE}/torch/lockstep-packages" ]] || prepare_torch_venv
  [[ ! -f "${CACHE}/deploy/lockstep-packages" ]] || prepare_deploy_venv
  [[ ! -d "${CACHE}/prometheus" ]] || prepare_promtool
}

# long_tests [TARGET...]: prints those of the targets that are tests too slow for CI, one per line. The default is all
# targets.
long_tests() { (cd "${ROOT}" && bazel query "attr(tags, '[\[ ]long[,\]]', set(${*:-//...}))" 2>>"${LOG}"); }

# Prints the targets that CI builds and runs optimised, one per line: every program, the tests that run under no
# sanitizer, and the tests of bits, processes and speed. All other tests run only once, under the address sanitizer,
# because compiling each test twice took a third of the time.
optimised_targets() {
  local bits="//common/tensor/... + //kernels/... + //server/optimizer/... + //server/ps/... + //worker/nn/..."
  local once="tests(//tests/integration/...)
    except set(//tests/integration:bits_test //tests/integration:bits_local_test)"
  (cd "${ROOT}" && bazel query "
    kind('cc_library', //...) except attr(testonly, 1, //...) + kind('cc_binary', //...)
    + ((tests(${bits} + //tests/... + //examples/... + //train/program/...) except (${once}))
       + attr(tags, '[\\[ ]no_sanitizer[,\\]]', tests(//...)))
      except attr(tags, '[\\[ ]manual[,\\]]', //...)" 2>>"${LOG}")
}

# run_tests [--all | --long] [bazel test arguments]: without arguments, runs the quick checks and every test except the
# long ones. With --all or CI=true, runs every check, and the sanitizers, too. With --long, runs only the long tests, of
# the given targets if any.
run_tests() {
  local all="" long=""
  case "${1:-}" in
    --all) all=1 ;;
    --long) long=1 ;;
  esac
  [[ -z "${all}${long}" ]] || shift
  [[ "${CI:-}" == true && -z "${long}" && $# == 0 ]] && all=1
  install_packages "${BUILD_PACKAGES[@]}" "${TEST_PACKAGES[@]}" "${DATA_PACKAGES[@]}"
  [[ -z "${all}${long}" && " $*" != *" //deploy"* ]] || install_packages "${SLURM_PACKAGES[@]}"
  [[ " $*" != *" //deploy"* ]] || prepare_deploy_venv
  [[ -z "${long}" && " $*" != *" //deploy"* ]] || prepare_promtool
  open_log test
  drop_stale_objects
  choose_cache
  TIMES="$(mktemp)"
  trap 'rm -f "${TIMES}"' EXIT

  if [[ -n "${long}" ]]; then
    local -a targets=() patterns=() flags=()
    local word
    for word in "$@"; do
      if [[ "${word}" == //* ]]; then patterns+=("${word}"); else flags+=("${word}"); fi
    done
    mapfile -t targets < <(long_tests "${patterns[@]}")
    [[ ${#targets[@]} -gt 0 ]] || fail 1 "there are no long tests${patterns[*]:+ in ${patterns[*]}}; ${LOG} says more"
    BAZEL_FLAGS+=(--nocache_test_results --test_output=errors)
    run_phase "long tests" "${targets[@]}" "${flags[@]}" || true
    [[ ${#patterns[@]} -gt 0 ]] || run_check "fuzzing" fuzz_for_long
  elif [[ $# -gt 0 ]]; then
    run_phase "$*" "$@" || true # Bazel's own arguments.
  elif [[ -z "${all}" ]]; then
    prepare_environments quick_checks
    run_phase "every test" //... || true
  else
    # Ensures that every test counted here was run now, instead of taken from the cache.
    BAZEL_FLAGS+=(--nocache_test_results)
    prepare_environments slow_checks
    local -a optimised=()
    mapfile -t optimised < <(optimised_targets)
    [[ ${#optimised[@]} -gt 0 ]] || fail 1 "there are no targets; ${LOG} says more"
    if run_phase "optimised" --nobuild_tests_only "${optimised[@]}"; then
      # The numbers of tests/conformance are those of the optimised build; unit tests run the same code here.
      run_phase "address and undefined behaviour" --config=asan --test_tag_filters=-no_sanitizer \
        -- //... -//tests/conformance/... || true
      run_phase "threads" --config=tsan --test_tag_filters=concurrent,-no_sanitizer //... || true
      run_check "fuzzing" fuzz_briefly
    fi
    trim_cache
  fi

  printf 'Slowest, in seconds:\n'
  sort -rn "${TIMES}" | first 10 | awk '{ seconds = $1; $1 = ""; printf "%8.1f %s\n", seconds, $0 }'
  [[ "${SKIPPED}" == 0 ]] || say "${SKIPPED} skipped"
  printf '%d passed, %d failed\n' "${PASSED}" "${FAILED}"
  [[ "${FAILED}" == 0 && "${PASSED}" -gt 0 ]]
}
