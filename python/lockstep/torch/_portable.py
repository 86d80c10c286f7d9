"""torch.nn modules over the core's kernels, which compute the same bits on every processor."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Tuple, Type, TypeVar, Union

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.module import _has_any_global_hook

import lockstep
from lockstep.torch import _functions, _kernels

Tensor = torch.Tensor
Model = TypeVar("Model", bound=nn.Module)


def _call(function: Any, *arguments: Any) -> Any:
  return function.apply(*arguments)


def _pair(value: Any) -> Tuple[int, int]:
  return (value[0], value[1]) if isinstance(value, (tuple, list)) else (value, value)


def _no_gradient(target: Tensor) -> Tensor:
  if target.requires_grad:
    raise lockstep.ModelError("the target of a loss of lockstep.torch.portable() must not require a gradient; detach() it")
  return target


class PortableLinear(nn.Linear):

  def forward(self, input: Tensor) -> Any:
    return _call(_functions.Linear, input, self.weight, self.bias)


class PortableConv2d(nn.Conv2d):

  def forward(self, input: Tensor) -> Any:
    if isinstance(self.padding, str):
      left, right, top, bottom = self._reversed_padding_repeated_twice
    else:  # The list does not track changes to the attribute.
      (top, left), (bottom, right) = _pair(self.padding), _pair(self.padding)
    return _call(_functions.Convolution, input, self.weight, self.bias, _pair(self.stride), (top, bottom, left, right))


class _PortableBatchNorm(_BatchNorm):

  def forward(self, input: Tensor) -> Any:
    return self.normalize(input)

  def normalize(self, input: Tensor, activation: int = 0) -> Any:
    """Returns the layer's output, followed by RELU or RELU6 if given."""
    self._check_input_dim(input)  # type: ignore[no-untyped-call]
    _functions.check_floats("BatchNorm", input, self.weight, self.bias, self.running_mean, self.running_var)
    _functions.check_shape("BatchNorm", input.shape[1] == self.num_features, f"(count, {self.num_features}, ...)", input)
    x = _functions.channels_last(input)
    if self.training or self.running_mean is None or self.running_var is None:
      with torch.no_grad():
        mean, variance = _functions.batch_moments(x)
        if self.training and self.track_running_stats and self.running_mean is not None:
          self._average(mean, variance, x.numel() // self.num_features)
      return _call(_functions.BatchNorm, x, self.weight, self.bias, mean, variance, self.eps, True, activation)
    return _call(_functions.BatchNorm, x, self.weight, self.bias, self.running_mean, self.running_var, self.eps, False,
                 activation)

  def _average(self, mean: Tensor, variance: Tensor, rows: int) -> None:
    """Moves the running statistics towards a batch's, using operations that round once each."""
    assert self.running_mean is not None and self.running_var is not None and self.num_batches_tracked is not None
    if rows == 1:
      raise ValueError("batch norm cannot train on one value for each channel")
    self.num_batches_tracked.add_(1)
    share = 1 / int(self.num_batches_tracked) if self.momentum is None else self.momentum
    for running, value in ((self.running_mean, mean), (self.running_var, variance * (rows / (rows - 1)))):
      running.mul_(1 - share).add_(value * share)


class PortableBatchNorm1d(_PortableBatchNorm, nn.BatchNorm1d):
  pass


class PortableBatchNorm2d(_PortableBatchNorm, nn.BatchNorm2d):
  pass


class PortableLayerNorm(nn.LayerNorm):

  def forward(self, input: Tensor) -> Any:
    shape = tuple(self.normalized_shape)
    _functions.check_shape("LayerNorm", tuple(input.shape[-len(shape):]) == shape,
                           f"(..., {', '.join(map(str, shape))})", input)
    columns = 1
    for size in shape:
      columns *= size
    return _call(_functions.LayerNorm, input, self.weight, self.bias, columns, self.eps)


class PortableEmbedding(nn.Embedding):

  def forward(self, input: Tensor) -> Any:
    return _call(_functions.Embedding, input, self.weight, self.padding_idx)


class PortableDropout(nn.Dropout):

  def forward(self, input: Tensor) -> Any:
    return _call(_functions.Dropout, input, self.p, self.inplace) if self.training and self.p > 0 else input


def _activate(kind: int, x: Tensor, slope: float = 0, inplace: bool = False) -> Any:
  return _call(_functions.Activation, x, kind, slope, inplace)


class PortableReLU(nn.ReLU):

  def forward(self, input: Tensor) -> Any:
    return _activate(_kernels.RELU, input, inplace=self.inplace)


class PortableReLU6(nn.ReLU6):

  def forward(self, input: Tensor) -> Any:
    return _activate(_kernels.RELU6, input, inplace=self.inplace)


class PortableLeakyReLU(nn.LeakyReLU):

  def forward(self, input: Tensor) -> Any:
    return _activate(_kernels.LEAKY_RELU, input, self.negative_slope, self.inplace)


class PortableTanh(nn.Tanh):

  def forward(self, input: Tensor) -> Any:
    return _activate(_kernels.TANH, input)


class PortableSigmoid(nn.Sigmoid):

  def forward(self, input: Tensor) -> Any:
    return _activate(_kernels.SIGMOID, input)


class PortableGELU(nn.GELU):

  def forward(self, input: Tensor) -> Any:
    return _activate(_kernels.GELU, input)


_FUSED: Dict[type, int] = {PortableReLU: _kernels.RELU, PortableReLU6: _kernels.RELU6}


def _has_hooks(module: nn.Module) -> bool:
  return bool(module._forward_hooks or module._forward_pre_hooks or module._backward_hooks or
              module._backward_pre_hooks or _has_any_global_hook())  # type: ignore[no-untyped-call]


class PortableSequential(nn.Sequential):
  """Computes a batch norm and the activation after it in one pass, with the same bits."""

  def forward(self, input: Any) -> Any:
    modules = list(self)
    while modules:
      module = modules.pop(0)
      activation = _FUSED.get(type(modules[0]), 0) if modules else 0
      if activation and isinstance(module, _PortableBatchNorm) and not (_has_hooks(module) or _has_hooks(modules[0])):
        modules.pop(0)
        input = module.normalize(input, activation)
      else:
        input = module(input)
    return input


class PortableSoftmax(nn.Softmax):

  def forward(self, input: Tensor) -> Any:
    assert self.dim is not None
    return _call(_functions.Softmax, input.movedim(self.dim, -1)).movedim(-1, self.dim)


class PortableMaxPool2d(nn.MaxPool2d):

  def forward(self, input: Tensor) -> Any:
    y, x = _pair(self.padding)
    return _call(_functions.Pool, input, True, _pair(self.kernel_size), _pair(self.stride), (y, y, x, x))


class PortableAvgPool2d(nn.AvgPool2d):

  def forward(self, input: Tensor) -> Any:
    y, x = _pair(self.padding)
    return _call(_functions.Pool, input, False, _pair(self.kernel_size), _pair(self.stride), (y, y, x, x))


class PortableAdaptiveAvgPool2d(nn.AdaptiveAvgPool2d):

  def forward(self, input: Tensor) -> Any:
    _functions.check_shape("AdaptiveAvgPool2d", input.dim() == 4, "(count, channels, height, width)", input)
    return _call(_functions.Pool, input, False, tuple(input.shape[2:]), (1, 1), (0, 0, 0, 0))


class PortableCrossEntropyLoss(nn.CrossEntropyLoss):

  def forward(self, input: Tensor, target: Tensor) -> Any:
    if input.dim() > 1:
      input = input.movedim(1, -1)
      target = target.movedim(1, -1) if target.is_floating_point() and target.dim() > 1 else target
    return _call(_functions.CrossEntropy, input, _no_gradient(target), self.ignore_index, self.label_smoothing,
                 self.reduction)


def _loss(kind: int, x: Tensor, target: Tensor, reduction: str, delta: float = 0) -> Any:
  return _call(_functions.ElementwiseLoss, x, _no_gradient(target), kind, delta, reduction)


class PortableMSELoss(nn.MSELoss):

  def forward(self, input: Tensor, target: Tensor) -> Any:
    return _loss(_kernels.SQUARED_ERROR, input, target, self.reduction)


class PortableL1Loss(nn.L1Loss):

  def forward(self, input: Tensor, target: Tensor) -> Any:
    return _loss(_kernels.ABSOLUTE_ERROR, input, target, self.reduction)


class PortableHuberLoss(nn.HuberLoss):

  def forward(self, input: Tensor, target: Tensor) -> Any:
    return _loss(_kernels.HUBER, input, target, self.reduction, self.delta)


class PortableBCEWithLogitsLoss(nn.BCEWithLogitsLoss):

  def forward(self, input: Tensor, target: Tensor) -> Any:
    return _loss(_kernels.SIGMOID_CROSS_ENTROPY, input, target, self.reduction)


def _other(module: Any, **values: Any) -> str:
  """Returns the first attribute with a different value, e.g. "groups=2", or an empty string."""
  for name, value in values.items():
    found = getattr(module, name)
    if (found is not None if value is None else found != value):
      return f"{name}={'...' if isinstance(found, Tensor) else repr(found)}"
  return ""


def _other_conv(module: nn.Conv2d) -> str:
  return (_other(module, groups=1, dilation=(1, 1), padding_mode="zeros") or
          (f"stride={module.stride}" if max(module.stride) > 64 else ""))


def _wide_stride(module: Any) -> str:
  return f"stride={module.stride}" if max(_pair(module.stride)) > 64 else ""


def _other_max_pool(module: nn.MaxPool2d) -> str:
  return (_other(module, return_indices=False, ceil_mode=False) or _wide_stride(module) or
          (f"dilation={module.dilation}" if _pair(module.dilation) != (1, 1) else ""))


def _other_average_pool(module: nn.AvgPool2d) -> str:
  counts_border = module.count_include_pad and _pair(module.padding) != (0, 0)
  return (_other(module, ceil_mode=False, divisor_override=None) or _wide_stride(module) or
          (f"padding={module.padding} and count_include_pad=True" if counts_border else ""))


def _nothing(module: nn.Module) -> str:
  del module
  return ""


# The replacement for each module, and a function that returns why a module cannot be replaced, or an empty string.
_REPLACEMENTS: Dict[Type[nn.Module], Tuple[Type[nn.Module], Callable[[Any], str]]] = {
    nn.Linear: (PortableLinear, _nothing),
    nn.Conv2d: (PortableConv2d, _other_conv),
    nn.BatchNorm1d: (PortableBatchNorm1d, _nothing),
    nn.BatchNorm2d: (PortableBatchNorm2d, _nothing),
    nn.LayerNorm: (PortableLayerNorm, _nothing),
    nn.Embedding: (PortableEmbedding, lambda m: _other(m, max_norm=None, scale_grad_by_freq=False, sparse=False)),
    nn.Dropout: (PortableDropout, _nothing),
    nn.ReLU: (PortableReLU, _nothing),
    nn.ReLU6: (PortableReLU6, _nothing),
    nn.LeakyReLU: (PortableLeakyReLU,
                   lambda m: "" if 0 <= m.negative_slope <= 1 else f"negative_slope={m.negative_slope}"),
    nn.Tanh: (PortableTanh, _nothing),
    nn.Sigmoid: (PortableSigmoid, _nothing),
    nn.GELU: (PortableGELU, lambda m: _other(m, approximate="tanh")),
    nn.Sequential: (PortableSequential, _nothing),
    nn.Softmax: (PortableSoftmax, lambda m: "dim=None" if m.dim is None else ""),
    nn.MaxPool2d: (PortableMaxPool2d, _other_max_pool),
    nn.AvgPool2d: (PortableAvgPool2d, _other_average_pool),
    nn.AdaptiveAvgPool2d: (PortableAdaptiveAvgPool2d,
                           lambda m: "" if _pair(m.output_size) == (1, 1) else f"output_size={m.output_size}"),
    nn.CrossEntropyLoss: (PortableCrossEntropyLoss, lambda m: _other(m, weight=None)),
    nn.MSELoss: (PortableMSELoss, _nothing),
    nn.L1Loss: (PortableL1Loss, _nothing),
    nn.HuberLoss: (PortableHuberLoss, _nothing),
    nn.BCEWithLogitsLoss: (PortableBCEWithLogitsLoss, lambda m: _other(m, weight=None, pos_weight=None)),
}
_PORTABLE = frozenset(replacement for replacement, _ in _REPLACEMENTS.values())
# Modules that only contain other modules or copy elements.
_EXACT = frozenset([
    nn.ChannelShuffle, nn.Flatten, nn.Identity, nn.ModuleDict, nn.ModuleList, nn.ParameterDict, nn.ParameterList,
    nn.PixelShuffle, nn.PixelUnshuffle, nn.Unflatten, nn.ZeroPad1d, nn.ZeroPad2d
])


def _why_not(module: nn.Module) -> Union[str, None]:
  """Returns why portable() does not cover a module, ignoring its children, or None if it does."""
  kind = type(module)
  if module._compiled_call_impl is not None:
    return f"{kind.__name__} that is compiled"
  if kind in _PORTABLE or kind in _EXACT:
    return None
  if kind in _REPLACEMENTS:
    other = _REPLACEMENTS[kind][1](module)
    return f"{kind.__name__} with {other}" if other else None
  if isinstance(module, tuple(_REPLACEMENTS)):
    return f"{kind.__name__}, a class of its own"
  return kind.__name__ if kind.__module__.partition(".")[0] == "torch" else None


def uncovered(model: nn.Module) -> List[str]:
  """Returns the modules that portable() does not cover, as '"name" (why)'."""
  reasons = ((name, _why_not(module)) for name, module in model.named_modules())
  return [f'"{name}" ({reason})' if name else f"the model itself ({reason})" for name, reason in reasons if reason]


def is_portable(model: nn.Module) -> bool:
  """Returns True if portable() has replaced modules of the model and covers all others."""
  kinds = {type(module) for module in model.modules()}
  return not kinds.isdisjoint(_PORTABLE) and kinds.isdisjoint(_REPLACEMENTS) and not uncovered(model)


def portable(model: Model) -> Model:
  """Makes a model, or a loss, compute the same bits on every processor and with any number of threads.

  From now on, its torch.nn layers, activations and losses compute with Lockstep's kernels. The modules remain the same
  objects, with their parameters, buffers, hooks and names in state_dict(); only their classes change, to subclasses
  such as PortableLinear. Modules of your own classes do not change: whatever their forward() computes itself, besides
  calling modules, must have the same bits everywhere, as copies, comparisons and sums of two tensors do.

  A run of a portable model admits workers with different processors and torch settings: its contract says "portable"
  instead of naming them. The versions of torch and Lockstep must be the same.

  Args:
    model: a module with float32 parameters on the CPU. It is changed in place.

  Returns:
    The model.

  Raises:
    ModelError: names every module that cannot be replaced, with the reason. Nothing has changed then.
  """
  problems = uncovered(model)
  if problems:
    raise lockstep.ModelError(f"lockstep.torch.portable() does not cover {', '.join(problems)}")
  for module in model.modules():
    if type(module) in _REPLACEMENTS:
      module.__class__ = _REPLACEMENTS[type(module)][0]
  return model
