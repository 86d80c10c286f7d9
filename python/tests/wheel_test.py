"""The wheel built by ./lockstep wheel: auditwheel accepts it, and it is complete in an environment with NumPy alone.

Usage: wheel_test.py LIBLOCKSTEP LOCKSTEP   (the built files)
Without auditwheel, it tests the wheel that still uses the system's libraries, or fails if CI is true.
"""

import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

import numpy

PROGRAMS = [os.path.abspath(word) for word in sys.argv[1:]]
del sys.argv[1:]
TREE = pathlib.Path.cwd()
PLACES = ["capi/liblockstep.so", "cli/lockstep_main"]
HAS_AUDITWHEEL = importlib.util.find_spec("auditwheel") is not None
TAG = "manylinux_2_35_x86_64" if HAS_AUDITWHEEL else "linux_x86_64"


def run(*words):
  return subprocess.run(words, check=True, capture_output=True, text=True).stdout


class WheelTest(unittest.TestCase):

  @classmethod
  def setUpClass(cls):
    cls.directory = pathlib.Path(tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR")))
    for program, place in zip(PROGRAMS, PLACES):
      (cls.directory / place).parent.mkdir(parents=True)
      os.symlink(program, cls.directory / place)
    run(sys.executable, TREE / "tools/write_wheel.py", TREE, cls.directory, cls.directory,
        *([TAG] if HAS_AUDITWHEEL else []))
    cls.wheel, = cls.directory.glob("*.whl")
    run(sys.executable, "-m", "venv", cls.directory / "empty")
    cls.programs = cls.directory / "empty/bin"
    run(cls.programs / "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-compile", "--no-cache-dir",
        "--disable-pip-version-check", cls.wheel)
    cls.site, = (cls.directory / "empty/lib").glob("python3*/site-packages")
    numpy_folder = pathlib.Path(numpy.__file__).parent
    for folder in numpy_folder, numpy_folder.with_name("numpy.libs"):
      if folder.exists():
        os.symlink(folder, cls.site / folder.name)

  @classmethod
  def tearDownClass(cls):
    shutil.rmtree(cls.directory)

  def run_installed(self, program, *words):
    """Runs a program of the environment with only PATH set."""
    return subprocess.run([self.programs / program, *words], env={"PATH": str(self.programs)}, cwd=self.directory,
                          capture_output=True, text=True, check=False)

  def test_auditwheel_is_there_in_ci(self):
    if not HAS_AUDITWHEEL and os.environ.get("CI") != "true":
      self.skipTest(f"{sys.executable} has no auditwheel")
    self.assertTrue(HAS_AUDITWHEEL)

  def test_it_serves_every_python_3(self):
    self.assertRegex(self.wheel.name, rf"^lockstep-[0-9.]+-py3-none-{TAG}\.whl$")
    with zipfile.ZipFile(self.wheel) as wheel:
      self.assertIn("lockstep/py.typed", wheel.namelist())

  def test_it_has_one_program(self):
    self.assertEqual(os.listdir(self.site / "lockstep/bin"), ["lockstep_main"])

  def test_core_exports_the_headers_functions_alone(self):
    headers = "".join((TREE / "capi" / name).read_text() for name in ("lockstep.h", "kernels.h"))
    declared = set(re.findall(r"^(?:int|const char\*) (lockstep_\w+)\(", headers, re.MULTILINE))
    symbols = run("nm", "-D", "--defined-only", "--format=posix", self.site / "lockstep/liblockstep.so")
    self.assertEqual({line.split()[0] for line in symbols.splitlines()}, declared)

  @unittest.skipUnless(HAS_AUDITWHEEL, "auditwheel adds the libraries")
  def test_programs_need_only_the_wheels_libraries(self):
    # Libraries that a minimal Debian has are allowed, too.
    for program in "liblockstep.so", "bin/lockstep_main":
      for line in run("ldd", self.site / "lockstep" / program).splitlines():
        if "=>" in line and not re.search(r"\blib(c|m|gcc_s|stdc\+\+|pthread|dl|rt|resolv|z)\.so", line.split("=>")[0]):
          self.assertIn("/lockstep.libs/", line, program)

  def test_trains_and_reads_with_its_command_line(self):
    trained = self.run_installed("python", TREE / "python/tests/softmax.py", "run")
    self.assertEqual(trained.returncode, 0, trained)
    inspected = self.run_installed("lockstep", "inspect", "run", "--digest")
    self.assertEqual(inspected.returncode, 0, inspected)
    self.assertIn(f"digest {inspected.stdout.strip()}", trained.stdout)
    for command in "chief", "worker":
      self.assertIn(f"lockstep {command}", self.run_installed("python", "-m", "lockstep", command, "--version").stdout)


if __name__ == "__main__":
  unittest.main()
