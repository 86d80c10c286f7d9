# shellcheck shell=bash
# Sourced by ./lockstep: Bazel, its cache, and whether the command line is up to date.
# Reads ROOT, CACHE and LOG. Calls the caller's say, open_log, to_log and logged.

# The outputs of -c opt builds, whatever was built last (.bz/bin refers to the last build).
OUTPUT="${ROOT}/.bz/out/k8-opt"
BIN="${OUTPUT}/bin"

# Prints a hash of the versions of everything outside the tree that the build reads. g++ needs the last three packages.
system_fingerprint() {
  dpkg-query -W -f='${Package} ${Version}\n' "${BUILD_PACKAGES[@]}" 'libstdc++-*-dev' libc6-dev linux-libc-dev |
    sha256sum | cut -c1-16
}

# Sets BAZEL_FLAGS to use a cache of results that all of the user's checkouts share. Bazel does not track the system's
# headers, so there is one cache for each set of package versions. A cache specified in ~/.bazelrc takes precedence.
choose_cache() {
  BAZEL_FLAGS=()
  grep -qs -- '--disk_cache' ~/.bazelrc || BAZEL_FLAGS=("--disk_cache=${CACHE}/bazel/$(system_fingerprint)")
}

# Keeps the cache below 12 GiB. Deletes the oldest results first, and before them the caches of other package versions.
trim_cache() {
  [[ -d "${CACHE}/bazel" ]] || return 0
  find "${CACHE}/bazel" -mindepth 1 -maxdepth 1 -mtime +14 ! -name "$(system_fingerprint)" -exec rm -rf {} +
  find "${CACHE}/bazel" -type f -printf '%T@ %s %p\n' | sort -rn |
    awk '{ total += $2 } total > 12 * 1024 ^ 3 { print $3 }' | xargs -r rm -f
}

# run_bazel ARGUMENTS...: runs bazel in the tree, and logs its output. Says so if it has to wait for another Bazel
# command.
run_bazel() {
  local status=0
  (cd "${ROOT}" && to_log bazel --noblock_for_lock "$@") || status=$?
  if [[ "${status}" == 9 || "${status}" == 45 ]]; then # the lock is held
    say "waiting for another Bazel command in ${ROOT}"
    status=0
    (cd "${ROOT}" && to_log bazel "$@") || status=$?
  fi
  return "${status}"
}

# Deletes objects that were built with other versions of the system's packages.
drop_stale_objects() {
  local versions="${ROOT}/.bz/system" fingerprint
  fingerprint="$(system_fingerprint)"
  if [[ -d "${OUTPUT}" && -f "${versions}" && "$(cat "${versions}")" != "${fingerprint}" ]]; then
    say "the system's packages have changed since the last build: starting afresh"
    run_bazel clean
  fi
  mkdir -p "${ROOT}/.bz"
  printf '%s\n' "${fingerprint}" >"${versions}"
}

# Succeeds if no source, build file or system package is newer than the last build of the command line.
is_built() {
  local stamp="${ROOT}/.bz/built" path newer
  local -a inputs=()
  [[ -f "${stamp}" && "$(cat "${stamp}")" == "$(source_revision)" && -x "${BIN}/cli/lockstep_main" ]] || return 1
  for path in WORKSPACE .bazelrc BUILD build_defs.bzl workspace.bzl proto kernels common server worker train cli third_party; do
    [[ -e "${ROOT}/${path}" ]] && inputs+=("${ROOT}/${path}")
  done
  newer="$(find "${inputs[@]}" /var/lib/dpkg/status -newer "${stamp}" -print -quit)" || return 1
  [[ -z "${newer}" ]]
}

# Prints the commit that is built, for --version, or nothing if this is not a clone. Only the linking of programs
# depends on it.
source_revision() {
  [[ "$(git -C "${ROOT}" rev-parse --show-toplevel 2>/dev/null)" == "${ROOT}" ]] || return 0
  git -C "${ROOT}" describe --always --dirty --exclude='*' 2>/dev/null || true
}

build_targets() {
  install_packages "${BUILD_PACKAGES[@]}"
  open_log build
  say "building $*"
  drop_stale_objects
  choose_cache
  logged "building" bazel_progress run_bazel build "${BAZEL_FLAGS[@]}" --stamp "--embed_label=$(source_revision)" "$@"
}

build_command_line() {
  local began
  install_packages "${BUILD_PACKAGES[@]}" # before the time is taken, because is_built looks at the package list, too
  began="$(mktemp)"
  build_targets //cli:lockstep_main
  source_revision >"${ROOT}/.bz/built"
  touch -r "${began}" "${ROOT}/.bz/built" # Files edited in the meantime are newer.
  rm -f "${began}"
}
