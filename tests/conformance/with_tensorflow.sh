#!/bin/bash
# Runs a Python program of this folder with LOCKSTEP_PYTHON, a Python that has tensorflow, tensorboard and tf-slim.
# Without it, skips the test, or fails if CI is true.
# Usage: with_tensorflow.sh PROGRAM.py ARGUMENTS...   (from the folder of the test's files)
set -eu
if [[ -z "${LOCKSTEP_PYTHON:-}" ]] || ! "$LOCKSTEP_PYTHON" -c 'import tensorboard, tensorflow, tf_slim' 2>/dev/null; then
  echo "SKIPPED: tensorflow or tf-slim is not installed (set LOCKSTEP_PYTHON)"
  [[ "${CI:-}" != true ]]
  exit
fi
exec "$LOCKSTEP_PYTHON" "$@"
