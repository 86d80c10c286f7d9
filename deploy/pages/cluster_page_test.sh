#!/usr/bin/env bash
# Runs the commands of docs/cluster.md and compares their output with the page (page_commands.py). The page's machines
# "one" and "two" are network namespaces with their own host names, connected by a cable, and share a disk, /srv.
# Slurm's three nodes are on the first machine. Without root or Slurm, skips the test, or fails if CI is true.
# Usage: cluster_page_test.sh LOCKSTEP PAGE
set -uo pipefail

# Debian's daemons and ip are there, but Bazel's PATH lacks this folder.
export PATH="${PATH}:/usr/sbin"
if [[ "$(id -u)" != 0 ]] || ! command -v slurmctld >/dev/null || ! command -v munged >/dev/null; then
  echo "SKIPPED: needs root and Slurm: apt-get install slurm-wlm munge"
  [[ "${CI:-}" != true ]]
  exit
fi
if [[ "${1:-}" != --inside ]]; then
  exec unshare --net --uts --mount --propagation private "$0" --inside "$@"
fi
shift

LOCKSTEP="$(readlink -f "$1")"
readonly LOCKSTEP FILES="${PWD}" PAGE="$2"
export PYTHONDONTWRITEBYTECODE=1
# shellcheck source=tests/fault/expectations.sh
source "${FILES}/tests/fault/expectations.sh"
# shellcheck source=deploy/slurm/cluster.sh
source "${FILES}/deploy/slurm/cluster.sh"
trap 'end_cluster; cleanup' EXIT

# Connects the machines.
make_machines() {
  hostname one
  unshare --net --uts sleep infinity &
  two=$!
  pids+=("${two}")
  disown
  printf '127.0.0.1 localhost\n192.0.2.1 one n1 n2 n3\n192.0.2.2 two\n' >"${WORK}/hosts"
  mount --bind "${WORK}/hosts" /etc/hosts && mount -t tmpfs tmpfs /srv && ip link set lo up || return
  await "the second machine is there" 5 namespace_differs
  nsenter --target "${two}" --uts hostname two
  ip link add cable type veth peer name cable netns "${two}" && ip address add 192.0.2.1/24 dev cable &&
    ip link set cable up && nsenter --target "${two}" --net ip link set lo up &&
    nsenter --target "${two}" --net ip address add 192.0.2.2/24 dev cable &&
    nsenter --target "${two}" --net ip link set cable up
}
namespace_differs() { [[ "$(readlink "/proc/${two}/ns/uts")" != "$(readlink /proc/self/ns/uts)" ]]; }

# Prepares the folder in which the page runs its commands.
make_folder() {
  mkdir -p /srv/lockstep/bin
  cd /srv/lockstep || return
  # The program takes the place of the launcher script, which would build it.
  ln -s "${LOCKSTEP}" lockstep
  ln -s "${LOCKSTEP}" bin/lockstep
  ln -s "${FILES}/examples" "${FILES}/deploy" .
  sed 's/^training { steps: [0-9]*/training { steps: 60/' "${FILES}/tests/fault/matrix.textproto" >run.textproto
  export PATH="${PWD}/bin:${PATH}"
}

make_machines || {
  echo "no namespaces can be made here"
  exit 1
}
start_cluster || {
  tail -n 20 "${WORK}"/{munged,slurmctld,n1}.log
  exit 1
}
make_folder || exit
python3 "${FILES}/deploy/pages/page_commands.py" "${FILES}/${PAGE}" "two=${two}" || failures=$((failures + 1))
((failures == 0))
