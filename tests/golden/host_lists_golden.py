#!/usr/bin/env python3
"""Writes host_lists.txt: 500 random host lists, and how Slurm's scontrol expands each.

Needs scontrol (Debian's slurm-client), but no running Slurm: python3 tests/golden/host_lists_golden.py
Leaves out two kinds of mistakes for which Slurm 22.05 silently invents or drops hosts: an unmatched bracket, and a
wrong range in a name with three brackets.
"""

import os
import pathlib
import random
import subprocess
import tempfile

LISTS = 500
SEED = 1


def number(rng):
  text = str(rng.choice([rng.randrange(10), rng.randrange(120), rng.randrange(3000)]))
  return text.zfill(rng.choice([0, 0, 2, 3, 4]))


def numbers(rng, may_be_wrong):
  """Returns a number or a range, which is occasionally wrong."""
  first = number(rng)
  kind = rng.random() * (1 if may_be_wrong else 0.95)
  if kind < 0.4:
    return first
  if kind < 0.95:
    last = str(int(first) + rng.randrange(6))
    return f"{first}-{last.zfill(rng.choice([0, len(first), 5]))}"
  return rng.choice([f"{first}-", f"-{first}", f"{first}-x", f"{int(first) + 3}-{int(first)}", "", f"{first}--9"])


def host(rng):
  letters = "abcnrx"
  name = "".join(rng.choice(letters) for _ in range(rng.randrange(1, 4))) + rng.choice(["", "", "-", ".c", "_", "7"])
  brackets = rng.choice([0, 1, 1, 1, 2, 2, 3])
  for _ in range(brackets):
    ranges = [numbers(rng, brackets < 3) for _ in range(rng.choice([1, 1, 2, 3]))]
    name += f"[{','.join(ranges)}]{rng.choice(['', '', 'b', '-ib'])}"
  # No text may follow the last bracket. One list in eight breaks this rule.
  if name[-1] != "]" and "[" in name and rng.random() < 0.9:
    name = name[:name.rindex("]") + 1]
  return name


def expand(hosts, environment):
  ended = subprocess.run(["scontrol", "show", "hostnames", hosts], env=environment, capture_output=True, text=True,
                         check=True)
  return "invalid" if "nvalid hostlist" in ended.stdout + ended.stderr else " ".join(ended.stdout.split())


def main():
  rng = random.Random(SEED)
  lines = []
  with tempfile.TemporaryDirectory() as directory:
    configuration = os.path.join(directory, "slurm.conf")
    pathlib.Path(configuration).write_text("ClusterName=none\nSlurmctldHost=localhost\n")
    environment = {**os.environ, "SLURM_CONF": configuration}
    version = subprocess.run(["scontrol", "--version"], env=environment, capture_output=True, text=True, check=True)
    while len(lines) < LISTS:
      hosts = rng.choice([",", ",", " ", ",,"]).join(host(rng) for _ in range(rng.choice([1, 1, 2, 3])))
      expanded = expand(hosts, environment)
      if len(expanded) <= 600:
        lines.append(f"{hosts} => {expanded}")
  head = f"# Written by host_lists_golden.py with {version.stdout.strip()}'s `scontrol show hostnames`.\n"
  (pathlib.Path(__file__).resolve().parent / "host_lists.txt").write_text(head + "\n".join(lines) + "\n")


if __name__ == "__main__":
  main()
