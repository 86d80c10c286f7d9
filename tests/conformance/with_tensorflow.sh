#!/bin/bash
# Runs a Python program of this folder with LOCKSTEP_PYTHON, a Python that has tensorflow, tensorboard and tf-slim.
# Without it, skips the test, or fails if CI is true.
# Usage: with_tensorflow.sh PROGRAM.py ARGUMENTS...   (from the folder of the test's files)
set -eu
# Importing them would take seconds.
has_packages='import importlib.util, sys; sys.exit(not all(map(importlib.util.find_spec, sys.argv[1:])))'
if [[ -z "${LOCKSTEP_PYTHON:-}" ]] || ! "$LOCKSTEP_PYTHON" -c "$has_packages" tensorboard tensorflow tf_slim; then
  echo "SKIPPED: tensorflow or tf-slim is not installed (set LOCKSTEP_PYTHON)"
  [[ "${CI:-}" != true ]]
  exit
fi
exec "$LOCKSTEP_PYTHON" "$@"
