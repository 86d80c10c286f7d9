#!/bin/bash
# Runs a Python program with LOCKSTEP_TORCH_PYTHON, a Python that has PyTorch, JAX and NumPy. Without it, skips the
# test, or fails if CI is true.
# Usage: with_torch.sh PROGRAM.py ARGUMENTS...   (from the folder of the test's files)
set -eu
if [[ -z "${LOCKSTEP_TORCH_PYTHON:-}" ]] || ! "$LOCKSTEP_TORCH_PYTHON" -c 'import jax, numpy, torch' 2>/dev/null; then
  echo "SKIPPED: torch or jax is not installed (set LOCKSTEP_TORCH_PYTHON)"
  [[ "${CI:-}" != true ]]
  exit
fi
PYTHONPATH="$PWD/python" PYTHONDONTWRITEBYTECODE=1 exec "$LOCKSTEP_TORCH_PYTHON" "$@"
