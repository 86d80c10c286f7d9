#!/usr/bin/env bash
# Plants a bug at a time in a copy of the tree, builds the simulation with it, and expects it to find each within 5000
# seeds. Usage: mutants.sh NAME... (a file in mutants/ without ".patch"); without names all of them.
set -euo pipefail
here="$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")"
tree="$(cd "${here}/../.." && pwd)"
scratch="${LOCKSTEP_MUTANTS:-${HOME:-/root}/.cache/lockstep/mutants}"
names=("$@")
if [[ ${#names[@]} == 0 ]]; then
  for patch in "${here}"/mutants/*.patch; do names+=("$(basename "${patch}" .patch)"); done
fi

# The same results as any other build of this user (tools/build.sh).
cache="$(find "${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/lockstep/bazel" -mindepth 1 -maxdepth 1 -printf '%T@ %p\n' 2>/dev/null | sort -rn | sed -n '1s/^[^ ]* //p' || true)"
flags=()
[[ -z "${cache}" ]] || flags+=("--disk_cache=${cache}")

mkdir -p "${scratch}"
# One at a time.
exec 9>"${scratch}/lock"
flock 9
copy="${scratch}/tree"
mkdir -p "${copy}"
refresh() {
  find "${copy}" -mindepth 1 -maxdepth 1 ! -name .bz -exec rm -rf {} +
  tar -C "${tree}" --exclude=./.bz --exclude=./.git --exclude=./bazel-out --exclude=./runs -cf - . | tar -C "${copy}" -xf -
}

failed=0
for name in "${names[@]}"; do
  refresh
  if ! patch -s -d "${copy}" -p1 <"${here}/mutants/${name}.patch"; then
    echo "${name}: the patch does not apply"
    failed=$((failed + 1))
    continue
  fi
  if ! (cd "${copy}" && bazel build "${flags[@]}" //tests/simulation:simulate >"${scratch}/build.log" 2>&1); then
    tail -n 30 "${scratch}/build.log"
    echo "${name}: does not build"
    failed=$((failed + 1))
    continue
  fi
  # Until one of these has found it.
  found=""
  for ((seed = 1; seed < 5000 && ${#found} == 0; seed += 250)); do
    "${copy}/.bz/out/k8-opt/bin/tests/simulation/simulate" --seed="${seed}" --seeds=250 >"${scratch}/${name}.log" 2>&1 || true
    if ! grep -qE '^250 lives, [0-9]+ failed$' "${scratch}/${name}.log"; then
      tail -n 30 "${scratch}/${name}.log"
      break
    fi
    found="$(grep -a -m 1 -E '^seed [0-9]+ (failed|ended)' "${scratch}/${name}.log" | cut -c1-160 || true)"
  done
  echo "${name}: ${found:-not found}"
  [[ -n "${found}" ]] || failed=$((failed + 1))
done
(cd "${copy}" && bazel shutdown >/dev/null 2>&1) || true
echo "${#names[@]} mutants, ${failed} not found"
[[ "${failed}" == 0 ]]
