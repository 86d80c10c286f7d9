"""The part of protobuf's text format that the package writes."""

from __future__ import annotations

import numbers
from typing import Union

Value = Union[bool, int, float, str, None]


def quote(text: str) -> str:
  """Returns a string literal."""
  safe = {ord('"'), ord("\\")}
  return '"' + "".join(
      chr(byte) if 32 <= byte < 127 and byte not in safe else f"\\{byte:03o}" for byte in text.encode()) + '"'


def field(name: str, value: Value) -> str:
  """Returns "name: value ", or an empty string for None."""
  if value is None:
    return ""
  if isinstance(value, bool):
    return f"{name}: {'true' if value else 'false'} "
  if isinstance(value, str):
    return f"{name}: {quote(value)} "
  # The repr of a NumPy number is not a number: "np.int64(3)".
  return f"{name}: {int(value) if isinstance(value, numbers.Integral) else float(value)!r} "


def fields(**values: Value) -> str:
  """Returns the fields that are not None."""
  return "".join(field(name, value) for name, value in values.items())


def message(name: str, content: str) -> str:
  """Returns "name { content } "."""
  return f"{name} {{ {content}}} "
