"""Lockstep: elastic, fault-tolerant, reproducible training. This package needs only NumPy.

The run, its steps, its optimizer and its checkpoints belong to a chief; a program computes slots (Worker). The final
weights are a function of the run's declaration, the data and the program, whatever the number of workers and failures:
`digest` proves it with 64 digits.
"""

from lockstep import _core, init
from lockstep._chief import Chief
from lockstep._core import use_tls
from lockstep._errors import ChiefLost, ConfigurationError, Error, ModelError, Refused, RunFailed
from lockstep._reads import digest, follow, load, read, status
from lockstep._run import (EMA, Adadelta, Adagrad, Adam, AdamW, Ftrl, Group, Lion, NAdam, Optimizer, RMSprop, Run,
                           Schedule, SGD, constant, cosine, exponential, inverse_time, piecewise, polynomial, schedule,
                           warmup_cosine)
from lockstep._worker import Result, Slot, Variable, Worker, data_digest
from lockstep.init import Init

__version__ = _core.version()

__all__ = [
    "Adadelta", "Adagrad", "Adam", "AdamW", "Chief", "ChiefLost", "ConfigurationError", "EMA", "Error", "Ftrl", "Group",
    "Init", "Lion", "ModelError", "NAdam", "Optimizer", "RMSprop", "Refused", "Result", "Run", "RunFailed", "SGD",
    "Schedule", "Slot", "Variable", "Worker", "constant", "cosine", "data_digest", "digest", "exponential", "follow",
    "init", "inverse_time", "load", "piecewise", "polynomial", "read", "schedule", "status", "use_tls", "warmup_cosine",
]
