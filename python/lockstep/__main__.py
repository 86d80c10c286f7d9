"""The command line, `lockstep` or `python -m lockstep`: runs the program in the package."""

from __future__ import annotations

import os
import pathlib
import sys
from typing import NoReturn

_PROGRAMS = pathlib.Path(__file__).parent / "bin"


def main() -> NoReturn:
  """Replaces this process with a chief or the command line, so that signals reach it."""
  words = sys.argv[1:]
  program, words = ("chief_main", words[1:]) if words[:1] == ["chief"] else ("lockstep_main", words)
  if not (_PROGRAMS / program).exists():
    sys.exit(f"lockstep: there is no {_PROGRAMS / program}; the command line is in the wheel, and in a tree it is ./lockstep")
  os.execv(_PROGRAMS / program, ["lockstep", *words])


if __name__ == "__main__":
  main()
