"""Batches of a map-style dataset, addressed by slot."""

from __future__ import annotations

import concurrent.futures
import ctypes
import multiprocessing
import signal
from typing import Any, Callable, Dict, List, Literal, Optional, Tuple

import torch
import torch.utils.data

from lockstep.torch._seeds import mix, seed_all

Address = Tuple[Any, int]
"""The indices of a slot's examples and its seed."""

_PR_SET_PDEATHSIG = 1  # linux/prctl.h

# Set in a Loader's child processes.
_fetcher: Optional["_Fetcher"] = None


class _Fetcher:

  def __init__(self, dataset: Any, collate_fn: Callable[[List[Any]], Any]):
    self._dataset = dataset
    self._collate_fn = collate_fn

  def fetch(self, indices: Any, seed: int) -> Any:
    examples = []
    for place, index in enumerate(indices):
      seed_all(mix(seed, place))
      examples.append(self._dataset[index])
    return self._collate_fn(examples)


def _begin(fetcher: _Fetcher, worker_init_fn: Optional[Callable[[int], None]], count: Any) -> None:
  global _fetcher
  signal.signal(signal.SIGINT, signal.SIG_IGN)  # The loop handles Ctrl-C and closes the pool.
  ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)  # A killed loop leaves no processes behind.
  torch.set_num_threads(1)
  _fetcher = fetcher
  if worker_init_fn is not None:
    with count.get_lock():
      number = count.value
      count.value += 1
    worker_init_fn(number)


def _fetch(indices: Any, seed: int) -> Any:
  assert _fetcher is not None
  return _fetcher.fetch(indices, seed)


class Loader:
  """Makes the batch of each slot from a dataset with __getitem__ and __len__, like torch's DataLoader.

  Before each example, the generators of torch, NumPy and Python are seeded from (seed, step, slot, place in the batch),
  so that random augmentation is the same in every process. A dataset must not draw from its own generator, nor depend
  on the order of calls. IterableDataset is not supported, because its examples have no indices.

  Life cycle: passed to one Worker, which starts and closes it.
  Threads: used by the thread that iterates over the Worker.
  """

  def __init__(self, dataset: Any, *, collate_fn: Optional[Callable[[List[Any]], Any]] = None, num_workers: int = 0,
               prefetch: int = 2, worker_init_fn: Optional[Callable[[int], None]] = None,
               start_method: Optional[Literal["fork", "spawn", "forkserver"]] = None):
    """
    Args:
      dataset: dataset[i] is example i, for i in [0, len(dataset)).
      collate_fn: makes a batch from a list of examples; torch's default_collate if None.
      num_workers: the number of processes that fetch batches; 0 fetches in the loop's process.
      prefetch: how many steps ahead batches of the same slot are fetched, if num_workers > 0.
      worker_init_fn: called first in each process, with its number in [0, num_workers).
      start_method: how processes start; None is the platform's default. Under "spawn", all arguments must be picklable.
    """
    if isinstance(dataset, torch.utils.data.IterableDataset) or not hasattr(dataset, "__getitem__"):
      raise TypeError(f"{type(dataset).__name__} has no example number i: Loader needs a map-style dataset, with "
                      "__getitem__ and __len__")
    if num_workers < 0 or prefetch < 0:
      raise ValueError(f"num_workers is {num_workers} and prefetch is {prefetch}; neither may be negative")
    self._fetcher = _Fetcher(dataset, collate_fn or torch.utils.data.default_collate)
    self._num_workers = num_workers
    self._prefetch = prefetch
    self._worker_init_fn = worker_init_fn
    self._context = multiprocessing.get_context(start_method)
    self._pool: Optional[concurrent.futures.ProcessPoolExecutor] = None
    self._batches: Dict[Tuple[int, int], "concurrent.futures.Future[Any]"] = {}
    self.examples = len(dataset)

  def start(self) -> None:
    """Starts the processes. Called before the process has Lockstep threads, which a fork would not copy."""
    if self._num_workers == 0 or self._pool is not None:
      return
    self._pool = concurrent.futures.ProcessPoolExecutor(
        self._num_workers, self._context, _begin,
        (self._fetcher, self._worker_init_fn, self._context.Value("q", 0)))
    self._pool.submit(int).result()  # The first task starts the processes.

  def close(self) -> None:
    """Ends the processes."""
    if self._pool is not None:
      self._pool.shutdown(wait=True, cancel_futures=True)
      self._pool = None
    self._batches.clear()

  def batch(self, step: int, slot: int, address: Callable[[int, int], Optional[Address]]) -> Any:
    """Returns the batch of a slot. address(step, slot) gives a slot's indices and seed, or None after the run's end."""
    if self._pool is None:
      found = address(step, slot)
      assert found is not None
      return self._fetcher.fetch(*found)
    for ahead in range(step, step + 1 + self._prefetch):
      found = None if (ahead, slot) in self._batches else address(ahead, slot)
      if found is not None:
        self._batches[ahead, slot] = self._pool.submit(_fetch, *found)
    batch = self._batches.pop((step, slot)).result()
    for key in [key for key in self._batches if key[0] < step]:
      self._batches.pop(key).cancel()
    return batch
