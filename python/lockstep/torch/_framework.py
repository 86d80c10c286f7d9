"""The torch settings that results depend on."""

from __future__ import annotations

import ctypes
import os
from typing import Dict, Literal, Optional

import torch

from lockstep.torch import _kernels
from lockstep.torch._portable import is_portable

# Setting only one of them is not enough: ATen, oneDNN and MKL choose their kernels separately.
_CAPS = {"ATEN_CPU_CAPABILITY": "avx2", "ONEDNN_MAX_CPU_ISA": "AVX2", "MKL_CBWR": "COMPATIBLE"}
_MKL_COMPATIBLE = 3  # MKL_CBWR_COMPATIBLE in mkl_service.h
_LATE = "lockstep.torch.deterministic() must be called before the first operation of torch, and so before the model is built"


def _mkl_branch() -> Optional[int]:
  """Returns the code path chosen by MKL (MKL_CBWR_Get), or None if torch is built without MKL."""
  library = os.path.join(os.path.dirname(torch.__file__), "lib", "libtorch_cpu.so")
  try:
    return int(ctypes.CDLL(library).mkl_serv_cbwr_get(1))  # MKL_CBWR_BRANCH
  except (OSError, AttributeError):
    return None


def deterministic(threads: int = 1, isa: Literal["avx2", "native"] = "avx2") -> None:
  """Makes torch compute the same bits in every process that calls this with the same arguments.

  Sets the number of threads, torch.use_deterministic_algorithms(True) and what it requires for GPUs. With isa="avx2",
  also sets the variables that restrict ATen, oneDNN and MKL to kernels shared by AMD and Intel processors with AVX2.
  MKL's restriction makes matrix products about 2.2 times slower. With isa="native", the kernels depend on the
  processor, so all workers need the same kind of processor. Every setting becomes part of the run's contract: a worker
  with a different one is refused, and the refusal names it.

  Raises:
    ValueError: threads < 1, or an unknown isa.
    RuntimeError: torch has already computed in this process and can no longer change its kernels.
  """
  if threads < 1:
    raise ValueError(f"threads is {threads}; it must be at least 1")
  if isa not in ("avx2", "native"):
    raise ValueError(f'isa is "{isa}"; it must be "avx2" or "native"')
  if isa == "avx2":
    os.environ.update(_CAPS)
    capability = torch.backends.cpu.get_cpu_capability()
    if capability != "AVX2":
      raise RuntimeError(f"{_LATE}: ATen computes with {capability} already")
    branch = _mkl_branch()
    if branch not in (None, _MKL_COMPATIBLE):
      raise RuntimeError(f"{_LATE}: MKL has chosen its code path {branch} already")
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
      "mkl_path": {None: "absent", _MKL_COMPATIBLE: "compatible"}.get(_mkl_branch(), "default"),
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
