#!/usr/bin/env bash
# Runs ./lockstep with a fake bazel, apt-get and dpkg-query that record their calls. Tests what it installs, builds and
# executes.
set -euo pipefail

source_root="${PWD}" # the runfiles
work="$(mktemp -d "${TEST_TMPDIR:-/tmp}/front.XXXX")"
tree="${work}/a tree"
fakes="${work}/fakes"
failures=0

mkdir -p "${tree}/proto" "${fakes}" "${work}/home"
cp -rL "${source_root}/lockstep" "${source_root}/tools" "${tree}"
touch "${tree}/WORKSPACE" "${tree}/.bazelrc"

fake() {
  cat >"${fakes}/$1"
  chmod +x "${fakes}/$1"
}
# bazel "builds" programs that print their name and arguments, one per line.
fake bazel <<'FAKE'
#!/usr/bin/env bash
echo "bazel $*" >>"${RECORD}"
[[ "$1" == --noblock_for_lock ]] && { [[ -e "${LOCKED}" ]] && exit 9; shift; }
[[ "$1" == query ]] && { echo //tests:slow; exit; }
[[ -e "${BROKEN}" ]] && { echo "a compiler's complaint"; exit 1; }
for program in cli/lockstep_main examples/own_model; do
  file=".bz/out/k8-opt/bin/${program}"
  mkdir -p "$(dirname "${file}")"
  printf '#!/bin/sh\necho %s; for word in "$@"; do echo "<$word>"; done; pwd\n' "${program}" >"${file}"
  chmod +x "${file}"
done
printf '#!/bin/sh\necho $$; exit 7\n' >.bz/out/k8-opt/bin/examples/exits
chmod +x .bz/out/k8-opt/bin/examples/exits
mkdir -p .bz/out/k8-opt/bin/install_tree/lib
touch .bz/out/k8-opt/bin/install_tree/lib/liblockstep.a
mkdir -p .bz/out/k8-opt{-fuzz,-fast}/bin/tests/fuzz
cat >.bz/out/k8-opt-fuzz/bin/tests/fuzz/fuzz <<'FUZZER'
#!/usr/bin/env bash
[[ -n "${FUZZ_TARGET:-}" ]] || { printf 'csv\nidx\n'; exit; }
[[ -z "${FUZZ_SEEDS:-}" ]] || { echo seed >"${FUZZ_SEEDS}/seed-0"; exit; }
[[ "${FUZZ_TARGET}" != "$(cat "${FOUND}" "${FOUND}_by_$(basename "$0")" 2>/dev/null)" ]] || { echo "what was found: $*"; exit 77; }
echo "$(basename "$0") $*" >>"${FUZZED}"
echo "Done 7 runs in 0 second(s)"
FUZZER
chmod +x .bz/out/k8-opt-fuzz/bin/tests/fuzz/fuzz
cp .bz/out/k8-opt-fuzz/bin/tests/fuzz/fuzz .bz/out/k8-opt-fast/bin/tests/fuzz/fuzz_text
touch .bz/out/k8-opt-fast/bin/tests/fuzz/fuzz_text.params
FAKE
fake dpkg-query <<'FAKE'
#!/usr/bin/env bash
for name in "$@"; do
  [[ "${name}" == -* ]] && continue
  grep -qx "${name}" "${ABSENT}" || echo "${name} installed"
done
FAKE
fake apt-get <<'FAKE'
#!/usr/bin/env bash
echo "apt-get $*" >>"${RECORD}"
[[ " $* " == *" install "* ]] && : >"${ABSENT}"
exit 0
FAKE
fake sudo <<'FAKE'
#!/usr/bin/env bash
exit 1
FAKE
fake id <<'FAKE'
#!/usr/bin/env bash
cat "${WHO}"
FAKE

export RECORD="${work}/record" LOCKED="${work}/locked" BROKEN="${work}/broken" ABSENT="${work}/absent" WHO="${work}/who"
export FOUND="${work}/found" FUZZED="${work}/fuzzed"
export PATH="${fakes}:${PATH}" HOME="${work}/home" XDG_CACHE_HOME="${work}/home/cache"
: >"${RECORD}"
: >"${ABSENT}"
echo 0 >"${WHO}"

# front ARGUMENTS...: runs ./lockstep; sets OUT, ERR and STATUS.
front() {
  STATUS=0
  "${tree}/lockstep" "$@" >"${work}/out" 2>"${work}/err" </dev/null || STATUS=$?
  OUT="$(cat "${work}/out")"
  ERR="$(cat "${work}/err")"
}

expect() {
  if [[ "$2" != "$3" ]]; then
    printf 'FAILED: %s\n  expected: %s\n  is:       %s\n' "$1" "$2" "$3"
    failures=$((failures + 1))
  fi
}
expect_match() { [[ "$3" == *"$2"* ]] || expect "$1" "*$2*" "$3"; }
builds() { grep -c 'bazel.* build' "${RECORD}" || true; }

cd "${work}"

front
expect "help ends well" 0 "${STATUS}"
expect_match "help lists the commands" docker-test "${OUT}"
front nonsense
expect "an unknown command is bad usage" 2 "${STATUS}"

front status --master=grpc://a:1 "two words" ''
expect "arguments arrive as they are" "cli/lockstep_main
<status>
<--master=grpc://a:1>
<two words>
<>
${work}" "${OUT}"
expect "the first command builds" 1 "$(builds)"
front status
expect "the second does not" 1 "$(builds)"
expect "and says nothing" "" "${ERR}"

ln -s "${tree}/lockstep" "${work}/link"
expect "a symbolic link leads to the same tree" "cli/lockstep_main <chief>" "$("${work}/link" chief config 2>&1 | head -n 2 | xargs -d '\n')"

touch -d "1 minute" "${tree}/proto/new.proto"
front probe
expect "an edited source is built" 2 "$(builds)"
expect_match "and that is said" "building" "${ERR}"

# The program interprets an empty master; the script passes the flags unchanged.
for master in --master=grpc://a:1 --master= -master=; do
  front worker config "${master}"
  expect "worker ${master}" "cli/lockstep_main
<worker>
<config>
<${master}>
${work}" "${OUT}"
done
front worker --master '' config
expect "an empty word arrives, too" "cli/lockstep_main
<worker>
<--master>
<>
<config>
${work}" "${OUT}"

front run --program=//examples:own_model config --workers=1
expect "a program of one's own takes the place of the command line" "examples/own_model
<run>
<config>
<--workers=1>" "$(head -n 4 <<<"${OUT}")"
expect_match "it is built" "build" "$(grep '//examples:own_model' "${RECORD}")"
front worker --master=grpc://a:1 --program=//examples:own_model
expect "it is a worker, too" "examples/own_model <worker>" "$(head -n 2 <<<"${OUT}" | xargs -d '\n')"
front run config --program=own_model
expect "a program is named by its target" 2 "${STATUS}"

front exec //examples:own_model run --steps=5 "two words" --help
expect "exec becomes a program, with its flags" "examples/own_model
<run>
<--steps=5>
<two words>
<--help>
${work}" "${OUT}"
expect_match "it is built" "build" "$(tail -n 1 "${RECORD}" | grep '//examples:own_model')"
"${tree}/lockstep" exec //examples:exits >"${work}/out" 2>"${work}/err" &
process=$!
STATUS=0
wait "${process}" || STATUS=$?
expect "its exit code is the program's" 7 "${STATUS}"
expect "it is the same process, so signals reach it" "${process}" "$(cat "${work}/out")"
for words in "" own_model //examples examples:own_model --steps=5; do
  # shellcheck disable=SC2086
  front exec ${words}
  expect "exec '${words}' is bad usage" 2 "${STATUS}"
  expect_match "that is said" "exec takes a target such as //examples:own_model" "${ERR}"
done
front exec //examples:library
expect "a target that is no program is refused" 2 "${STATUS}"
expect_match "and named" "//examples:library is no program" "${ERR}"
touch "${BROKEN}"
front exec //examples:own_model
expect "a program that does not build" 1 "${STATUS}"
rm "${BROKEN}"
front exec --help
expect_match "exec has a help text" "Usage: ./lockstep exec //FOLDER:TARGET" "${OUT}"

front install-library "--prefix=${work}/a prefix"
expect "the library is installed" 0 "${STATUS}"
expect_match "it is built" "//:install_tree" "$(tail -n 1 "${RECORD}")"
expect "its files are there" "lib/liblockstep.a" "$(cd "${work}/a prefix" && find . -type f -printf '%P\n')"
for words in "" --prefix= "--prefix=x y" /usr; do
  # shellcheck disable=SC2086
  front install-library ${words}
  expect "install-library '${words}' is bad usage" 2 "${STATUS}"
  expect_match "that is said" "--prefix=DIR" "${ERR}"
done

touch "${LOCKED}"
front build
expect "a held lock is waited for" 0 "${STATUS}"
expect_match "and said" "waiting for another Bazel" "${ERR}"
rm "${LOCKED}"

touch "${BROKEN}"
front build
expect "a failed build fails" 1 "${STATUS}"
expect_match "the log's tail is shown" "a compiler's complaint" "${ERR}"
expect_match "the log is named" "${work}/home/cache/lockstep/log/" "${ERR}"
rm "${BROKEN}"

front test --long
expect_match "the long tests are those with the tag" "long[,\]]" "$(grep ' query\|^bazel query' "${RECORD}")"
expect_match "and only they run" "--test_summary=short //tests:slow" "$(grep ' test ' "${RECORD}" | tail -n 1)"
expect_match "and the fuzz targets" "--config=fuzz" "$(tail -n 1 "${RECORD}")"
front test --long //tests/upgrade //server/... --jobs=1
expect_match "targets choose among them" "set(//tests/upgrade //server/...)" "$(grep ' query\|^bazel query' "${RECORD}" | tail -n 1)"
expect_match "with their flags, and nothing is fuzzed" "--test_summary=short //tests:slow --jobs=1" "$(tail -n 1 "${RECORD}")"

front fuzz
expect "fuzzing that finds nothing is well" 0 "${STATUS}"
expect "a line for each target" "csv: 7 runs, idx: 7 runs" \
  "$(sed -nE 's/^(\w+): +(7 runs) in .*, 1 inputs kept/\1 \2/p' <<<"${OUT}" | sort | sed 's/ /: /' | paste -sd, | sed 's/,/, /')"
front fuzz --target=
expect "an empty target prints the names" "csv idx" "$(xargs <<<"${OUT}")"
echo idx >"${FOUND}"
front fuzz --target=csv
expect "one target alone" 0 "${STATUS}"
front fuzz --runs=5
expect "what is found is a failure" 1 "${STATUS}"
expect_match "that is shown, with its limit" "-runs=5" "$(grep 'what was found' <<<"${OUT}")"
rm "${FOUND}"
rm "${FUZZED}"
front fuzz --fast --target=csv --runs=9
expect "fast fuzzing that finds nothing is well" 0 "${STATUS}"
expect "inputs are made without the sanitizers, and what is kept is tried under them" "fuzz_text -runs=9, fuzz -runs=0" \
  "$(sed -E 's/^(\w+) .* (-runs=[0-9]+) .*/\1 \2/' "${FUZZED}" | paste -sd, | sed 's/,/, /')"
echo csv >"${FOUND}_by_fuzz"
front fuzz --fast --target=csv
expect "what only the sanitizers find is a failure, too" 1 "${STATUS}"
expect_match "that is shown" "what was found" "${OUT}"
rm "${FOUND}_by_fuzz"
front fuzz --target=none
expect "an unknown target is refused" 2 "${STATUS}"
front fuzz --run=5
expect "so is an unknown flag" 2 "${STATUS}"
for flag in --runs=1e6 --runs= --runs=-1 --runs=0 --seconds=1m; do
  front fuzz "${flag}"
  expect "so is ${flag}, which is no number of anything" 2 "${STATUS}"
  expect_match "with its name" "${flag%%=*} takes a number" "${ERR}"
done

printf 'libabsl-dev\nzlib1g-dev\n' >"${ABSENT}"
front install
expect "installing ends well" 0 "${STATUS}"
expect_match "what is missing, and no more, is installed" "Use-Pty=0 libabsl-dev zlib1g-dev" "$(tail -n 1 "${RECORD}")"

echo 1000 >"${WHO}"
front install
expect "nothing missing needs no root" 0 "${STATUS}"
printf 'zlib1g-dev\n' >"${ABSENT}"
front install
expect "without root or sudo it cannot install" 2 "${STATUS}"
expect "one line says what to do" 1 "$(wc -l <"${work}/err")"
expect_match "with the command" "apt-get install --no-install-recommends zlib1g-dev" "${ERR}"

((failures == 0))
