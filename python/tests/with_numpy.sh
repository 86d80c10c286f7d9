#!/bin/bash
# Runs a program of this folder with the package on the path, using LOCKSTEP_PYTHON or, if unset, the system's python3.
# If that has no NumPy, skips the test, or fails if CI is true.
# Usage: with_numpy.sh PROGRAM.py ARGUMENTS...   (from the folder of the test's files)
set -eu
python="${LOCKSTEP_PYTHON:-/usr/bin/python3}"
if ! "${python}" -c 'import numpy' 2>/dev/null; then
  echo "SKIPPED: ${python} has no numpy (set LOCKSTEP_PYTHON)"
  [[ "${CI:-}" != true ]]
  exit
fi
export PYTHONPATH="${PWD}/python" PYTHONDONTWRITEBYTECODE=1
# The order of additions in a product depends on the number of threads.
export OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 MKL_NUM_THREADS=1
exec "${python}" "$@"
