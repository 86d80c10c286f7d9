"""Initial values set by the program: a file that its own chief starts a new run from, or values for a chief
elsewhere."""

from __future__ import annotations

import fcntl
import hashlib
import os
import pathlib
import zipfile
from typing import Any, Mapping

import numpy as np
import numpy.typing as npt

from lockstep import _core
from lockstep._errors import ModelError

Array = npt.NDArray[Any]
# In a file of a Python model's values, dimensions have the variables' order. Without this rule, the chief refuses a
# square matrix whose name is PyTorch's for a weight, because it could be in either order.
IN_ORDER = 'rename {variable: "(.*)" key: "\\\\1" transpose: false}'
_PREFIX, _SUFFIX = "initial-", ".npz"


def _stored(value: Array) -> Array:
  """Returns the array that a file has for a value: of integers, or of float32."""
  array = np.asarray(value, order="C")  # ascontiguousarray turns a scalar into a vector.
  return array if array.dtype.kind in "biu" else array.astype(np.float32, copy=False)


def digest_of(values: Mapping[str, Array]) -> str:
  """Returns the digest of docs/wire.md, "Initial values"."""
  hashed = hashlib.sha256()

  def add(content: bytes | memoryview) -> None:
    hashed.update(len(content).to_bytes(8, "little"))
    hashed.update(content)

  for name in sorted(values):
    array = _stored(values[name])
    add(name.encode())
    add(array.dtype.name.encode())
    add(b"".join(size.to_bytes(8, "little") for size in array.shape))
    add(array.reshape(-1).data.cast("B"))
  return hashed.hexdigest()


class ForCore:
  """The values as the core takes them. Holds their memory."""

  def __init__(self, values: Mapping[str, Array] | None) -> None:
    self._arrays = {name: _stored(value) for name, value in (values or {}).items()}
    self.count = len(self._arrays)
    self.array = (_core.InitialValue * self.count)(*[
        _core.InitialValue(name.encode(), array.ctypes.data, array.size) for name, array in self._arrays.items()])


def check(values: Mapping[str, Array], shapes: Mapping[str, tuple[int, ...]]) -> None:
  """Raises ModelError if a value belongs to no variable, or has a different shape."""
  for name, value in values.items():
    if name not in shapes:
      raise ModelError(f"initial has \"{name}\", which is not a variable")
    if tuple(np.shape(value)) != tuple(shapes[name]):
      raise ModelError(f"initial value of \"{name}\" has shape {tuple(np.shape(value))}, the variable has "
                       f"{tuple(shapes[name])}")


def in_type(name: str, value: Array, dtype: str) -> Array:
  """Returns the value in the variable's type. Raises ModelError if an integer or bool would be another number."""
  given = np.asarray(value)
  with np.errstate(invalid="ignore"):
    array = given.astype(dtype, copy=False)
  if dtype != "float32" and not np.array_equal(array, given):
    raise ModelError(f"initial value of \"{name}\" has {given.dtype} elements that {dtype} cannot hold")
  return array


def file_for(values: Mapping[str, Array], directory: str) -> str:
  """Returns the file in `directory` that a run there starts from. Writes it if it does not exist.

  The name has the first digits of the digest, so it identifies the values in the configuration. An existing run keeps
  the file it began with, whatever the values are now. If several processes call this, the first one writes, and all get
  its file.
  """
  os.makedirs(directory, exist_ok=True)
  with open(os.path.join(directory, f".{_PREFIX}lock"), "wb") as lock:
    fcntl.flock(lock, fcntl.LOCK_EX)
    present = sorted(pathlib.Path(directory).glob(f"{_PREFIX}*{_SUFFIX}"))
    if present:
      return str(present[0])
    path = os.path.join(directory, f"{_PREFIX}{digest_of(values)[:16]}{_SUFFIX}")
    _write(values, f"{path}.unfinished")
    os.replace(f"{path}.unfinished", path)
  return path


def _write(values: Mapping[str, Array], path: str) -> None:
  with zipfile.ZipFile(path, "w") as archive:
    for name in sorted(values):
      with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
        np.lib.format.write_array(member, _stored(values[name]), allow_pickle=False)


def digest_in_name(path: str) -> str:
  """Returns the digits of the digest in the name of a file written by file_for, or an empty string for another file."""
  name = os.path.basename(path)
  return name[len(_PREFIX):-len(_SUFFIX)] if name.startswith(_PREFIX) and name.endswith(_SUFFIX) else ""
