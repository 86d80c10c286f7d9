"""PyTorch models in Lockstep runs.

  lockstep.torch.deterministic()
  with lockstep.torch.Worker(model, run, examples=len(x)) as worker:
    for slot in worker:
      loss = cross_entropy(model(x[slot.indices]), y[slot.indices])
      loss.backward()
      slot.done(loss)
"""

from lockstep.torch._framework import deterministic
from lockstep.torch._loader import Loader
from lockstep.torch._portable import portable
from lockstep.torch._weights import load_into, state_dict
from lockstep.torch._worker import Slot, Worker

__all__ = ["Loader", "Slot", "Worker", "deterministic", "load_into", "portable", "state_dict"]
