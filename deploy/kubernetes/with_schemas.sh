#!/usr/bin/env bash
# Runs manifests_test.py with LOCKSTEP_DEPLOY_PYTHON, a Python that has kubernetes-validate. Without it, skips the test,
# or fails if CI is true.
# Usage: with_schemas.sh PROGRAM.py ARGUMENTS...   (from the folder of the test's files)
set -eu
python="${LOCKSTEP_DEPLOY_PYTHON:-}"
if [[ -z "${python}" ]] || ! "${python}" -c 'import kubernetes_validate' 2>/dev/null; then
  echo "SKIPPED: kubernetes-validate is not installed (set LOCKSTEP_DEPLOY_PYTHON)"
  [[ "${CI:-}" != true ]]
  exit
fi
export PYTHONDONTWRITEBYTECODE=1
exec "${python}" "$@"
