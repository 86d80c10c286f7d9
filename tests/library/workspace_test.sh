#!/usr/bin/env bash
# Builds a program with its own model in another workspace, which depends on this one and sets no flags. The program
# must train the same bits as the same program built here.
# Usage: workspace_test.sh HERE SOURCE LABEL,... [CONFIG]: HERE was built here from SOURCE; the labels are the libraries
# that the program links. With CONFIG, the program is a command line that trains it; otherwise the program prints its
# bits itself.
set -euo pipefail
here="$1" source="$2" labels="\"${3//,/\", \"}\"" config="${4:-}"
tree="$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.." && pwd)"
# Bazel keeps its output in TEST_TMPDIR.
export TEST_TMPDIR="${TEST_TMPDIR:-$(mktemp -d)}"
workspace="${TEST_TMPDIR}/workspace"
log="${TEST_TMPDIR}/build.log"

# Shares the build cache with this user's other builds (tools/build.sh).
home="${HOME:-$(getent passwd "$(id -u)" | cut -d: -f6)}"
cache="$(find "${home}/.cache/lockstep/bazel" -mindepth 1 -maxdepth 1 -printf '%T@ %p\n' 2>/dev/null | sort -rn | sed -n '1s/^[^ ]* //p' || true)"
flags=(--nosandbox_debug)
[[ -z "${cache}" ]] || flags+=("--disk_cache=${cache}")

mkdir -p "${workspace}/models"
cp -L "${source}" "${workspace}/models/program.cc"
cat >"${workspace}/WORKSPACE" <<WORKSPACE
workspace(name = "another")

local_repository(
    name = "lockstep",
    path = "${tree}",
)

load("@lockstep//:workspace.bzl", "lockstep_workspace")

lockstep_workspace()
WORKSPACE
cat >"${workspace}/models/BUILD" <<BUILD
load("@lockstep//:build_defs.bzl", "LOCKSTEP_COPTS")

cc_binary(
    name = "program",
    srcs = ["program.cc"],
    copts = LOCKSTEP_COPTS,
    deps = [${labels}],
)

cc_binary(
    name = "without_flags",
    srcs = ["program.cc"],
    copts = [flag for flag in LOCKSTEP_COPTS if not flag.startswith("-march")],
    deps = [${labels}],
)
BUILD

# another ARGUMENTS...: runs Bazel in that workspace, ignoring this machine's .bazelrc files.
another() { (cd "${workspace}" && bazel --nohome_rc "$@"); }

fail() {
  tail -n 40 "${log}"
  echo "$1"
  exit 1
}

# All targets must be visible, and every object of ours must have the flags that determine the bits.
another aquery 'mnemonic("CppCompile", deps(@lockstep//:library))' >"${TEST_TMPDIR}/objects" 2>"${log}" ||
  fail "@lockstep//:library cannot be analyzed"
awk -v RS= '
  / external\/lockstep\/[^ ]*\.cc / {
    count++
    if (!/-march=x86-64-v3/ || !/-mtune=generic/ || !/-ffp-contract=off/ || !/-std=c\+\+17/) { print $0; wrong++ }
  }
  END { print count + 0 " objects, " wrong + 0 " without a flag"; exit wrong || count < 200 }' "${TEST_TMPDIR}/objects" ||
  {
    echo "objects of ours lack flags"
    exit 1
  }

another build "${flags[@]}" //models:program >"${log}" 2>&1 || fail "the program does not build"
program="${workspace}/bazel-bin/models/program"

# bits PROGRAM: prints the bits of the program's final weights.
bits() {
  local logdir="${TEST_TMPDIR}/logdir"
  if [[ -z "${config}" ]]; then
    "$1"
  else
    rm -rf "${logdir}"
    "$1" local "${config}" --steps=40 "--logdir=${logdir}" >&2 && "$1" inspect --digest "${logdir}"
  fi
}
expected="$(bits "${here}")"
is="$(bits "${program}")"
printf '%s\n' "${is}"
if [[ "${is}" != "${expected}" ]]; then
  printf 'built here it prints\n%s\n' "${expected}"
  exit 1
fi

# A target that lacks the flags must cause an error message.
if another build "${flags[@]}" //models:without_flags >"${log}" 2>&1; then
  echo "a model without AVX2 builds"
  exit 1
fi
grep -q 'Lockstep needs AVX2 and FMA: compile with LOCKSTEP_COPTS (Bazel)' "${log}" || fail "which error is this?"
another clean --expunge >/dev/null 2>&1 || true
