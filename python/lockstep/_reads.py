"""Functions that read runs and checkpoints without a session."""

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

# Types that have a different name in NumPy.
_DTYPES = {"half": "float16"}


class _RunOver(Error):
  """The address file says that the run is over."""


def _take(tensors: ctypes.c_int64) -> tuple[int, dict[str, Array]]:
  """Copies the arrays of a set of tensors and frees the set. Returns the step and the copies."""
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
      # string_at does not work here: its size is a C int, which limits it to 2 GiB.
      ctypes.memmove(arrays[name].ctypes.data, view.data, view.bytes)
    return step.value, arrays
  finally:
    _core.tensors_free(tensors)


def read(master: str, names: Sequence[str] | None = None, *, timeout: float = 10.0) -> tuple[int, dict[str, Array]]:
  """Reads the variables, optimizer state and averages of a running chief, all at one step.

  Returns the step and the arrays by their names in a checkpoint; only those in `names`, if given. Raises ChiefLost if
  no chief answers within `timeout` seconds, or Error if the chief refuses, e.g. because it lacks a name.
  """
  wanted = [] if names is None else list(names)
  tensors = ctypes.c_int64()
  code = _core.read(master.encode(), _core.texts(wanted), len(wanted), timeout, ctypes.byref(tensors))
  if code == _core.OUT_OF_RANGE:
    raise _RunOver(_core.last_error())
  _core.check(code, invalid=Error, refused=Error)
  return _take(tensors)


def load(path: str | os.PathLike[str]) -> dict[str, Array]:
  """Reads a checkpoint, the newest checkpoint of a logdir, or a file of weights (.safetensors, .npz).

  Returns the arrays by name. Raises FileNotFoundError if there is none, or Error if it is damaged.
  """
  tensors = ctypes.c_int64()
  _core.check(_core.load(os.fsencode(path), ctypes.byref(tensors)), invalid=Error, refused=Error)
  return _take(tensors)[1]


def digest(path: str | os.PathLike[str]) -> str:
  """Returns the digest of a checkpoint, or of the newest checkpoint of a logdir: 64 hexadecimal digits.

  Two checkpoints have the same digest if and only if they contain the same variables bit for bit. Raises the same
  errors as load.
  """
  return checkpoint_digest(path)[0]


def checkpoint_digest(path: str | os.PathLike[str]) -> tuple[str, str]:
  """Returns the digest and the path of a checkpoint, or of the newest checkpoint of a logdir."""
  text, checkpoint = ctypes.c_char_p(), ctypes.c_char_p()
  _core.check(_core.digest(os.fsencode(path), ctypes.byref(text), ctypes.byref(checkpoint)), invalid=Error,
              refused=Error)
  assert text.value is not None and checkpoint.value is not None
  return text.value.decode(), os.fsdecode(checkpoint.value)


def status(master: str, *, timeout: float = 3.0) -> dict[str, Any]:
  """Returns the status of a running chief and its workers, with the names in proto/lockstep/v1/status.proto.

  64-bit numbers are strings. Raises ChiefLost if no chief answers, or Error if the address file says that the run is
  over.
  """
  text = ctypes.c_char_p()
  _core.check(_core.status(master.encode(), timeout, ctypes.byref(text)), invalid=Error, refused=Error)
  assert text.value is not None
  answer: dict[str, Any] = json.loads(text.value)
  return answer


def follow(master: str, *, every: int = 1, names: Sequence[str] | None = None,
           period: float = 0.5) -> Iterator[tuple[int, dict[str, Array]]]:
  """Yields (step, arrays), like read, whenever a running chief has advanced by `every` steps, until it is gone.

  Also ends when the run ends. It polls every `period` seconds, so it may skip steps to yield the newest one. Raises
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
