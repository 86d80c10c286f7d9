"""Checks the package's types in mypy's strict mode. Skipped without mypy, or fails if CI is true."""

import os
import sys

try:
  from mypy import api
except ImportError:
  print(f"SKIPPED: {sys.executable} has no mypy")
  sys.exit(int(os.environ.get("CI") == "true"))

output, errors, code = api.run(["--strict", f"--cache-dir={os.environ['TEST_TMPDIR']}/mypy", "python/lockstep"])
print(output, errors, sep="")
sys.exit(code)
