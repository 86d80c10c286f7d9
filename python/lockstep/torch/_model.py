"""A torch model's tensors as the variables of a run."""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
from typing import Dict, Iterator, List, Literal, NamedTuple, Optional, Sequence, Tuple, Union

import numpy as np
import torch
from torch.nn.modules.batchnorm import _NormBase

import lockstep

Buffers = Literal["moving_average", "last_slot", "frozen"]
Unused = Literal["error", "zeros"]
_WRAPPERS = (torch.nn.DataParallel, torch.nn.parallel.DistributedDataParallel)


def plain_name(name: str) -> str:
  """Returns a tensor's name in the model that was passed to torch.compile()."""
  return name.replace("_orig_mod.", "")


class _Named(NamedTuple):
  name: str
  tensor: torch.Tensor


class ModelTensors:
  """The parameters and buffers of a model, sorted by their role in a run.

  Trainable parameters are variables, in the order of named_parameters(), followed by the buffers that the policy turns
  into variables. All other tensors are constants: they are not variables of the run, and must be the same in each
  worker.
  """

  def __init__(self, model: torch.nn.Module, buffers: Buffers, unused: Unused):
    if buffers not in ("moving_average", "last_slot", "frozen"):
      raise ValueError(f'buffers is "{buffers}"; it must be "moving_average", "last_slot" or "frozen"')
    if unused not in ("error", "zeros"):
      raise ValueError(f'unused is "{unused}"; it must be "error" or "zeros"')
    if isinstance(model, _WRAPPERS):
      raise lockstep.ModelError(f"the model is wrapped in {type(model).__name__}; give the Worker model.module itself")
    self._unused = unused
    self._trained: List[_Named] = []
    self._updated: List[_Named] = []
    self._constants: List[_Named] = []
    self._counters: List[torch.Tensor] = []
    self._norms: List[_NormBase] = []
    self.variables: List[lockstep.Variable] = []
    for name, parameter in model.named_parameters():
      self._add_parameter(_Named(plain_name(name), parameter))
    if not self._trained:
      raise lockstep.ModelError("the model has no parameter with requires_grad=True")
    statistics = self._moving_statistics(model) if buffers == "moving_average" else {}
    for module in model.modules():
      if isinstance(module, _NormBase) and module.num_batches_tracked is not None:
        self._counters.append(module.num_batches_tracked)
    counters = {id(tensor) for tensor in self._counters}
    for name, buffer in model.named_buffers():
      named = _Named(plain_name(name), buffer)
      if id(buffer) in statistics:
        self._add_update(named, ("moving_average", statistics[id(buffer)]))
      elif buffers == "last_slot" and buffer.dtype == torch.float32:
        self._add_update(named, "assign")
      elif id(buffer) not in counters:
        self._constants.append(named)
    self._memory: Dict[Tuple[int, int], torch.Tensor] = {}
    self._versions: List[int] = []
    # Page-locked buffers for tensors on a GPU. Copies to or from other memory would go through the driver's own such
    # buffers.
    self._pinned = [torch.empty(tensor.shape, dtype=torch.float32, pin_memory=True) if tensor.is_cuda else None
                    for _, tensor in self._trained + self._updated]
    self._gpus = {tensor.device for _, tensor in self._trained + self._updated if tensor.is_cuda}

  def _add_parameter(self, named: _Named) -> None:
    name, parameter = named
    if isinstance(parameter, torch.nn.UninitializedParameter):
      raise lockstep.ModelError(f'"{name}" has no shape yet; call the model once before it is given to the Worker')
    if not parameter.requires_grad:
      self._constants.append(named)
      return
    if parameter.dtype != torch.float32:
      raise lockstep.ModelError(
          f'"{name}" is {parameter.dtype}; trainable parameters must be float32. For 16 bits, compute under '
          'torch.autocast, and send 16 bits with Run(compression="bf16")')
    self._trained.append(named)
    self.variables.append(lockstep.Variable(name, tuple(parameter.shape)))

  def _add_update(self, named: _Named, update: Union[str, Tuple[str, float]]) -> None:
    self._updated.append(named)
    self.variables.append(lockstep.Variable(named.name, tuple(named.tensor.shape), trainable=False, update=update))

  def _moving_statistics(self, model: torch.nn.Module) -> Dict[int, float]:
    """Returns, by tensor id, the decay of each buffer that a normalization layer averages over batches."""
    decays: Dict[int, float] = {}
    for name, module in model.named_modules():
      if not (isinstance(module, _NormBase) and module.training and module.track_running_stats):
        continue
      if module.running_mean is None or module.running_var is None:
        continue
      if module.momentum is None:
        raise lockstep.ModelError(f'"{plain_name(name)}" has momentum=None, a mean over all batches so far; give it a '
                                  'number, or pass buffers="last_slot" to the Worker')
      self._norms.append(module)
      for tensor in (module.running_mean, module.running_var):
        decays[id(tensor)] = 1 - module.momentum
    return decays

  def initial(self) -> Dict[str, np.ndarray]:
    """Returns copies of the variables' values, by name."""
    return {name: tensor.detach().cpu().numpy().copy() for name, tensor in self._trained + self._updated}

  def parts(self) -> Dict[str, bytes]:
    """Returns the digest of each constant, by a name for use in messages."""
    digests = {}
    for name, tensor in self._constants:
      digest = hashlib.sha256(f"{tensor.dtype} {tuple(tensor.shape)}".encode())
      digest.update(tensor.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().data)
      digests[f"constant {name}"] = digest.digest()
    return digests

  @contextlib.contextmanager
  def batch_statistics(self) -> Iterator[None]:
    """While the context is active, a forward pass leaves the batch's own statistics in the buffers, for the chief to
    average."""
    momenta = [norm.momentum for norm in self._norms]
    for norm in self._norms:
      norm.momentum = 1.0
    try:
      yield
    finally:
      for norm, momentum in zip(self._norms, momenta):
        norm.momentum = momentum

  def begin(self, values: Sequence[np.ndarray], same_values: bool, slots_before: int) -> None:
    """Prepares the model for one slot.

    Args:
      values: one float32 array for each variable.
      same_values: the values are the same as in the last call; parameters unchanged since then are not copied again.
      slots_before: the number of the run's slots before this one, for layers that count their batches.
    """
    self._await_copies()  # The copies of a slot that never got to its gradients.
    with torch.no_grad():
      for i, (_, tensor) in enumerate(self._trained):
        if not same_values or tensor._version != self._versions[i]:
          self._write(i, tensor, values[i])
        tensor.grad = None
      for i, (_, tensor) in enumerate(self._updated, len(self._trained)):
        self._write(i, tensor, values[i])
      for counter in self._counters:
        counter.fill_(slots_before)
    self._versions = [tensor._version for _, tensor in self._trained + self._constants]

  def _write(self, i: int, tensor: torch.Tensor, value: np.ndarray) -> None:
    source, pinned = self._tensor_at(i, value), self._pinned[i]
    if pinned is not None:
      source = pinned.copy_(source)
    tensor.copy_(source, non_blocking=True)

  def _read(self, i: int, tensor: torch.Tensor) -> np.ndarray:
    """Returns the tensor's memory or, if it is on a GPU, a copy, which is complete after _await_copies()."""
    pinned = self._pinned[i]
    return (tensor.detach().cpu() if pinned is None else pinned.copy_(tensor.detach(), non_blocking=True)).numpy()

  def _await_copies(self) -> None:
    for gpu in self._gpus:
      torch.cuda.current_stream(gpu).synchronize()

  def _tensor_at(self, i: int, value: np.ndarray) -> torch.Tensor:
    """Returns a view of a variable's value. torch.from_numpy() would warn that the memory is read-only."""
    address = value.ctypes.data
    tensor = self._memory.get((i, address))
    if tensor is None:
      if len(self._memory) > 8 * len(self.variables):
        self._memory.clear()
      memory = (ctypes.c_float * value.size).from_address(address)
      tensor = torch.frombuffer(memory, dtype=torch.float32).view(value.shape)
      self._memory[i, address] = tensor
    return tensor

  def gradients(self) -> List[Optional[np.ndarray]]:
    """Returns one gradient for each variable, or None for buffers. The gradients share memory with the tensors or, if
    these are on a GPU, with the next call to begin().

    Raises:
      ModelError: a gradient is missing or unexpected, or the loop changed a tensor that it must not change.
    """
    self._check_unchanged()
    for name, tensor in self._constants:
      if tensor.grad is not None:
        raise lockstep.ModelError(f'"{name}" is frozen (requires_grad=False) but has a gradient')
    gradients = [self._gradient(i, *named) for i, named in enumerate(self._trained)]
    self._await_copies()
    return [*gradients, *[None] * len(self._updated)]

  def _gradient(self, i: int, name: str, tensor: torch.Tensor) -> np.ndarray:
    gradient = tensor.grad
    if gradient is None:
      if self._unused == "zeros":
        return np.broadcast_to(np.float32(0), tuple(tensor.shape))
      raise lockstep.ModelError(f'"{name}" has no gradient after backward(): it was not used in this slot; pass '
                                'unused="zeros" to the Worker if that is meant')
    if gradient.layout != torch.strided:
      raise lockstep.ModelError(f'"{name}" has a sparse gradient; build its layer with sparse=False')
    return self._read(i, gradient)

  def _check_unchanged(self) -> None:
    for (name, tensor), version in zip(self._trained, self._versions):
      if tensor._version != version:
        raise lockstep.ModelError(f'"{name}" was changed in the slot: the chief applies the optimizer; remove '
                                  'optimizer.step() and other assignments from the loop')
    for (name, tensor), version in zip(self._constants, self._versions[len(self._trained):]):
      if tensor._version != version:
        raise lockstep.ModelError(f'"{name}" was changed in the slot but is no variable of the run: put its layer into '
                                  'eval(), or pass buffers="last_slot" to the Worker')

  def updates(self) -> List[np.ndarray]:
    """Returns the values of the buffers that are variables, in the variables' order."""
    values = [self._read(i, tensor) for i, (_, tensor) in enumerate(self._updated, len(self._trained))]
    self._await_copies()
    return values
