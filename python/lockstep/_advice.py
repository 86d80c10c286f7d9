"""Errors at the beginning of a run, with remedies, for frameworks."""

from __future__ import annotations

from lockstep._errors import ConfigurationError
from lockstep._worker import Worker


def check_beginning(worker: Worker) -> None:
  """Raises ConfigurationError if the run of the first slot began with zeros, because a chief elsewhere got no values of
  the model, e.g. from a worker of an earlier release."""
  if "warm_start:" not in worker.spec and not worker.initial_digest:
    raise ConfigurationError(
        f"the run at {worker.master} has no initial values, so that all weights begin as zeros: begin it again in an "
        "empty logdir, or set checkpoint.warm_start in its configuration, or initial= in its Run, to a file of weights on "
        "the chief's machine (.safetensors, .npz)")
