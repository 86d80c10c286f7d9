"""Seeds for the generators that a training loop may draw from."""

from __future__ import annotations

import random

import numpy as np
import torch

_MASK = (1 << 64) - 1


def mix(seed: int, index: int) -> int:
  """Returns a 64-bit seed derived from `seed` for part `index` (SplitMix64, Steele et al. 2014)."""
  z = (seed + (index + 1) * 0x9E3779B97F4A7C15) & _MASK
  z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
  z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
  return z ^ (z >> 31)


def seed_all(seed: int) -> None:
  """Seeds the global generators of torch, NumPy and Python. `seed` has 64 bits.

  torch.manual_seed() does the same for torch but takes 230 us, because it formats a stack for each kind of accelerator.
  """
  torch.default_generator.manual_seed(seed)
  if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
    torch.cuda.manual_seed_all(seed)
  np.random.seed((seed ^ (seed >> 32)) & 0xFFFFFFFF)
  random.seed(seed)
