#!/usr/bin/env bash
# Runs ray_test.py with LOCKSTEP_DEPLOY_PYTHON, a Python that has Ray, in separate namespaces. They have a second
# address, because Ray would replace 127.0.0.1 as its first node's address by one of the machine's. Everything that Ray
# has started ends with the namespaces. Without root or Ray, skips the test, or fails if CI is true.
# Usage: ray_test.sh PROGRAM.py LOCKSTEP CONFIG
set -euo pipefail
python="${LOCKSTEP_DEPLOY_PYTHON:-}"
if [[ "$(id -u)" != 0 || -z "${python}" ]] ||
  ! "${python}" -c 'import importlib.util, sys; sys.exit(not importlib.util.find_spec("ray"))'; then
  echo "SKIPPED: needs root and a Python that has ray (LOCKSTEP_DEPLOY_PYTHON)"
  [[ "${CI:-}" != true ]]
  exit
fi
export PYTHONDONTWRITEBYTECODE=1 PATH="${PATH}:/usr/sbin"
TMPDIR="$(mktemp -d)"
export TMPDIR RAY_TMPDIR="${TMPDIR}"
trap 'rm -rf "${TMPDIR}"' EXIT
unshare --net --pid --fork --kill-child --mount-proc bash -c 'ip link set lo up && ip addr add 192.0.2.2/32 dev lo &&
  ip route add default dev lo src 192.0.2.2 && "$@"' ray_test "${python}" "$@"
