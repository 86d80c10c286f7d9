"""The C core, liblockstep.so, through ctypes: how to load it, its structs, its errors and its log.

capi/lockstep.h documents every function that this module calls.
"""

from __future__ import annotations

import atexit
import ctypes
import logging
import os
import pathlib
from typing import Any, Callable, NoReturn, Sequence

from lockstep._errors import ChiefLost, ConfigurationError, Error, ModelError, Refused, RunFailed

ABI_VERSION = 1

OK = 0
CANCELLED = 1
INVALID_ARGUMENT = 3
DEADLINE_EXCEEDED = 4
NOT_FOUND = 5
FAILED_PRECONDITION = 9
OUT_OF_RANGE = 11
UNAVAILABLE = 14

_PACKAGE = pathlib.Path(__file__).parent
_LOGGER = logging.getLogger("lockstep")

# The instruction sets of x86-64-v3, the best known first, with their names in /proc/cpuinfo.
_INSTRUCTIONS = {
    "AVX2": "avx2", "FMA": "fma", "AVX": "avx", "BMI1": "bmi1", "BMI2": "bmi2", "F16C": "f16c", "LZCNT": "abm",
    "MOVBE": "movbe", "POPCNT": "popcnt", "SSE4.2": "sse4_2", "SSE4.1": "sse4_1", "SSSE3": "ssse3", "SSE3": "pni",
    "CMPXCHG16B": "cx16", "LAHF": "lahf_lm",
}


def missing_instruction(cpuinfo: str) -> str | None:
  """Returns the first instruction set that the core needs and a processor lacks, given the text of /proc/cpuinfo.

  Returns None if the processor lacks none, or if the text does not say.
  """
  for line in cpuinfo.splitlines():
    if not line.startswith("flags"):
      continue
    flags = set(line.partition(":")[2].split())
    return next((name for name, flag in _INSTRUCTIONS.items() if flag not in flags), None)
  return None


def _check_processor() -> None:
  """Raises ImportError on a processor on which loading the core would crash the process."""
  try:
    cpuinfo = pathlib.Path("/proc/cpuinfo").read_text(errors="replace")
  except OSError:
    return
  missing = missing_instruction(cpuinfo)
  if missing is not None:
    raise ImportError(f"this processor has no {missing}, which Lockstep is compiled for (x86-64-v3)")


def find_file(*places: str) -> str | None:
  """Returns the path of the first existing place. Places are relative to the package."""
  return next((str(_PACKAGE / place) for place in places if (_PACKAGE / place).exists()), None)


def _load() -> ctypes.CDLL:
  _check_processor()
  path = os.environ.get("LOCKSTEP_LIBRARY") or find_file("liblockstep.so", "../../capi/liblockstep.so",
                                                         "../../.bz/out/k8-opt/bin/capi/liblockstep.so")
  if path is None:
    raise ImportError(f"there is no liblockstep.so in {_PACKAGE}; install the wheel, or build //capi:liblockstep.so and "
                      "set LOCKSTEP_LIBRARY to its path")
  # Uses deep binding, because another library in the process, e.g. TensorFlow, may have symbols with the same names.
  try:
    library = ctypes.CDLL(path, mode=os.RTLD_NOW | os.RTLD_LOCAL | os.RTLD_DEEPBIND)
  except OSError as error:
    raise ImportError(f"cannot load {path}: {error}") from error
  version: int = library.lockstep_abi_version()
  if version != ABI_VERSION:
    raise ImportError(f"{path} has version {version} of the C interface, this package needs {ABI_VERSION}")
  return library


class Part(ctypes.Structure):
  _fields_ = [("name", ctypes.c_char_p), ("data", ctypes.c_char_p), ("size", ctypes.c_size_t)]


class _Sized(ctypes.Structure):
  """A struct that begins with its size."""

  def __init__(self, **values: Any) -> None:
    super().__init__(size=ctypes.sizeof(type(self)), **values)


class InitialValue(ctypes.Structure):
  _fields_ = [("variable", ctypes.c_char_p), ("elements", ctypes.c_void_p), ("count", ctypes.c_size_t)]


class WorkerOptions(_Sized):
  _fields_ = [
      ("size", ctypes.c_size_t), ("master", ctypes.c_char_p), ("name", ctypes.c_char_p), ("run", ctypes.c_char_p),
      ("model", ctypes.c_char_p), ("framework", ctypes.c_char_p), ("parts", ctypes.POINTER(Part)),
      ("part_count", ctypes.c_size_t), ("examples", ctypes.c_int64), ("examples_digest", ctypes.c_uint32),
      ("chief_wait_seconds", ctypes.c_double), ("initial_values", ctypes.POINTER(InitialValue)),
      ("initial_value_count", ctypes.c_size_t),
  ]


class SlotView(_Sized):
  _fields_ = [
      ("size", ctypes.c_size_t), ("step", ctypes.c_int64), ("index", ctypes.c_int64), ("seed", ctypes.c_uint64),
      ("canary", ctypes.c_int32), ("fresh", ctypes.c_int32), ("indices", ctypes.c_void_p),
      ("index_count", ctypes.c_size_t), ("values", ctypes.POINTER(ctypes.c_void_p)), ("value_count", ctypes.c_size_t),
  ]


class TensorView(_Sized):
  _fields_ = [
      ("size", ctypes.c_size_t), ("name", ctypes.c_char_p), ("dtype", ctypes.c_char_p),
      ("shape", ctypes.POINTER(ctypes.c_int64)), ("rank", ctypes.c_size_t), ("data", ctypes.c_void_p),
      ("bytes", ctypes.c_size_t),
  ]


_ID = ctypes.c_int64
_TEXT = ctypes.c_char_p
_TEXTS = ctypes.POINTER(ctypes.c_char_p)
_LOG_FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p)
SLOT_FUNCTION = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(SlotView))

library = _load()


def _declare(name: str, *arguments: Any, result: Any = ctypes.c_int) -> Callable[..., Any]:
  function = getattr(library, name)
  function.argtypes = arguments
  function.restype = result
  return function  # type: ignore[no-any-return]


_error = _declare("lockstep_error", result=_TEXT)
_version = _declare("lockstep_version", result=_TEXT)
_set_log = _declare("lockstep_set_log", _LOG_FUNCTION, ctypes.c_void_p)
_use_tls = _declare("lockstep_use_tls", _TEXT)
parse_run = _declare("lockstep_parse_run", _TEXT, _TEXT, _TEXTS, ctypes.c_size_t, _TEXTS, _TEXTS)

worker_new = _declare("lockstep_worker_new", ctypes.POINTER(WorkerOptions), ctypes.POINTER(_ID))
worker_next = _declare("lockstep_worker_next", _ID, ctypes.c_double, ctypes.POINTER(SlotView))
worker_run = _declare("lockstep_worker_run", _ID, ctypes.c_double, SLOT_FUNCTION, ctypes.c_void_p)
worker_indices = _declare("lockstep_worker_indices", _ID, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p,
                          ctypes.c_size_t, ctypes.POINTER(ctypes.c_size_t))
worker_seed = _declare("lockstep_worker_seed", _ID, ctypes.c_int64, ctypes.c_int64, ctypes.POINTER(ctypes.c_uint64))
worker_spec = _declare("lockstep_worker_spec", _ID, _TEXTS)
worker_initial_values = _declare("lockstep_worker_initial_values", _ID, _TEXTS, _TEXTS)
worker_end = _declare("lockstep_worker_end", _ID, _TEXT)
worker_stop = _declare("lockstep_worker_stop", _ID)
worker_free = _declare("lockstep_worker_free", _ID)

slot_loss = _declare("lockstep_slot_loss", _ID, ctypes.c_float)
slot_weight = _declare("lockstep_slot_weight", _ID, ctypes.c_float)
slot_metric = _declare("lockstep_slot_metric", _ID, _TEXT, ctypes.c_float)
slot_end_run = _declare("lockstep_slot_end_run", _ID)
slot_update = _declare("lockstep_slot_update", _ID, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_size_t)
slot_update_integers = _declare("lockstep_slot_update_integers", _ID, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_void_p,
                                ctypes.c_size_t)
slot_gradient = _declare("lockstep_slot_gradient", _ID, ctypes.c_size_t, ctypes.POINTER(ctypes.c_void_p))
slot_ready = _declare("lockstep_slot_ready", _ID, ctypes.c_size_t)
slot_done = _declare("lockstep_slot_done", _ID)
slot_drop = _declare("lockstep_slot_drop", _ID)
slot_wanted = _declare("lockstep_slot_wanted", _ID, ctypes.POINTER(ctypes.c_int))

read = _declare("lockstep_read", _TEXT, _TEXTS, ctypes.c_size_t, ctypes.c_double, ctypes.POINTER(_ID))
load = _declare("lockstep_load", _TEXT, ctypes.POINTER(_ID))
tensors_count = _declare("lockstep_tensors_count", _ID, ctypes.POINTER(ctypes.c_size_t), ctypes.POINTER(ctypes.c_int64))
tensors_get = _declare("lockstep_tensors_get", _ID, ctypes.c_size_t, ctypes.POINTER(TensorView))
tensors_free = _declare("lockstep_tensors_free", _ID)
digest = _declare("lockstep_digest", _TEXT, _TEXTS, _TEXTS)
status = _declare("lockstep_status", _TEXT, ctypes.c_double, _TEXTS)


def version() -> str:
  """Returns the core's release and revision."""
  return str(_version().decode())


def use_tls(directory: str | os.PathLike[str] | None) -> None:
  """Uses TLS for all later connections to chiefs, except over unix sockets.

  `directory` contains the files ca.crt, tls.crt and tls.key, which may be replaced at any time; `lockstep certs` makes
  them. None means the folder in LOCKSTEP_TLS_DIR, as without this call; "" turns TLS off. Raises ConfigurationError,
  which names the bad file, and then changes nothing.
  """
  check(_use_tls(None if directory is None else os.fsencode(directory)), invalid=ConfigurationError)


def last_error() -> str:
  """Returns the reason for the calling thread's last failure."""
  return str(_error().decode(errors="replace"))


def texts(values: Sequence[str]) -> Any:
  """Returns an array of C strings."""
  return (ctypes.c_char_p * len(values))(*[value.encode() for value in values])


def fail(code: int, invalid: type[Error] = ModelError, refused: type[Error] = ModelError) -> NoReturn:
  """Raises the error for the calling thread's last failure.

  `invalid` and `refused` are the classes for INVALID_ARGUMENT and FAILED_PRECONDITION, whose meaning depends on the
  call.
  """
  classes = {INVALID_ARGUMENT: invalid, FAILED_PRECONDITION: refused, UNAVAILABLE: ChiefLost}
  if code == NOT_FOUND:
    raise FileNotFoundError(last_error())
  raise classes.get(code, Error)(last_error())


def check(code: int, invalid: type[Error] = ModelError, refused: type[Error] = ModelError) -> None:
  """Raises unless a call succeeded."""
  if code:
    fail(code, invalid, refused)


def raise_end(code: int) -> NoReturn:
  """Raises the reason why a worker ended."""
  fail(code, invalid=RunFailed, refused=Refused)


def parse(text: str | None, path: str | None, overrides: Sequence[str]) -> tuple[str, str]:
  """Returns a configuration with its defaults, in text format and in JSON. Raises ConfigurationError if it is
  invalid."""
  canonical, json = ctypes.c_char_p(), ctypes.c_char_p()
  check(parse_run(None if text is None else text.encode(), None if path is None else os.fsencode(path), texts(overrides),
                  len(overrides), ctypes.byref(canonical), ctypes.byref(json)), invalid=ConfigurationError)
  assert canonical.value is not None and json.value is not None
  return canonical.value.decode(), json.value.decode()


_LEVELS = (logging.INFO, logging.WARNING, logging.ERROR)


def _log(context: object, severity: int, line: bytes) -> None:
  _LOGGER.log(_LEVELS[severity], "%s", line.decode(errors="replace"))


_log_function = _LOG_FUNCTION(_log)
_forked = False
_at_exit: list[Callable[[], None]] = []


def at_exit(function: Callable[[], None]) -> None:
  """Calls `function` before the interpreter ends, while the core can still be called."""
  _at_exit.append(function)


def in_fork() -> bool:
  """Returns True in a child that was forked without exec. It has none of the core's threads, so it must not call the
  core."""
  return _forked


def _note_fork() -> None:
  global _forked  # pylint: disable=global-statement
  _forked = True


os.register_at_fork(after_in_child=_note_fork)


def keep_thread_state() -> None:
  """Keeps Python's state of the calling thread, which the core has started, until the interpreter ends.

  Otherwise, each of the core's calls would make a new state, without the values of threading.local, and destroy it,
  which takes longer than the rest of the call.
  """
  ctypes.pythonapi.PyGILState_Ensure()  # never released


def in_replay() -> bool:
  """Returns True if `lockstep replay` has started this program. The core then offers the replay's slots, without a
  chief."""
  return bool(os.environ.get("LOCKSTEP_REPLAY"))


def _end() -> None:
  if in_fork():
    return
  for function in _at_exit:
    function()
  # Threads of the core must not call an interpreter that is gone.
  _set_log(_LOG_FUNCTION(), None)


_set_log(_log_function, None)
atexit.register(_end)
