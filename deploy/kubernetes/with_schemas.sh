#!/usr/bin/env bash
# Runs manifests_test.py with LOCKSTEP_DEPLOY_PYTHON, a Python that has the schemas (DEPLOY_PIP_PACKAGES in
# tools/install.sh). Without it, skips the test, or fails if CI is true.
# Usage: with_schemas.sh PROGRAM.py ARGUMENTS...   (from the folder of the test's files)
set -eu
python="${LOCKSTEP_DEPLOY_PYTHON:-}"
if [[ -z "${python}" ]] || ! "${python}" -c 'import kubernetes_validate, kubeflow_trainer_api' 2>/dev/null; then
  echo "SKIPPED: kubernetes-validate or kubeflow-trainer-api is not installed (set LOCKSTEP_DEPLOY_PYTHON)"
  [[ "${CI:-}" != true ]]
  exit
fi
export PYTHONDONTWRITEBYTECODE=1
exec "${python}" "$@"
