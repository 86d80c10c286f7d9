"""A run's values in a torch model."""

from __future__ import annotations

import os
from typing import Dict, Mapping, Union

import numpy as np
import torch

import lockstep
from lockstep.torch._model import plain_name

Source = Union[str, "os.PathLike[str]", Mapping[str, np.ndarray]]


def _values(source: Source) -> Mapping[str, np.ndarray]:
  if isinstance(source, Mapping):
    return source
  name = os.fspath(source)
  if name.startswith(("grpc://", "unix:", "file:")):
    return lockstep.read(name)[1]
  return lockstep.load(name)


def state_dict(source: Source, model: torch.nn.Module) -> Dict[str, torch.Tensor]:
  """Returns model.state_dict() with a run's values in place of the model's. The model does not change.

  Tied tensors have the same value under each of their names. Tensors that are not variables of the run, such as frozen
  parameters, keep the model's values.

  Args:
    source: a logdir (its newest checkpoint), a checkpoint's prefix, the address of a running chief, or arrays by name.
    model: a model with the run's parameters.

  Raises:
    ModelError: a trainable parameter has no value in `source`, or a value has a different shape than its tensor.
  """
  values = _values(source)
  where = "the mapping" if isinstance(source, Mapping) else os.fspath(source)
  names: Dict[int, str] = {}
  for name, tensor in [*model.named_parameters(), *model.named_buffers()]:
    names[id(tensor)] = plain_name(name)
    if tensor.requires_grad and plain_name(name) not in values:
      raise lockstep.ModelError(f'{where} has no variable "{plain_name(name)}"')
  state: Dict[str, torch.Tensor] = {}
  for key, tensor in model.state_dict(keep_vars=True).items():
    value = values.get(names.get(id(tensor), ""))
    if value is None:
      state[key] = tensor.detach().clone() if isinstance(tensor, torch.Tensor) else tensor
      continue
    if value.shape != tuple(tensor.shape):
      raise lockstep.ModelError(f'"{names[id(tensor)]}" has shape {value.shape} in {where}, the model has '
                                f"{tuple(tensor.shape)}")
    state[key] = torch.from_numpy(np.array(value)).to(tensor.device, tensor.dtype)
  return state


def load_into(model: torch.nn.Module, source: Source) -> None:
  """Loads a run's values into the model, in place. Otherwise like state_dict()."""
  model.load_state_dict(state_dict(source, model))
