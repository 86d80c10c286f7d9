"""The gradients under deterministic() must have these digests, with PyTorch 2.15.0. Those of mkl="compatible" were first
seen on an AMD EPYC (Zen 4), then on an Intel Xeon (Sapphire Rapids), those of mkl="avx2" on an Intel Xeon and on an
emulated AMD EPYC. A failure on another processor is therefore a real finding.

Usage: bits_test.py [MKL]   (the argument mkl of deterministic; by default, tests both of its values)
"""

import hashlib
import subprocess
import sys
import unittest

import lockstep.torch
import torch
from torch import nn
from torch.nn import functional as F

MKL = sys.argv.pop(1) if len(sys.argv) > 1 else "compatible"
lockstep.torch.deterministic(mkl=MKL)

DIGESTS = {
    "compatible": {"perceptron": "14f7e46887d2", "convolutions": "4a01783b922b"},
    "avx2": {"perceptron": "1ed398722652", "convolutions": "c4062c2e8720"},
}[MKL]
BATCH = 64


class Convolutions(nn.Module):

  def __init__(self):
    super().__init__()
    self.conv1 = nn.Conv2d(1, 32, 3, padding=1)
    self.norm1 = nn.BatchNorm2d(32)
    self.conv2 = nn.Conv2d(32, 64, 3, padding=1)
    self.norm2 = nn.BatchNorm2d(64)
    self.hidden = nn.Linear(64 * 7 * 7, 128)
    self.dropout = nn.Dropout(0.1)
    self.logits = nn.Linear(128, 10)

  def forward(self, x):
    x = F.max_pool2d(F.relu(self.norm1(self.conv1(x.view(-1, 1, 28, 28)))), 2)
    x = F.max_pool2d(F.relu(self.norm2(self.conv2(x))), 2)
    return self.logits(self.dropout(F.relu(self.hidden(x.flatten(1)))))


def make_model(kind):
  torch.manual_seed(1)
  if kind == "convolutions":
    return Convolutions()
  return nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Dropout(0.1), nn.Linear(512, 10))


def digest_of_gradients(kind):
  model = make_model(kind)
  generator = torch.Generator().manual_seed(7)
  x, y = torch.rand(512, 784, generator=generator), torch.randint(0, 10, (512,), generator=generator)
  torch.manual_seed(5)
  F.cross_entropy(model(x[:BATCH]), y[:BATCH]).backward()
  gradients = b"".join(parameter.grad.numpy().tobytes() for parameter in model.parameters())
  return hashlib.sha256(gradients).hexdigest()[:12]


@unittest.skipIf(torch.__version__.partition("+")[0] != "2.15.0", "the digests are those of PyTorch 2.15.0")
class BitsTest(unittest.TestCase):

  def test_gradients_match_other_processors(self):
    self.assertEqual({kind: digest_of_gradients(kind) for kind in DIGESTS}, DIGESTS)

  def test_threads_change_no_bit(self):
    torch.set_num_threads(2)
    try:
      self.assertEqual({kind: digest_of_gradients(kind) for kind in DIGESTS}, DIGESTS)
    finally:
      torch.set_num_threads(1)

  @unittest.skipUnless(MKL == "compatible", "it starts this test again")
  def test_mkls_avx2_kernels(self):
    subprocess.run([sys.executable, __file__, "avx2"], check=True)


if __name__ == "__main__":
  unittest.main()
