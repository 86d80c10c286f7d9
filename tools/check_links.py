#!/usr/bin/env python3
"""Checks that each link between the pages leads to a file, and to a heading if it names one. Prints broken links.

Also checks docs/architecture.md: it names every folder of a layer, and says how many files "Life of a step" links to.
"""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
LAYERS = ("capi", "cli", "common", "kernels", "proto", "python", "server", "train", "worker")
# The maximum number of files on the path of a gradient.
MOST_STEP_FILES = 88


def prose(page):
  return re.sub(r"(?ms)^ *```.*?^ *```", "", page.read_text())


def anchors(page):
  """Returns the anchors of a page: those that GitHub makes from its headings, and those that the page itself
  defines."""
  text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", prose(page))
  headings = (re.sub(r"[^\w\- ]", "", heading.strip().lower()) for heading in re.findall("(?m)^#+ (.*)$", text))
  return {heading.replace(" ", "-") for heading in headings} | set(re.findall('name="([^"]+)"', text))


def step_files():
  """Returns what is wrong with the number of files to which the numbered list in "Life of a step" links."""
  page = ROOT / "docs/architecture.md"
  section = re.search(r"(?ms)^## Life of a step$(.*?)^## ", page.read_text())[1]
  items = re.findall(r"(?m)^\d+\. .*\n(?:   .*\n)*", section)
  links = {(page.parent / link).resolve() for item in items for link in re.findall(r"\]\(([^)#]+\.(?:h|cc))\)", item)}
  count = sum(link.with_suffix(suffix).exists() for link in links for suffix in (".h", ".cc"))
  stated = int(re.search(r"links (\d+) files", section)[1])
  wrong = [] if count == stated else [f"docs/architecture.md: a step passes {count} files, not {stated}"]
  return wrong + ([f"a step passes {count} files, more than {MOST_STEP_FILES}"] if count > MOST_STEP_FILES else [])


def listed(pattern):
  """Returns the files of the tree, including new ones, that match the pattern."""
  command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", pattern]
  listing = subprocess.check_output(command, cwd=ROOT, text=True).splitlines()
  return [path for path in map(ROOT.joinpath, listing) if path.is_file()]


def unnamed_folders():
  """Returns the packages of the layers that docs/architecture.md does not name, by path or as `name/`."""
  text = (ROOT / "docs/architecture.md").read_text()
  folders = [build.parent.relative_to(ROOT) for build in listed("*/BUILD")]
  return [f"docs/architecture.md: does not name {folder}" for folder in folders
          if folder.parts[0] in LAYERS and len(folder.parts) > 1 and not {"testing", "tests"} & set(folder.parts)
          and f"`{folder}`" not in text and f"`{folder.name}/`" not in text]


def main():
  dead = step_files() + unnamed_folders()
  for page in listed("*.md"):
    for link in re.findall(r"\]\(([^)\s]+)\)", re.sub("`[^`]*`", "", prose(page))):
      path, _, anchor = link.partition("#")
      target = page.parent / path if path else page
      if not re.match("https?:", link) and (not target.exists() or anchor and anchor not in anchors(target)):
        dead.append(f"{page.relative_to(ROOT)}: {link}")
  sys.exit("\n".join(dead) or 0)


if __name__ == "__main__":
  main()
