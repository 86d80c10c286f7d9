#!/bin/bash
# Runs the Python program beside it with LOCKSTEP_PYTHON, a Python that has tensorflow and tensorboard.
set -eu
cd "$TEST_SRCDIR/$TEST_WORKSPACE/tests/conformance"
if [[ -z "${LOCKSTEP_PYTHON:-}" ]] || ! "$LOCKSTEP_PYTHON" -c 'import tensorboard, tensorflow' 2>/dev/null; then
  echo "SKIPPED: tensorflow is not installed (set LOCKSTEP_PYTHON)"
  exit 0
fi
exec "$LOCKSTEP_PYTHON" tensorflow_reads_ours_test.py "$PWD/write_sample" "$PWD/dump_checkpoint"
