"""The core's kernels (capi/kernels.h), with tensors as arguments."""

from __future__ import annotations

import ctypes
from typing import Any, Callable, Tuple

import torch

import lockstep
from lockstep import _core

RELU, RELU6, LEAKY_RELU, TANH, SIGMOID, GELU = range(1, 7)
SQUARED_ERROR, ABSOLUTE_ERROR, HUBER, SIGMOID_CROSS_ENTROPY = range(1, 5)
REDUCTIONS = {"none": 0, "sum": 1, "mean": 2}

_SIZE = ctypes.c_int64
_CHOICE = ctypes.c_int
_NUMBER = ctypes.c_float
_DATA = ctypes.c_void_p


class Images(ctypes.Structure):
  """lockstep_images: a window that slides over images and their border."""

  _fields_ = [(name, _SIZE) for name in (
      "size", "count", "height", "width", "channels", "window_height", "window_width", "stride_y", "stride_x", "top",
      "bottom", "left", "right")]

  def __init__(self, x: torch.Tensor, window: Tuple[int, int], stride: Tuple[int, int], border: Tuple[int, ...]):
    """x has shape [count, channels, height, width]; `border` is (top, bottom, left, right)."""
    count, channels, height, width = x.shape
    super().__init__(ctypes.sizeof(Images), count, height, width, channels, *window, *stride, *border)
    self.output_height = (height + border[0] + border[1] - window[0]) // stride[0] + 1
    self.output_width = (width + border[2] + border[3] - window[1]) // stride[1] + 1
    if self.output_height < 1 or self.output_width < 1:
      raise lockstep.ModelError(f"a window of {window} does not fit images of {(height, width)} with a border of {border}")


def _declare(name: str, *arguments: Any) -> Callable[..., None]:
  function = getattr(_core.library, "lockstep_" + name)
  function.argtypes = arguments
  function.restype = ctypes.c_int

  def call(*values: Any) -> None:
    code = function(*[value.data_ptr() if isinstance(value, torch.Tensor) else value for value in values])
    if code != _core.OK:
      _core.fail(code)

  return call


def version() -> int:
  """Returns the version of the kernels' bits."""
  return int(_core.library.lockstep_kernels_version())


_IMAGES = ctypes.POINTER(Images)
linear = _declare("linear", _SIZE, _SIZE, _SIZE, _DATA, _DATA, _DATA, _DATA)
linear_gradient = _declare("linear_gradient", _SIZE, _SIZE, _SIZE, _DATA, _DATA, _DATA, _DATA, _DATA, _DATA)
activate = _declare("activate", _CHOICE, _NUMBER, _SIZE, _DATA, _DATA)
activation_gradient = _declare("activation_gradient", _CHOICE, _NUMBER, _SIZE, _DATA, _DATA, _DATA)
softmax = _declare("softmax", _SIZE, _SIZE, _DATA, _DATA)
softmax_gradient = _declare("softmax_gradient", _SIZE, _SIZE, _DATA, _DATA, _DATA)
column_moments = _declare("column_moments", _SIZE, _SIZE, _DATA, _DATA, _DATA)
batch_norm = _declare("batch_norm", _SIZE, _SIZE, _NUMBER, *[_DATA] * 4, _CHOICE, _DATA, _DATA)
batch_norm_gradient = _declare("batch_norm_gradient", _SIZE, _SIZE, _NUMBER, _CHOICE, *[_DATA] * 4, _CHOICE, *[_DATA] * 5)
layer_norm = _declare("layer_norm", _SIZE, _SIZE, _NUMBER, *[_DATA] * 6)
layer_norm_gradient = _declare("layer_norm_gradient", _SIZE, _SIZE, *[_DATA] * 8)
embedding_gradient = _declare("embedding_gradient", _SIZE, _SIZE, _SIZE, _DATA, _SIZE, _DATA, _DATA)
dropout = _declare("dropout", ctypes.c_uint64, _NUMBER, _SIZE, _DATA, _DATA, _DATA)
dropout_gradient = _declare("dropout_gradient", _NUMBER, _SIZE, _DATA, _DATA, _DATA)
softmax_loss = _declare("softmax_loss", _SIZE, _SIZE, _DATA, _DATA, _DATA, _SIZE, _NUMBER, _CHOICE, _DATA, _DATA)
elementwise_loss = _declare("elementwise_loss", _CHOICE, _NUMBER, _SIZE, _DATA, _DATA, _CHOICE, _DATA, _DATA)
convolution = _declare("convolution", _IMAGES, _SIZE, _DATA, _DATA, _DATA, _DATA)
convolution_gradient = _declare("convolution_gradient", _IMAGES, _SIZE, *[_DATA] * 6)
max_pool = _declare("max_pool", _IMAGES, _DATA, _DATA, _DATA)
max_pool_gradient = _declare("max_pool_gradient", _IMAGES, _DATA, _DATA, _DATA)
average_pool = _declare("average_pool", _IMAGES, _DATA, _DATA)
average_pool_gradient = _declare("average_pool_gradient", _IMAGES, _DATA, _DATA)
