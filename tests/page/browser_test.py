#!/usr/bin/env python3
"""Shows a real run's page in a real browser: five states, each in two themes, without errors, layout shifts or reloads.

Usage: browser_test.py CHIEF WORKER LOCKSTEP CONFIG [PICTURES]
Writes the pictures to the folder PICTURES, if given. Needs chromium.
"""

import os
import signal
import sys
import tempfile
import threading
import time

from browser import Browser
from cluster import Cluster

PROGRAMS = [os.path.abspath(path) for path in sys.argv[1:5]]
PICTURES = sys.argv[5] if len(sys.argv) > 5 else ""


class Slowness:
  """Stops a process for a part of each period, so that it computes as slowly as on a slow machine."""

  def __init__(self, pid):
    self._pid = pid
    self._over = threading.Event()
    self._thread = threading.Thread(target=self._run)
    self._thread.start()

  def _run(self):
    while not self._over.is_set():
      os.kill(self._pid, signal.SIGSTOP)
      time.sleep(0.06)
      os.kill(self._pid, signal.SIGCONT)
      time.sleep(0.015)

  def end(self):
    self._over.set()
    self._thread.join()


class Pages:
  """The page in the light and the dark theme."""

  def __init__(self, url):
    self.tabs = {theme: Browser() for theme in ("light", "dark")}
    for theme, tab in self.tabs.items():
      tab.go(f"{url}/?theme={theme}")
      tab.wait("document.readyState == 'complete'")
      tab.evaluate("window.loadedOnce = true")

  def check(self, state, condition, seconds=30):
    for theme, tab in self.tabs.items():
      took = tab.wait(condition, seconds)
      shift = tab.evaluate("window.layoutShift")
      print(f"{state}, {theme}: after {took:.1f} s, layout shift {shift:.3f}", flush=True)
      assert tab.evaluate("window.loadedOnce"), "the page was loaded again"
      assert shift < 0.05, f"{state}: the layout has shifted by {shift}"
      assert not tab.errors, tab.errors
      if PICTURES:
        tab.screenshot(os.path.join(PICTURES, f"page-{state}-{theme}.png"))

  def close(self):
    for tab in self.tabs.values():
      tab.close()


def says(text):
  return f"document.body.innerText.includes({text!r})"


def notes(text):
  """Returns the title of the page."""
  return f"document.getElementById('notes').innerText.includes({text!r})"


def at_step(step):
  return f"state.data && state.data.last && state.data.last.status.global_step >= {step}"


def main():
  with tempfile.TemporaryDirectory() as directory:
    cluster = Cluster(directory, *PROGRAMS)
    pages = None
    try:
      chief = cluster.start_chief()
      page, url = cluster.start_page(f"--master=grpc://127.0.0.1:{cluster.port}", f"--logdir={cluster.logdir}")
      pages = Pages(url)
      pages.check("waiting", notes("The chief waits for a worker"))
      workers = [cluster.start_worker(i) for i in range(2)]
      pages.check("training", at_step(60) + " && " + notes("All is well"), 60)
      slowness = Slowness(workers[1].pid)
      pages.check("slow", notes("worker-1 is slow: it needs"))
      slowness.end()
      pages.check("recovered", notes("All is well"))
      chief.kill()
      chief.wait()
      pages.check("dead", notes("The chief has been gone for 3 s") + " || " + notes("The chief has been gone for 4 s"))
      cluster.start_chief()
      pages.check("restarted", says("the run continues at step") + " && " + notes("All is well"), 60)
      pages.check("finished", notes("The run is finished at step") + " && " + says("done"), 120)
      page.terminate()
      page.wait()
      for process in cluster.processes:
        if process is not page:
          process.wait()
      pages.close()
      page, url = cluster.start_page(f"--logdir={cluster.logdir}")
      pages = Pages(url)
      pages.check("recorded", says("The run is finished at step") + " && state.points.length > 100")
    finally:
      if pages:
        pages.close()
      cluster.end()


if __name__ == "__main__":
  main()
