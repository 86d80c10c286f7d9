# shellcheck shell=bash
# Sourced by ./lockstep: what has to be installed, and how. Needs dpkg and apt.
# Reads CACHE (a folder) and calls say, fail, open_log and logged of the caller.

# Everything that building needs, from Debian 12.
BUILD_PACKAGES=(
  bazel-bootstrap bazel-rules-java bazel-rules-proto bazel-skylib g++ git pkg-config
  protobuf-compiler protobuf-compiler-grpc libprotobuf-dev libgrpc-dev libgrpc++-dev
  libabsl-dev libeigen3-dev libhwy-dev libgtest-dev libgmock-dev libbenchmark-dev
  libleveldb-dev libisal-dev libre2-dev libgoogle-glog-dev zlib1g-dev libzstd-dev libssl-dev
)
# Fashion-MNIST, which the examples train on.
DATA_PACKAGES=(dataset-fashion-mnist)
# Packages for the checks of ./lockstep test, and for the virtual environment below.
TEST_PACKAGES=(clang-14 clang-format-14 libclang-rt-14-dev python3-venv shellcheck g++-aarch64-linux-gnu qemu-user
  python3-matplotlib)
# Packages that Lockstep's files are compared with; from PyPI, in a virtual environment of their own.
PIP_PACKAGES=(tensorflow-cpu==2.21.0 tensorboard==2.21.0 tf-slim==1.1.0 safetensors==0.8.0)

# Prints the named packages that are not installed.
missing_packages() {
  local -A installed=()
  local name state
  while read -r name state; do
    [[ "${state}" == installed ]] && installed["${name}"]=1
  done < <(dpkg-query -W -f='${Package} ${db:Status-Status}\n' "$@" 2>/dev/null || true)
  for name in "$@"; do
    [[ -n "${installed[${name}]:-}" ]] || printf '%s\n' "${name}"
  done
}

# Prints the command that runs another as root; fails where there is none.
root_command() {
  if [[ "$(id -u)" == 0 ]]; then
    echo env
  elif command -v sudo >/dev/null && { [[ -t 0 ]] || sudo -n true 2>/dev/null; }; then
    echo sudo
  else
    return 1
  fi
}

install_packages() {
  command -v dpkg-query >/dev/null && command -v apt-get >/dev/null ||
    fail 2 "this system has no apt. Lockstep builds on Debian 12; docs/docker.md runs it elsewhere"
  local -a missing
  mapfile -t missing < <(missing_packages "$@")
  [[ ${#missing[@]} == 0 ]] && return
  local become
  become="$(root_command)" || fail 2 "packages are missing, and here is neither root nor sudo." \
    "Install them with: apt-get install --no-install-recommends ${missing[*]}"
  open_log install
  say "installing ${missing[*]}"
  local -a apt=("${become}" DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=600)
  to_log "${apt[@]}" update || true # Without the network an older package list may still do.
  logged "installing" apt_progress to_log "${apt[@]}" install -y --no-install-recommends -o Dpkg::Use-Pty=0 "${missing[@]}"
}

# The examples' data set. Where it cannot be installed, other configurations still run.
install_data() {
  [[ -z "$(missing_packages "${DATA_PACKAGES[@]}")" ]] && return
  if root_command >/dev/null; then
    install_packages "${DATA_PACKAGES[@]}"
  else
    say "configurations that read Fashion-MNIST need: apt-get install ${DATA_PACKAGES[*]}"
  fi
}

# Sets LOCKSTEP_PYTHON to an interpreter that knows PIP_PACKAGES; without them the tests of interoperation skip, in CI they fail.
prepare_venv() {
  local venv="${CACHE}/venv" wanted="${PIP_PACKAGES[*]}"
  if [[ "$(cat "${venv}/lockstep-packages" 2>/dev/null)" != "${wanted}" ]]; then
    open_log install
    say "installing ${wanted} in ${venv}"
    rm -rf "${venv}"
    if ! { to_log /usr/bin/python3 -m venv "${venv}" &&
      with_progress "installing ${wanted}" no_progress to_log "${venv}/bin/pip" install -q "${PIP_PACKAGES[@]}"; }; then
      say "pip cannot get ${wanted}: the tests against TensorFlow skip (${LOG})"
      rm -rf "${venv}"
      return
    fi
    printf '%s\n' "${wanted}" >"${venv}/lockstep-packages"
  fi
  export LOCKSTEP_PYTHON="${venv}/bin/python3"
}
