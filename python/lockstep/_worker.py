"""The worker: slots for a program to compute, on NumPy arrays."""

from __future__ import annotations

import ctypes
import dataclasses
import json
import logging
import os
import pathlib
import re
import sys
import threading
import time
import weakref
import zlib
from typing import Any, Callable, Iterator, Mapping, NamedTuple, NoReturn, Sequence, Union

import numpy as np
import numpy.typing as npt

from lockstep import _core, _initial
from lockstep._chief import Chief, declare_to_launcher
from lockstep._errors import ChiefLost, ConfigurationError, Error, ModelError, Refused, RunFailed
from lockstep._progress import Progress, progress_for, shows_lines
from lockstep._reads import checkpoint_digest
from lockstep._run import Run
from lockstep._text import field, fields, message
from lockstep.init import Init

Array = npt.NDArray[np.float32]
# The effect of a value that a slot reports on a variable that is not trained: "assign", "assign_add",
# ("moving_average", decay), which means variable -= (1 - decay) * (variable - value), or ("zero_debias_moving_average",
# decay), an average that starts at 0 and is corrected for it, as in Adam.
Update = Union[str, "tuple[str, float]"]
# The types of a variable, as NumPy and the model's text name them.
_DTYPES = {"float32": "DT_FLOAT", "int32": "DT_INT32", "int64": "DT_INT64", "uint8": "DT_UINT8", "bool": "DT_BOOL"}

_LOGGER = logging.getLogger("lockstep")
# The longest wait in one call to the core. Python acts on Ctrl-C between two calls.
_SLICE_SECONDS = 0.1
_NO_INDICES = np.empty(0, np.int64)
_LARGEST_WEIGHT = float(np.finfo(np.float32).max)  # the core stores a float32
# The time limit for the last checkpoint, after the worker has learned that the run is over.
_END_SECONDS = 120.0


class Variable(NamedTuple):
  """A variable of the model. Names are unique; they are the keys in checkpoints.

  The dtype of a variable that is not trainable may be "int32", "int64", "uint8" or "bool". Its updates, "assign" or
  "assign_add", and its values are then arrays of this type.
  """
  name: str
  shape: tuple[int, ...]
  trainable: bool = True
  update: Update | None = None
  init: Init | None = None
  dtype: str = "float32"


@dataclasses.dataclass(frozen=True)
class Result:
  """The end of a run: its last step and, if this program or `lockstep launch` started the chief, its last checkpoint.

  Without a checkpoint, e.g. if the chief is elsewhere, `step` is derived from the last slot; under async and
  first_arrivals, it is then one more than the last position in a stream.
  """
  step: int
  digest: str | None = None
  checkpoint: str | None = None


def data_digest(*arrays: npt.NDArray[Any]) -> int:
  """Returns a digest of arrays, to pass as Worker's data_digest: workers with other examples are refused."""
  crc = 0
  for array in arrays:
    crc = zlib.crc32(repr((array.dtype.str, array.shape)).encode(), crc)
    crc = zlib.crc32(np.ascontiguousarray(array).data.cast("B"), crc)
  return crc


def _end_program() -> NoReturn:
  """Ends a program that has computed a replay. Its rest expects the end of the run, and may write files."""
  if threading.current_thread() is not threading.main_thread():
    # SystemExit would end only this thread.
    for stream in (sys.stdout, sys.stderr):
      if stream is not None:
        stream.flush()
    os._exit(0)  # pylint: disable=protected-access
  raise SystemExit


def _update_text(variable: Variable) -> str:
  update = variable.update
  if update is None:
    return ""
  kind, decay = (update, None) if isinstance(update, str) else (update[0], float(update[1]))
  kinds = {"assign": "ASSIGN", "assign_add": "ASSIGN_ADD", "moving_average": "MOVING_AVERAGE",
           "zero_debias_moving_average": "MOVING_AVERAGE"}
  if kind not in kinds or (decay is None) == kind.endswith("average"):
    raise ModelError(f"update of \"{variable.name}\" is {update!r}, must be \"assign\", \"assign_add\", "
                     "(\"moving_average\", decay) or (\"zero_debias_moving_average\", decay)")
  debias = field("zero_debias", True) if kind.startswith("zero_debias") else ""
  return message("update_ops", field("variable", variable.name) + f"kind: {kinds[kind]} " + field("decay", decay) + debias)


def _check_constant(variable: Variable) -> None:
  """Raises ModelError if the chief, which gets constants as float32, would start integers at another number."""
  value = None if variable.init is None else variable.init.value
  if value is not None and ctypes.c_float(value).value != value:
    raise ModelError(f"init.constant({value}) of \"{variable.name}\" is not exact in float32; set the value with "
                     "initial=")


def _model_text(variables: Sequence[Variable]) -> str:
  text = ""
  for variable in variables:
    content = field("name", variable.name)
    content += "".join(field("shape", int(size)) for size in variable.shape)
    content += field("trainable", bool(variable.trainable))
    if variable.dtype not in _DTYPES:
      raise ModelError(f"dtype of \"{variable.name}\" is {variable.dtype!r}, must be one of {', '.join(_DTYPES)}")
    if variable.dtype != "float32":
      content += f"dtype: {_DTYPES[variable.dtype]} "
      _check_constant(variable)
    if variable.init is not None:
      content += message("initializer", variable.init.text)
    text += message("variables", content)
  return text + "".join(_update_text(variable) for variable in variables)


def _framework_text(framework: Mapping[str, str] | None) -> str:
  values = dict(framework) if framework else {"name": "NumPy", "version": np.__version__}
  text = fields(name=values.pop("name", None), version=values.pop("version", None))
  for key in sorted(values):
    text += message("setting", fields(key=key, value=str(values[key])))
  return text


def _with_names(text: str, variables: Sequence[Variable]) -> str:
  """Returns the text with the name and shape of each variable that it mentions by number."""

  def named(match: re.Match[str]) -> str:
    variable = variables[int(match[1])] if int(match[1]) < len(variables) else None
    return match[0] if variable is None else f'{match[0]} (here "{variable.name}", {variable.shape})'

  return re.sub(r"\bvariables\[(\d+)\]", named, text)


class Slot:
  """A slot: a share of a step for the program to compute. Pass its results to done().

    step     the global step before it; under training.async and first_arrivals, the position in the slot's stream
    index    in [0, slots of the run); under these two policies, the stream
    seed     64 bits, a function of the run's seed, step and index, for any generator
    indices  int64 [batch], the examples; empty if the worker was made without examples
    canary   True for the check of a new worker: step 0, slot 0 with special values. Compute it like any other slot.
    fresh    True for the first slot of a session: previously known values of its step may have changed

  Used by one thread at a time.
  """

  step: int
  index: int
  seed: int
  indices: npt.NDArray[np.int64]
  canary: bool
  fresh: bool

  def __init__(self, worker: Worker, view: Any) -> None:
    self._worker = worker
    self._id = worker._id  # pylint: disable=protected-access
    self.step, self.index, self.seed, self.canary = view.step, view.index, view.seed, bool(view.canary)
    self.fresh = bool(view.fresh)
    count: int = view.index_count
    self.indices = _NO_INDICES
    if count:
      self.indices = np.frombuffer(bytearray(ctypes.string_at(view.indices, 8 * count)), np.int64)
    self._addresses: list[int] = view.values[:view.value_count]
    self._values: list[Array] | None = None
    self._closed = ""  # Why the slot is closed; empty while it is open.
    self._has_loss = False
    self._filled: set[int] = set()  # Variables whose gradients the program writes itself.
    self._ready: set[int] = set()
    self._sent: set[int] = set()

  def __repr__(self) -> str:
    return f"slot {self.index} of step {self.step}"

  @property
  def values(self) -> list[Array]:
    """The value of each variable, in the order of the worker's variables. Read-only; valid until done()."""
    self._require_open()
    if self._values is None:
      view = self._worker._view_of  # pylint: disable=protected-access
      self._values = [view(i, address, False) for i, address in enumerate(self._addresses)]
    return self._values

  def gradient(self, i: int) -> Array:
    """Returns the array to write the gradient of variable number `i` to. It is uninitialized, and valid until
    ready(i)."""
    self._require_open()
    address = ctypes.c_void_p()
    _core.check(_core.slot_gradient(self._id, i, ctypes.byref(address)))
    assert address.value is not None
    self._filled.add(i)
    return self._worker._view_of(i, address.value, True)  # pylint: disable=protected-access

  def ready(self, i: int) -> None:
    """Declares the gradient in gradient(i) final. It is sent now if the loss is known, otherwise by done()."""
    self._require_open()
    if i not in self._filled:
      raise ModelError(f"ready({i}) of {self} comes before gradient({i})")
    self._ready.add(i)
    if self._has_loss and not self._worker._updates:  # pylint: disable=protected-access
      self._send(i)

  def loss(self, loss: float, *, weight: float = 1.0, **metrics: float) -> bool:
    """Reports the mean loss, the weight and metrics before done(), so that gradients are sent as soon as they are
    ready().

    Returns False if the slot is no longer wanted; it is then closed.
    """
    self._require_open()
    self._check_weight(weight)
    code = _core.slot_loss(self._id, float(loss))
    if code == _core.CANCELLED:
      self._drop()
      return False
    _core.check(code)
    self._has_loss = True
    if weight != 1.0:
      _core.check(_core.slot_weight(self._id, float(weight)))
    for name, value in metrics.items():
      _core.check(_core.slot_metric(self._id, name.encode(), float(value)))
    return True

  def done(self, loss: float | None = None, gradients: Sequence[Array | None] | None = None,
           updates: Sequence[Array] = (), *, weight: float = 1.0, end_run: bool = False, **metrics: float) -> bool:
    """Reports the slot's results to the run.

    loss       the mean loss of the batch; None if loss() reported it
    gradients  for each variable, an array of its shape; None for variables whose gradient() was used, and for
               variables that are not trained
    updates    the value of each variable that has an update, in the order of the variables
    weight     the slot's weight in its step, e.g. its number of tokens; 0 or more. The step applies the weighted mean
               of the slots' gradients, which remain gradients of the mean loss. Must be a function of the slot alone.
    end_run    if True, the run ends with this step. Must be a function of the slot alone.
    metrics    human-readable numbers, such as accuracy=0.9. Status and TensorBoard show their means over the step's
               slots, weighted like the loss. TensorBoard shows them at the steps at which it shows the loss.

    Returns False if the result is no longer wanted, e.g. because the run is over. Raises ModelError if something is
    missing or does not fit; the slot then stays open.
    """
    if self._closed == "slot.done() was called":
      raise ModelError(f"slot.done() was called twice for {self}")
    self._require_open()
    if loss is None and not self._has_loss:
      raise ModelError(f"{self} has no loss")
    if loss is None and weight != 1.0:
      raise ModelError(f"{self} has its loss already; give its weight to loss(), too")
    self._check_results(gradients, updates)
    if loss is not None and not self.loss(loss, weight=weight):
      return False
    for name, value in metrics.items():
      _core.check(_core.slot_metric(self._id, name.encode(), float(value)))
    if end_run:
      _core.check(_core.slot_end_run(self._id))
    for op, update in enumerate(updates):
      dtype = self._worker.variables[self._worker._updates[op]].dtype  # pylint: disable=protected-access
      array = np.ascontiguousarray(update, dtype)
      if dtype == "float32":
        _core.check(_core.slot_update(self._id, op, array.ctypes.data, array.size))
      else:
        _core.check(_core.slot_update_integers(self._id, op, dtype.encode(), array.ctypes.data, array.size))
    for i in self._worker._trainable:  # pylint: disable=protected-access
      gradient = None if gradients is None else gradients[i]
      if gradient is not None and i not in self._ready:
        np.copyto(self.gradient(i), gradient, casting="same_kind")
      self._send(i)
    _core.check(_core.slot_done(self._id))
    self._closed = "slot.done() was called"
    return True

  def cancelled(self) -> bool:
    """Returns True if the slot is no longer wanted; it is then closed. A long computation may poll this.

    The canary is always wanted.
    """
    self._require_open()
    wanted = ctypes.c_int()
    _core.check(_core.slot_wanted(self._id, ctypes.byref(wanted)))
    if self.canary or wanted.value:
      return False
    self._drop()
    return True

  def _check_weight(self, weight: float) -> None:
    if not 0.0 <= weight <= _LARGEST_WEIGHT:
      raise ModelError(f"the weight of {self} is {weight}, must be a finite number, 0 or more")

  def _check_results(self, gradients: Sequence[Array | None] | None, updates: Sequence[Array]) -> None:
    variables = self._worker.variables
    if gradients is not None and len(gradients) != len(variables):
      raise ModelError(f"{self} has {len(gradients)} gradients, the model has {len(variables)} variables; give None for "
                       "those that are not trained")
    for i, variable in enumerate(variables):
      gradient = None if gradients is None else gradients[i]
      if gradient is not None and not variable.trainable:
        raise ModelError(f"\"{variable.name}\" is not trainable but has a gradient")
      if gradient is not None and tuple(np.shape(gradient)) != tuple(variable.shape):
        raise ModelError(f"gradient of \"{variable.name}\" has shape {tuple(np.shape(gradient))}, the variable has "
                         f"{tuple(variable.shape)}")
      if variable.trainable and gradient is None and i not in self._filled:
        raise ModelError(f"\"{variable.name}\" has no gradient in {self}")
    targets = self._worker._updates  # pylint: disable=protected-access
    if len(updates) != len(targets):
      raise ModelError(f"{self} has {len(updates)} updates, the model has {len(targets)}")
    for target, value in zip(targets, updates):
      if tuple(np.shape(value)) != tuple(variables[target].shape):
        raise ModelError(f"update of \"{variables[target].name}\" has shape {tuple(np.shape(value))}, the variable has "
                         f"{tuple(variables[target].shape)}")
      if variables[target].dtype not in ("float32", np.asarray(value).dtype.name):
        raise ModelError(f"update of \"{variables[target].name}\" is {np.asarray(value).dtype.name}, the variable is "
                         f"{variables[target].dtype}")

  def _send(self, i: int) -> None:
    if i not in self._sent:
      _core.check(_core.slot_ready(self._id, i))
      self._sent.add(i)

  def _drop(self) -> None:
    _core.check(_core.slot_drop(self._id))
    self._closed = "it is not wanted any more"

  def _require_open(self) -> None:
    if self._closed:
      raise ModelError(f"{self} is closed: {self._closed}")
    self._worker._require_open()  # pylint: disable=protected-access


class Worker:
  """A worker of a run: an iterator of slots, and a context manager that leaves the run.

    with lockstep.Worker(variables, run, examples=len(x)) as worker:
      for slot in worker:
        loss, gradients = compute(slot.values, x[slot.indices], y[slot.indices])
        slot.done(loss, gradients)
    print(worker.result)

  The iterator handles retries, restarts of the chief and the end of the run. A worker that leaves early, e.g. by
  Ctrl-C, may come back; the run continues without it. In a program that `lockstep replay` has started, the iterator
  yields the slots of the replay, and then raises SystemExit. In a thread other than the main one, it ends the process.

    variables    the model; all workers must have the same
    run          the run that the program declares. None: whatever run the master has
    examples     the number of training examples. None: slots have no indices
    data_digest  the digest of these examples: lockstep.data_digest(x, y). Workers with a different one are refused
    master       "grpc://host:port", "unix:/path" or "file:/path". None: `lockstep launch`, or else $LOCKSTEP_MASTER, or
                 else a chief in a child process of this one, which requires `run`
    name         shown in status and logs
    framework    {"name": "PyTorch", "version": ..., setting: value, ...}: the framework that computes, and everything
                 that its results depend on. None: NumPy and its version. Workers with a different one are refused
    parts        what else the gradients depend on, compared by digests: {"source of the model": bytes}
    initial      the values, by name, that a new run starts from, in place of run.initial. Ignored if the run exists, or
                 if a chief elsewhere has a checkpoint.warm_start
    chief_wait   seconds to look for an absent chief. None: as configured
    progress     True: a line on stderr shows the run's progress once a second. None: the same, but only if this worker
                 started the chief, and stderr is a terminal or a notebook's

  Threads: iterate and use slots in one thread; other threads may call stop, end, indices and seed.
  The constructor raises ConfigurationError, ModelError and Refused; the loop Refused, RunFailed, ChiefLost and Error.
  """

  def __init__(self, variables: Sequence[Variable], run: Run | None = None, *, examples: int | None = None,
               data_digest: int = 0, master: str | None = None, name: str | None = None,  # pylint: disable=redefined-outer-name
               framework: Mapping[str, str] | None = None, parts: Mapping[str, bytes] | None = None,
               initial: Mapping[str, Array] | None = None, chief_wait: float | None = None,
               progress: bool | None = None) -> None:
    if _core.in_fork():
      raise Error("this process was forked from one that had imported lockstep, whose core it cannot use; import lockstep "
                  "in the child, or start it with \"spawn\"")
    self._id = ctypes.c_int64()
    self._chief: Chief | None = None
    self._slot: Slot | None = None
    self._view = _core.SlotView()
    self._arrays: dict[tuple[int, int, bool], Array] = {}
    self._last_step = -1
    self._keeps_state = False  # True once the core's thread has called _core.keep_thread_state
    self._result: Result | None = None
    self._progress: Progress | None = None
    self.variables = [Variable(*variable) for variable in variables]
    self._run = run
    self._trainable = [i for i, variable in enumerate(self.variables) if variable.trainable]
    self._updates = [i for i, variable in enumerate(self.variables) if variable.update is not None]
    model = _model_text(self.variables)
    values = initial if initial is not None else run.initial if run and isinstance(run.initial, Mapping) else None
    if values is not None:
      _initial.check(values, {variable.name: variable.shape for variable in self.variables})
      types = {variable.name: variable.dtype for variable in self.variables}
      values = {name: _initial.in_type(name, value, types[name]) for name, value in values.items()}
    self.master = self._find_master(master, values)
    # A chief elsewhere takes the values from the worker. This program's chief and the launcher's read them in a file.
    elsewhere = self._chief is None and (master is not None or not os.environ.get("LOCKSTEP_LAUNCH"))
    self._initial_digest = "" if values is None or elsewhere else _initial.digest_of(values)
    brought = _initial.ForCore(values if elsewhere else None)
    named = [(part.encode(), bytes(content)) for part, content in sorted((parts or {}).items())]
    options = _core.WorkerOptions(
        master=self.master.encode(), name=(name or os.environ.get("LOCKSTEP_NAME", "")).encode() or None,
        run=None if run is None else run.to_text().encode(), model=model.encode(),
        framework=_framework_text(framework).encode(),
        parts=(_core.Part * len(named))(*[_core.Part(part, content, len(content)) for part, content in named]),
        part_count=len(named), examples=examples or 0, examples_digest=data_digest,
        chief_wait_seconds=-1.0 if chief_wait is None else chief_wait, initial_values=brought.array,
        initial_value_count=brought.count)
    try:
      _core.check(_core.worker_new(ctypes.byref(options), ctypes.byref(self._id)), refused=Refused)
    except BaseException:
      self.close()
      raise
    wanted = self._chief is not None and shows_lines(sys.stderr) if progress is None else progress
    self._progress = progress_for(self.master, wanted and not _core.in_replay())
    _open_workers.add(self)

  def _find_master(self, master: str | None, values: Mapping[str, Array] | None) -> str:
    launcher = os.environ.get("LOCKSTEP_LAUNCH")
    if _core.in_replay():
      return ""
    if master is not None:
      return master
    if launcher:
      if self._run is None:
        raise ConfigurationError("run is None; a worker that lockstep launch starts declares the run")
      return declare_to_launcher(launcher, self._run, self._text_with(values, launcher))
    if os.environ.get("LOCKSTEP_MASTER"):
      return os.environ["LOCKSTEP_MASTER"]
    if self._run is None:
      raise ConfigurationError("run is None, and there is no master; give one of them, or set LOCKSTEP_MASTER")
    self._chief = Chief(self._run, make_text=lambda directory: self._text_with(values, directory))
    return self._chief.master

  def _text_with(self, values: Mapping[str, Array] | None, directory: str) -> str:
    """Returns the configuration of the run when it starts from `values`. Writes them to the logdir, or else to
    `directory`."""
    assert self._run is not None
    if values is None:
      return self._run.to_text()
    path = _initial.file_for(values, self._run.logdir or directory)
    return _core.parse(self._run.to_text(), None, [
        f"checkpoint.warm_start={path}", f"checkpoint.warm_start_variables={{{_initial.IN_ORDER}}}"])[0]

  def __iter__(self) -> Iterator[Slot]:
    return self

  def __next__(self) -> Slot:
    self._require_no_slot()
    while True:
      code = _core.worker_next(self._id, _SLICE_SECONDS, ctypes.byref(self._view))
      if code == _core.OK:
        if self._progress is not None:
          self._progress.update()
        return self._begin(self._view)
      if not self._continues(code):
        raise StopIteration

  def run(self, compute: Callable[[Slot], object]) -> None:
    """Calls compute(slot) for each slot until the run is over, like a loop over the worker.

    In a loop, two threads hand each slot to each other, which matters if a slot takes less than a millisecond. Here,
    the core's own thread calls `compute`, so thread-local settings of the caller, such as np.errstate, do not apply. It
    is the same thread for all slots. What `compute` keeps in threading.local lasts until the program ends.
    Ctrl-C takes effect between two slots. An exception in `compute` ends the call, which raises it. `compute` must not
    iterate over this worker or close it; both raise.
    """
    self._require_no_slot()
    raised: list[BaseException] = []

    def call(unused: object, view: Any) -> int:
      del unused
      try:
        if not self._keeps_state:
          _core.keep_thread_state()
          self._keeps_state = True
        compute(self._begin(view.contents))
        self._require_no_slot()
        return 0
      except BaseException as error:  # pylint: disable=broad-exception-caught
        raised.append(error)
        return 1

    function = _core.SLOT_FUNCTION(call)
    while True:
      code = _core.worker_run(self._id, _SLICE_SECONDS, function, None)
      if raised:
        raise raised[0]
      if not self._continues(code):
        return

  def _require_no_slot(self) -> None:
    self._require_open()
    if self._slot is not None and not self._slot._closed:  # pylint: disable=protected-access
      raise ModelError(f"{self._slot} was not finished; call slot.done() before the next slot")
    self._slot = None

  def _begin(self, view: Any) -> Slot:
    """Returns a slot that the core has handed over."""
    self._slot = slot = Slot(self, view)
    if self._last_step < 0:
      self._report_initial_values()
    self._last_step = max(self._last_step, slot.step)
    return slot

  def _continues(self, code: int) -> bool:
    """Handles a wait for slots that ended without one. Returns False if there are no more. Raises if the worker
    failed."""
    if self._progress is not None:
      self._progress.update()
    if code == _core.DEADLINE_EXCEEDED:
      if self._chief is not None and not self._chief.tend() and not self._chief.wait():
        raise ChiefLost("the chief of this program was stopped; the run can be continued")
      return True
    if code == _core.OUT_OF_RANGE:
      self._finish()
      if self._progress is not None:
        self._progress.end(f"the run is over at step {self.result.step}")
    elif code != _core.CANCELLED:
      self._raise_end(code)
    elif _core.in_replay():
      _end_program()
    return False

  @property
  def result(self) -> Result:
    """The result of the run. Raises Error before the run has ended."""
    if self._result is None:
      raise Error("the run is not over for this worker; finish the loop over its slots")
    return self._result

  @property
  def step(self) -> int:
    """The greatest step of any slot so far, as in Slot.step; -1 before the first."""
    return self._last_step

  @property
  def initial_digest(self) -> str:
    """The digest of the initial values that a worker brought to the chief when the run was new, as 64 hexadecimal digits;
    empty if none did. Raises Error before the first slot."""
    return self._brought_digests()[1]

  @property
  def spec(self) -> str:
    """The run's configuration in text format. Raises Error before the first slot."""
    text = ctypes.c_char_p()
    _core.check(_core.worker_spec(self._id, ctypes.byref(text)), refused=Error)
    assert text.value is not None
    return text.value.decode()

  def indices(self, step: int, index: int) -> npt.NDArray[np.int64]:
    """Returns the examples of any slot, to prepare batches ahead. Available after the first slot.

    Raises IndexError beyond the last epoch.
    """
    count = ctypes.c_size_t(0 if self._run is None else self._run.batch)
    while True:
      out = np.empty(count.value, np.int64)
      code = _core.worker_indices(self._id, step, index, out.ctypes.data, out.size, ctypes.byref(count))
      if code == _core.OUT_OF_RANGE:
        raise IndexError(_core.last_error())
      _core.check(code, refused=Error)
      if count.value <= out.size:
        return out[:count.value]

  def seed(self, step: int, index: int) -> int:
    """Returns the seed of any slot. Available after the first slot."""
    seed = ctypes.c_uint64()
    _core.check(_core.worker_seed(self._id, step, index, ctypes.byref(seed)), refused=Error)
    return seed.value

  def stop(self) -> None:
    """Leaves the run, which continues without this worker: the loop ends after the current slot."""
    self._require_open()
    _core.check(_core.worker_stop(self._id))

  def end(self, reason: str) -> None:
    """Asks the chief to end the run for all workers once the step in progress is committed.

    The current slot is still wanted, as are the step's other slots: the loop ends after them. Raises ChiefLost if there
    is currently no session.
    """
    self._require_open()
    _core.check(_core.worker_end(self._id, reason.encode()))

  def close(self) -> None:
    """Leaves the run, gives up the current slot, and stops a chief that this worker started. Idempotent.

    Raises Error in a function that run() calls.
    """
    if _core.in_fork():
      return
    if self._id.value:
      _core.check(_core.worker_free(self._id), refused=Error)
      self._id = ctypes.c_int64()
    _open_workers.discard(self)
    if self._progress is not None:
      self._progress.end()
    self._arrays.clear()
    if self._chief is not None:
      self._chief.close()
      self._chief = None

  def __enter__(self) -> Worker:
    return self

  def __exit__(self, *unused: Any) -> None:
    self.close()

  def _require_open(self) -> None:
    if _core.in_fork():
      raise Error("this process was forked from the worker's, and has none of its threads")
    if not self._id.value:
      raise Error("the worker is closed")

  def _view_of(self, i: int, address: int, writable: bool) -> Array:
    """Returns an array over the core's memory. Addresses recur, so arrays are cached."""
    key = (i, address, writable)
    array = self._arrays.get(key)
    if array is None:
      if len(self._arrays) > 16 * len(self.variables):
        self._arrays.clear()
      shape, dtype = self.variables[i].shape, np.dtype(self.variables[i].dtype)
      memory = (ctypes.c_char * (dtype.itemsize * int(np.prod(shape, dtype=np.int64)))).from_address(address)
      array = np.frombuffer(memoryview(memory), dtype).reshape(shape)
      array.flags.writeable = writable
      self._arrays[key] = array
    return array

  def _report_initial_values(self) -> None:
    """Logs the digest of the initial values, and whether the run began with different values."""
    brought, of_run = self._brought_digests()
    own = self._initial_digest or brought
    if not own:
      return
    start: str = json.loads(_core.parse(self.spec, None, [])[1]).get("checkpoint", {}).get("warm_start", "")
    of_run = of_run or _initial.digest_in_name(start)
    if not of_run:
      _LOGGER.info("the run began %s, not with this program's initial values, %s",
                   f"with {start}" if start else "without a worker's values", own[:16])
    elif not own.startswith(of_run):
      _LOGGER.info("the run began with the initial values %s, which count, not with this program's, %s", of_run[:16],
                   own[:16])
    else:
      _LOGGER.info("the initial values have the digest %s", own)

  def _brought_digests(self) -> tuple[str, str]:
    """Returns the digests of the values that the core brings to the chief, and of those that the run began with."""
    own, of_run = ctypes.c_char_p(), ctypes.c_char_p()
    _core.check(_core.worker_initial_values(self._id, ctypes.byref(own), ctypes.byref(of_run)), refused=Error)
    return (own.value or b"").decode(), (of_run.value or b"").decode()

  def _raise_end(self, code: int) -> NoReturn:
    """Raises the reason why the worker ended, with the names of variables and the next step to take."""
    try:
      _core.raise_end(code)
    except Refused as error:
      raise Refused(_with_names(str(error), self.variables)) from None
    except RunFailed as error:
      checkpoint = self._last_checkpoint()
      if not checkpoint:
        raise
      raise RunFailed(f"{error}; the run ends, its last checkpoint is {checkpoint}") from None
    except ChiefLost as error:
      if self._last_step >= 0 or self._chief is not None:
        raise
      raise ChiefLost(f"{error}; start one with: lockstep chief CONFIG --listen=HOST:PORT") from None

  def _last_checkpoint(self) -> str:
    """Returns the path of the run's newest checkpoint, or an empty string if there is none or the chief is
    elsewhere."""
    if self._chief is None or self._run is None or self._run.logdir is None:
      return ""
    checkpoint = ctypes.c_char_p()
    if _core.digest(os.fsencode(self._run.logdir), None, ctypes.byref(checkpoint)) != _core.OK:
      return ""
    return os.fsdecode(checkpoint.value or b"")

  def _finish(self) -> None:
    self._result = Result(self._last_step + 1)
    if self._chief is not None:
      self._chief.wait()
    elif self.master.startswith("file:"):
      self._await_mark(self.master[len("file:"):])
    else:
      return
    if self._run is None or self._run.logdir is None or not os.path.isdir(self._run.logdir):
      return
    try:
      text, checkpoint = checkpoint_digest(self._run.logdir)
    except FileNotFoundError:
      return  # The chief and its checkpoints are elsewhere.
    name = os.path.basename(checkpoint).rpartition("-")[2]
    step = int(name) if name.isdigit() else self._last_step + 1
    # If the master is the file of a chief elsewhere, the folder may belong to an earlier run.
    if step >= self._last_step or self._run.streams:
      self._result = Result(step, text, checkpoint)

  def _await_mark(self, path: str) -> None:
    """Waits until the chief has written to its address file that the run is over. By then, the last step is saved."""
    deadline = time.monotonic() + _END_SECONDS
    while time.monotonic() < deadline:
      line = pathlib.Path(path).read_text() if os.path.exists(path) else ""
      if line.startswith("finished"):
        return
      if line.startswith("failed"):
        raise RunFailed(line.partition(":")[2].strip())
      time.sleep(0.02)


# Workers to close before the interpreter ends.
_open_workers: weakref.WeakSet[Worker] = weakref.WeakSet()


def _close_workers() -> None:
  for worker in list(_open_workers):
    worker.close()


_core.at_exit(_close_workers)
