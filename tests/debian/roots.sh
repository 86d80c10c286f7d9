# shellcheck shell=bash
# Sourced by tests that run in a bare Debian. Makes the systems with debootstrap, from LOCKSTEP_DEBIAN_MIRROR or
# deb.debian.org. Without root or debootstrap, skips the test, or fails if CI is true.
export PATH="${PATH}:/usr/sbin:/sbin"
if [[ "$(id -u)" != 0 ]] || ! command -v debootstrap >/dev/null; then
  echo "SKIPPED: needs root and debootstrap: apt-get install debootstrap"
  [[ "${CI:-}" != true ]]
  exit
fi
export TMPDIR="${TEST_TMPDIR:-/tmp}"
# shellcheck source=tests/fault/expectations.sh
source "$(dirname "${BASH_SOURCE[0]}")/../fault/expectations.sh"

say() { printf '%4ds %s\n' "${SECONDS}" "$*"; }

# make_root SUITE: makes the system WORK/SUITE, with the packages that every Debian has, and apt.
make_root() {
  say "making a bare $1"
  debootstrap --variant=minbase "$1" "${WORK}/$1" "${LOCKSTEP_DEBIAN_MIRROR:-http://deb.debian.org/debian}" \
    >"${WORK}/$1.log" 2>&1 && return
  tail -n 20 "${WORK}/$1.log"
  expect "debootstrap of $1" "made" "failed"
  return 1
}

# in_root SUITE COMMAND: runs a shell command as root of the system, which sees no other files and processes of this
# machine. It uses this machine's network. All of its processes end with it.
in_root() {
  # shellcheck disable=SC2016
  unshare --mount --pid --fork --kill-child bash -euc '
    mount --bind "$0" "$0"
    cd "$0"
    mount -t proc proc proc
    mount -t tmpfs tmpfs dev/shm
    mkdir -p .host
    pivot_root . .host
    cd /
    umount -l .host
    exec env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive bash -euc "$1"' \
    "${WORK}/$1" "$2"
}

# clone_tree FOLDER: clones the last commit of this tree. Changes that are not committed are left out.
clone_tree() {
  local tree
  tree="$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.." && pwd)"
  say "cloning $(git -C "${tree}" log -1 --format='%h %s')"
  git clone --quiet --no-hardlinks "${tree}" "$1"
}

# trains WHAT SUITE PROGRAM: expects that `PROGRAM run` in the system trains /run.textproto to the digest `expected`.
trains() {
  say "$1"
  in_root "$2" "rm -rf /logdir; $3 run /run.textproto --workers=2 --logdir=/logdir" >"${WORK}/training.log" 2>&1 ||
    tail -n 20 "${WORK}/training.log"
  # shellcheck disable=SC2154
  expect "the digest, $1" "${expected}" "$(in_root "$2" "$3 inspect --digest /logdir" 2>&1)"
}

# digest_of LOCKSTEP CONFIG: prints the digest that this build of the tree computes in one process.
digest_of() {
  "$1" local "$2" --logdir="${WORK}/here" >"${WORK}/here.log" 2>&1 || tail -n 20 "${WORK}/here.log" >&2
  "$1" inspect --digest "${WORK}/here"
}
