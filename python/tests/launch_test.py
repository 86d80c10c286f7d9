"""`lockstep launch`: several processes of a program, and a chief for the run that they declare."""

import glob
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

import lockstep
import softmax

LOCKSTEP = os.path.abspath(sys.argv.pop())


class LaunchTest(unittest.TestCase):

  def setUp(self):
    self.directory = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
    self.addCleanup(shutil.rmtree, self.directory)

  def launch(self, *program, workers=2, flags=(), temporary=None):
    return subprocess.run([LOCKSTEP, "launch", f"--workers={workers}", *flags, "--", *program], capture_output=True,
                          text=True, env={**os.environ, "TMPDIR": temporary or self.directory}, check=False)

  def outputs(self):
    """Returns everything that the processes of all launches have printed. The first one's output is also on launch's
    stdout."""
    texts = []
    for path in glob.glob(os.path.join(self.directory, "lockstep-*", "worker-*.log")):
      with open(path, encoding="utf-8") as log:
        texts.append(log.read())
    return "".join(texts)

  def test_restarted_worker_changes_no_bit(self):
    undisturbed, _ = softmax.train(softmax.declare(os.path.join(self.directory, "undisturbed")))
    logdir, mark = os.path.join(self.directory, "run"), os.path.join(self.directory, "mark")
    ended = self.launch(sys.executable, softmax.__file__, logdir, f"die_at=20:{mark}")
    self.assertEqual(ended.returncode, 0, ended)
    self.assertTrue(os.path.exists(mark))
    self.assertIn("was killed by SIGKILL; starting it again", ended.stdout)
    # The run may be over before the first process is back.
    self.assertIn(f"step 60 digest {undisturbed.digest}", self.outputs())
    self.assertEqual(lockstep.digest(logdir), undisturbed.digest)

  def test_a_chief_with_tls_serves_its_own_workers(self):
    authority, kit = os.path.join(self.directory, "ca"), os.path.join(self.directory, "kit")
    for words in ["init", authority], ["issue", authority, "--role=chief", f"--out={kit}"]:
      subprocess.run([LOCKSTEP, "certs", *words], check=True, stdout=subprocess.DEVNULL)
    plain, logdir = os.path.join(self.directory, "plain"), os.path.join(self.directory, "run")
    undisturbed, _ = softmax.train(softmax.declare(plain))
    flags = ["--listen=127.0.0.1:0", f"--tls_dir={kit}"]
    with tempfile.TemporaryDirectory(dir="/tmp") as short:  # A socket's path is limited to 107 bytes.
      ended = self.launch(sys.executable, softmax.__file__, logdir, flags=flags, temporary=short)
    self.assertEqual(ended.returncode, 0, ended)
    self.assertEqual(lockstep.digest(logdir), undisturbed.digest)
    long = os.path.join(self.directory, "x" * 107)
    os.mkdir(long)
    ended = self.launch("true", flags=flags, temporary=long)
    self.assertEqual(ended.returncode, 2, ended)
    self.assertIn("set TMPDIR to a shorter path", ended.stderr)

  def test_run_starts_at_first_processs_values(self):
    logdir = os.path.join(self.directory, "run")
    ended = self.launch(sys.executable, softmax.__file__, logdir, "initial=5")
    self.assertEqual(ended.returncode, 0, ended)
    again = os.path.join(self.directory, "again")
    ended = self.launch(sys.executable, softmax.__file__, again, "initial=5", workers=1)
    self.assertIn(lockstep.digest(logdir), ended.stdout)

  def test_a_program_that_fails_ends_all(self):
    ended = self.launch(sys.executable, "-c", "raise ValueError('no such data')")
    self.assertEqual(ended.returncode, 1, ended)
    self.assertIn("ended with exit code 1", ended.stderr)
    self.assertIn("no such data", ended.stdout + ended.stderr)

  def test_a_program_that_trains_nothing_is_told(self):
    ended = self.launch(sys.executable, "-c", "pass", workers=1)
    self.assertEqual(ended.returncode, 1, ended)
    self.assertIn("ended without declaring a run", ended.stderr)

  def test_wrong_arguments_are_named(self):
    for arguments, text in (["--workers=0", "--", "true"], "--workers must be"), ([], "there is no program"):
      ended = subprocess.run([LOCKSTEP, "launch", *arguments], capture_output=True, text=True, check=False)
      self.assertEqual(ended.returncode, 2)
      self.assertIn(text, ended.stderr)


if __name__ == "__main__":
  unittest.main()
