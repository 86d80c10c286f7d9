# shellcheck shell=bash
# Sourced by ./lockstep: the benchmarks, and the setup for comparisons with PyTorch, TensorFlow and oneDNN.
# Reads ROOT, CACHE and BIN. Calls the caller's say, open_log, to_log, logged, install_packages, build_targets and
# run_target.

# Makes the peers' virtual environment, or remakes it if its recipe has changed. oneDNN is Debian's.
prepare_peers() {
  local recipe="${ROOT}/tests/benchmark/peers/install.sh" venv="${CACHE}/peers" wanted
  wanted="$(cat "${recipe}" "${ROOT}/tools/install_torch.sh" | sha256sum | cut -d' ' -f1)"
  install_packages libdnnl2
  [[ "$(cat "${venv}/complete" 2>/dev/null)" == "${wanted}" ]] && return
  install_packages "${BUILD_PACKAGES[@]}" python3-venv
  open_log install
  say "installing PyTorch and TensorFlow in ${venv} (0.8 GB to fetch)"
  logged "installing PyTorch and TensorFlow" no_progress to_log "${recipe}" "${venv}"
  printf '%s\n' "${wanted}" >"${venv}/complete"
}

# The numbers also go to a file in CACHE, unless the arguments specify another file.
run_bench() {
  local word
  local -a defaults=("--json=${CACHE}/bench.json")
  for word in "$@"; do
    if [[ "${word}" == --peers ]]; then
      prepare_peers
      build_targets //capi:liblockstep.so
      defaults=("--json=${CACHE}/bench-peers.json" "--peer_python=${CACHE}/peers/bin/python3"
        "--peer_scripts=${ROOT}/tests/benchmark/peers")
    fi
    [[ "${word}" != --plot* ]] || install_packages python3-matplotlib
  done
  mkdir -p "${CACHE}"
  export LOCKSTEP_CHIEF_BINARY="${BIN}/server/chief_main" LOCKSTEP_WORKER_BINARY="${BIN}/worker/worker_main" \
    LOCKSTEP_BINARY="${BIN}/cli/lockstep_main"
  run_target tests/benchmark benchmarks "${defaults[@]}" "--plot_script=${ROOT}/tests/benchmark/plot.py" "$@"
}
