"""Certificates: use_tls(), and a chief with tls_dir."""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest

import lockstep
import softmax

LOCKSTEP = os.path.abspath(sys.argv.pop())


class TlsTest(unittest.TestCase):

  def setUp(self):
    self.directory = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
    self.addCleanup(shutil.rmtree, self.directory)
    self.addCleanup(lockstep.use_tls, None)
    self.certs("init", self.path("ca"))
    for role in "chief", "worker", "viewer":
      self.certs("issue", self.path("ca"), f"--role={role}", f"--out={self.path(role)}")

  def path(self, name):
    return os.path.join(self.directory, name)

  def certs(self, *words):
    subprocess.run([LOCKSTEP, "certs", *words], check=True, stdout=subprocess.DEVNULL)

  def chief(self):
    chief = lockstep.Chief(softmax.declare(self.path("run")), tls_dir=self.path("chief"))
    self.addCleanup(chief.close)
    return chief

  def test_a_worker_with_certificates_trains(self):
    chief = self.chief()
    lockstep.use_tls(self.path("worker"))
    result, _ = softmax.train(softmax.declare(self.path("run")), master=chief.address)
    self.assertEqual(result.step, softmax.STEPS)
    self.assertTrue(chief.wait())
    self.assertEqual(lockstep.load(self.path("run"))["global_step"], softmax.STEPS)

  def test_missing_certificates_name_the_option(self):
    with self.assertRaisesRegex(lockstep.Error, "speaks TLS; give --tls_dir"):
      lockstep.status(self.chief().address)

  def test_a_role_limits_what_a_process_may_do(self):
    chief = self.chief()
    lockstep.use_tls(self.path("viewer"))
    self.assertEqual(lockstep.status(chief.address)["global_step"], 0)
    with self.assertRaisesRegex(lockstep.Error, "viewer"):
      softmax.train(softmax.declare(self.path("run")), master=chief.address, chief_wait=1.0)

  def test_wrong_folder_is_named(self):
    chief = self.chief()
    lockstep.use_tls(self.path("viewer"))
    os.remove(self.path("worker/tls.key"))
    with self.assertRaisesRegex(lockstep.ConfigurationError, "worker/tls.key"):
      lockstep.use_tls(self.path("worker"))
    self.assertEqual(lockstep.status(chief.address)["global_step"], 0)


if __name__ == "__main__":
  unittest.main()
