#!/usr/bin/env python3
"""Compares three lists of commands: kCommands of the program, the usage text of ./lockstep, and the case of its main.

Prints each command that a list lacks. The exceptions are below. An exception that no list needs is also an error.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SCRIPT, PROGRAM = "lockstep", "cli/lockstep_program.cc"

# Commands that ./lockstep executes without the program, so kCommands lacks them.
SCRIPT_ONLY = {
    "install", "build", "test", "fuzz", "fault-test", "bench", "simulate", "docker-test", "exec",
    "install-library", "wheel", "dist",
}
# Labels of the case that are not commands, so the usage text lacks them.
OPTIONS = {"help", "--help", "-h", "version", "--version", "*"}


def section(path, begin, end):
  """Returns the lines of a file between the last line equal to begin and the next line equal to end."""
  lines = (ROOT / path).read_text().split("\n")
  if begin not in lines:
    sys.exit(f"{path}: no line \"{begin}\"")
  start = len(lines) - lines[::-1].index(begin)
  return lines[start:lines.index(end, start)]


def program_commands():
  lines = section(PROGRAM, "constexpr NamedCommand kCommands[] = {", "};")
  return re.findall(r'^ *\{"([^"]+)"', "\n".join(lines), re.MULTILINE)


def usage_commands():
  """Returns the first word of each part of "  new, check    write a configuration; …"."""
  columns = (line[2:].split("  ")[0] for line in section(SCRIPT, "  cat <<'USAGE'", "USAGE") if line.startswith("  "))
  return [part.split()[0] for column in columns for part in column.split(", ")]


def case_commands():
  labels = (re.match(r"    (\S[^()]*)\)", line) for line in section(SCRIPT, '  case "${command}" in', "  esac"))
  return [name for label in labels if label for name in label[1].split(" | ")]


def main():
  lists = {
      f"kCommands of {PROGRAM}": program_commands() + sorted(SCRIPT_ONLY),
      f"the usage text of ./{SCRIPT}": usage_commands(),
      f"the case of ./{SCRIPT}": [name for name in case_commands() if name not in OPTIONS],
  }
  wrong = [f"{where}: {name} is there twice" for where, names in lists.items() for name in sorted(set(names))
           if names.count(name) > 1]
  wrong += [f"{name}: an exception that the case of ./{SCRIPT} does not have" for name in OPTIONS - set(case_commands())]
  for name in sorted(set().union(*lists.values())):
    lacking = [where for where, names in lists.items() if name not in names]
    if lacking:
      wrong.append(f"{name}: not in {' and not in '.join(lacking)}")
  sys.exit("\n".join(wrong) or 0)


if __name__ == "__main__":
  main()
