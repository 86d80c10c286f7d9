"""The torch settings that results depend on."""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
from typing import Dict, Iterator, Literal, Optional

import torch

from lockstep.torch import _kernels
from lockstep.torch._portable import is_portable

# Setting only one of them is not enough: ATen, oneDNN and MKL choose their kernels separately.
_CAPS = {"ATEN_CPU_CAPABILITY": "avx2", "ONEDNN_MAX_CPU_ISA": "AVX2"}
# By the value of `mkl`: MKL_CBWR, and the code path that MKL then reports (MKL_CBWR_COMPATIBLE, and MKL_CBWR_AVX2 |
# MKL_CBWR_STRICT in mkl_service.h).
_MKL = {"compatible": ("COMPATIBLE", 3), "avx2": ("AVX2,STRICT", 10 | 0x10000)}
_INTEL_CHECKS = ("mkl_serv_intel_cpu", "mkl_serv_intel_cpu_true")
_RETURN_ONE = b"\xb8\x01\x00\x00\x00\xc3"  # mov eax, 1; ret
_LATE = "lockstep.torch.deterministic() must be called before the first operation of torch, and so before the model is built"


def _library() -> ctypes.CDLL:
  return ctypes.CDLL(os.path.join(os.path.dirname(torch.__file__), "lib", "libtorch_cpu.so"))


def _mkl_path() -> Optional[int]:
  """Returns the code path chosen by MKL (MKL_CBWR_Get), or None if torch is built without MKL."""
  try:
    return int(_library().mkl_serv_cbwr_get(-1))  # MKL_CBWR_ALL
  except (OSError, AttributeError):
    return None


def _mkl_setting() -> str:
  path = _mkl_path()
  return "absent" if path is None else next((name for name, (_, known) in _MKL.items() if known == path), "default")


def _write_code(address: int, code: bytes) -> None:
  """Replaces code in the process's memory. Raises RuntimeError if the system does not allow it."""
  system = ctypes.CDLL(None, use_errno=True)
  system.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
  begin = address & -mmap.PAGESIZE
  size = address + len(code) - begin
  if system.mprotect(begin, size, mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC) != 0:
    raise RuntimeError(f'mkl="avx2" cannot replace functions of MKL: {os.strerror(ctypes.get_errno())}')
  ctypes.memmove(address, code, len(code))
  system.mprotect(begin, size, mmap.PROT_READ | mmap.PROT_EXEC)


@contextlib.contextmanager
def _processor_treated_as_intels() -> Iterator[None]:
  """Replaces the two functions that tell MKL whether Intel made the processor. Otherwise, it uses AVX2 only there.

  They stay replaced unless the body raises.

  Raises:
    RuntimeError: torch's library lacks the functions, or the system does not allow it.
  """
  library = _library()
  if not all(hasattr(library, name) for name in _INTEL_CHECKS):
    raise RuntimeError('mkl="avx2": this torch has no MKL, or one without ' + " and ".join(_INTEL_CHECKS))
  originals: Dict[int, bytes] = {}
  try:
    for name in _INTEL_CHECKS:
      address = ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0
      original = ctypes.string_at(address, len(_RETURN_ONE))
      _write_code(address, _RETURN_ONE)
      originals[address] = original
    yield
  except BaseException:
    for address, original in originals.items():
      _write_code(address, original)
    raise


def deterministic(threads: int = 1, isa: Literal["avx2", "native"] = "avx2",
                  mkl: Literal["compatible", "avx2"] = "compatible") -> None:
  """Makes torch compute the same bits in every process that calls this with the same arguments.

  Sets the number of threads, torch.use_deterministic_algorithms(True) and what it requires for GPUs. With isa="avx2",
  also sets the variables that restrict ATen, oneDNN and MKL to kernels shared by AMD and Intel processors with AVX2.
  MKL's restriction makes matrix products about 2.2 times slower. With mkl="avx2", MKL uses its AVX2 kernels instead,
  which are faster. Since it does so only on Intel's processors, this replaces two of its functions in the process's
  memory, which are not part of its interface. With isa="native", the kernels depend on the processor, so all workers
  need the same kind of processor. Every setting becomes part of the run's contract: a worker with a different one is
  refused, and the refusal names it.

  Raises:
    ValueError: threads < 1, an unknown isa or mkl, or mkl="avx2" with isa="native".
    RuntimeError: torch has already computed in this process and can no longer change its kernels, or MKL's functions
      cannot be replaced.
  """
  if threads < 1:
    raise ValueError(f"threads is {threads}; it must be at least 1")
  if isa not in ("avx2", "native"):
    raise ValueError(f'isa is "{isa}"; it must be "avx2" or "native"')
  if mkl not in _MKL or (mkl == "avx2" and isa == "native"):
    raise ValueError(f'mkl is "{mkl}"; it must be "compatible" or, unless isa is "native", "avx2"')
  if isa == "avx2":
    variable, wanted = _MKL[mkl]
    os.environ.update(_CAPS, MKL_CBWR=variable)
    capability = torch.backends.cpu.get_cpu_capability()
    if capability != "AVX2":
      raise RuntimeError(f"{_LATE}: ATen computes with {capability} already")
    # MKL chooses its path when it is first asked for it, so the functions must already be replaced.
    with _processor_treated_as_intels() if mkl == "avx2" else contextlib.nullcontext():
      path = _mkl_path()
      if path not in (None, wanted):
        raise RuntimeError(f"{_LATE}: MKL has chosen its code path {path} already")
  os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # Otherwise cuBLAS, once in use, would be refused.
  torch.backends.cudnn.benchmark = False
  torch.set_num_threads(threads)
  torch.use_deterministic_algorithms(True)


def framework(model: torch.nn.Module) -> Dict[str, str]:
  """Returns the framework's name, version and settings, as lockstep.Worker's `framework` takes them.

  A portable model does not depend on the settings that choose torch's kernels.
  """
  compiled = any(
      isinstance(module, torch._dynamo.eval_frame.OptimizedModule) or module._compiled_call_impl is not None
      for module in model.modules())
  tiny = torch.tensor(1e-40)  # Subnormal in float32, so 0 if subnormals are flushed.
  flushes = _text(float(tiny + tiny) == 0.0)
  if is_portable(model):
    return {
        "name": "PyTorch",
        "version": torch.__version__,
        "portable": "true",
        "kernels": str(_kernels.version()),
        "flush_denormal": flushes,
    }
  settings = {
      "name": "PyTorch",
      "version": torch.__version__,
      "threads": str(torch.get_num_threads()),
      "deterministic_algorithms": _text(torch.are_deterministic_algorithms_enabled()),
      "cpu_capability": torch.backends.cpu.get_cpu_capability(),
      "onednn": os.environ.get("ONEDNN_MAX_CPU_ISA", "default"),
      "mkl_path": _mkl_setting(),
      "float32_matmul_precision": torch.get_float32_matmul_precision(),
      "flush_denormal": flushes,
      "compiled": _text(compiled),
  }
  gpus = {torch.cuda.get_device_name(tensor.device) for tensor in model.parameters() if tensor.is_cuda}
  if gpus:
    settings.update({
        "gpu": ", ".join(sorted(gpus)),
        "cuda": str(torch.version.cuda),
        "cudnn": str(torch.backends.cudnn.version()),  # type: ignore[no-untyped-call]
        "cudnn_benchmark": _text(torch.backends.cudnn.benchmark),
        "cudnn_tf32": _text(torch.backends.cudnn.allow_tf32),
        "cublas_workspace": os.environ.get("CUBLAS_WORKSPACE_CONFIG", "default"),
    })
  return settings


def _text(value: bool) -> str:
  return "true" if value else "false"
