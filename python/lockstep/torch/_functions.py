"""Autograd functions over the core's kernels. The other operations here copy tensors or round once, so their bits are
the same everywhere, too.

Images have the shape [count, channels, height, width], with channels last in memory.
"""

from __future__ import annotations

from typing import Any, Optional, Tuple

import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable

import lockstep
from lockstep.torch import _kernels
from lockstep.torch._kernels import Images

Tensor = torch.Tensor


def check_floats(layer: str, *tensors: Optional[Tensor]) -> None:
  """Raises ModelError unless the kernels can read the tensors."""
  for tensor in tensors:
    if tensor is not None and (tensor.dtype != torch.float32 or tensor.device.type != "cpu"):
      raise lockstep.ModelError(f"{layer} of lockstep.torch.portable() computes with float32 on the CPU, not with "
                                f"{tensor.dtype} on {tensor.device}")


def check_shape(layer: str, fits: bool, needed: str, tensor: Tensor) -> None:
  if not fits:
    raise lockstep.ModelError(f"{layer} needs a tensor of shape {needed}, not {tuple(tensor.shape)}")


def vector(layer: str, size: int, values: Optional[Tensor]) -> Optional[Tensor]:
  """Returns the tensor, or a contiguous copy. Raises ModelError unless it has `size` elements."""
  if values is None:
    return None
  if values.numel() != size:
    raise lockstep.ModelError(f"{layer} needs a parameter or statistic of {size} elements, not {tuple(values.shape)}")
  return values.contiguous()


def channels_last(x: Tensor) -> Tensor:
  """Returns x, or a copy, with memory in the order [count, ..., channels]."""
  if x.dim() == 4:
    return x.contiguous(memory_format=torch.channels_last)
  return x.movedim(1, -1).contiguous().movedim(-1, 1)


def _dense(x: Tensor) -> Tensor:
  """Returns x, or a dense copy, for elementwise functions."""
  return x if x.dim() == 4 and x.is_contiguous(memory_format=torch.channels_last) else x.contiguous()


def _in_order_of(model: Tensor, x: Tensor) -> Tensor:
  """Returns x, or a copy, whose elements have the same places in memory as those of `model`, which must be dense."""
  return x if x.stride() == model.stride() else torch.empty_like(model).copy_(x)


def _rows(x: Tensor) -> int:
  return x.numel() // x.shape[-1]


def _optional(needed: bool, like: Tensor) -> Optional[Tensor]:
  return torch.empty_like(like) if needed else None


class Linear(Function):

  @staticmethod
  def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Optional[Tensor]) -> Tensor:
    check_floats("Linear", x, weight, bias)
    outputs, inputs = weight.shape
    check_shape("Linear", x.dim() > 0 and x.shape[-1] == inputs, f"(..., {inputs})", x)
    x, weight, bias = x.contiguous(), weight.contiguous(), vector("Linear", outputs, bias)
    y = x.new_empty((*x.shape[:-1], outputs))
    _kernels.linear(_rows(x), inputs, outputs, x, weight, bias, y)
    ctx.save_for_backward(x, weight)
    return y

  @staticmethod
  @once_differentiable
  def backward(ctx: Any, dy: Tensor) -> Any:
    x, weight = ctx.saved_tensors
    outputs, inputs = weight.shape
    dx, dweight = _optional(ctx.needs_input_grad[0], x), _optional(ctx.needs_input_grad[1], weight)
    dbias = dy.new_empty(outputs) if ctx.needs_input_grad[2] else None
    _kernels.linear_gradient(_rows(x), inputs, outputs, x, weight, dy.contiguous(), dx, dweight, dbias)
    return dx, dweight, dbias


class Activation(Function):

  @staticmethod
  def forward(ctx: Any, x: Tensor, kind: int, slope: float, inplace: bool) -> Tensor:
    check_floats("an activation", x)
    dense = _dense(x)
    y = torch.empty_like(dense)
    _kernels.activate(kind, slope, dense.numel(), dense, y)
    if inplace:
      ctx.mark_dirty(x)
      y = x.copy_(y)
    ctx.save_for_backward(dense if kind == _kernels.GELU else y)
    ctx.kind, ctx.slope = kind, slope
    return y

  @staticmethod
  @once_differentiable
  def backward(ctx: Any, dy: Tensor) -> Any:
    value = _dense(ctx.saved_tensors[0])
    dx = torch.empty_like(value)
    _kernels.activation_gradient(ctx.kind, ctx.slope, value.numel(), value, _in_order_of(value, dy), dx)
    return dx, None, None, None


class Softmax(Function):
  """Softmax along the last dimension."""

  @staticmethod
  def forward(ctx: Any, x: Tensor) -> Tensor:
    check_floats("Softmax", x)
    x = x.contiguous()
    y = torch.empty_like(x)
    _kernels.softmax(_rows(x), x.shape[-1], x, y)
    ctx.save_for_backward(y)
    return y

  @staticmethod
  @once_differentiable
  def backward(ctx: Any, dy: Tensor) -> Any:
    y, = ctx.saved_tensors
    dx = torch.empty_like(y)
    _kernels.softmax_gradient(_rows(y), y.shape[-1], y, dy.contiguous(), dx)
    return dx


class BatchNorm(Function):
  """Normalizes and activates x, whose channels are last in memory.

  If `of_batch`, the mean and variance are computed from x. `kind` is RELU, RELU6 or 0.
  """

  @staticmethod
  def forward(ctx: Any, x: Tensor, gamma: Optional[Tensor], beta: Optional[Tensor], mean: Tensor, variance: Tensor,
              epsilon: float, of_batch: bool, kind: int) -> Tensor:
    y = torch.empty_like(x)
    channels = x.shape[1]
    gamma, beta = vector("BatchNorm", channels, gamma), vector("BatchNorm", channels, beta)
    for statistic in (mean, variance):
      vector("BatchNorm", channels, statistic)
    mean, variance = mean.contiguous(), variance.contiguous()
    _kernels.batch_norm(x.numel() // channels, channels, epsilon, mean, variance, gamma, beta, kind, x, y)
    ctx.save_for_backward(x, gamma, beta, mean, variance)
    ctx.epsilon, ctx.of_batch, ctx.kind = epsilon, of_batch, kind
    return y

  @staticmethod
  @once_differentiable
  def backward(ctx: Any, dy: Tensor) -> Any:
    x, gamma, beta, mean, variance = ctx.saved_tensors
    dx = _optional(ctx.needs_input_grad[0], x)
    dgamma, dbeta = _optional(ctx.needs_input_grad[1], mean), _optional(ctx.needs_input_grad[2], mean)
    channels = x.shape[1]
    _kernels.batch_norm_gradient(x.numel() // channels, channels, ctx.epsilon, ctx.of_batch, mean, variance, gamma, beta,
                                 ctx.kind, x, _in_order_of(x, dy), dx, dgamma, dbeta)
    return dx, dgamma, dbeta, None, None, None, None, None


def batch_moments(x: Tensor) -> Tuple[Tensor, Tensor]:
  """Returns the mean and biased variance of each channel of x, whose channels are last in memory."""
  channels = x.shape[1]
  mean, variance = x.new_empty(channels), x.new_empty(channels)
  _kernels.column_moments(x.numel() // channels, channels, x, mean, variance)
  return mean, variance


class LayerNorm(Function):
  """Normalizes the last dimensions, which have `columns` elements."""

  @staticmethod
  def forward(ctx: Any, x: Tensor, gamma: Optional[Tensor], beta: Optional[Tensor], columns: int,
              epsilon: float) -> Tensor:
    check_floats("LayerNorm", x, gamma, beta)
    x = x.contiguous()
    gamma, beta = vector("LayerNorm", columns, gamma), vector("LayerNorm", columns, beta)
    rows = x.numel() // columns
    means, inverses, y = x.new_empty(rows), x.new_empty(rows), torch.empty_like(x)
    _kernels.layer_norm(rows, columns, epsilon, gamma, beta, x, means, inverses, y)
    ctx.save_for_backward(x, gamma, means, inverses)
    ctx.shape = x.shape if gamma is None else gamma.shape
    ctx.columns = columns
    return y

  @staticmethod
  @once_differentiable
  def backward(ctx: Any, dy: Tensor) -> Any:
    x, gamma, means, inverses = ctx.saved_tensors
    dx = _optional(ctx.needs_input_grad[0], x)
    dgamma, dbeta = [x.new_empty(ctx.shape) if needed else None for needed in ctx.needs_input_grad[1:3]]
    _kernels.layer_norm_gradient(x.numel() // ctx.columns, ctx.columns, gamma, means, inverses, x, dy.contiguous(), dx,
                                 dgamma, dbeta)
    return dx, dgamma, dbeta, None, None


class Embedding(Function):

  @staticmethod
  def forward(ctx: Any, ids: Tensor, weight: Tensor, padding: Optional[int]) -> Tensor:
    check_floats("Embedding", weight)
    ctx.save_for_backward(ids)
    ctx.shape, ctx.padding = weight.shape, -1 if padding is None else padding
    return torch.nn.functional.embedding(ids, weight)

  @staticmethod
  @once_differentiable
  def backward(ctx: Any, dy: Tensor) -> Any:
    ids, = ctx.saved_tensors
    dweight = dy.new_empty(ctx.shape)
    _kernels.embedding_gradient(*ctx.shape, ids.numel(), ids.to(torch.int64).contiguous(), ctx.padding, dy.contiguous(),
                                dweight)
    return None, dweight, None


class Dropout(Function):

  @staticmethod
  def forward(ctx: Any, x: Tensor, rate: float, inplace: bool) -> Tensor:
    check_floats("Dropout", x)
    dense = _dense(x)
    # The layer's random numbers follow from one number of torch's generator, which computes with integers.
    key = int(torch.empty((), dtype=torch.int64).random_())
    kept, y = torch.empty((x.numel() + 7) // 8, dtype=torch.uint8), torch.empty_like(dense)
    _kernels.dropout(key, rate, x.numel(), dense, kept, y)
    ctx.save_for_backward(kept)
    ctx.rate, ctx.shape, ctx.stride = rate, dense.shape, dense.stride()
    if inplace:
      ctx.mark_dirty(x)
      y = x.copy_(y)
    return y

  @staticmethod
  @once_differentiable
  def backward(ctx: Any, dy: Tensor) -> Any:
    kept, = ctx.saved_tensors
    dx = torch.empty_strided(ctx.shape, ctx.stride)
    _kernels.dropout_gradient(ctx.rate, dx.numel(), kept, _in_order_of(dx, dy), dx)
    return dx, None, None


class Convolution(Function):
  """`border` is (top, bottom, left, right)."""

  @staticmethod
  def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Optional[Tensor], stride: Tuple[int, int],
              border: Tuple[int, ...]) -> Tensor:
    check_floats("Conv2d", x, weight, bias)
    filters, channels, *window = weight.shape
    check_shape("Conv2d", x.dim() == 4 and x.shape[1] == channels, f"(count, {channels}, height, width)", x)
    images = Images(x, (window[0], window[1]), stride, border)
    padded = x.permute(0, 2, 3, 1)
    if any(border):
      top, bottom, left, right = border
      count, height, width, _ = padded.shape
      inner, padded = padded, x.new_zeros((count, top + height + bottom, left + width + right, channels))
      padded[:, top:top + height, left:left + width] = inner
    padded, kernel = padded.contiguous(), weight.permute(2, 3, 1, 0).contiguous()
    bias = vector("Conv2d", filters, bias)
    y = torch.empty((x.shape[0], filters, images.output_height, images.output_width), memory_format=torch.channels_last)
    _kernels.convolution(images, filters, padded, kernel, bias, y)
    ctx.save_for_backward(padded, kernel)
    ctx.images, ctx.shape = images, x.shape
    return y

  @staticmethod
  @once_differentiable
  def backward(ctx: Any, dy: Tensor) -> Any:
    padded, kernel = ctx.saved_tensors
    filters = kernel.shape[3]
    dx = torch.empty(ctx.shape, memory_format=torch.channels_last) if ctx.needs_input_grad[0] else None
    dkernel = _optional(ctx.needs_input_grad[1], kernel)
    dbias = dy.new_empty(filters) if ctx.needs_input_grad[2] else None
    _kernels.convolution_gradient(ctx.images, filters, padded, kernel, channels_last(dy), dx, dkernel, dbias)
    return dx, None if dkernel is None else dkernel.permute(3, 2, 0, 1), dbias, None, None


class Pool(Function):
  """The maximum of each window, or the mean of its positions inside the image."""

  @staticmethod
  def forward(ctx: Any, x: Tensor, largest: bool, window: Tuple[int, int], stride: Tuple[int, int],
              border: Tuple[int, ...]) -> Tensor:
    check_floats("a pooling layer", x)
    check_shape("a pooling layer", x.dim() == 4, "(count, channels, height, width)", x)
    images = Images(x, window, stride, border)
    y = torch.empty((*x.shape[:2], images.output_height, images.output_width), memory_format=torch.channels_last)
    if largest:
      winners = torch.empty(y.shape, dtype=torch.int32, memory_format=torch.channels_last)
      _kernels.max_pool(images, channels_last(x), winners, y)
      ctx.save_for_backward(winners)
    else:
      _kernels.average_pool(images, channels_last(x), y)
    ctx.images, ctx.shape = images, x.shape
    return y

  @staticmethod
  @once_differentiable
  def backward(ctx: Any, dy: Tensor) -> Any:
    dx = torch.empty(ctx.shape, memory_format=torch.channels_last)
    if ctx.saved_tensors:
      _kernels.max_pool_gradient(ctx.images, *ctx.saved_tensors, channels_last(dy), dx)
    else:
      _kernels.average_pool_gradient(ctx.images, channels_last(dy), dx)
    return dx, None, None, None, None


class CrossEntropy(Function):
  """x's last dimension is the classes. `target` contains classes, or probabilities if it has floats."""

  @staticmethod
  def forward(ctx: Any, x: Tensor, target: Tensor, ignored: int, smoothing: float, reduction: str) -> Tensor:
    check_floats("CrossEntropyLoss", x)
    shape = x.shape[:-1]
    probabilities = target.is_floating_point()
    check_shape("CrossEntropyLoss", target.shape == (x.shape if probabilities else shape),
                f"{tuple(shape)} for its classes", target)
    if probabilities:
      check_floats("CrossEntropyLoss", target)
    elif target.dtype != torch.int64:
      raise lockstep.ModelError(f"CrossEntropyLoss needs classes of type torch.int64, not {target.dtype}")
    x, target = x.contiguous(), target.contiguous()
    loss = x.new_empty(shape if reduction == "none" else ())
    dx = _optional(ctx.needs_input_grad[0], x)
    labels, targets = (None, target) if probabilities else (target, None)
    _kernels.softmax_loss(_rows(x), x.shape[-1], x, labels, targets, ignored, smoothing, _kernels.REDUCTIONS[reduction],
                          loss, dx)
    ctx.save_for_backward(dx)
    ctx.each = reduction == "none"
    return loss

  @staticmethod
  @once_differentiable
  def backward(ctx: Any, dloss: Tensor) -> Any:
    dx, = ctx.saved_tensors
    return dx * (dloss.unsqueeze(-1) if ctx.each else dloss), None, None, None, None


class ElementwiseLoss(Function):

  @staticmethod
  def forward(ctx: Any, x: Tensor, target: Tensor, kind: int, delta: float, reduction: str) -> Tensor:
    check_floats("a loss", x, target)
    check_shape("a loss", x.shape == target.shape, str(tuple(x.shape)), target)
    x = x.contiguous()
    loss = torch.empty_like(x) if reduction == "none" else x.new_empty(())
    dx = _optional(ctx.needs_input_grad[0], x)
    _kernels.elementwise_loss(kind, delta, x.numel(), x, target.contiguous(), _kernels.REDUCTIONS[reduction], loss, dx)
    ctx.save_for_backward(dx)
    return loss

  @staticmethod
  @once_differentiable
  def backward(ctx: Any, dloss: Tensor) -> Any:
    dx, = ctx.saved_tensors
    return dx * dloss, None, None, None, None
