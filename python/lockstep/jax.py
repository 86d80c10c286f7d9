"""JAX functions in Lockstep runs: train() over pytrees of parameters, and follow() for a program that watches a run."""

from __future__ import annotations

import importlib.metadata
import os
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

import jax
import jax.numpy as jnp
import numpy as np
from jax._src import xla_bridge  # JAX has no public way to ask whether it has computed.

import lockstep
from lockstep._advice import check_beginning

Params = Any
"""A pytree whose leaves are float32 arrays."""

_ISA = "AVX2"
_FLAGS = {"xla_cpu_max_isa": _ISA, "xla_cpu_multi_thread_eigen": "false"}


def deterministic() -> None:
  """Makes XLA on the CPU compute the same bits on every processor with AVX2.

  Sets two XLA flags: one instruction set for all processors, and matrix products in one thread. They become part of the
  run's contract: a worker with different flags is refused, and the refusal names them.

  Raises:
    RuntimeError: JAX has already computed in this process, or XLA_FLAGS conflicts.
  """
  flags = _xla_flags()
  for name, value in _FLAGS.items():
    if flags.setdefault(name, value) != value:
      raise RuntimeError(f"XLA_FLAGS has --{name}={flags[name]}; lockstep.jax.deterministic() needs {value}")
  if xla_bridge.backends_are_initialized() and flags != _xla_flags():
    raise RuntimeError("lockstep.jax.deterministic() must be called before the first operation of JAX")
  os.environ["XLA_FLAGS"] = " ".join(f"--{name}={value}" for name, value in flags.items())


def _xla_flags() -> Dict[str, str]:
  pairs = (flag.lstrip("-").partition("=") for flag in os.environ.get("XLA_FLAGS", "").split())
  return {name: value or "true" for name, _, value in pairs}


def _framework() -> Dict[str, str]:
  flags = _xla_flags()
  return {
      "name": "JAX",
      "version": f"{jax.__version__} (jaxlib {importlib.metadata.version('jaxlib')})",
      "backend": jax.default_backend(),
      "device": jax.devices()[0].device_kind,
      "matmul_precision": str(jax.config.values["jax_default_matmul_precision"] or "default"),
      "prng": str(jax.config.values["jax_default_prng_impl"]),
      **{name: flags.get(name, "default") for name in _FLAGS},
  }


def _part(key: Any) -> str:
  """Returns a part of a leaf's name, as jax.tree_util.keystr(simple=True) does in versions for Python 3.10 and newer."""
  # A key of a dictionary or of a registered class, an index of a list, or a name of an attribute. Classes may register
  # keys of any type.
  return str(next((getattr(key, name) for name in ("key", "idx", "name") if hasattr(key, name)), key))


class _Tree:
  """The leaves of a pytree as variables. A leaf's name is its path: "layer0/w"."""

  def __init__(self, params: Params):
    leaves, self.definition = jax.tree_util.tree_flatten_with_path(params)
    self.names = ["/".join(_part(key) for key in path) for path, _ in leaves]
    self.values: List[np.ndarray] = []
    for name, (_, leaf) in zip(self.names, leaves):
      value = np.asarray(leaf)
      if value.dtype != np.float32:
        raise lockstep.ModelError(f'"{name}" is {value.dtype}; parameters must be float32. For bfloat16, cast in the loss '
                                  "function")
      self.values.append(value)

  def of(self, values: Mapping[str, np.ndarray], where: str) -> Params:
    """Returns the pytree with the given values, which are by name."""
    leaves = []
    for name, like in zip(self.names, self.values):
      if name not in values:
        raise lockstep.ModelError(f'{where} has no variable "{name}"')
      if values[name].shape != like.shape:
        raise lockstep.ModelError(f'"{name}" has shape {values[name].shape} in {where}, the parameters have {like.shape}')
      leaves.append(jnp.asarray(np.array(values[name])))
    return jax.tree_util.tree_unflatten(self.definition, leaves)


def train(loss_fn: Callable[[Params, Any, jax.Array], Any], params: Params, run: lockstep.Run, *,
          data: Callable[[np.ndarray], Any], examples: int, has_aux: bool = False, data_digest: int = 0,
          master: Optional[str] = None, name: Optional[str] = None, progress: Optional[bool] = None) -> Params:
  """Trains until the run is over, and returns the final parameters.

  Args:
    loss_fn: loss_fn(params, batch, key) returns the mean loss of a batch; with has_aux, the loss and a dict of scalars to
      report. "weight" in the dict is the slot's weight in its step, e.g. its number of tokens. The function is
      compiled. `key` is a function of (seed, step, slot).
    params: a pytree of float32 arrays, from which a new run starts, unless run.initial says otherwise.
    run: the configuration, which is the same for every worker of the run.
    data: data(indices) returns the batch of these examples, a pytree of arrays whose shapes are the same each time.
      `indices` is int64 of shape [run.batch].
    examples: the number of training examples.
    data_digest, master, name, progress: as for lockstep.Worker.

  Returns:
    The values of the last checkpoint if this program or `lockstep launch` started the chief. Otherwise the values of
    the last slot, or `params` if the run was over before this worker computed a slot.

  Raises:
    ModelError: a leaf is not float32.
    lockstep.Error: as iterating over a lockstep.Worker does.
  """
  tree = _Tree(params)

  @jax.jit
  def compute(leaves: Sequence[jax.Array], batch: Any, seed: jax.Array) -> Any:
    key = jax.random.wrap_key_data(seed, impl="threefry2x32")
    return jax.value_and_grad(lambda leaves: loss_fn(jax.tree_util.tree_unflatten(tree.definition, leaves), batch, key),
                              has_aux=has_aux)(leaves)

  variables = [lockstep.Variable(name, value.shape) for name, value in zip(tree.names, tree.values)]
  initial = None if run.initial is not None else dict(zip(tree.names, tree.values))
  began = False
  # Holds the last slot's values. The canary is not a slot of the run: its values are random.
  leaves: List[Any] = list(tree.values)
  with lockstep.Worker(variables, run, examples=examples, data_digest=data_digest, master=master, name=name,
                       framework=_framework(), initial=initial, progress=progress) as worker:
    for slot in worker:
      if not began:
        check_beginning(worker)
        began = True
      values = [jnp.array(value) for value in slot.values]
      if not slot.canary:
        leaves = values
      seed = np.array([slot.seed >> 32, slot.seed & 0xFFFFFFFF], np.uint32)
      result, gradients = compute(values, data(slot.indices), seed)
      loss, metrics = result if has_aux else (result, {})
      scalars: Any = {key: float(value) for key, value in metrics.items()}
      slot.done(float(loss), [np.asarray(gradient) for gradient in gradients], **scalars)
    checkpoint = worker.result.checkpoint
  if checkpoint is None:
    return jax.tree_util.tree_unflatten(tree.definition, [jnp.asarray(leaf) for leaf in leaves])
  return tree.of(lockstep.load(checkpoint), checkpoint)


def follow(master: str, like: Params, every: int = 1) -> Iterator[Tuple[int, Params]]:
  """Yields (step, parameters) of a running chief whenever it has advanced by `every` steps, until it is gone.

  Also ends when the run ends.

  Args:
    master: the chief's address.
    like: a pytree with the run's names and shapes.
  """
  tree = _Tree(like)
  for step, values in lockstep.follow(master, every=every, names=tree.names):
    yield step, tree.of(values, master)
