#!/usr/bin/env bash
# Plants one bug at a time in a copy of the tree, builds the simulation with it, and expects it to find each bug within
# 5000 seeds, none of which fails without the bug. Usage: mutants.sh NAME... (a file below mutants/ without ".patch");
# without names, it runs all. "mutants.sh --check" only checks that every patch applies to this tree and, without names,
# that docs/testing.md lists exactly these mutants.
set -euo pipefail
here="$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")"
tree="$(cd "${here}/../.." && pwd)"
scratch="${LOCKSTEP_MUTANTS:-${HOME:-/root}/.cache/lockstep/mutants}"
# plant NAME TREE [FLAGS OF PATCH]: applies a patch without fuzz, because a loosely applied patch may be a different
# bug.
plant() { patch -s -F0 -d "$2" -p1 "${@:3}" <"${here}"/mutants/*/"$1.patch"; }

check=""
if [[ "${1:-}" == --check ]]; then
  check=1
  shift
fi
names=("$@")
all=""
if [[ ${#names[@]} == 0 ]]; then
  all=1
  for patch in "${here}"/mutants/*/*.patch; do names+=("$(basename "${patch}" .patch)"); done
fi

if [[ -n "${check}" ]]; then
  failed=0
  for name in "${names[@]}"; do
    plant "${name}" "${tree}" --dry-run && continue
    echo "${name}: the patch does not apply"
    failed=$((failed + 1))
  done
  echo "${#names[@]} mutants, ${failed} do not apply"
  [[ "${failed}" == 0 && ${#names[@]} -gt 0 ]]
  if [[ -n "${all}" ]]; then
    # The names in the paragraph, each in backticks.
    # shellcheck disable=SC2016
    listed="$(awk '/^Each mutant has been planted/,/^$/' "${tree}/docs/testing.md" | grep -oE '`[A-Za-z0-9_]+`')"
    listed="${listed//\`/}"
    if ! diff <(sort <<<"${listed}") <(printf '%s\n' "${names[@]}" | sort); then
      echo "docs/testing.md lists other mutants (<) than there are (>)"
      exit 1
    fi
  fi
  exit
fi

# Shares the build cache with the user's other builds (tools/build.sh). That requires the same compiler path, which
# would be /bin/gcc in a test.
export PATH="/usr/bin:${PATH}"
cache="$(find "${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/lockstep/bazel" -mindepth 1 -maxdepth 1 -printf '%T@ %p\n' 2>/dev/null | sort -rn | sed -n '1s/^[^ ]* //p' || true)"
flags=()
[[ -z "${cache}" ]] || flags+=("--disk_cache=${cache}")

mkdir -p "${scratch}"
# Only one instance may run at a time.
exec 9>"${scratch}/lock"
flock 9
copy="${scratch}/tree"
mkdir -p "${copy}"
refresh() {
  find "${copy}" -mindepth 1 -maxdepth 1 ! -name .bz -exec rm -rf {} +
  tar -C "${tree}" --exclude=./.bz --exclude=./.git --exclude=./bazel-out --exclude=./runs -cf - . | tar -C "${copy}" -xf -
}

# build WHAT: builds the copy's simulation.
build() {
  (cd "${copy}" && bazel build "${flags[@]}" //tests/simulation:simulate >"${scratch}/build.log" 2>&1) && return 0
  tail -n 30 "${scratch}/build.log"
  echo "$1: does not build"
  return 1
}

# live PROGRAM LOG SEED: runs one batch of lives.
lives=250
live() { "$1" --seed="$3" --seeds="${lives}" >"${scratch}/$2.log" 2>&1 || true; }

# The control is the same copy without a bug, built the same way.
refresh
build control
control="${scratch}/control"
cp -f "${copy}/.bz/out/k8-opt/bin/tests/simulation/simulate" "${control}"
# sound_until SEED: succeeds if the control passes all batches up to the one that begins at SEED. Runs each batch once.
sound=1 # the first seed that has not run
sound_until() {
  while ((sound <= $1)); do
    live "${control}" control "${sound}"
    if ! grep -qx "${lives} lives, 0 failed" "${scratch}/control.log"; then
      tail -n 30 "${scratch}/control.log"
      echo "the simulation fails without a bug: nothing that it finds counts"
      return 1
    fi
    sound=$((sound + lives))
  done
}
sound_until 1

failed=0
for name in "${names[@]}"; do
  refresh
  if ! plant "${name}" "${copy}"; then
    echo "${name}: the patch does not apply"
    failed=$((failed + 1))
    continue
  fi
  if ! build "${name}"; then
    failed=$((failed + 1))
    continue
  fi
  # Runs batches until one has found the bug.
  found=""
  for ((seed = 1; seed < 5000 && ${#found} == 0; seed += lives)); do
    live "${copy}/.bz/out/k8-opt/bin/tests/simulation/simulate" "${name}" "${seed}"
    ended="$(grep -aE "^${lives} lives, [0-9]+ failed\$" "${scratch}/${name}.log" || true)"
    if [[ -z "${ended}" ]]; then
      tail -n 30 "${scratch}/${name}.log"
      break
    fi
    found="$(grep -aE '^seed [0-9]+ (failed|ended)' "${scratch}/${name}.log" | sort -n -k2,2 | head -n 1 | cut -c1-160 || true)"
    if [[ -n "${found}" ]]; then
      found+=" (${ended}, from seed ${seed})"
      sound_until "${seed}"
    fi
  done
  echo "${name}: ${found:-not found}"
  [[ -n "${found}" ]] || failed=$((failed + 1))
done
(cd "${copy}" && bazel shutdown >/dev/null 2>&1) || true
echo "${#names[@]} mutants, ${failed} not found"
[[ "${failed}" == 0 ]]
