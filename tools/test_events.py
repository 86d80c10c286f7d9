#!/usr/bin/env python3
"""Reads the events written by `bazel test --build_event_json_file=FILE`: what each test target did in that command.

Prints a line for each target, with fields separated by tabs: the label; PASSED, FAILED, TIMEOUT, or BUILD if it did not
run; seconds; and files: xml=PATH for every report of its cases, and log=PATH for every run that failed.
"""

import json
import sys
import urllib.parse


class Target:
  """The results of one test target in the events."""

  def __init__(self):
    self.status = "BUILD"
    self.milliseconds = 0
    # Maps (run, shard) to the status of its last attempt, and the attempt's outputs by name.
    self.results = {}

  def files(self):
    xmls, logs = [], []
    for status, outputs in self.results.values():
      if "test.xml" in outputs:
        xmls.append("xml=" + outputs["test.xml"])
      if status != "PASSED" and "test.log" in outputs:
        logs.append("log=" + outputs["test.log"])
    return xmls + logs


def path_of(uri):
  return urllib.parse.unquote(urllib.parse.urlparse(uri).path)


def read_targets(lines):
  targets = {}
  for line in lines:
    try:
      event = json.loads(line)
    except ValueError:  # Bazel was killed while writing the last line.
      break
    names = event.get("id", {})
    if "targetConfigured" in names:
      # The kind is e.g. "cc_test rule". No other event shows that a target that cannot be built is a test.
      if event.get("configured", {}).get("targetKind", "").endswith("_test rule"):
        targets.setdefault(names["targetConfigured"]["label"], Target())
    elif "testResult" in names:
      name = names["testResult"]
      result = event.get("testResult", {})
      outputs = {output["name"]: path_of(output["uri"]) for output in result.get("testActionOutput", [])}
      targets.setdefault(name["label"], Target()).results[(name.get("run"), name.get("shard"))] = (
          result.get("status", ""), outputs)
    elif "testSummary" in names:
      target = targets.setdefault(names["testSummary"]["label"], Target())
      summary = event.get("testSummary", {})
      target.status = summary.get("overallStatus", "NO_STATUS")
      target.milliseconds = int(summary.get("totalRunDurationMillis", 0))
  return targets


# Maps Bazel's words to ours. All others are failures.
STATES = {"PASSED": "PASSED", "FLAKY": "PASSED", "TIMEOUT": "TIMEOUT", "BUILD": "BUILD", "NO_STATUS": "BUILD",
          "FAILED_TO_BUILD": "BUILD"}


def main():
  with open(sys.argv[1], encoding="utf-8", errors="replace") as events:
    targets = read_targets(events)
  for label, target in sorted(targets.items()):
    state = STATES.get(target.status, "FAILED")
    files = [] if state == "BUILD" else target.files()
    print("\t".join([label, state, "%.1f" % (target.milliseconds / 1000)] + files))


if __name__ == "__main__":
  main()
