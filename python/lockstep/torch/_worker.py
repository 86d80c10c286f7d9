"""A loop over slots that trains a torch model."""

from __future__ import annotations

import contextlib
import re
from types import TracebackType
from typing import Any, ContextManager, Generator, Iterator, List, Optional, Tuple, Type, Union

import numpy as np
import torch

import lockstep
from lockstep._advice import check_beginning
from lockstep.torch._framework import framework
from lockstep.torch._loader import Address, Loader
from lockstep.torch._model import Buffers, ModelTensors, Unused
from lockstep.torch._operations import OnlyExactOperations
from lockstep.torch._portable import is_portable
from lockstep.torch._seeds import seed_all
from lockstep.torch._weights import load_into

Scalar = Union[float, torch.Tensor]


class Slot:
  """A part of a step's batch, leased to this process until done() or the next slot.

  While the slot is current, the parameters hold the step's values, every .grad is None, and the global generators of
  torch, NumPy and Python are seeded with `seed`.
  """

  def __init__(self, slot: lockstep.Slot, tensors: ModelTensors, batch: Any):
    self._slot = slot
    self._tensors = tensors
    self.batch = batch
    """The Loader's batch, or None without a Loader."""

  @property
  def step(self) -> int:
    """The global step before this slot's update; under async and first_arrivals, the position in the slot's stream."""
    return self._slot.step

  @property
  def index(self) -> int:
    """The slot's number in its step, in [0, run.slots); under async and first_arrivals, the stream."""
    return self._slot.index

  @property
  def seed(self) -> int:
    """A 64-bit function of (the run's seed, step, index)."""
    return self._slot.seed

  @property
  def canary(self) -> bool:
    """True for the check of a new worker: step 0, slot 0 with special values. Compute it like any other slot."""
    return self._slot.canary

  @property
  def indices(self) -> torch.Tensor:
    """The examples of the slot: int64, shape [run.batch]."""
    return torch.from_numpy(self._slot.indices)

  def done(self, loss: Scalar, *, weight: Scalar = 1.0, end_run: bool = False, **metrics: Scalar) -> bool:
    """Hands over each parameter's .grad, the gradient of the slot's mean loss, and the buffers of the run.

    Args:
      loss: the mean over the slot's examples.
      weight: the slot's weight in its step, e.g. the number of tokens that the loss is a mean of; 0 or more. The step
        applies the weighted mean of the slots' gradients. Must be a function of the slot alone.
      end_run: if True, the run ends with this step. Must be a function of the slot alone.
      metrics: human-readable numbers, such as accuracy=0.9. Status and TensorBoard show means over the step's slots.

    Returns:
      False if the slot is no longer needed because another worker computed it.

    Raises:
      ModelError: a gradient is missing, a frozen parameter has one, or the loop changed a parameter.
    """
    return self._slot.done(_number(loss), self._tensors.gradients(), self._tensors.updates(), weight=_number(weight),
                           end_run=end_run, **{name: _number(value) for name, value in metrics.items()})

  def cancelled(self) -> bool:
    """Returns True if the slot is no longer needed. It is then closed: continue with the next one."""
    return self._slot.cancelled()


class Worker:
  """Trains a torch model in a run: iterate over it, compute the gradients of each slot, and call slot.done().

  The chief owns the variables, the optimizer, the schedule and the checkpoints. Each slot overwrites the
  model's parameters with the step's values. After the loop, the model holds the run's final values if this program or
  `lockstep launch` started the chief. Otherwise, as after stop(), it holds the values of the last slot, or its previous
  values if the run was over before this worker computed a slot.

  Use it as a context manager: on exit, it disconnects from the run, which continues without this worker.
  Threads: construct, iterate and exit in one thread.
  """

  def __init__(self, model: torch.nn.Module, run: lockstep.Run, *, examples: Optional[int] = None,
               loader: Optional[Loader] = None, buffers: Buffers = "moving_average", unused: Unused = "error",
               data_digest: int = 0, master: Optional[str] = None, name: Optional[str] = None,
               progress: Optional[bool] = None):
    """
    Args:
      model: with float32 parameters. A new run starts from its values, unless run.initial says otherwise.
      run: the configuration, which is the same for every worker of the run.
      examples: the number of training examples; len(loader's dataset) if there is a loader.
      loader: makes slot.batch.
      buffers: "moving_average": the running statistics of normalization layers in train() mode are variables. The chief
        averages them over the slots in order, with the layer's momentum, as a loop over micro-batches does.
        "last_slot": every float32 buffer is a variable, and gets its value from the step's last slot.
        "frozen": no buffer is a variable. Buffers that are not variables must not change.
      unused: "zeros" uses zeros for a parameter without a gradient; "error" refuses it.
      data_digest, master, name, progress: as for lockstep.Worker.

    Raises:
      ModelError: the model cannot be trained here; the message names the tensor.
    """
    if examples is None and loader is None:
      raise TypeError("Worker needs examples=, the number of training examples, or loader=")
    self._tensors = ModelTensors(model, buffers, unused)
    self._model = model
    self._slots = run.slots
    self._steps = run.steps
    self._streams = run.streams
    self._loader = loader
    self._loop: Optional[Generator[Slot, None, None]] = None
    if loader is not None:
      loader.start()
    self._core = lockstep.Worker(
        self._tensors.variables, run, examples=loader.examples if examples is None and loader else examples,
        data_digest=data_digest, master=master, name=name, framework=framework(model), parts=self._tensors.parts(),
        initial=None if run.initial is not None else self._tensors.initial(), progress=progress)

  def __enter__(self) -> "Worker":
    self._core.__enter__()
    return self

  def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
               trace: Optional[TracebackType]) -> None:
    if self._loop is not None:
      self._loop.close()
    if self._loader is not None:
      self._loader.close()
    self._core.__exit__(kind, error, trace)

  def __iter__(self) -> Iterator[Slot]:
    self._loop = self._all_slots()
    return self._loop

  def _all_slots(self) -> Generator[Slot, None, None]:
    last: Optional[Tuple[int, bool]] = None
    # The model's initial values, until it holds values of the run. The canary's values are random.
    began: Optional[List[np.ndarray]] = list(self._tensors.initial().values())
    # Only the first slot is checked, because a check costs about as much as the slot.
    operations: ContextManager[Any] = contextlib.nullcontext()
    if is_portable(self._model):
      operations = OnlyExactOperations()  # type: ignore[no-untyped-call]
    with self._tensors.batch_statistics():
      try:
        for slot in self._core:
          if last is None:
            check_beginning(self._core)
          here = (slot.step, slot.canary)
          # A position in a stream may recur with newer values, as may a step in another session.
          same_values = here == last and not slot.fresh and not self._streams
          self._tensors.begin(slot.values, same_values, slot.step * self._slots + slot.index)
          last = here
          if not slot.canary:
            began = None
          batch = self._loader.batch(slot.step, slot.index, self._address) if self._loader is not None else None
          seed_all(slot.seed)
          with operations:
            yield Slot(slot, self._tensors, batch)
          operations = contextlib.nullcontext()
      except lockstep.Refused as error:
        raise _with_advice(error) from None
    result = self._core._result  # None after stop(). pylint: disable=protected-access
    if result is not None and result.checkpoint:
      load_into(self._model, result.checkpoint)
    elif last is not None and began is not None:
      self._tensors.begin(began, False, 0)

  def _address(self, step: int, slot: int) -> Optional[Address]:
    """Returns the indices and the seed of any slot, or None if the run ends before it."""
    # The chief may have been restarted with more steps than the program declares.
    if step >= self._steps > 0 and step > self._core.step:
      return None
    try:
      return self._core.indices(step, slot), self._core.seed(step, slot)
    except IndexError:
      return None

  def stop(self) -> None:
    """Leaves the run, which continues without this worker: the loop ends after the current slot."""
    self._core.stop()

  def end(self, reason: str) -> None:
    """Asks the chief to end the run for all workers once the step in progress is committed.

    The current slot is still wanted, as are the step's other slots: the loop ends after them. Raises ChiefLost if there
    is currently no session.
    """
    self._core.end(reason)

  @property
  def result(self) -> lockstep.Result:
    """The result, available after the loop."""
    return self._core.result


def _number(value: Scalar) -> float:
  return float(value.detach() if isinstance(value, torch.Tensor) else value)


def _with_advice(error: lockstep.Refused) -> lockstep.Refused:
  """Adds the remedy to a refusal that names a setting of deterministic()."""
  threads = re.search(r'setting\[threads\]: "(\d+)" -> "(\d+)"', str(error))
  if threads:
    return lockstep.Refused(f"this process computes with {threads[2]} threads, the run with {threads[1]}: call "
                            f"lockstep.torch.deterministic() before the first operation ({error})")
  return error
