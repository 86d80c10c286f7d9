#!/usr/bin/env bash
# Checks docs/from_tensorflow.md: its rows are 1 to 272, each once and in order; each describes the outcome by one of
# four words; and each test that it names exists. A test is `//package:target`, a test rule in that package's BUILD
# file, followed by names of tests in the target's sources: TEST(…, Name) in C++, def test_name in Python. A script has
# no names. A line that works begins with the names of its options, functions or classes in backquotes. If it does not,
# the names at the beginning of the original's column count. The body of one of its tests must set each option to
# something other than the default (`name` = DEFAULT in the original's column), call the function, or make an object of
# the class.
# Usage: check_from_tensorflow.sh [DOCUMENT]
set -euo pipefail
DOCUMENT="$(readlink -f "${1:-$(dirname "$0")/../docs/from_tensorflow.md}")"
cd "$(dirname "$(readlink -f "$0")")/.."
readonly DOCUMENT ROWS=272
wrong=0

# say ROW TEXT: reports an error in a row.
say() {
  printf 'row %s: %s\n' "$1" "$2"
  wrong=1
}

# sources PACKAGE TARGET: prints the C++, Python and shell files of that test rule. Prints nothing if there is no such
# rule, or if it runs only on demand. In a list comprehension, the names are at the end of the rule.
sources() {
  awk -v target="\"$2\"" -v unit="\"${2%_test}\"" -v package="$1/" -v convention="$2.cc" '
    /^\[?[a-z_]+\(/ {
      rule = ""
      is_list = /^\[/
      kind = $0
      gsub(/^\[|\(.*/, "", kind)
      is_test = kind ~ /^((cc|sh|py|unit)_test|unit)$/
    }
    { rule = rule $0 "\n" }
    /^([\])}]|[a-z_]+\(.*\)$)/ && is_test {
      # unit() and unit_test() find their sources by name (build_defs.bzl).
      if (kind == "unit" ? rule ~ "name = " unit "[,)]" : index(rule, "name = " target ",") || (is_list && index(rule, target))) {
        if (!is_list && index(rule, "\"manual\"")) exit
        if (kind ~ /^unit/) print package convention
        if (kind == "unit") exit
        while (match(rule, /"[A-Za-z0-9_]+\.(cc|py|sh)"/)) {
          print package substr(rule, RSTART + 1, RLENGTH - 2)
          rule = substr(rule, RSTART + RLENGTH)
        }
        exit
      }
      # Text after the end of a list comprehension belongs to it.
      if (!is_list) is_test = 0
    }' "$1/BUILD" 2>/dev/null | while read -r file; do [[ ! -f "${file}" ]] || echo "${file}"; done || true
}

# Prints the names of the tests in files, one per line.
test_names() {
  { cat "$@" && echo; } | tr '\n' ' ' |
    grep -oE '\bTEST(_F|_P)?\( *[A-Za-z0-9_]+, *[A-Za-z0-9_]+ *\)|\bdef test_[a-z0-9_]+\(' |
    sed -E 's/^TEST.*, *([A-Za-z0-9_]+) *\)$/\1/; s/^def (.*)\($/\1/' || true
}

declare -A FILES=() # The sources of each target, one per line.
declare -A NAMES=() # Maps a target to its names, each between spaces.

# load TARGET: fills FILES[TARGET] and NAMES[TARGET], with "" if there is no such test.
load() {
  local -a files=()
  local package="${1#//}"
  mapfile -t files < <(sources "${package%%:*}" "${package#*:}")
  NAMES[$1]=""
  [[ ${#files[@]} -gt 0 ]] || return 0
  FILES[$1]="$(printf '%s\n' "${files[@]}")"
  NAMES[$1]=" $(test_names "${files[@]}" | tr '\n' ' ') "
}

# body NAME FILE…: prints the text of that test.
body() {
  awk -v name="$1" '
    inside && /^(}|[A-Za-z]|    def )/ { exit }
    $0 ~ "[ ,(]" name "[()]" && (/^TEST|^ *def / || previous ~ /^TEST[^)]*$/) { inside = 1 }
    inside
    { previous = $0 }' "${@:2}"
}

# options TEXT: prints the names in backquotes at the beginning of TEXT, without their scope and arguments.
options() {
  local text="$1"
  local -r TERM='^(, )?`(--|[A-Za-z_.:]+[.:])?([A-Za-z_]+)(\([^`]*| =[^`]*)?`(.*)$'
  while [[ "${text}" =~ ${TERM} ]]; do
    echo "${BASH_REMATCH[3]}"
    text="${BASH_REMATCH[5]}"
  done
}

# check_set ROW OPTIONS DEFAULT: checks that BODIES set each option to something other than DEFAULT, or use it as a
# function or class.
check_set() {
  local option text
  # f(, f<T>(, Class::Create(, Class object(; option = , option.field = , option["key"] = ; option.clear(.
  local -r USE='(<[^>]*>)?(::[A-Za-z]+)?( [a-z_]+)?[({]' ASSIGN='(\.[a-z_]+|\[[^]]*\])* ?=[^=]' CHANGE='\.(clear|emplace)\('
  for option in $2; do
    text="${BODIES}"
    [[ -z "$3" ]] || text="$(sed -E "s/\b${option} ?= ?(absl::[A-Za-z]+\()?$3\b//g" <<<"${text}")"
    [[ "${text}" =~ (^|[^A-Za-z0-9_])${option}(${USE}|${ASSIGN}|${CHANGE}) ]] ||
      say "$1" "none of its tests sets ${option} to something other than its default"
  done
}

# check_tests ROW TEXT: checks that the tests in TEXT, "`//a:b` X, Y; `//c:d` Z", exist. Leaves their text in BODIES.
check_tests() {
  local row="$1" reference target name
  local -a references=() names=() files=()
  BODIES=""
  IFS=';' read -ra references <<<"$2"
  for reference in "${references[@]}"; do
    if [[ ! "${reference}" =~ ^\ *\`(//[a-z0-9_/]+:[a-z0-9_]+)\`\ *([A-Za-z0-9_,\ ]*)$ ]]; then
      say "${row}" "\"${reference}\" names no test: \`//package:target\` Name, Name"
      continue
    fi
    target="${BASH_REMATCH[1]}"
    IFS=', ' read -ra names <<<"${BASH_REMATCH[2]}"
    [[ -v NAMES["${target}"] ]] || load "${target}"
    if [[ -z "${NAMES[${target}]}" ]]; then
      say "${row}" "there is no test ${target}"
      continue
    fi
    # A script has no names.
    [[ ${#names[@]} -gt 0 || -z "${NAMES[${target}]// /}" ]] || say "${row}" "${target} is without a name of a test"
    for name in "${names[@]}"; do
      [[ "${NAMES[${target}]}" == *" ${name} "* ]] || say "${row}" "${target} has no test ${name}"
      mapfile -t files <<<"${FILES[${target}]}"
      BODIES+="$(body "${name}" "${files[@]}")"$'\n'
    done
  done
}

# A row has four cells, none of which contains "|".
expected=0
while IFS='|' read -r _ row original here tests rest; do
  expected=$((expected + 1))
  row="${row// /}"
  if [[ "${row}" != "${expected}" ]]; then
    say "${row}" "stands where row ${expected} was expected"
    expected="${row}"
  fi
  [[ -z "${rest}" ]] || say "${row}" "has more cells than row, original, here and test"
  [[ "${here}" =~ ^\ (Works|Differs|Refused|Not\ there):\ . ]] ||
    say "${row}" "does not begin with Works, Differs, Refused or Not there:${here}"
  if [[ "${tests}" == *[^\ ]* ]]; then
    check_tests "${row}" "${tests}"
    if [[ "${here}" == " Works: "* ]]; then
      terms="$(options "${here# Works: }")"
      default=""
      [[ ! "${original}" =~ ^[^=]*\`\ =\ ([A-Za-z0-9]+) ]] || default="${BASH_REMATCH[1],,}"
      check_set "${row}" "${terms:-$(options "${original# }")}" "${default}"
    fi
  else
    [[ "${here}" == " Not there"* ]] || say "${row}" "names no test"
  fi
done < <(grep -E '^\| *[0-9]+ *\|' "${DOCUMENT}")
[[ "${expected}" == "${ROWS}" ]] || say "${expected}" "is the last one, ${ROWS} were expected"
exit "${wrong}"
