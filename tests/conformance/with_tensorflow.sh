#!/bin/bash
# Runs a Python program of this folder with LOCKSTEP_PYTHON, a Python that has tensorflow and tensorboard.
# Usage: with_tensorflow.sh PROGRAM.py ARGUMENTS...   (from the folder of the test's files)
set -eu
if [[ -z "${LOCKSTEP_PYTHON:-}" ]] || ! "$LOCKSTEP_PYTHON" -c 'import tensorboard, tensorflow' 2>/dev/null; then
  echo "SKIPPED: tensorflow is not installed (set LOCKSTEP_PYTHON)"
  exit 0
fi
exec "$LOCKSTEP_PYTHON" "$@"
