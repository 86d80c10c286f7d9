"""The command line, `lockstep` or `python -m lockstep`: runs the program in the package."""

from __future__ import annotations

import os
import pathlib
import sys
from typing import NoReturn

_PROGRAM = pathlib.Path(__file__).parent / "bin/lockstep_main"


def main() -> NoReturn:
  """Replaces this process with the program, so that signals reach it."""
  if not _PROGRAM.exists():
    sys.exit(f"lockstep: there is no {_PROGRAM}; the command line is in the wheel, and in a tree it is ./lockstep")
  os.execv(_PROGRAM, ["lockstep", *sys.argv[1:]])


if __name__ == "__main__":
  main()
