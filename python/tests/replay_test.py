"""`lockstep replay -- PROGRAM`: a program computes steps and slots of a recorded run again."""

import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

import numpy as np

import lockstep
import softmax

LOCKSTEP = os.path.abspath(sys.argv.pop())
SCRIPT = os.path.abspath(softmax.__file__)
PROGRAM = [sys.executable, SCRIPT]


class ReplayTest(unittest.TestCase):

  def setUp(self):
    self.directory = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
    self.addCleanup(shutil.rmtree, self.directory)
    self.logdir = os.path.join(self.directory, "run")

  def lockstep(self, *words, **options):
    return subprocess.run([LOCKSTEP, *words], capture_output=True, text=True, check=False,
                          env={**os.environ, "TMPDIR": self.directory}, **options)

  def replay(self, *flags, program=PROGRAM, options=(), **others):
    return self.lockstep("replay", f"--logdir={self.logdir}", *flags, "--", *program, self.logdir, *options, **others)

  def files(self):
    return {path: path.stat().st_mtime_ns for path in pathlib.Path(self.logdir).rglob("*")}

  def test_steps_have_the_bits_of_the_run(self):
    result, _ = softmax.train(softmax.declare(self.logdir))
    before = self.files()
    ended = self.replay("--steps=30..60")
    self.assertEqual(ended.returncode, 0, ended)
    self.assertEqual(re.findall(r"^step (\d+)  loss [0-9.]+", ended.stdout, re.M), [str(i) for i in range(31, 61)])
    self.assertEqual(re.findall(r"the same bits as .*model.ckpt-(\d+)$", ended.stdout, re.M), ["40", "60"])
    self.assertIn(f"computed from {self.logdir}/model.ckpt-20; step 60 has the digest {result.digest}\n", ended.stdout)
    self.assertNotIn("slots", ended.stdout, "the rest of the program does not run")
    self.assertEqual(self.files(), before)

  def test_order_of_arrival_is_replayed(self):
    for policy in ["training.async={}", "training.first_arrivals={total_replicas:3}"]:
      with self.subTest(policy=policy):
        shutil.rmtree(self.logdir, ignore_errors=True)
        slots = 1 if "async" in policy else 2
        options = [f"overrides={policy};training.replicas_to_aggregate={slots};training.record_order=true;"
                   "checkpoint.keep=0"]
        trained = self.lockstep("launch", "--workers=3", "--", *PROGRAM, self.logdir, *options)
        self.assertEqual(trained.returncode, 0, trained)
        ended = self.replay("--steps=0..60", options=options)
        self.assertEqual(ended.returncode, 0, ended)
        self.assertEqual(re.findall(r"the same bits as .*model.ckpt-(\d+)$", ended.stdout, re.M), ["20", "40", "60"])
        self.assertIn(f"step 60 has the digest {lockstep.digest(self.logdir)}\n", ended.stdout)

  def test_slot_has_the_bits_of_the_run(self):
    x, y = softmax.data()
    seen = []

    def keep(worker, slot):
      del worker
      if (slot.step, slot.index, slot.canary) == (45, 2, False):
        seen.append(softmax.loss_and_gradients(slot.values, x[slot.indices], y[slot.indices], slot.seed))

    softmax.train(softmax.declare(self.logdir), keep)
    dump = os.path.join(self.directory, "slot")
    ended = self.replay("--step=46", "--slot=2", f"--dump={dump}")
    self.assertEqual(ended.returncode, 0, ended)
    self.assertRegex(ended.stdout, "step 46  slot 2  loss [0-9.]+\nthe batch of slot 2 of step 45, with the values of "
                     "step 45, computed from .*model.ckpt-40\n")
    self.assertIn(f"\ndigest {lockstep.digest(dump)}\n", ended.stdout)
    replayed = lockstep.load(dump)
    loss, (kernel, bias, _), (mean,) = seen[0]
    for name, value in {"loss": loss, "gradient/softmax/kernel": kernel, "gradient/softmax/bias": bias,
                        "update/0": mean}.items():
      np.testing.assert_array_equal(replayed[name], value, name)
      self.assertIn(name, ended.stdout)

  def test_initial_values_are_the_runs(self):
    options = ["initial=5"]
    trained = subprocess.run([*PROGRAM, self.logdir, *options], check=True, capture_output=True, text=True)
    before = self.files()
    ended = self.replay("--steps=0..20", options=options)
    self.assertIn(f"the same bits as {self.logdir}/model.ckpt-20\n", ended.stdout, trained)
    self.assertEqual(self.files(), before)

  def test_error_names_the_replay(self):
    options = ["nan_at=3"]
    failed = subprocess.run([*PROGRAM, self.logdir, *options], check=False, capture_output=True, text=True)
    command = re.search("lockstep (replay .*) -- PROGRAM computes it again", failed.stderr)
    self.assertTrue(command, failed.stderr)
    ended = self.lockstep(*shlex.split(command[1]), "--", *PROGRAM, self.logdir, *options)
    self.assertEqual(ended.returncode, 0, ended)
    self.assertIn("step 4  slot 1  loss nan\n", ended.stdout)
    ended = self.replay("--steps=0..4", options=options)
    self.assertEqual(ended.returncode, 2, ended)
    self.assertIn("the loss of step 4 is not finite (slot 1)", ended.stderr)

  def test_other_programs_are_refused(self):
    softmax.train(softmax.declare(self.logdir))
    for options, text in ((["overrides=training.seed=4"], "training.seed: 3 -> 4"),
                          (["compression=bf16"], "compression")):
      ended = self.replay("--steps=0..1", options=options)
      self.assertEqual(ended.returncode, 2, ended)
      self.assertIn(text, ended.stderr)
    other = "import lockstep, softmax; softmax.VARIABLES[1] = lockstep.Variable('other', (5,)); softmax.main()"
    ended = self.replay("--steps=0..1", program=[sys.executable, "-c", other], cwd=os.path.dirname(SCRIPT))
    self.assertEqual(ended.returncode, 2, ended)
    self.assertIn('variable 2 is "other" (5) in this program, "softmax/bias" (5) in', ended.stderr)
    self.assertNotIn("--program", ended.stderr)
    ended = self.lockstep("replay", f"--logdir={self.logdir}", "--steps=0..1")
    self.assertEqual(ended.returncode, 2, ended)
    self.assertIn('computed by NumPy, not by Lockstep; the program that computes them follows "--"', ended.stderr)

  def test_other_bits_are_an_error(self):
    softmax.train(softmax.declare(self.logdir))
    other = ("import softmax; compute = softmax.loss_and_gradients\n"
             "def halve(*arguments):\n"
             "  loss, (kernel, bias, none), updates = compute(*arguments)\n"
             "  return loss, (kernel / 2, bias, none), updates\n"
             "softmax.loss_and_gradients = halve; softmax.main()")
    ended = self.replay("--steps=0..20", program=[sys.executable, "-c", other], cwd=os.path.dirname(SCRIPT))
    self.assertEqual(ended.returncode, 1, ended)
    self.assertRegex(ended.stderr, "step 20 differs from .*model.ckpt-20 in ")

  def test_program_that_fails_ends_the_replay(self):
    softmax.train(softmax.declare(self.logdir))
    ended = self.replay("--steps=0..1", program=[sys.executable, "-c", "raise ValueError('no such data')"])
    self.assertEqual(ended.returncode, 1, ended)
    self.assertIn("no such data", ended.stderr)
    self.assertIn("the program ended with exit code 1 before a worker in it had computed the replay", ended.stderr)

  def test_program_reads_the_terminal(self):
    softmax.train(softmax.declare(self.logdir))
    ended = self.replay("--steps=0..20", program=[sys.executable, "-c", "import softmax; print(input()); softmax.main()"],
                        input="typed\n", cwd=os.path.dirname(SCRIPT))
    self.assertEqual(ended.returncode, 0, ended)
    self.assertIn("typed\n", ended.stdout)

  def test_replay_in_a_thread_ends_the_program(self):
    softmax.train(softmax.declare(self.logdir))
    program = ("import softmax, threading; thread = threading.Thread(target=softmax.main)\n"
               "thread.start(); thread.join(); print('the rest')")
    ended = self.replay("--steps=0..20", program=[sys.executable, "-c", program], cwd=os.path.dirname(SCRIPT))
    self.assertEqual(ended.returncode, 0, ended)
    self.assertIn("model.ckpt-20\n", ended.stdout)
    self.assertNotIn("the rest", ended.stdout)

  def test_worker_of_another_process_is_refused(self):
    softmax.train(softmax.declare(self.logdir))
    program = ("import softmax, subprocess, sys\n"
               "def start(worker, slot):\n"
               "  subprocess.run([sys.executable, softmax.__file__, sys.argv[1]])\n"
               "softmax.train(softmax.declare(sys.argv[1]), start)")
    ended = self.replay("--step=1", "--slot=0", program=[sys.executable, "-c", program], cwd=os.path.dirname(SCRIPT))
    self.assertEqual(ended.returncode, 0, ended)
    self.assertEqual(ended.stdout.count("step 1  slot 0"), 1, ended)
    self.assertRegex(ended.stderr, r"Refused: process \d+ of this program has the slots of the replay")
    self.assertEqual(os.listdir(self.directory), ["run"])

  def test_interrupt_of_the_command_is_passed_on(self):
    program = ("import os, signal; signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])\n"
               "os.kill(os.getppid(), signal.SIGINT); print(signal.sigtimedwait([signal.SIGINT], 60))")
    ended = self.replay("--steps=0..1", program=[sys.executable, "-c", program])
    self.assertIn(f"si_signo={int(signal.SIGINT)}", ended.stdout)

  def test_chief_of_the_program_does_not_start(self):
    softmax.train(softmax.declare(self.logdir))
    before = self.files()
    program = ("import lockstep, softmax, sys\n"
               "run = softmax.declare(sys.argv[1])\n"
               "with lockstep.Chief(run) as chief:\n"
               "  chief.save()\n"
               "  softmax.train(run, master=chief.master)")
    ended = self.replay("--steps=0..20", program=[sys.executable, "-c", program],
                        cwd=os.path.dirname(SCRIPT))
    self.assertEqual(ended.returncode, 0, ended)
    self.assertEqual(self.files(), before)


if __name__ == "__main__":
  unittest.main()
