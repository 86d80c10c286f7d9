# shellcheck shell=bash
# Sourced by ./lockstep: Bazel, its cache, and whether the binaries are up to date.
# Reads ROOT, CACHE and LOG and calls say, open_log, to_log and logged of the caller.

BINARIES=(//server:chief_main //worker:worker_main //cli:lockstep_main)
# The outputs of -c opt builds, whatever was built last (.bz/bin follows that).
OUTPUT="${ROOT}/.bz/out/k8-opt"
BIN="${OUTPUT}/bin"

# Prints one line for the versions of everything that the build reads outside the tree.
system_fingerprint() {
  dpkg-query -W -f='${Package} ${Version}\n' "${BUILD_PACKAGES[@]}" | sha256sum | cut -c1-16
}

# Sets BAZEL_FLAGS: a cache of results that all checkouts of one user share. Bazel does not look at the system's
# headers, so a cache belongs to one set of package versions. One named in ~/.bazelrc is left alone.
choose_cache() {
  BAZEL_FLAGS=()
  grep -qs -- '--disk_cache' ~/.bazelrc || BAZEL_FLAGS=("--disk_cache=${CACHE}/bazel/$(system_fingerprint)")
}

# Keeps the cache below 12 GiB: the oldest results go first, and those of other package versions before all.
trim_cache() {
  [[ -d "${CACHE}/bazel" ]] || return 0
  find "${CACHE}/bazel" -mindepth 1 -maxdepth 1 -mtime +14 ! -name "$(system_fingerprint)" -exec rm -rf {} +
  find "${CACHE}/bazel" -type f -printf '%T@ %s %p\n' | sort -rn |
    awk '{ total += $2 } total > 12 * 1024 ^ 3 { print $3 }' | xargs -r rm -f
}

# bazel ARGUMENTS in the tree, its output in the log; says so when another Bazel command has to end first.
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

# Throws away objects that were built against other versions of the system's packages.
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

# True when no source, build file or system package is newer than the last build of the binaries.
is_built() {
  local stamp="${ROOT}/.bz/built" path newer
  local -a inputs=()
  [[ -f "${stamp}" && "$(cat "${stamp}")" == "$(source_revision)" && -x "${BIN}/server/chief_main" && -x "${BIN}/worker/worker_main" &&
    -x "${BIN}/cli/lockstep_main" ]] || return 1
  for path in WORKSPACE .bazelrc BUILD build_defs.bzl workspace.bzl proto kernels common server worker train cli third_party; do
    [[ -e "${ROOT}/${path}" ]] && inputs+=("${ROOT}/${path}")
  done
  newer="$(find "${inputs[@]}" /var/lib/dpkg/status -newer "${stamp}" -print -quit)" || return 1
  [[ -z "${newer}" ]]
}

# The commit that is built, for --version; empty when this is no clone. Only the links of programs depend on it.
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

build_binaries() {
  local began
  install_packages "${BUILD_PACKAGES[@]}" # Before the time is taken: is_built looks at the list of packages too.
  began="$(mktemp)"
  build_targets "${BINARIES[@]}"
  source_revision >"${ROOT}/.bz/built"
  touch -r "${began}" "${ROOT}/.bz/built" # What was edited meanwhile is newer.
  rm -f "${began}"
}
