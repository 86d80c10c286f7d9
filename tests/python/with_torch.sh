#!/bin/bash
# Runs a Python program with LOCKSTEP_TORCH_PYTHON, a Python that has PyTorch, JAX and NumPy. Without it, skips the
# test, or fails if CI is true.
# Usage: with_torch.sh PROGRAM.py ARGUMENTS...   (from the folder of the test's files)
set -eu
# Importing them would take seconds.
has_packages='import importlib.util, sys; sys.exit(not all(map(importlib.util.find_spec, sys.argv[1:])))'
if [[ -z "${LOCKSTEP_TORCH_PYTHON:-}" ]] || ! "$LOCKSTEP_TORCH_PYTHON" -c "$has_packages" jax numpy torch; then
  echo "SKIPPED: torch or jax is not installed (set LOCKSTEP_TORCH_PYTHON)"
  [[ "${CI:-}" != true ]]
  exit
fi
PYTHONPATH="$PWD/python" PYTHONDONTWRITEBYTECODE=1 exec "$LOCKSTEP_TORCH_PYTHON" "$@"
