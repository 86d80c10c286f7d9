"""Runs each Python example alone, in its own folder, for a few steps.

Usage: examples_test.py FOLDER LOCKSTEP   (examples/python and the command line)
"""

import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

FOLDER, LOCKSTEP = (pathlib.Path(path).resolve() for path in sys.argv[1:])


class ExamplesTest(unittest.TestCase):

  @classmethod
  def setUpClass(cls):
    cls.work = cls.enterClassContext(tempfile.TemporaryDirectory())

  def run_example(self, name, *arguments):
    """Runs an example to its end. Returns the accuracy and the digest that it prints."""
    run = subprocess.run([sys.executable, FOLDER / name, *arguments], check=False, cwd=self.work, capture_output=True,
                         text=True)
    found = re.search(r"test accuracy (0\.\d+), digest ([0-9a-f]{64})", run.stdout)
    self.assertTrue(found, run.stdout + run.stderr)
    return float(found[1]), found[2]

  def check_replay(self, name, logdir, digest, *arguments):
    """Replays all steps of an example's run."""
    replay = subprocess.run([LOCKSTEP, "replay", f"--logdir={logdir}", "--steps=0..15", "--", sys.executable, FOLDER / name,
                             *arguments], check=False, cwd=self.work, capture_output=True, text=True)
    self.assertEqual(replay.returncode, 0, replay)
    self.assertIn(f"step 15 has the digest {digest}", replay.stdout)
    self.assertIn("/model.ckpt-15\n", replay.stdout)

  def test_perceptron_ends_where_it_would_have(self):
    accuracy, digest = self.run_example("mlp.py", "--steps=60")
    self.assertGreater(accuracy, 0.6)
    self.assertEqual(self.run_example("mlp.py", "--steps=60", "--logdir=again")[1], digest)

  def test_jax_perceptron(self):
    self.assertGreater(self.run_example("jax_mlp.py", "--steps=60")[0], 0.6)
    _, digest = self.run_example("jax_mlp.py", "--steps=15", "--logdir=short")
    self.check_replay("jax_mlp.py", "short", digest, "--steps=15")

  def test_head_learns_on_trained_body(self):
    accuracy, digest = self.run_example("cnn.py", "--steps=15")
    self.assertGreater(accuracy, 0.5)
    self.check_replay("cnn.py", "runs/cnn", digest, "--steps=15")
    self.assertGreater(self.run_example("fine_tuning.py", "--steps=15")[0], 0.9)


if __name__ == "__main__":
  unittest.main(argv=sys.argv[:1])
