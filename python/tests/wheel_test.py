"""The wheel, before libraries of the system are added: what pip installs is complete, and trains.

Usage: wheel_test.py LIBLOCKSTEP CHIEF WORKER LOCKSTEP   (the built programs)
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

PROGRAMS = [os.path.abspath(word) for word in sys.argv[1:]]
del sys.argv[1:]
TREE = pathlib.Path.cwd()
PLACES = ["capi/liblockstep.so", "server/chief_main", "worker/worker_main", "cli/lockstep_main"]


class WheelTest(unittest.TestCase):

  @classmethod
  def setUpClass(cls):
    cls.directory = pathlib.Path(tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR")))
    for program, place in zip(PROGRAMS, PLACES):
      (cls.directory / place).parent.mkdir(parents=True)
      os.symlink(program, cls.directory / place)
    subprocess.run([sys.executable, TREE / "tools/write_wheel.py", TREE, cls.directory, cls.directory], check=True)
    cls.wheel, = cls.directory.glob("*.whl")
    cls.site = cls.directory / "site"
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-compile",
                    "--no-cache-dir", "--disable-pip-version-check", "--target", cls.site, cls.wheel], check=True)
    cls.environment = {**os.environ, "PYTHONPATH": str(cls.site)}

  @classmethod
  def tearDownClass(cls):
    shutil.rmtree(cls.directory)

  def python(self, *words):
    return subprocess.run([sys.executable, *words], env=self.environment, cwd=self.directory, capture_output=True,
                          text=True, check=False)

  def test_it_serves_every_python_3(self):
    self.assertRegex(self.wheel.name, r"^lockstep-[0-9.]+-py3-none-linux_x86_64\.whl$")
    with zipfile.ZipFile(self.wheel) as wheel:
      self.assertIn("lockstep/py.typed", wheel.namelist())

  def test_it_trains_and_its_command_line_finds_the_result(self):
    logdir = str(self.directory / "run")
    trained = self.python(TREE / "python/tests/softmax.py", logdir)
    self.assertEqual(trained.returncode, 0, trained)
    inspected = self.python("-m", "lockstep", "inspect", logdir, "--digest")
    self.assertEqual(inspected.returncode, 0, inspected)
    self.assertIn(f"digest {inspected.stdout.strip()}", trained.stdout)
    self.assertIn("lockstep chief", self.python("-m", "lockstep", "chief", "--version").stdout)


if __name__ == "__main__":
  unittest.main()
