#!/usr/bin/env bash
# Builds programs with only g++ and pkg-config, and one with CMake, from a folder that was filled like ./lockstep
# install-library does and then moved. The programs must train the same bits as the same programs built in this tree. A
# program without the instruction set must not compile.
set -euo pipefail
tree="${PWD}" # the runfiles
work="$(mktemp -d "${TEST_TMPDIR:-/tmp}/library.XXXX")"
export TMPDIR="${work}" PKG_CONFIG_PATH="${work}/a/prefix/lib/pkgconfig"
mkdir "${work}/a"
cp -RL --no-preserve=mode install_tree "${work}/a/prefix"
cp -RL examples/own_model.cc examples/own_model.textproto examples/data tests/library/train_two_models.cc "${work}"
cd "${work}"

read -ra cflags < <(pkg-config --cflags lockstep)
read -ra libs < <(pkg-config --libs --static lockstep)
g++ -O2 -Wall -Wno-deprecated -o own_model own_model.cc "${cflags[@]}" "${libs[@]}"
g++ -O2 -Wall -Wno-deprecated -o train_two_models train_two_models.cc "${cflags[@]}" "${libs[@]}"

expect() {
  if [[ "$2" != "$3" ]]; then
    printf 'FAILED: %s\n  expected: %s\n  is:       %s\n' "$1" "$2" "$3"
    exit 1
  fi
  printf '%s: %s\n' "$1" "$3"
}
expect "a plain loop" "$("${tree}/tests/library/train_two_models")" "$(./train_two_models)"

# Trains in one process, and with a chief and workers.
here="${tree}/examples/own_model"
"${here}" local own_model.textproto --steps=40 --logdir="${work}/here"
./own_model local own_model.textproto --steps=40 --logdir="${work}/local"
./own_model run own_model.textproto --steps=40 --workers=2 --logdir="${work}/cluster"
digest="$("${here}" inspect --digest "${work}/here")"
expect "one process" "${digest}" "$(./own_model inspect --digest "${work}/local")"
expect "a cluster" "${digest}" "$(./own_model inspect --digest "${work}/cluster")"
expect "the version" "$(pkg-config --modversion lockstep)" "$(./own_model --version | sed -nE '1s/^[^ ]+ ([0-9.]+).*/\1/p')"

# Puts a model into a separate archive. Only the model's registration refers to it.
sed 's/^int main.*//' own_model.cc >model.cc
printf '%s\n' '#include "lockstep/cli/lockstep_program.h"' \
  'int main(int argc, char** argv) { return lockstep::LockstepMain(argc, argv); }' >main.cc
g++ -c model.cc "${cflags[@]}"
ar rcs libmodel.a model.o
g++ -o program main.cc "${cflags[@]}" -Wl,--whole-archive libmodel.a -Wl,--no-whole-archive "${libs[@]}"
./program check own_model.textproto >checked
grep -q 'weight *variable *\[30\]' checked

# compile FLAG...: prints the error when compiling with these flags after pkg-config's.
compile() {
  if g++ -fsyntax-only -Wfatal-errors own_model.cc "${cflags[@]}" "$@" 2>errors; then
    echo "compiles"
  else
    sed -nE 's/.*error: #error "(Lockstep[^:]*):.*/\1/p' errors
  fi
}
expect "with the flags alone" "compiles" "$(compile)"
expect "without AVX2" "Lockstep needs AVX2 and FMA" "$(compile -mno-avx2)"
expect "without FMA" "Lockstep needs AVX2 and FMA" "$(compile -mno-fma)"
expect "for any x86-64" "Lockstep needs AVX2 and FMA" "$(compile -march=x86-64)"
expect "with AVX-512" "Lockstep is compiled without AVX-512" "$(compile -mavx512f)"
expect "with other sums" "Lockstep's sums have a fixed order, which -ffast-math changes" "$(compile -ffast-math)"

# CMake is in TEST_PACKAGES (tools/install.sh), and finds the package without PKG_CONFIG_PATH.
if ! command -v cmake >/dev/null; then
  echo "SKIPPED: CMake is not installed: apt-get install cmake make"
  [[ "${CI:-}" != true ]]
  exit
fi
mkdir cmake
cat >cmake/CMakeLists.txt <<'CMAKE'
cmake_minimum_required(VERSION 3.18)
project(own_model CXX)
find_package(lockstep REQUIRED)
add_executable(own_model ../own_model.cc)
target_link_libraries(own_model PRIVATE lockstep::lockstep)
CMAKE
unset PKG_CONFIG_PATH
cmake -S cmake -B cmake/build -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH="${work}/a/prefix" >cmake/log 2>&1 &&
  cmake --build cmake/build >>cmake/log 2>&1 || { tail -n 40 cmake/log; exit 1; }
cmake/build/own_model run own_model.textproto --steps=40 --workers=2 --logdir="${work}/cmake-cluster"
expect "a cluster of CMake's program" "${digest}" "$(cmake/build/own_model inspect --digest "${work}/cmake-cluster")"
