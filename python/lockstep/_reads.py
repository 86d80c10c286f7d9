"""Reads of runs and checkpoints, without a session."""

from __future__ import annotations

import ctypes
import json
import os
import time
from typing import Any, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from lockstep import _core
from lockstep._errors import ChiefLost, Error

Array = npt.NDArray[Any]

# Types that NumPy has under another name.
_DTYPES = {"half": "float16"}


class _RunOver(Error):
  """The address file says that the run is over."""


def _take(tensors: ctypes.c_int64) -> tuple[int, dict[str, Array]]:
  """Returns the step and copies of the arrays of a set of tensors, and frees it."""
  try:
    count, step = ctypes.c_size_t(), ctypes.c_int64()
    _core.check(_core.tensors_count(tensors, ctypes.byref(count), ctypes.byref(step)))
    arrays: dict[str, Array] = {}
    view = _core.TensorView()
    for i in range(count.value):
      _core.check(_core.tensors_get(tensors, i, ctypes.byref(view)))
      name, dtype = view.name.decode(), view.dtype.decode()
      try:
        kind = np.dtype(_DTYPES.get(dtype, dtype))
      except TypeError:
        raise Error(f"{name} has the type {dtype}, which NumPy lacks") from None
      arrays[name] = np.empty([view.shape[d] for d in range(view.rank)], kind)
      assert arrays[name].nbytes == view.bytes
      # Not string_at, whose size is a C int: it takes no more than 2 GiB.
      ctypes.memmove(arrays[name].ctypes.data, view.data, view.bytes)
    return step.value, arrays
  finally:
    _core.tensors_free(tensors)


def read(master: str, names: Sequence[str] | None = None, *, timeout: float = 10.0) -> tuple[int, dict[str, Array]]:
  """Reads variables, optimizer state and averages of a running chief, all at one step.

  Returns the step and the arrays by their names in a checkpoint; only those in `names`, if given.
  Raises ChiefLost if no chief answers within `timeout` seconds, Error if it refuses, as for a name that it lacks.
  """
  wanted = [] if names is None else list(names)
  tensors = ctypes.c_int64()
  code = _core.read(master.encode(), _core.texts(wanted), len(wanted), timeout, ctypes.byref(tensors))
  if code == _core.OUT_OF_RANGE:
    raise _RunOver(_core.last_error())
  _core.check(code, invalid=Error, refused=Error)
  return _take(tensors)


def load(path: str | os.PathLike[str]) -> dict[str, Array]:
  """Reads a checkpoint, a logdir's newest, or a file of weights (.safetensors, .npz).

  Returns the arrays by their names. Raises FileNotFoundError if there is none, Error if it is damaged.
  """
  tensors = ctypes.c_int64()
  _core.check(_core.load(os.fsencode(path), ctypes.byref(tensors)), invalid=Error, refused=Error)
  return _take(tensors)[1]


def digest(path: str | os.PathLike[str]) -> str:
  """Returns the digest of a checkpoint or a logdir's newest: 64 hexadecimal digits.

  Two checkpoints have the same if and only if they hold the same variables bit for bit. Raises as load does.
  """
  return checkpoint_digest(path)[0]


def checkpoint_digest(path: str | os.PathLike[str]) -> tuple[str, str]:
  """Returns the digest and the path of a checkpoint or a logdir's newest."""
  text, checkpoint = ctypes.c_char_p(), ctypes.c_char_p()
  _core.check(_core.digest(os.fsencode(path), ctypes.byref(text), ctypes.byref(checkpoint)), invalid=Error,
              refused=Error)
  assert text.value is not None and checkpoint.value is not None
  return text.value.decode(), os.fsdecode(checkpoint.value)


def status(master: str, *, timeout: float = 3.0) -> dict[str, Any]:
  """Returns what a running chief and its workers do, with the names of proto/lockstep/v1/status.proto.

  Numbers of 64 bits are strings. Raises ChiefLost if no chief answers, Error if the address file says that the run is
  over.
  """
  text = ctypes.c_char_p()
  _core.check(_core.status(master.encode(), timeout, ctypes.byref(text)), invalid=Error, refused=Error)
  assert text.value is not None
  answer: dict[str, Any] = json.loads(text.value)
  return answer


def follow(master: str, *, every: int = 1, names: Sequence[str] | None = None,
           period: float = 0.5) -> Iterator[tuple[int, dict[str, Array]]]:
  """Yields (step, arrays) as read does, whenever a running chief is `every` steps further, until it is gone.

  The end of the run ends it, too. Asks every `period` seconds, so it yields the newest step then, not each. Raises
  ChiefLost if the first read fails.
  """
  step, arrays = read(master, names)
  while True:
    yield step, arrays
    last = step
    while step < last + every:
      time.sleep(period)
      try:
        step, _ = read(master, ["global_step"])
        if step >= last + every:
          step, arrays = read(master, names)
      except (ChiefLost, _RunOver):
        return
