# shellcheck shell=bash
# Sourced by ./lockstep: installs the library for programs outside this tree.
# Reads OUTPUT and BIN. Calls the caller's say, fail and build_targets.

install_library_usage() {
  cat <<'USAGE'
Usage: ./lockstep install-library --prefix=DIR

Builds Lockstep as a library and copies it to DIR, which may be moved later:
  DIR/include/lockstep            headers, those of the protos too
  DIR/lib/liblockstep.a           all of Lockstep; gRPC, protobuf and the rest are the system's
  DIR/lib/pkgconfig/lockstep.pc   g++ program.cc $(pkg-config --cflags --libs --static lockstep)
  DIR/lib/cmake/lockstep          find_package(lockstep) and target_link_libraries(program lockstep::lockstep) of CMake
USAGE
}

install_library() {
  local prefix="" word
  for word in "$@"; do
    case "${word}" in
      --prefix=?*) prefix="${word#--prefix=}" ;;
      *) fail 2 "install-library takes --prefix=DIR, not '${word}'" ;;
    esac
  done
  [[ -n "${prefix}" ]] || fail 2 "install-library needs --prefix=DIR, the folder to install to"
  build_targets //:install_tree
  mkdir -p "${prefix}" && cp -RL --no-preserve=mode "${BIN}/install_tree/." "${prefix}" || fail 1 "cannot install to ${prefix}"
  prefix="$(readlink -f "${prefix}")"
  say "installed to ${prefix}; PKG_CONFIG_PATH=${prefix}/lib/pkgconfig"
}
