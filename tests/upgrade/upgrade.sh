#!/usr/bin/env bash
# Rolls a cluster from the previous release to this one and back while it trains: first the chief, then the worker.
# Every run must have the same digest as a single process. Releases with different wire versions refuse each other by
# name, and a run then moves to this release with all its processes.
# The previous release is the newest tag other than this version's. If there are fewer than two tags, it is the parent
# of the commit that changed the version. It is built in a second worktree, or LOCKSTEP_PREVIOUS names a folder with
# built binaries: server/chief_main, worker/worker_main and cli/lockstep_main.
# Usage: upgrade.sh CHIEF WORKER LOCKSTEP CONFIG
set -uo pipefail
# shellcheck source=tests/fault/expectations.sh
source "$(dirname "$0")/../fault/expectations.sh"
TREE="$(cd "$(dirname "$(readlink -f "$0")")/../.." && pwd)"
declare -A CHIEF=([this]="$(readlink -f "$1")") WORKER=([this]="$(readlink -f "$2")") LOCKSTEP=([this]="$(readlink -f "$3")")
CONFIG="$(readlink -f "$4")"
readonly TREE CONFIG
previous="${LOCKSTEP_PREVIOUS:-}"

say() { printf '%4ds %s\n' "${SECONDS}" "$*"; }

# Prints the revision of the previous release.
previous_revision() {
  local version
  version="$(sed -nE 's/^constexpr char kVersion\[\] = "(.*)";/\1/p' "${TREE}/common/base/version.h")"
  local -a tags
  mapfile -t tags < <(git -C "${TREE}" tag --list 'v[0-9]*' --merged HEAD --sort=-version:refname)
  if ((${#tags[@]} < 2)); then
    git -C "${TREE}" rev-parse --verify --quiet "$(git -C "${TREE}" log -1 --format=%H -G'kVersion\[\] =' -- common/base/version.h)^"
  elif [[ "${tags[0]}" == "v${version}" ]]; then
    echo "${tags[1]}"
  else
    echo "${tags[0]}"
  fi
}

# Builds the previous release, with the cache of this user's other builds. Bazel keeps its output in TEST_TMPDIR.
build_previous() {
  local revision home cache
  revision="$(previous_revision)" || {
    echo "the history has neither two tags nor the parent of the change of the version"
    return 1
  }
  say "building $(git -C "${TREE}" log -1 --format='%h %s' "${revision}")"
  home="${HOME:-$(getent passwd "$(id -u)" | cut -d: -f6)}"
  cache="$(find "${home}/.cache/lockstep/bazel" -mindepth 1 -maxdepth 1 -printf '%T@ %p\n' 2>/dev/null | sort -rn | sed -n '1s/^[^ ]* //p')"
  export TEST_TMPDIR="${TEST_TMPDIR:-${WORK}/bazel}"
  git -C "${TREE}" worktree add --quiet --detach "${WORK}/previous" "${revision}" || return
  (cd "${WORK}/previous" && bazel --nohome_rc build ${cache:+"--disk_cache=${cache}"} \
    //server:chief_main //worker:worker_main //cli:lockstep_main) >"${WORK}/build.log" 2>&1 || {
    tail -n 40 "${WORK}/build.log"
    return 1
  }
  previous="${WORK}/previous/.bz/bin"
}

end() {
  if [[ -d "${WORK}/previous" ]]; then
    (cd "${WORK}/previous" && bazel --nohome_rc clean --expunge) >/dev/null 2>&1
    git -C "${TREE}" worktree remove --force "${WORK}/previous"
  fi
  cleanup
}
trap end EXIT

# version_of WHAT RELEASE: prints its "wire" or "arithmetic" version.
version_of() { "${LOCKSTEP[$2]}" --version | sed -nE "s/.*$1 version ([0-9]+),.*/\1/p"; }
have_one() { [[ "$(version_of "$1" this)" == "$(version_of "$1" previous)" ]]; }

saved_step() { sed -n 's/^model_checkpoint_path: "model.ckpt-\(.*\)"/\1/p' "${logdir}/checkpoint" 2>/dev/null; }
saved_beyond() { (($(saved_step | grep . || echo -1) > $1)); }
await_progress() {
  local step
  step="$(saved_step | grep . || echo -1)"
  await "$1 after step ${step}" 60 saved_beyond "${step}"
}

# start_chief RELEASE STEPS, start_worker RELEASE NAME: set chief or worker.
start_chief() {
  start "${logdir}.chief-${SECONDS}-${1}-${2}.log" "${CHIEF[$1]}" "${CONFIG}" --steps="$2" --logdir="${logdir}" \
    --address_file="${logdir}/chief.address" --set=checkpoint.every_steps=100
  chief="${PID}"
}
start_worker() {
  start "${logdir}.$2.log" "${WORKER[$1]}" --master="file:${logdir}/chief.address" --name="$2"
  worker="${PID}"
}
stops() {
  kill -TERM "$2"
  ends "$1" 143 "$2"
}

# new_run NAME: sets logdir.
new_run() {
  logdir="${WORK}/$1"
  mkdir "${logdir}"
}

# finishes WHAT RELEASE: a chief of RELEASE continues training for 200 steps from the last checkpoint to the end.
finishes() {
  local last=$(($(saved_step) + 200)) alone="${logdir}.alone" release
  start_chief "$2" "${last}"
  ends "the chief, $1" 0 "${chief}"
  ends "the worker, $1" 0 "${worker}"
  for release in this previous; do
    rm -rf "${alone}"
    "${LOCKSTEP[${release}]}" local "${CONFIG}" --steps="${last}" --logdir="${alone}" >"${alone}.log" 2>&1
    expect "the digest, $1, of one process of ${release}" "$("${LOCKSTEP[${release}]}" inspect --digest "${alone}")" \
      "$("${LOCKSTEP[${release}]}" inspect --digest "${logdir}")"
  done
}

readonly ENDLESS=1000000000

# rolls FROM TO: replaces the chief, then the worker.
rolls() {
  local what="from $1 to $2" old
  say "a cluster ${what}"
  new_run "$1-$2"
  start_chief "$1" "${ENDLESS}"
  start_worker "$1" old
  old="${worker}"
  await_progress "all are of $1"
  stops "the chief of $1" "${chief}"
  start_chief "$2" "${ENDLESS}"
  await_progress "with a chief of $2, the worker of $1 trains"
  start_worker "$2" new
  await_said "new: session" "${logdir}.new.log" "${worker}"
  stops "the worker of $1" "${old}"
  await_progress "all are of $2"
  stops "the chief of $2" "${chief}"
  finishes "${what}" "$2"
}

# refuses CHIEF WORKER: expects that releases with different wire versions refuse each other.
refuses() {
  say "a chief of $1 and a worker of $2"
  new_run "$1-refuses-$2"
  start_chief "$1" "${ENDLESS}"
  start_worker "$2" other
  ends "a worker of $2 with a chief of $1" 1 "${worker}"
  expect_said "the worker of $2" "has wire version $(version_of wire "$2"); the chief on" "${logdir}.other.log"
  stops "the chief of $1" "${chief}"
}

# moves: a run is stopped, and this release continues all of it.
moves() {
  say "a run that stops and continues"
  new_run moves
  start_chief previous "${ENDLESS}"
  start_worker previous old
  await_progress "all are of the previous release"
  stops "its worker" "${worker}"
  stops "its chief" "${chief}"
  start_worker this new
  finishes "from the previous release" this
}

[[ -n "${previous}" ]] || build_previous || exit 1
CHIEF[previous]="${previous}/server/chief_main"
WORKER[previous]="${previous}/worker/worker_main"
LOCKSTEP[previous]="${previous}/cli/lockstep_main"
for release in previous this; do
  say "${release}: $("${LOCKSTEP[${release}]}" --version | tr '\n' ' ')"
done
if ! have_one arithmetic; then
  echo "the arithmetic versions differ: a run cannot move (//tests/upgrade:logdirs_test)"
elif have_one wire; then
  rolls previous this
  rolls this previous
else
  refuses previous this
  refuses this previous
  moves
fi
say "${failures} failures"
((failures == 0))
