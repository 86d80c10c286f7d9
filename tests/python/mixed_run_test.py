"""Trains one run on four processors: this one, and in emulators an Intel Haswell, an AMD EPYC and an ARM. The weights
must have the bits of this processor alone.

Usage: mixed_run_test.py SLOT_PROGRAM   (the binary of tests/kernels/slot_program.cc)
Each worker is a PyTorch worker with a portable model. The gradients of the emulated ones come from SLOT_PROGRAM, which
the test also compiles for ARM. Without compiler or emulators, skips the test, or fails if CI is true.
"""

import concurrent.futures
import contextlib
import functools
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import numpy as np
import torch
from torch import nn

import lockstep.torch

PROGRAM = os.path.abspath(sys.argv.pop(1))
COMPILER, X86, ARM = "aarch64-linux-gnu-g++", "qemu-x86_64", "qemu-aarch64"
SOURCES = ("tests/kernels/slot_program.cc", "kernels/products/gemm.cc", "kernels/nn/activation.cc",
           "kernels/nn/losses.cc", "kernels/vectors/target.cc")
BATCH, INPUTS, UNITS, CLASSES, EXAMPLES, MEETING_STEP = 9, 50, 33, 7, 300, 4


def compile_for_arm(folder):
  """Returns the path of SLOT_PROGRAM for ARM."""
  (folder / "lockstep").symlink_to(os.getcwd())
  (folder / "hwy").symlink_to("/usr/include/hwy")  # Contains only headers, for any processor.
  program = folder / "slot_program"
  subprocess.run([COMPILER, "-std=c++17", "-O1", "-ffp-contract=off", "-DHWY_COMPILE_ONLY_STATIC", f"-I{folder}",
                  "-static", "-o", program, *SOURCES], check=True)
  return str(program)


def examples():
  generator = np.random.default_rng(7)
  return (torch.from_numpy(generator.random((EXAMPLES, INPUTS), np.float32)),
          torch.from_numpy(generator.integers(0, CLASSES, EXAMPLES)))


class Native:
  """Computes the gradients of a portable model in PyTorch."""

  def __init__(self, model):
    self._model = model
    self._loss_of = lockstep.torch.portable(nn.CrossEntropyLoss())

  def compute(self, x, y):
    loss = self._loss_of(self._model(x), y)
    loss.backward()
    return loss

  def close(self):
    pass


class Emulated:
  """Computes the gradients in a process of another processor. With `wrong`, one bit of them is wrong."""

  def __init__(self, model, command, wrong=False):
    self._parameters = list(model.parameters())
    self._wrong = wrong
    sizes = [str(size) for size in (BATCH, INPUTS, UNITS, CLASSES)]
    self._process = subprocess.Popen([*command, *sizes], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

  def compute(self, x, y):
    for tensor in (*self._parameters, x, y):
      self._process.stdin.write(tensor.detach().contiguous().numpy().tobytes())
    self._process.stdin.flush()
    loss = self._read(())
    for parameter in self._parameters:
      parameter.grad = self._read(parameter.shape)
    if self._wrong:
      self._parameters[0].grad.view(torch.int32)[0, 0] ^= 1
    return loss

  def _read(self, shape):
    data = bytearray(self._process.stdout.read(4 * int(np.prod(shape, dtype=int))))
    return torch.frombuffer(data, dtype=torch.float32).reshape(shape)

  def close(self):
    self._process.kill()
    self._process.communicate()


def declare():
  return lockstep.Run(tempfile.mkdtemp(dir=os.environ["TEST_TMPDIR"]), steps=12, slots=8, batch=BATCH, seed=3,
                      optimizer=lockstep.SGD(0.1, momentum=0.9))


def make_model():
  torch.manual_seed(1)
  return lockstep.torch.portable(nn.Sequential(nn.Linear(INPUTS, UNITS), nn.ReLU(), nn.Linear(UNITS, CLASSES)))


def train(run, master, name, make_computer, on_slot=lambda slot: None):
  x, y = examples()
  model = make_model()
  computer = make_computer(model)
  with contextlib.closing(computer):
    with lockstep.torch.Worker(model, run, examples=EXAMPLES, master=master, name=name) as worker:
      for slot in worker:
        on_slot(slot)
        slot.done(computer.compute(x[slot.indices], y[slot.indices]))


class MixedRunTest(unittest.TestCase):

  def test_processors_share_a_run(self):
    folder = pathlib.Path(tempfile.mkdtemp(dir=os.environ["TEST_TMPDIR"]))
    commands = {"Haswell": [X86, "-cpu", "Haswell", PROGRAM], "EPYC": [X86, "-cpu", "EPYC", PROGRAM],
                "ARM": [ARM, compile_for_arm(folder)]}
    run, workers, contributed = declare(), [], set()
    joinable, gather, met = threading.Event(), threading.Barrier(len(commands)), threading.Event()

    def meet(slot):
      """Holds a slot of this processor until each of the others has contributed to the run."""
      if slot.step < MEETING_STEP:
        return
      joinable.set()
      deadline = time.monotonic() + 240
      while (contributed != set(commands) and not any(worker.done() for worker in workers)
             and time.monotonic() < deadline):
        try:
          status = lockstep.status(chief.master)
        except lockstep.Error:
          break
        for worker in status["worker"]:
          if worker["name"] in commands and int(worker.get("accepted", 0)) > 0:
            contributed.add(worker["name"])
      met.set()

    def take_turns(name):
      """Holds the first slot of an emulated worker until each of the others has one, and the slots after it has
      contributed until each has. Otherwise, the others may compute all steps before a slow one has contributed."""
      waited = False

      def wait(slot):
        nonlocal waited
        if slot.step == 0:  # the canary
          return
        if not waited:
          waited = True
          gather.wait(120)
        elif name in contributed:
          met.wait(240)

      return wait

    with lockstep.Chief(run) as chief, concurrent.futures.ThreadPoolExecutor() as threads:
      workers.append(threads.submit(train, run, chief.master, "native", Native, meet))
      self.assertTrue(joinable.wait(60))
      with self.assertRaisesRegex(lockstep.Refused, "computes other bits than the run"):
        train(run, chief.master, "wrong", lambda model: Emulated(model, commands["ARM"], wrong=True))
      for name, command in commands.items():
        workers.append(threads.submit(train, run, chief.master, name, functools.partial(Emulated, command=command),
                                      take_turns(name)))
      for worker in workers:
        worker.result()
      self.assertTrue(chief.wait())
    self.assertEqual(contributed, set(commands))

    alone = declare()
    with lockstep.Chief(alone) as chief:
      train(alone, chief.master, "alone", Native)
      self.assertTrue(chief.wait())
    self.assertEqual(lockstep.digest(run.logdir), lockstep.digest(alone.logdir))


if __name__ == "__main__":
  missing = [program for program in (COMPILER, X86, ARM) if shutil.which(program) is None]
  if missing:
    print(f"SKIPPED: {', '.join(missing)} (apt-get install g++-aarch64-linux-gnu qemu-user)")
    sys.exit(int(os.environ.get("CI") == "true"))
  unittest.main()
