#!/usr/bin/env python3
"""Counts the comments and sentences with expressions that plain English avoids, per 1,000, in each top-level folder.

  check_english.py                exits with 1 when a folder's count differs from its number in english.txt
  check_english.py --list [PATH]  prints the comments and sentences that count, in one folder or file or in all
  check_english.py --update       lowers the numbers in english.txt to the counts; refuses to raise one

A number only goes down: a count above it fails, and so does one so far below it that the next bad comment would pass.
In code, a comment is a block of comment lines (a docstring in Python) and counts at most once: by how it begins, or by
words anywhere in it. In Markdown and protos, each sentence counts that way.
"""

import argparse
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
NUMBERS = ROOT / "tools" / "english.txt"
# The beginning of a comment line, by file suffix.
MARKERS = {
    ".h": "//", ".cc": "//", ".proto": "//",
    "": "#", ".sh": "#", ".py": "#", ".bzl": "#", ".textproto": "#", ".yml": "#",
}

# Openings without a subject: "What came of it.", "Of the slot in its block.", "Whether there is one." A clause that
# introduces another one is fine: "When the lease expires, …".
OPENING = re.compile(
    r"(What|Of|From|In place|One|Those|That|Such|The same|Whether|How|Where|Which|Whose|Nor|Else|"
    r"(In|By|To|On|At|With) (which|what|whose)|For (those|that|what)|"
    r"When(?![^.:]*,)|For(?! (each|every|example|instance)\b|[^.:]*,))\b")
# Persons as names for code, commands in the passive, and words for which the field has other terms.
ANYWHERE = re.compile(
    r"\b(whom?|whom?ever|nobody|somebody|(is|are) to be|(un)?told|anew|(go|goes|going|went) on|"
    r"(come|comes|came) to|for good|by now|fates?|(?<!may )(?<!to )wish|wishes|visitors?|shelf)\b", re.IGNORECASE)
QUESTION = re.compile(r"[^.!?]*\?")


def files():
  """Yields the path of every text file that git does not ignore, relative to the root."""
  command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
  listing = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout
  for path in map(pathlib.PurePosixPath, filter(None, listing.split("\0"))):
    if (path.suffix in MARKERS or path.suffix == ".md") and (ROOT / path).is_file():
      yield path


def blocks(path, text):
  """Yields (line number, text) of each comment block that has words."""
  marker = MARKERS[path.suffix]
  if path.suffix == ".py":  # Docstrings become comments, line by line.
    text = re.sub(r'(?ms)^ *"""(\S.*?)"""$', lambda match: re.sub("(?m)^", "# ", match[1]), text)
  start, words = 0, []
  for number, line in enumerate(text.split("\n") + [""], 1):
    line = line.strip()
    if line.startswith(marker):
      start = start if any(words) else number
      words.append(re.sub("^(!|shellcheck|clang-format|NOLINT).*", "", line.lstrip(marker[0]).strip()))
      continue
    comment = " ".join(words).strip()
    if re.search("[A-Za-z]", comment) and "Copyright" not in comment:
      yield start, comment
    words = []


def paragraphs(text):
  """Yields (line number, text) of each paragraph, list item and table cell of Markdown, without headings and code."""
  start, words, in_code = 0, [], False
  for number, line in enumerate(text.split("\n") + [""], 1):
    line = line.strip()
    fence = line.startswith("```")
    item = re.match(r"([-*+]|\d+\.) +", line)
    if words and (fence or item or not line or line[0] in "#|"):
      yield start, " ".join(words)
      words = []
    if fence:
      in_code = not in_code
    elif line.startswith("|"):
      for cell in re.split(r"(?<!\\)\|", line):
        yield number, cell.strip()
    elif line and not in_code and not line.startswith("#"):
      start = start if words else number
      words.append(line[item.end():] if item else line)


def sentences(parts):
  """Yields (line number, text) of each sentence in parts. Fewer than three words are not a sentence."""
  for number, text in parts:
    text = re.sub(r"!?\[([^]]*)\]\([^)]*\)", r"\1", text)
    for sentence in re.split(r"(?<=[.!?])[*\")]* +(?=[^a-z])", text):
      if len(re.findall("[A-Za-z]{2,}", sentence)) >= 3:
        yield number, sentence


def texts(path):
  """Returns (line number, text) of everything that counts once: a code file's comments, or a page's or proto's
  sentences."""
  text = (ROOT / path).read_text(errors="replace")
  if path.suffix == ".md":
    return sentences(paragraphs(text))
  if path.suffix == ".proto":
    return sentences(blocks(path, text))
  # Files without a suffix are read only if they are scripts, or Bazel and Docker files.
  if path.suffix or text.startswith("#!") or path.name in ("BUILD", "WORKSPACE", "Dockerfile"):
    return blocks(path, text)
  return []


def is_bad(text):
  text = text.lstrip("*-`\"( ")
  return bool((OPENING.match(text) and not QUESTION.match(text)) or ANYWHERE.search(text))


def row(path):
  """Returns the name under which path counts: a top-level folder, a page in the root, or "." for other files in the
  root."""
  return path.parts[0] if len(path.parts) > 1 or path.suffix == ".md" else "."


def per_1000(bad, total):
  """Returns bad of total per 1,000, rounded up."""
  return -(-1000 * bad // total)


def read_numbers():
  return {name: int(number) for name, number in map(str.split, NUMBERS.read_text().splitlines())}


def verdict(bad, total, number):
  """Returns what is wrong with a folder's counts compared with its number, or "" if nothing is."""
  count = per_1000(bad, total)
  if number is None:
    return f"{count}, but english.txt has no number for it: run tools/check_english.sh --update"
  if count > number:
    return f"{count}, above its number {number}: tools/check_english.sh --list shows them"
  if per_1000(bad + 1, total) < number:
    return f"{count}, below its number {number}: run tools/check_english.sh --update"
  return ""


def main():
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("--list", metavar="PATH", nargs="?", const=".")
  parser.add_argument("--update", action="store_true")
  options = parser.parse_args()

  counts = {}  # Maps a row to [bad, total].
  listed = pathlib.PurePosixPath(options.list or ".")
  for path in files():
    if options.list and listed != path and listed not in path.parents:
      continue
    for number, text in texts(path):
      bad = is_bad(text)
      count = counts.setdefault(row(path), [0, 0])
      count[0] += bad
      count[1] += 1
      if bad and options.list:
        print(f"{path}:{number}: {text[:160]}")

  if options.list:
    for name, (bad, total) in sorted(counts.items()):
      print(f"{name}: {per_1000(bad, total)} per 1,000 ({bad} of {total})")
    return 0

  numbers = read_numbers()
  if options.update:
    raised = [name for name, count in counts.items() if per_1000(*count) > numbers.get(name, 1000)]
    for name in raised:
      print(f"{name}: {verdict(*counts[name], numbers[name])}", file=sys.stderr)
    if not raised:
      NUMBERS.write_text("".join(f"{name} {per_1000(*count)}\n" for name, count in sorted(counts.items())))
    return bool(raised)

  wrong = {name: verdict(*count, numbers.get(name)) for name, count in sorted(counts.items())}
  wrong.update({name: "in english.txt, but it has no text" for name in numbers.keys() - counts.keys()})
  for name, text in wrong.items():
    if text:
      print(f"{name}: {text}", file=sys.stderr)
  return any(wrong.values())


if __name__ == "__main__":
  sys.exit(main())
