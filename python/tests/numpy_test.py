"""The package with NumPy alone: the same digest for any number of workers and any deaths, and errors that say what is
wrong."""

import concurrent.futures
import contextlib
import importlib.util
import io
import os
import pathlib
import pty
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import unittest
from unittest import mock

import numpy as np

import lockstep
import softmax
from lockstep import _chief, _core, _initial, _progress

SCRIPT = softmax.__file__


class RunTest(unittest.TestCase):
  """Whole runs."""

  @classmethod
  def setUpClass(cls):
    cls.directory = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
    cls.undisturbed = softmax.train(softmax.declare(cls.logdir("undisturbed")))[0]

  @classmethod
  def tearDownClass(cls):
    shutil.rmtree(cls.directory)

  @classmethod
  def logdir(cls, name):
    return os.path.join(cls.directory, name)

  def start(self, logdir, *words, **environment):
    process = subprocess.Popen([sys.executable, SCRIPT, logdir, *words], stdout=subprocess.PIPE, text=True,
                               env={**os.environ, **environment})

    def end():
      process.kill()
      process.wait()
      process.stdout.close()

    self.addCleanup(end)
    return process

  def test_the_result_names_the_last_checkpoint(self):
    result = self.undisturbed
    self.assertEqual(result.step, softmax.STEPS)
    self.assertEqual(result.checkpoint, self.logdir("undisturbed/model.ckpt-60"))
    self.assertRegex(result.digest, "^[0-9a-f]{64}$")
    self.assertEqual(lockstep.digest(self.logdir("undisturbed")), result.digest)
    arrays = lockstep.load(result.checkpoint)
    self.assertEqual(arrays["global_step"], softmax.STEPS)
    self.assertEqual(arrays["softmax/kernel"].shape, (softmax.FEATURES, softmax.CLASSES))
    x, y = softmax.data()
    logits = x @ arrays["softmax/kernel"] + arrays["softmax/bias"]
    self.assertGreater(np.mean(logits.argmax(axis=1) == y), 0.8)
    self.assertEqual(arrays["mean/local_step"], 4 * softmax.STEPS)
    np.testing.assert_allclose(arrays["mean"], arrays["mean/biased"] / (1 - np.float32(0.9) ** (4 * softmax.STEPS)))

  def test_workers_change_no_bit(self):
    for workers in 2, 3:
      with self.subTest(workers=workers):
        logdir = self.logdir(f"of-{workers}")
        with lockstep.Chief(softmax.declare(logdir)) as chief:
          processes = [self.start(logdir, LOCKSTEP_MASTER=chief.master) for _ in range(workers)]
          self.assertTrue(chief.wait())
          for process in processes:
            self.assertEqual(process.wait(), 0)
        self.assertEqual(lockstep.digest(logdir), self.undisturbed.digest)

  def test_a_function_computes_the_same_bits(self):
    x, y = softmax.data()
    threads = set()
    local = threading.local()
    slots = []

    def compute(slot):
      threads.add(threading.get_ident())
      slots.append(slot)
      local.slots = getattr(local, "slots", 0) + 1
      self.assertEqual(local.slots, len(slots), "what a function keeps for its thread lasts")
      loss, gradients, updates = softmax.loss_and_gradients(slot.values, x[slot.indices], y[slot.indices], slot.seed)
      slot.done(loss, gradients, updates, loss_again=loss)

    with lockstep.Worker(softmax.VARIABLES, softmax.declare(self.logdir("function")), examples=softmax.EXAMPLES,
                         data_digest=lockstep.data_digest(x, y)) as worker:
      worker.run(compute)
      self.assertEqual(worker.result.digest, self.undisturbed.digest)
    self.assertEqual(len(threads), 1)
    self.assertNotIn(threading.get_ident(), threads)

  def test_sixteen_bits_do_not_depend_on_workers(self):
    digests = set()
    for workers in 1, 2:
      logdir = self.logdir(f"bf16-of-{workers}")
      with lockstep.Chief(softmax.declare(logdir, compression="bf16")) as chief:
        processes = [self.start(logdir, "compression=bf16", LOCKSTEP_MASTER=chief.master) for _ in range(workers)]
        self.assertTrue(chief.wait())
        for process in processes:
          self.assertEqual(process.wait(), 0)
      digests.add(lockstep.digest(logdir))
    self.assertEqual(len(digests), 1)
    self.assertNotEqual(digests, {self.undisturbed.digest})

  def test_a_killed_worker_changes_no_bit(self):
    logdir, mark = self.logdir("killed-worker"), self.logdir("mark")
    with lockstep.Chief(softmax.declare(logdir)) as chief:
      killed = self.start(logdir, f"die_at=20:{mark}", LOCKSTEP_MASTER=chief.master)
      self.assertEqual(killed.wait(), -signal.SIGKILL)
      result, _ = softmax.train(softmax.declare(logdir), master=chief.master)
      self.assertTrue(chief.wait())
    self.assertEqual(result.step, softmax.STEPS)
    self.assertEqual(lockstep.digest(logdir), self.undisturbed.digest)

  def test_a_killed_chief_changes_no_bit(self):
    killed = []

    def kill(worker, slot):
      if slot.step >= 30 and not killed:
        killed.append(worker._chief.pid)  # pylint: disable=protected-access
        os.kill(killed[0], signal.SIGKILL)

    result, _ = softmax.train(softmax.declare(self.logdir("killed-chief")), kill)
    self.assertEqual(len(killed), 1)
    self.assertEqual(result, lockstep.Result(softmax.STEPS, self.undisturbed.digest,
                                             self.logdir("killed-chief/model.ckpt-60")))

  def test_a_run_that_was_left_continues(self):
    run = softmax.declare(self.logdir("left"))
    x, y = softmax.data()
    with lockstep.Worker(softmax.VARIABLES, run, examples=softmax.EXAMPLES,
                         data_digest=lockstep.data_digest(x, y)) as worker:
      for slot in worker:
        if slot.step == 25:
          break
        loss, gradients, updates = softmax.loss_and_gradients(slot.values, x[slot.indices], y[slot.indices], slot.seed)
        slot.done(loss, gradients, updates)
      with self.assertRaisesRegex(lockstep.Error, "not over"):
        _ = worker.result
    result, count = softmax.train(run)
    self.assertEqual(result.digest, self.undisturbed.digest)
    self.assertLess(count, 4 * 36)

  def test_an_end_waits_for_the_step_in_progress(self):
    wanted = []

    def end(worker, slot):
      if (slot.step, slot.index) == (10, 1):
        worker.end("enough")
        wanted.append(not slot.cancelled())

    result, count = softmax.train(softmax.declare(self.logdir("ended")), end)
    self.assertEqual(wanted, [True])
    self.assertEqual(result.step, 11)
    # Counts the canary and each slot of eleven steps.
    self.assertEqual(count, 1 + 4 * 11)
    self.assertEqual(lockstep.load(self.logdir("ended"))["global_step"], 11)

  def test_ctrl_c_leaves_a_run_that_continues(self):
    logdir = self.logdir("interrupted")
    interrupted = []

    def interrupt(worker, slot):
      if slot.step == 10:
        interrupted.append(worker._chief.pid)  # pylint: disable=protected-access
        os.kill(os.getpid(), signal.SIGINT)

    with self.assertRaises(KeyboardInterrupt):
      softmax.train(softmax.declare(logdir), interrupt)
    with self.assertRaises(ProcessLookupError):
      os.kill(interrupted[0], 0)
    self.assertEqual(lockstep.load(logdir)["global_step"], 10)
    self.assertEqual(softmax.train(softmax.declare(logdir))[0].digest, self.undisturbed.digest)

  def test_progress_is_shown_in_a_terminal(self):
    terminal, end = pty.openpty()
    command = [sys.executable, SCRIPT, self.logdir("terminal"), "initial=1"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=end) as process:
      os.close(end)
      shown = b""
      with contextlib.suppress(OSError):  # The terminal is closed.
        while text := os.read(terminal, 4096):
          shown += text
    os.close(terminal)
    self.assertEqual(process.returncode, 0)
    self.assertRegex(shown.decode(), r"^(\rstep \d+/60\b[^\r\n]*)*\rthe run is over at step 60 *\r?\n$")

  def test_a_killed_program_leaves_no_chief(self):
    logdir, mark = self.logdir("killed-program"), self.logdir("mark-2")
    killed = self.start(logdir, f"die_at=10:{mark}")
    self.assertEqual(killed.wait(), -signal.SIGKILL)
    # Waits until the killed program's chief has released the logdir.
    result, _ = softmax.train(softmax.declare(logdir))
    self.assertEqual(result.digest, self.undisturbed.digest)

  def test_run_starts_at_first_workers_values(self):
    logdir = self.logdir('é "initial" \\')
    values = {"softmax/kernel": np.full((softmax.FEATURES, softmax.CLASSES), 0.25, np.float32)}
    others = {"softmax/kernel": np.zeros((softmax.FEATURES, softmax.CLASSES), np.float32)}
    run = softmax.declare(logdir, overrides=["cluster.lease_seconds=1", "cluster.linger_seconds=0"])
    seen = []

    def first(worker, slot):
      if not seen and not slot.canary:
        seen.append(slot.values[0].copy())
        worker.stop()

    x, y = softmax.data()
    with lockstep.Worker(softmax.VARIABLES, run, examples=softmax.EXAMPLES, initial=values,
                         data_digest=lockstep.data_digest(x, y)) as worker:
      for slot in worker:
        first(worker, slot)
        loss, gradients, updates = softmax.loss_and_gradients(slot.values, x[slot.indices], y[slot.indices], slot.seed)
        slot.done(loss, gradients, updates)
    np.testing.assert_array_equal(seen[0], values["softmax/kernel"])
    with self.assertLogs("lockstep", "INFO") as log:
      resumed, _ = softmax.train(run, initial=others)
    self.assertTrue(any("not with this program's" in line for line in log.output), log.output)
    undisturbed, _ = softmax.train(softmax.declare(self.logdir("initial-2")), initial=values)
    self.assertEqual(resumed.digest, undisturbed.digest)
    self.assertNotEqual(resumed.digest, self.undisturbed.digest)

  def test_remote_chief_takes_first_worker_values(self):
    values = {"softmax/kernel": np.full((softmax.FEATURES, softmax.CLASSES), 0.25, np.float32)}
    logdir = self.logdir("brought")
    digests = set()
    with lockstep.Chief(softmax.declare(logdir)) as chief:
      softmax.train(softmax.declare(logdir), lambda worker, slot: digests.add(worker.initial_digest),
                    master=chief.master, initial=values)
      self.assertTrue(chief.wait())
    self.assertEqual(digests, {_initial.digest_of(values)})
    own_chief, _ = softmax.train(softmax.declare(self.logdir("not-brought")), initial=values)
    self.assertEqual(lockstep.digest(logdir), own_chief.digest)

  def test_worker_with_other_values_is_told(self):
    values, others = ({"softmax/bias": np.full(softmax.CLASSES, value, np.float32)} for value in (1, 2))
    run = softmax.declare(None)
    with lockstep.Chief(run) as chief:
      with lockstep.Worker(softmax.VARIABLES, run, examples=softmax.EXAMPLES, master=chief.master, initial=values,
                           data_digest=lockstep.data_digest(*softmax.data())) as worker:
        self.assertTrue(next(worker).canary)
        self.assertEqual(worker.initial_digest, _initial.digest_of(values))
      with self.assertLogs("lockstep", "INFO") as log:
        softmax.train(run, master=chief.master, initial=others)
    expected = (f"the run began with the initial values {_initial.digest_of(values)[:16]}, which count, not with this "
                f"program's, {_initial.digest_of(others)[:16]}")
    self.assertTrue(any(expected in line for line in log.output), log.output)

  def test_reads_of_a_running_chief(self):
    reads = []

    def read(worker, slot):
      if slot.step == 5 and not reads:
        reads.append(lockstep.read(worker.master, ["softmax/bias"]))
        reads.append(lockstep.status(worker.master))
        reads.append(worker.indices(slot.step, slot.index).tolist() == slot.indices.tolist())
        reads.append(worker.seed(slot.step, slot.index) == slot.seed)

    softmax.train(softmax.declare(self.logdir("read")), read)
    (step, arrays), status, same_indices, same_seed = reads
    self.assertEqual(step, 5)
    self.assertEqual(list(arrays), ["softmax/bias"])
    self.assertEqual(status["global_step"], 5)
    self.assertTrue(same_indices and same_seed)

  def test_a_follower_ends_with_the_run(self):
    with lockstep.Chief(softmax.declare(None)) as chief:
      follower = lockstep.follow(chief.master, names=["softmax/bias"])

      def read(worker, slot):
        del worker
        if (slot.step, slot.index) == (5, 0):
          self.assertEqual(next(follower)[0], 5)

      softmax.train(softmax.declare(None), read, master=chief.master)
      self.assertTrue(chief.wait())
      self.assertEqual(list(follower), [])

  def test_an_earlier_runs_folder_is_no_result(self):
    logdir = self.logdir("earlier")
    softmax.train(softmax.declare(logdir, steps=2))
    with lockstep.Chief(softmax.declare(None)) as chief:
      result, _ = softmax.train(softmax.declare(logdir), master=chief.master)
    self.assertEqual(result, lockstep.Result(softmax.STEPS))

  def test_an_empty_folder_is_no_result(self):
    logdir = self.logdir("empty")
    os.mkdir(logdir)
    with lockstep.Chief(softmax.declare(None)) as chief:
      result, _ = softmax.train(softmax.declare(logdir), master=chief.master)
    self.assertEqual(result, lockstep.Result(softmax.STEPS))

  def test_a_chief_ends_though_a_child_has_its_pipe(self):
    chief = lockstep.Chief(softmax.declare(None))
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
      os.close(write_end)
      os.read(read_end, 1)
      os._exit(0)  # pylint: disable=protected-access
    try:
      chief.close()
      self.assertEqual(chief._process.returncode, 143)  # pylint: disable=protected-access
    finally:
      os.close(write_end)
      os.waitpid(child, 0)
      os.close(read_end)

  def test_a_chief_that_ends_at_once_is_lost(self):
    program = os.path.join(self.directory, "chief")
    with open(program, "w", encoding="utf-8") as file:
      file.write("#!/bin/sh\necho 'E1126 19:31:00.123456  1234 main.cc:1] chief: the logdir is in use' >&2\nexit 138\n")
    os.chmod(program, 0o755)
    with mock.patch.dict(os.environ, LOCKSTEP_CHIEF_BINARY=program):
      with self.assertRaisesRegex(lockstep.ChiefLost, r"ended \(138\) before it served: the logdir is in use"):
        lockstep.Chief(softmax.declare(None))

  def test_other_data_are_refused(self):
    with lockstep.Chief(softmax.declare(None)) as chief:
      x, y = softmax.data()
      first = lockstep.Worker(softmax.VARIABLES, None, examples=softmax.EXAMPLES, master=chief.master,
                              data_digest=lockstep.data_digest(x, y))
      with first:
        next(first)
        with lockstep.Worker(softmax.VARIABLES, None, examples=softmax.EXAMPLES, master=chief.master,
                             data_digest=lockstep.data_digest(y, x)) as other:
          with self.assertRaisesRegex(lockstep.Refused, "data"):
            next(other)

  def test_wrong_shape_names_the_variable(self):
    with lockstep.Chief(softmax.declare(None)) as chief:
      with lockstep.Worker(softmax.VARIABLES, None, examples=softmax.EXAMPLES, master=chief.master) as first:
        next(first)
        wider = [softmax.VARIABLES[0]._replace(shape=(softmax.FEATURES, 6)), *softmax.VARIABLES[1:]]
        with lockstep.Worker(wider, None, examples=softmax.EXAMPLES, master=chief.master) as other:
          with self.assertRaisesRegex(
              lockstep.Refused, r'variable 1 is "softmax/kernel" \(20, 6\) in .*, "softmax/kernel" \(20, 5\) in '):
            next(other)
        frozen = [softmax.VARIABLES[0]._replace(trainable=False), *softmax.VARIABLES[1:]]
        with lockstep.Worker(frozen, None, examples=softmax.EXAMPLES, master=chief.master) as other:
          with self.assertRaisesRegex(lockstep.Refused, r'\(here "softmax/kernel", \(20, 5\)\)\.trainable'):
            next(other)

  def test_another_declaration_is_refused(self):
    with lockstep.Chief(softmax.declare(None)) as chief:
      with lockstep.Worker(softmax.VARIABLES, softmax.declare(None, seed=4), examples=softmax.EXAMPLES,
                           master=chief.master) as worker:
        with self.assertRaisesRegex(lockstep.Refused, "training.seed: 3 -> 4"):
          next(worker)

  def test_nan_loss_fails_the_run(self):
    x, y = softmax.data()
    with lockstep.Worker(softmax.VARIABLES, softmax.declare(self.logdir("nan")), examples=softmax.EXAMPLES) as worker:
      with self.assertRaisesRegex(lockstep.RunFailed, "the loss of step 26 is not finite.*; the run ends, its last "
                                  f"checkpoint is {self.logdir('nan')}/model.ckpt-2"):
        for slot in worker:
          loss, gradients, updates = softmax.loss_and_gradients(slot.values, x[slot.indices], y[slot.indices],
                                                                slot.seed)
          slot.done(float("nan") if slot.step == 25 else loss, gradients, updates)

  def test_no_chief_is_chief_lost(self):
    with lockstep.Worker(softmax.VARIABLES, None, master="unix-abstract:lockstep-numpy-test-nobody", chief_wait=0.1) as worker:
      with self.assertRaisesRegex(lockstep.ChiefLost, "nobody.*; start one with: lockstep chief"):
        next(worker)

  def test_a_forked_child_is_told(self):
    with lockstep.Worker(softmax.VARIABLES, None, master="unix-abstract:lockstep-numpy-test-nobody") as worker:
      child = os.fork()
      if child == 0:
        try:
          next(worker)
        except lockstep.Error as error:
          os._exit(7 if "forked" in str(error) else 1)  # pylint: disable=protected-access
        os._exit(2)  # pylint: disable=protected-access
      self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 7)

  def test_a_forked_child_makes_no_worker(self):
    run = softmax.declare(None)
    child = os.fork()
    if child == 0:
      try:
        lockstep.Worker(softmax.VARIABLES, run)
      except lockstep.Error as error:
        os._exit(7 if "forked" in str(error) else 1)  # pylint: disable=protected-access
      os._exit(2)  # pylint: disable=protected-access
    self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 7)


class IntegersTest(unittest.TestCase):
  """Variables that are not float32."""

  def test_integers_are_exact_and_start_where_told(self):
    variables = [lockstep.Variable("w", (2,)),
                 lockstep.Variable("seen", (2,), False, "assign_add", lockstep.init.constant(5), "int64"),
                 lockstep.Variable("flags", (3,), False, "assign", dtype="bool"),
                 lockstep.Variable("base", (), False, dtype="int32")]
    with tempfile.TemporaryDirectory() as directory:
      run = lockstep.Run(directory, steps=3, slots=2, optimizer=lockstep.SGD(0.1))
      initial = {"base": np.array(-7, np.int32)}
      large = 2 ** 40 + 1
      with lockstep.Worker(variables, run, initial=initial) as worker:
        for slot in worker:
          dtypes = [value.dtype for value in slot.values]
          self.assertEqual(dtypes, [np.float32, np.int64, np.bool_, np.int32])
          if not slot.canary:
            self.assertEqual(slot.values[3], -7)
            self.assertEqual(slot.values[1][1], 5 + slot.step * 2 * large)
          gradients = [np.ones(2, np.float32), None, None, None]
          flags = np.array([True, False, slot.index == 1])
          with self.assertRaisesRegex(lockstep.ModelError, 'update of "seen" is float64, the variable is int64'):
            slot.done(1.0, gradients, [np.array([1.0, 2.0]), flags])
          slot.done(1.0, gradients, [np.array([1, large]), flags])
        arrays = lockstep.load(worker.result.checkpoint)
    np.testing.assert_array_equal(arrays["seen"], [5 + 6, 5 + 6 * large])
    np.testing.assert_array_equal(arrays["flags"], [True, False, True])
    self.assertEqual([arrays[name].dtype for name in ("seen", "flags", "base")], [np.int64, np.bool_, np.int32])

  def test_initial_values_keep_their_numbers(self):
    cases = [("int64", np.array([1.7])), ("int64", np.array([np.nan])), ("uint8", np.array([300])),
             ("int32", np.array([2 ** 40])), ("bool", np.array([7])), ("int64", np.array([2 ** 63], np.uint64))]
    for dtype, value in cases:
      with self.assertRaisesRegex(lockstep.ModelError, f'initial value of "a" has {value.dtype} elements .* {dtype}'):
        _initial.in_type("a", value, dtype)
    for dtype, value in (("int64", np.array([2.0])), ("bool", np.array([1])), ("uint8", np.array([True])),
                         ("int64", np.array([2 ** 53 + 1])), ("float32", np.array([0.1]))):
      self.assertEqual(_initial.in_type("a", value, dtype), value.astype(dtype))
    variables = [lockstep.Variable("w", (1,)), lockstep.Variable("a", (1,), False, dtype="int64")]
    with self.assertRaisesRegex(lockstep.ModelError, 'initial value of "a" has float64 elements'):
      lockstep.Worker(variables, None, master="127.0.0.1:1", initial={"a": np.array([1.7])})

  def test_a_wrong_type_is_named(self):
    for text, variable in (("variable a is trainable and has type int64", lockstep.Variable("a", (1,), dtype="int64")),
                           ("dtype of \"a\" is 'int8'", lockstep.Variable("a", (1,), False, dtype="int8")),
                           ("its initializer.constant.value is 0.5, which is no int32",
                            lockstep.Variable("a", (1,), False, None, lockstep.init.constant(0.5), "int32")),
                           ('init.constant(16777217) of "a" is not exact in float32',
                            lockstep.Variable("a", (1,), False, None, lockstep.init.constant(2 ** 24 + 1), "int64"))):
      with self.assertRaises(lockstep.ModelError) as caught:
        lockstep.Worker([lockstep.Variable("w", (1,)), variable], None, master="127.0.0.1:1")
      self.assertIn(text, str(caught.exception))


class SlotTest(unittest.TestCase):
  """Results that do not fit their slot."""

  def setUp(self):
    self.chief = lockstep.Chief(softmax.declare(None))
    self.addCleanup(self.chief.close)
    self.worker = lockstep.Worker(softmax.VARIABLES, None, examples=softmax.EXAMPLES, master=self.chief.master)
    self.addCleanup(self.worker.close)
    self.slot = next(self.worker)
    self.gradients = [np.zeros(variable.shape, np.float32) for variable in softmax.VARIABLES[:2]] + [None]
    self.updates = [np.zeros(softmax.FEATURES, np.float32)]

  def refuses(self, text, *arguments, **named):
    with self.assertRaises(lockstep.ModelError) as caught:
      self.slot.done(*arguments, **named)
    self.assertIn(text, str(caught.exception))

  def test_mistakes_are_named_and_close_no_slot(self):
    wrong = [np.zeros((5, 20), np.float32)] + self.gradients[1:]
    self.refuses("has no loss", None, self.gradients, self.updates)
    self.refuses("gradient of \"softmax/kernel\" has shape (5, 20), the variable has (20, 5)", 1.0, wrong, self.updates)
    self.refuses("\"softmax/bias\" has no gradient in slot 0 of step 0", 1.0, [self.gradients[0], None, None],
                 self.updates)
    self.refuses("\"mean\" is not trainable but has a gradient", 1.0, self.gradients[:2] + [self.updates[0]],
                 self.updates)
    self.refuses("has 2 gradients, the model has 3 variables", 1.0, self.gradients[:2], self.updates)
    self.refuses("has 0 updates, the model has 1", 1.0, self.gradients)
    for weight in -1.0, float("nan"), float("inf"), 1e39:
      self.refuses(f"the weight of slot 0 of step 0 is {weight}, must be a finite number, 0 or more", 1.0,
                   self.gradients, self.updates, weight=weight)
    with self.assertRaisesRegex(lockstep.ModelError, "was not finished"):
      next(self.worker)
    self.assertTrue(self.slot.done(1.0, self.gradients, self.updates))
    self.refuses("slot.done() was called twice for slot 0 of step 0", 1.0, self.gradients, self.updates)
    with self.assertRaisesRegex(lockstep.ModelError, r"slot 0 of step 0 is closed: slot.done\(\) was called"):
      _ = self.slot.values

  def test_mistakes_of_a_function_are_raised(self):
    self.assertTrue(self.slot.done(1.0, self.gradients, self.updates))
    slots = []
    for _ in range(2):  # The slot of the first call is open in the second.
      with self.assertRaisesRegex(lockstep.ModelError, "slot 0 of step 0 was not finished"):
        self.worker.run(slots.append)
    self.assertEqual(len(slots), 1)
    self.assertTrue(slots[0].done(1.0, self.gradients, self.updates))
    for mistake, error, text in ((self.worker.close, lockstep.Error, "cannot free the worker"),
                                 (lambda: next(self.worker), lockstep.Refused, "cannot take slots")):

      def compute(slot, mistake=mistake):
        slot.done(1.0, self.gradients, self.updates)
        mistake()

      with self.assertRaisesRegex(error, text):
        self.worker.run(compute)
    with self.assertRaises(ZeroDivisionError):
      self.worker.run(lambda slot: 1 // 0)

  def test_ctrl_c_ends_the_call_of_a_function(self):
    self.addCleanup(signal.signal, signal.SIGINT, signal.signal(signal.SIGINT, signal.default_int_handler))
    self.assertTrue(self.slot.done(1.0, self.gradients, self.updates))
    slots = []

    def interrupt(slot):
      slot.done(1.0, self.gradients, self.updates)
      slots.append(slot)
      if len(slots) == 1:
        os.kill(os.getpid(), signal.SIGINT)

    with self.assertRaises(KeyboardInterrupt):
      self.worker.run(interrupt)
    self.assertTrue(slots)

  def test_cancelled_slots_close_except_the_canary(self):
    with mock.patch.object(_core, "slot_wanted", lambda worker, wanted: _core.OK):  # Not wanted.
      self.assertTrue(self.slot.canary)
      self.assertFalse(self.slot.cancelled())
      self.assertTrue(self.slot.done(1.0, self.gradients, self.updates))
      self.slot = next(self.worker)
      self.assertTrue(self.slot.cancelled())
    self.refuses("is closed: it is not wanted any more", 1.0, self.gradients, self.updates)
    again = next(self.worker)
    self.assertFalse(again.cancelled())
    self.assertTrue(again.done(1.0, self.gradients, self.updates))

  def test_values_are_read_only(self):
    with self.assertRaises(ValueError):
      self.slot.values[0][0] = 1

  def test_gradients_are_sent_during_computation(self):
    self.worker.close()
    variables = [lockstep.Variable("a", (2,)), lockstep.Variable("b", (3, 1))]
    run = lockstep.Run(None, steps=3, optimizer=lockstep.SGD(1.0))
    with lockstep.Chief(run) as chief:
      with lockstep.Worker(variables, run, master=chief.master) as worker:
        for slot in worker:
          if not slot.canary:
            np.testing.assert_array_equal(slot.values[0], np.full(2, -2.0 * slot.step))
          self.assertTrue(slot.loss(1.0, metric=2.0))
          for i in 1, 0:
            slot.gradient(i)[...] = i + 2 if i == 0 else 1
            slot.ready(i)
          self.assertTrue(slot.done())
      self.assertEqual(worker.result.step, 3)

  def test_slots_count_by_their_weights(self):
    variables = [lockstep.Variable("a", (2,), init=lockstep.init.zeros())]
    run = lockstep.Run(None, steps=2, slots=4, optimizer=lockstep.SGD(1.0))
    values = []
    with lockstep.Chief(run) as chief:
      with lockstep.Worker(variables, run, master=chief.master) as worker:
        for slot in worker:
          values.append(slot.values[0].copy())
          gradient = np.full(2, slot.index, np.float32)
          if slot.index % 2 == 0:
            slot.done(1.0, [gradient], weight=slot.index)
            continue
          slot.loss(1.0, weight=slot.index)
          with self.assertRaisesRegex(lockstep.ModelError, "give its weight to loss"):
            slot.done(gradients=[gradient], weight=2.0)
          slot.done(gradients=[gradient])
    np.testing.assert_allclose(values[-1], np.full(2, -14 / 6), rtol=1e-6)

  def test_metrics_are_folded_over_the_slots(self):
    run = lockstep.Run(tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR")), steps=2, slots=2,
                       optimizer=lockstep.SGD(1.0), overrides=["summary.every_steps=1"])
    self.addCleanup(shutil.rmtree, run.logdir)
    with lockstep.Chief(run) as chief:
      with lockstep.Worker([lockstep.Variable("a", (2,))], run, master=chief.master) as worker:
        for slot in worker:
          if slot.step == 1:
            # The chief sends the values of a step before it shows the step's metrics.
            while "metric" not in (shown := lockstep.status(chief.master)):
              pass
            self.assertEqual(shown["metric"], [{"name": "accuracy", "value": 0.875}, {"name": "odd", "value": 3}])
          metrics = {"odd": 3.0} if slot.index == 1 else {}
          slot.done(1.0, [np.ones(2, np.float32)], weight=3.0 if slot.index else 1.0,
                    accuracy=1.0 if slot.index else 0.5, **metrics)
      self.assertTrue(chief.wait())
    events = b"".join(path.read_bytes() for path in pathlib.Path(run.logdir).glob("*tfevents*"))
    # Summary.Value: the tag is field 1, the number field 2 (proto/lockstep/v1/event.proto).
    found = re.findall(rb"\x0a\x08accuracy\x15(....)", events, re.DOTALL)
    self.assertEqual([struct.unpack("<f", number)[0] for number in found], [0.875] * 2)

  def test_groups_and_clip_of_the_mean(self):
    names = "body/weight", "body/bias", "head/weight", "norm/scale"
    variables = [lockstep.Variable(name, (1,), init=lockstep.init.constant(1.0)) for name in names]
    optimizer = lockstep.SGD(
        lockstep.schedule(lambda step: 0.5, 2), weight_decay=0.1, no_decay="bias$|norm",
        groups=[lockstep.Group("^head", lr_factor=2.0, clip_norm=1.0)])
    run = lockstep.Run(None, steps=2, slots=2, optimizer=optimizer, clip_norm=3.0)
    gradients = [np.full(1, value, np.float32) for value in (2.0, 4.0, 2.0, 4.0)]
    with lockstep.Chief(run) as chief:
      with lockstep.Worker(variables, run, master=chief.master) as worker:
        for slot in worker:
          if slot.step == 1:
            values = [value.item() for value in slot.values]
          slot.done(1.0, gradients)
    # The norm of 2, 4 and 4 is 6; the norm of the head alone is 2. The weights of the head and the body decay by 0.1.
    np.testing.assert_allclose(values, [1 - 0.5 * 1.1, 1 - 0.5 * 2, 1 - 2 * 0.5 * 1.1, 1 - 0.5 * 2], rtol=1e-6,
                               atol=1e-6)

  def test_a_group_without_variables_is_refused(self):
    run = lockstep.Run(None, steps=1, optimizer=lockstep.AdamW(0.1, no_decay="norm"))
    with lockstep.Chief(run) as chief:
      with lockstep.Worker([lockstep.Variable("a", (2,))], run, master=chief.master) as worker:
        with self.assertRaisesRegex(lockstep.Error, "group.*norm"):
          next(worker)


class ProgressTest(unittest.TestCase):
  """The progress line."""

  def test_line_has_what_is_known(self):
    self.assertEqual(_progress.line_of({"global_step": 3}), "step 3")
    run = {"global_step": 100, "total_steps": 8000, "loss": 0.41234, "steps_per_second": 2.0,
           "metric": [{"name": "accuracy", "value": 0.91}]}
    self.assertEqual(_progress.line_of(run), "step 100/8000  loss 0.4123  accuracy 0.91  2 steps/s  1:05:50 left")

  def test_notebooks_stream_shows_lines(self):
    stream = type("OutStream", (io.StringIO,), {"__module__": "ipykernel.iostream"})()
    self.assertTrue(_progress.shows_lines(stream))
    self.assertFalse(_progress.shows_lines(io.StringIO()))

  def test_shorter_line_hides_the_longer_one(self):
    stream = io.StringIO()
    progress = _progress.Progress("unix-abstract:lockstep-numpy-test-nobody", stream)
    times = iter((10.0, 10.9, 11.1))
    with mock.patch.object(_progress.time, "monotonic", lambda: next(times)):
      progress.update()
      self.assertEqual(stream.getvalue(), "", "no chief answers")
      with mock.patch.object(_progress, "status", lambda master, timeout: {"global_step": 123}):
        progress.update()
        self.assertEqual(stream.getvalue(), "", "less than a second has passed")
        progress.update()
    progress.end("over")
    progress.end()
    self.assertEqual(stream.getvalue(), "\rstep 123\rover    \n")


class DeclarationTest(unittest.TestCase):
  """Runs, optimizers and models without a chief."""

  def test_a_run_equals_its_text(self):
    run = softmax.declare("/runs/x", epochs=3, clip_norm=2.0, clip_slot_norm=1.0, compression="bf16",
                          average=lockstep.EMA(0.99, num_updates=True, variables=["kernel", "b.*s$"]))
    with tempfile.NamedTemporaryFile("w", suffix=".textproto") as file:
      file.write(run.to_text())
      file.flush()
      self.assertEqual(lockstep.Run.from_file(file.name, logdir="/runs/x"), run)
    self.assertEqual((run.steps, run.slots, run.batch, run.seed), (60, 4, 16, 3))
    for text in "epochs: 3", " by_global_norm: 1", "mean_by_global_norm: 2", "BFLOAT16", "num_updates: true", "lease_seconds: 1":
      self.assertIn(text, run.to_text())

  def test_one_expression_selects_averages(self):
    self.assertEqual(lockstep.EMA(0.99, variables="kernel").text, lockstep.EMA(0.99, variables=["kernel"]).text)

  def test_numbers_of_numpy_are_numbers(self):
    optimizer = lockstep.SGD(lockstep.exponential(0.1, np.int64(7), np.float32(0.5)))
    run = lockstep.Run(None, steps=np.int64(60), slots=np.int32(2), batch=np.int64(3), optimizer=optimizer)
    self.assertEqual((run.steps, run.slots, run.batch), (60, 2, 3))

  def test_configured_start_gives_initial_values(self):
    start = softmax.declare(None, overrides=["checkpoint.warm_start=/weights.npz"])
    self.assertEqual(start.initial, "/weights.npz")
    with tempfile.NamedTemporaryFile("w", suffix=".textproto") as file:
      file.write(start.to_text())
      file.flush()
      self.assertEqual(lockstep.Run.from_file(file.name).initial, "/weights.npz")
    self.assertIsNone(softmax.declare(None).initial)

  def test_one_of_many_writers_decides_the_values(self):
    for _ in range(5):
      with tempfile.TemporaryDirectory() as directory, concurrent.futures.ThreadPoolExecutor(8) as threads:
        files = threads.map(lambda i: _initial.file_for({"a": np.full(9, i)}, directory), range(8))
        self.assertEqual(len(set(files)), 1)

  def test_an_initial_scalar_is_no_vector(self):
    with tempfile.TemporaryDirectory() as directory:
      values = {"scale": np.array(2.5, np.float32), "w": np.arange(6, dtype=np.float32).reshape(2, 3).T}
      with np.load(_initial.file_for(values, directory)) as archive:
        self.assertEqual(archive["scale"].shape, ())
        self.assertEqual(archive["scale"], 2.5)
        np.testing.assert_array_equal(archive["w"], values["w"])

  def test_launch_serves_one_logdir(self):
    with tempfile.TemporaryDirectory() as directory:
      master = _chief.declare_to_launcher(directory, softmax.declare("/runs/a"), "")
      self.assertEqual(_chief.declare_to_launcher(directory, softmax.declare("/runs/a"), ""), master)
      with self.assertRaisesRegex(lockstep.ConfigurationError, 'one run, with the logdir "/runs/a"'):
        _chief.declare_to_launcher(directory, softmax.declare("/runs/b"), "")

  def test_optimizers_and_schedules_match_the_proto(self):
    rates = [
        0.1, lockstep.constant(0.1, warmup=5), lockstep.exponential(0.1, 10, 0.5, staircase=True),
        lockstep.piecewise([10, 20], [1.0, 0.5, 0.25]), lockstep.polynomial(0.1, 10, 0.01, 2.0, cycle=True),
        lockstep.inverse_time(0.1, 10, 0.5), lockstep.cosine(0.1, 10, 0.1), lockstep.warmup_cosine(0.1, 5, 10),
        lockstep.schedule(lambda step: 1 / (1 + step), 10)
    ]
    for rate in rates:
      for optimizer in (lockstep.SGD(rate), lockstep.SGD(rate, 0.9, nesterov=True, weight_decay=0.1, no_decay="b$"),
                        lockstep.SGD(rate, 0.9, dampening=0.1), lockstep.Adam(rate, amsgrad=True),
                        lockstep.AdamW(rate, weight_decay=0.1), lockstep.NAdam(rate),
                        lockstep.NAdam(rate, weight_decay=0.1, decoupled_weight_decay=True, no_decay="b$"),
                        lockstep.Lion(rate, weight_decay=0.1, no_decay="b$"), lockstep.RMSprop(rate, centered=True),
                        lockstep.Adagrad(rate), lockstep.Adadelta(rate), lockstep.Ftrl(rate, l1=0.1)):
        self.assertIn("learning_rate", lockstep.Run(None, steps=1, optimizer=optimizer).to_text())

  def test_a_schedule_is_a_table_of_what_is_needed(self):

    def table(*arguments, **options):
      text = lockstep.schedule(*arguments, **options).text
      return [float(word) for word in text.replace("steps: ", "").replace("rates: ", "").split()[2:-1]]

    self.assertEqual(table(lambda step: 0.5, 1), [0, 0.5])
    self.assertEqual(table(lambda step: 0.5 if step < 5 else 0.25, 10), [0, 0.5, 4, 0.5, 5, 0.25, 9, 0.25])
    self.assertEqual(table(float, 4), [0, 0, 1, 1, 2, 2, 3, 3])
    self.assertEqual(table(float, 6, every=2), [0, 0, 2, 2, 4, 4, 5, 5])

  def test_a_wrong_setting_is_named(self):
    group, sgd = lockstep.Group, lockstep.SGD
    optimizers = (
        ("learning_rate.initial", sgd(-1.0)),
        ("table.rates[1] is -1", sgd(lockstep.schedule(lambda step: -float(step), 2))),
        ("optimizer.group[0] changes nothing", sgd(0.1, groups=[group("a")])),
        ("group[0].weight_decay", lockstep.Adagrad(0.1, groups=[group("a", weight_decay=0.1)])),
        ("group[0].variables", lockstep.AdamW(0.1, no_decay="(")),
        ("groups have no groups", sgd(0.1, groups=[group("a", optimizer=lockstep.AdamW(0.1, no_decay="b"))])),
    )
    for text, changes in (("training.steps is 0", {"steps": 0}), ("compression is 'int8'", {"compression": "int8"}),
                          ("clip_norm is 0, must be above 0", {"clip_norm": 0}),
                          ("clip_slot_value is -1.0, must be above 0", {"clip_slot_value": -1.0}),
                          ("no_such_field", {"overrides": ["training.no_such_field=1"]}),
                          *((text, {"optimizer": optimizer}) for text, optimizer in optimizers)):
      with self.assertRaises(lockstep.ConfigurationError) as caught:
        softmax.declare(None, **changes)
      self.assertIn(text, str(caught.exception))

  def test_a_setting_without_effect_is_named(self):
    for text, declare in (("dampening is 0.1, but momentum is 0", lambda: lockstep.SGD(0.1, dampening=0.1)),
                          ("no_decay is 'bias', but weight_decay is 0", lambda: lockstep.SGD(0.1, no_decay="bias")),
                          ("clip_norm of a group is 0, must be above 0",
                           lambda: lockstep.SGD(0.1, groups=[lockstep.Group("a", clip_norm=0)])),
                          ("steps=0 and every=1", lambda: lockstep.schedule(float, 0))):
      with self.assertRaises(lockstep.ConfigurationError) as caught:
        declare()
      self.assertIn(text, str(caught.exception))

  def test_a_run_does_not_change(self):
    with self.assertRaises(AttributeError):
      softmax.declare(None).steps = 7

  def test_a_wrong_model_is_named(self):
    variable = lockstep.Variable
    for text, variables in (("no trainable variable", []), ("two variables are named a", [variable("a", (1,))] * 2),
                            ("update of \"a\" is 'max'", [variable("a", (1,), False, "max")]),
                            ("decay 1", [variable("b", (1,)),
                                         variable("a", (1,), False, ("zero_debias_moving_average", 1.0))]),
                            ("shape", [variable("a", (0,))]),
                            ("stddev", [variable("a", (1,), init=lockstep.init.normal(0, -1))])):
      with self.assertRaises(lockstep.ModelError) as caught:
        lockstep.Worker(variables, None, master="127.0.0.1:1")
      self.assertIn(text, str(caught.exception))

  def test_worker_without_run_or_master_is_refused(self):
    with self.assertRaisesRegex(lockstep.ConfigurationError, "LOCKSTEP_MASTER"):
      lockstep.Worker(softmax.VARIABLES)

  def test_missing_instruction_set_is_named(self):
    flags = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8")
    self.assertIsNone(_core.missing_instruction(flags))
    self.assertEqual(_core.missing_instruction(flags.replace(" avx2 ", " ")), "AVX2")
    self.assertIsNone(_core.missing_instruction(""))

  def test_tensorflow_may_be_imported_first(self):
    if importlib.util.find_spec("tensorflow") is None:
      self.skipTest("there is no tensorflow")
    program = ("import tensorflow, runpy, sys; sys.argv = ['softmax.py', sys.argv[1]]; "
               f"runpy.run_path({SCRIPT!r}, run_name='__main__')")
    with tempfile.TemporaryDirectory() as directory:
      ended = subprocess.run([sys.executable, "-c", program, os.path.join(directory, "run")], capture_output=True,
                             text=True, check=False)
    self.assertEqual(ended.returncode, 0, ended)
    self.assertIn("step 60 digest", ended.stdout)

  def test_missing_checkpoint_is_file_not_found(self):
    with self.assertRaises(FileNotFoundError):
      lockstep.load("/no/such/run")


if __name__ == "__main__":
  unittest.main()
