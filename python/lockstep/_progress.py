"""A line that shows the progress of a run to a person at a terminal or in a notebook."""

from __future__ import annotations

import sys
import time
from typing import Any, TextIO

from lockstep._errors import Error
from lockstep._reads import status

_PERIOD_SECONDS = 1.0
# The chief answers at once, or not at all while it restarts.
_TIMEOUT_SECONDS = 0.5


def shows_lines(stream: TextIO | None) -> bool:
  """Returns True if the stream overwrites a line after a carriage return, as terminals and notebooks do."""
  return stream is not None and (stream.isatty() or type(stream).__module__.startswith("ipykernel."))


def line_of(run: dict[str, Any]) -> str:
  """Returns the line for a reply of status()."""
  total = int(run.get("total_steps", 0))
  step = int(run.get("global_step", 0))
  parts = [f"step {step}/{total}" if total else f"step {step}"]
  if "loss" in run:
    parts.append(f"loss {float(run['loss']):.4g}")
  parts += [f"{metric['name']} {float(metric['value']):.4g}" for metric in run.get("metric", [])[:4]]
  rate = float(run.get("steps_per_second", 0))
  if rate > 0:
    parts.append(f"{rate:.3g} steps/s")
    if total > step:
      minutes, seconds = divmod(round((total - step) / rate), 60)
      parts.append(f"{minutes // 60}:{minutes % 60:02}:{seconds:02} left")
  return "  ".join(parts)


class Progress:
  """Overwrites the line once a second. Not thread-safe."""

  def __init__(self, master: str, stream: TextIO) -> None:
    self._master = master
    self._stream = stream
    self._next = 0.0
    self._width = 0

  def update(self) -> None:
    """Writes the line if it is time. Leaves it unchanged while the chief does not answer."""
    now = time.monotonic()
    if now < self._next:
      return
    self._next = now + _PERIOD_SECONDS
    try:
      run = status(self._master, timeout=_TIMEOUT_SECONDS)
    except Error:
      return
    self._write(line_of(run))

  def end(self, text: str = "") -> None:
    """Writes the last line, or keeps the current one. Idempotent."""
    if text:
      self._write(text)
    if self._width:
      self._stream.write("\n")
      self._stream.flush()
      self._width = 0

  def _write(self, line: str) -> None:
    self._stream.write("\r" + line.ljust(self._width))
    self._stream.flush()
    self._width = len(line)


def progress_for(master: str, wanted: bool) -> Progress | None:
  """Returns a progress line on stderr if it is wanted."""
  return Progress(master, sys.stderr) if wanted and sys.stderr is not None else None
