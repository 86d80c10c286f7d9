"""A check that a portable model uses only exact operations and the core's kernels."""

from __future__ import annotations

from typing import Any, Dict, Sequence, Tuple

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter

import lockstep

# ATen operations, named without the trailing underscore of in-place variants, that copy elements, compare them, or
# round each once. Their results depend neither on the processor nor on the number of threads.
_EXACT = frozenset("""
  _conj _local_scalar_dense _reshape_alias _to_copy _unsafe_view alias as_strided cat channel_shuffle clone
  constant_pad_nd copy detach diagonal embedding expand flip gather index index_select lift_fresh masked_fill
  masked_select permute pixel_shuffle pixel_unshuffle repeat roll scatter select slice split split_with_sizes squeeze
  stack t take transpose tril triu unbind unfold unsafe_split unsafe_split_with_sizes unsqueeze view where
  arange empty empty_like empty_permuted empty_strided eye fill full full_like new_empty new_empty_strided new_full
  new_ones new_zeros ones ones_like random scalar_tensor zero zeros zeros_like
  abs ceil clamp clamp_max clamp_min copysign div floor maximum minimum mul neg relu round sgn sign sqrt
  threshold threshold_backward trunc
  all amax amin any argmax argmin bitwise_and bitwise_not bitwise_or bitwise_xor eq equal ge gt isinf isnan le
  logical_and logical_not logical_or logical_xor lt max min ne nonzero sort topk
  diagonal_backward select_backward slice_backward unfold_backward
""".split())

# Random numbers that torch computes differently on Intel processors (bernoulli_, which functional.dropout calls), or
# with vector math functions. They affect gradients although they do not require any.
_RANDOM = frozenset("""
  bernoulli cauchy exponential geometric log_normal multinomial normal poisson randn randn_like
""".split())


def _is_exact(name: str, arguments: Tuple[Any, ...], options: Dict[str, Any]) -> bool:
  plain = name.rstrip("_")
  if plain in ("add", "rsub", "sub"):
    # The product with alpha may or may not be rounded separately.
    return (arguments[2] if len(arguments) > 2 else options.get("alpha", 1)) in (1, -1)
  return plain in _EXACT


def _depends_on_model(arguments: Any) -> bool:
  """Returns True in a backward pass, or if a gradient will flow through the operation."""
  if torch._C._current_autograd_node() is not None:
    return True
  return torch.is_grad_enabled() and any(
      isinstance(argument, torch.Tensor) and argument.requires_grad for argument in tree_iter(arguments))


class OnlyExactOperations(TorchDispatchMode):  # type: ignore[no-untyped-call]
  """While active, raises ModelError for any operation that gradients depend on and that is not exact.

  Operations on tensors without gradients, such as those that compute metrics, are unrestricted.
  """

  def __torch_dispatch__(self, func: Any, types: Sequence[type], args: Tuple[Any, ...] = (), kwargs: Any = None) -> Any:
    kwargs = kwargs or {}
    name = func.overloadpacket.__name__
    is_random = name.rstrip("_") in _RANDOM
    if is_random or (not _is_exact(name, args, kwargs) and _depends_on_model((args, kwargs))):
      raise lockstep.ModelError(
          f"the slot computes with torch's own {name}, whose bits depend on the processor, though the model is portable: "
          "use a module that lockstep.torch.portable() covers, for the loss, too, or compute it under torch.no_grad() if "
          "no gradient depends on it")
    return func(*args, **kwargs)
