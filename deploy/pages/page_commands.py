"""Runs the commands of a page as a reader does, and compares their output with the page.

Usage: page_commands.py PAGE MACHINE=PROCESS...   (in the folder in which the commands run)
A line of a code block that begins with "$ " is a command. If it begins with "two$ ", the machine "two" runs it, in the
namespaces of its process. The command must print the lines that follow in this order, possibly with others in between.
Numbers and ids may differ. "…" stands for anything. A block's commands run in order: each starts when the previous one
has ended, or has printed its first line. At the end of the block, all must have ended, with 0 unless "echo $?" shows
another code.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

PAGE = pathlib.Path(sys.argv[1])
MACHINES = dict(argument.split("=") for argument in sys.argv[2:])
LIMIT = 60  # seconds for one block
PROMPT = re.compile(r"^(\w*)\$ (.*)$")
# Commands that observe others, and may do so too early.
LOOKS = re.compile(r"\bgrep |\blockstep status\b")


class Failure(Exception):
  """A statement on the page that does not hold."""


def shape(line):
  """Returns the line without the parts that differ between two runs."""
  line = re.sub(r"^[IWEF]\d+ [\d:.]+ +\d+ [^\]]*\] ", "", line)
  line = re.sub(r"\b[0-9a-f]{16}\b|\d+(\.\d+)?[kM]?\b", "#", line)
  return " ".join(line.split())


def pattern(line):
  return re.compile(".*".join(re.escape(part) for part in shape(line).split("…")))


class Command:
  """A command on the page, and its process."""

  def __init__(self, number, machine, text):
    self.number, self.machine, self.expected = number, machine, []
    self.text = re.sub(r" {2,}# .*", "", text)
    self.output, self.process = None, None

  def start(self, text):
    self.output = tempfile.TemporaryFile()
    words = ["bash", "-c", text]
    if self.machine in MACHINES:
      words = ["nsenter", "--target", MACHINES[self.machine], "--net", "--uts"] + words
    self.process = subprocess.Popen(words, stdout=self.output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)

  def printed(self):
    self.output.flush()
    size = os.fstat(self.output.fileno()).st_size
    return os.pread(self.output.fileno(), size, 0).decode(errors="replace").splitlines()

  def missing(self, lines=None):
    """Returns the first expected line that was not printed, or None if all were."""
    printed = iter([shape(line) for line in self.printed()])
    for line in self.expected[:lines]:
      if not any(pattern(line).fullmatch(each) for each in printed):
        return line
    return None

  def ended(self):
    return self.process.poll() is not None

  def failure(self, what):
    return Failure(f"{PAGE.name}:{self.number}: $ {self.text}\n{what}\nIt printed:\n" + "\n".join(self.printed()[-40:]))


def blocks():
  """Returns the commands of each code block that contains any."""
  found, commands, inside = [], [], False
  for number, line in enumerate(PAGE.read_text().splitlines(), 1):
    if line.strip().startswith("```"):
      inside = not inside
      if commands:
        found.append(commands)
      commands = []
      continue
    prompt = PROMPT.match(line.strip()) if inside else None
    if prompt:
      commands.append(Command(number, *prompt.groups()))
    elif inside and commands and line.strip() not in ("", "…"):
      commands[-1].expected.append(line.strip())
  return found


class Runner:
  """Runs blocks. Slurm gives a job a different number than the page's, to which later commands refer."""

  def __init__(self):
    self.jobs = {}

  def text_of(self, command):
    return re.sub(r"(?<=slurm-)\d+", lambda job: self.jobs[job[0]], command.text)

  def note_job(self, command):
    for line in command.expected:
      job = re.fullmatch(r"Submitted batch job (\d+)", line)
      if job and command.printed():
        self.jobs[job[1]] = command.printed()[-1].split()[-1]

  def begin(self, command, deadline):
    command.start(self.text_of(command))
    while not self.has_begun(command):
      if time.monotonic() > deadline:
        raise command.failure(f"It does not print: {command.missing()}")
      time.sleep(0.05)
      if command.ended() and not self.has_begun(command):
        command.start(self.text_of(command))
    self.note_job(command)

  def has_begun(self, command):
    """Returns true if the next command may begin."""
    if not command.ended():
      return command.expected and not command.missing(1)
    return not command.missing() or not LOOKS.search(command.text)

  def run(self, commands):
    deadline = time.monotonic() + LIMIT
    codes = {commands[i - 1]: int(each.expected[0]) for i, each in enumerate(commands) if each.text == "echo $?"}
    commands = [command for command in commands if command.text != "echo $?"]
    try:
      for command in commands:
        self.begin(command, deadline)
      for command in commands:
        while not command.ended():
          if time.monotonic() > deadline:
            raise command.failure("It does not end.")
          time.sleep(0.05)
        if command.missing():
          raise command.failure(f"It does not print: {command.missing()}")
        if command.process.returncode != codes.get(command, 0):
          raise command.failure(f"It ends with {command.process.returncode}.")
    finally:
      for command in commands:
        if command.process and not command.ended():
          command.process.kill()


def main():
  runner, began = Runner(), time.monotonic()
  found = blocks()
  if not found:
    sys.exit(f"{PAGE}: no commands")
  for commands in found:
    runner.run(commands)
    print(f"{time.monotonic() - began:4.0f}s {PAGE.name}:{commands[0].number}: {len(commands)} commands", flush=True)


if __name__ == "__main__":
  try:
    main()
  except Failure as failure:
    sys.exit(f"FAILED: {failure}")
