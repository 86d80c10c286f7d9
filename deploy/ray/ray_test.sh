#!/usr/bin/env bash
# Runs ray_test.py in a network namespace of its own, with LOCKSTEP_RAY_PYTHON, a Python that has Ray. Needs root. On
# 127.0.0.1 alone, Ray replaces the address of its first node by one of the machine's.
# Usage: ray_test.sh PROGRAM.py CHIEF LOCKSTEP CONFIG
set -euo pipefail
python="${LOCKSTEP_RAY_PYTHON:-python3}"
if ! "${python}" -c 'import ray' 2>/dev/null; then
  echo "SKIPPED: ${python} has no ray (set LOCKSTEP_RAY_PYTHON)"
  exit
fi
LOCKSTEP_CHIEF_BINARY="$(readlink -f "$2")"
export LOCKSTEP_CHIEF_BINARY PYTHONDONTWRITEBYTECODE=1 PATH="${PATH}:/usr/sbin"
exec unshare --net bash -c 'ip link set lo up && ip addr add 192.0.2.2/32 dev lo &&
  ip route add default dev lo src 192.0.2.2 && exec "$@"' ray_test "${python}" "$1" "$3" "$4"
