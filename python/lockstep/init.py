"""Initial values that the chief computes, from the run's seed and the variable's name alone."""

from __future__ import annotations

import dataclasses
import numbers

from lockstep._text import fields, message


@dataclasses.dataclass(frozen=True)
class Init:
  """A rule for initial values: lockstep.v1.Initializer in text format."""
  text: str
  # The number of a constant, exactly as the program gave it.
  value: float | None = None


def zeros() -> Init:
  return Init("zeros {} ")


def constant(value: float) -> Init:
  """Every element has this value, rounded to float32. A variable of integers refuses a value that may be rounded."""
  exact = int(value) if isinstance(value, numbers.Integral) else float(value)
  return Init(message("constant", fields(value=float(value))), exact)


def uniform(low: float, high: float) -> Init:
  """Uniform in [low, high)."""
  return Init(message("uniform", fields(min=float(low), max=float(high))))


def normal(mean: float = 0.0, stddev: float = 1.0) -> Init:
  return Init(message("normal", fields(mean=float(mean), stddev=float(stddev))))


def truncated_normal(mean: float = 0.0, stddev: float = 1.0) -> Init:
  """Normal, but values more than two standard deviations from the mean are drawn again."""
  return Init(message("truncated_normal", fields(mean=float(mean), stddev=float(stddev))))


def glorot(normal: bool = False) -> Init:
  """Uniform in +-sqrt(6 / (fan_in + fan_out)), or truncated normal (Glorot and Bengio 2010).

  The shape is [inputs, outputs], or [height, width, inputs, outputs].
  """
  return Init(message("glorot", fields(normal=normal)))


def he(normal: bool = False) -> Init:
  """Uniform in +-sqrt(6 / fan_in), or truncated normal (He et al. 2015). The shape is as for glorot."""
  return Init(message("he", fields(normal=normal)))
