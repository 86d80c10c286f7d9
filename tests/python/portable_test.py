"""Tests lockstep.torch.portable() without a chief: values, refusals, and bits in processes with different settings.

With the arguments "digest THREADS", prints a digest of the results of all modules.
"""

import collections
import copy
import hashlib
import os
import pathlib
import subprocess
import sys
import unittest

import lockstep
import lockstep.torch
import numpy as np
import torch
from lockstep.torch import _framework, _operations
from lockstep.torch._model import ModelTensors
from torch import nn
from torch.nn import functional as F

portable = lockstep.torch.portable


def numbers(*shape, seed=1):
  """Returns normally distributed numbers, computed without torch's kernels."""
  return torch.from_numpy(np.random.default_rng(seed).normal(size=shape).astype(np.float32))


def labels(*shape, classes=5):
  return torch.from_numpy(np.random.default_rng(3).integers(0, classes, shape))


def with_numbers(module):
  """Fills parameters and running statistics, because torch's initializers fill them differently on other processors."""
  with torch.no_grad():
    for seed, (name, tensor) in enumerate(module.state_dict().items(), 10):
      if tensor.is_floating_point():
        values = numbers(*tensor.shape, seed=seed)
        tensor.copy_(values.abs() + 0.5 if name.endswith("running_var") else values)
  return module


# For each name: the module, and the shape of its input or a list of its arguments.
CASES = {
    "Linear": (lambda: nn.Linear(7, 5), (6, 7)),
    "Linear of a sequence": (lambda: nn.Linear(7, 5, bias=False), (2, 3, 7)),
    "Linear of one vector": (lambda: nn.Linear(7, 5), (7,)),
    "Linear of no rows": (lambda: nn.Linear(7, 5), (0, 7)),
    "Conv2d": (lambda: nn.Conv2d(3, 5, 3), (2, 3, 8, 9)),
    "Conv2d with a border": (lambda: nn.Conv2d(3, 5, (3, 5), padding=(1, 2), bias=False), (2, 3, 8, 9)),
    "Conv2d with strides": (lambda: nn.Conv2d(3, 17, 3, stride=(2, 3), padding=1), (2, 3, 8, 9)),
    "Conv2d with wide border": (lambda: nn.Conv2d(3, 5, 1, padding=2), (2, 3, 4, 4)),
    "Conv2d with padding='same'": (lambda: nn.Conv2d(3, 5, (2, 3), padding="same"), (2, 3, 8, 9)),
    "Conv2d of one channel": (lambda: nn.Conv2d(1, 4, 3, padding=1), (2, 1, 8, 8)),
    "BatchNorm1d": (lambda: nn.BatchNorm1d(5), (9, 5)),
    "BatchNorm1d of sequences": (lambda: nn.BatchNorm1d(5, affine=False), (4, 5, 3)),
    "BatchNorm2d": (lambda: nn.BatchNorm2d(5, momentum=0.3), (4, 5, 3, 2)),
    "BatchNorm2d with a mean": (lambda: nn.BatchNorm2d(5, momentum=None), (4, 5, 3, 2)),
    "BatchNorm2d without statistics": (lambda: nn.BatchNorm2d(5, track_running_stats=False).eval(), (4, 5, 3, 2)),
    "BatchNorm2d in eval()": (lambda: nn.BatchNorm2d(5).eval(), (4, 5, 3, 2)),
    "LayerNorm": (lambda: nn.LayerNorm(37), (70, 37)),
    "LayerNorm of two dimensions": (lambda: nn.LayerNorm((3, 4), bias=False), (5, 3, 4)),
    "LayerNorm without parameters": (lambda: nn.LayerNorm(6, elementwise_affine=False), (5, 6)),
    "Embedding": (lambda: nn.Embedding(6, 3, padding_idx=1), [labels(4, 7, classes=6)]),
    "ReLU": (nn.ReLU, (40, 3)),
    "ReLU in place": (lambda: nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(inplace=True)), (2, 3, 5, 5)),
    "ReLU6": (nn.ReLU6, (40, 3)),
    "LeakyReLU": (lambda: nn.LeakyReLU(0.1), (40, 3)),
    "Tanh": (nn.Tanh, (40, 3)),
    "Sigmoid": (nn.Sigmoid, (40, 3)),
    "GELU": (lambda: nn.GELU("tanh"), (40, 3)),
    "Softmax": (lambda: nn.Softmax(-1), (4, 11)),
    "Softmax of channels": (lambda: nn.Softmax(1), (4, 3, 5)),
    "MaxPool2d": (lambda: nn.MaxPool2d(2), (2, 3, 7, 6)),
    "MaxPool2d with overlaps": (lambda: nn.MaxPool2d(3, 2, padding=1), (2, 3, 8, 9)),
    "AvgPool2d": (lambda: nn.AvgPool2d((2, 3)), (2, 3, 6, 9)),
    "AvgPool2d with a border": (lambda: nn.AvgPool2d(3, 1, 1, count_include_pad=False), (2, 3, 6, 7)),
    "AdaptiveAvgPool2d": (lambda: nn.AdaptiveAvgPool2d(1), (2, 3, 6, 7)),
    "CrossEntropyLoss": (nn.CrossEntropyLoss, [numbers(8, 5), labels(8)]),
    "CrossEntropyLoss, smooth": (lambda: nn.CrossEntropyLoss(label_smoothing=0.2, reduction="sum"),
                                 [numbers(8, 5), labels(8)]),
    "CrossEntropyLoss of images": (lambda: nn.CrossEntropyLoss(ignore_index=2, reduction="none"),
                                   [numbers(2, 5, 3, 3), labels(2, 3, 3)]),
    "CrossEntropyLoss of the rest": (lambda: nn.CrossEntropyLoss(ignore_index=2), [numbers(8, 5), labels(8)]),
    "CrossEntropyLoss of odds": (nn.CrossEntropyLoss, [numbers(8, 5, 2), numbers(8, 5, 2, seed=2).abs()]),
    "CrossEntropyLoss of one": (nn.CrossEntropyLoss, [numbers(5), labels()]),
    "MSELoss": (nn.MSELoss, [numbers(90, 80), numbers(90, 80, seed=2)]),
    "MSELoss of each": (lambda: nn.MSELoss(reduction="none"), [numbers(8, 5), numbers(8, 5, seed=2)]),
    "L1Loss": (lambda: nn.L1Loss(reduction="sum"), [numbers(8, 5), numbers(8, 5, seed=2)]),
    "HuberLoss": (lambda: nn.HuberLoss(delta=0.7), [numbers(8, 5), numbers(8, 5, seed=2)]),
    "BCEWithLogitsLoss": (nn.BCEWithLogitsLoss, [numbers(8, 5), labels(8, 5, classes=2).float()]),
}


def results_of(module, shape_or_arguments, prepare=lambda x: x):
  """Returns, by name, the module's output, the gradients of its input and parameters, and its buffers."""
  arguments = [numbers(*shape_or_arguments)] if isinstance(shape_or_arguments, tuple) else shape_or_arguments
  first = prepare(arguments[0].clone())
  if first.is_floating_point():
    first.requires_grad_(True)
  output = module(first, *arguments[1:])
  output.backward(numbers(*output.shape, seed=9))
  found = {"output": output.detach()}
  if first.is_floating_point():
    found["gradient of the input"] = first.grad
  found.update((f"gradient of {name}", parameter.grad) for name, parameter in module.named_parameters())
  found.update(module.named_buffers())
  return found


class ValuesTest(unittest.TestCase):
  """The modules compute the same as torch's, up to rounding."""

  def check_equal(self, ours, theirs):
    self.assertEqual(ours.keys(), theirs.keys())
    for name, tensor in theirs.items():
      self.assertEqual(ours[name].shape, tensor.shape, name)
      np.testing.assert_allclose(ours[name].numpy(), tensor.numpy(), rtol=2e-4, atol=2e-5, err_msg=name)

  def check_case(self, name, prepare=lambda x: x):
    make, arguments = CASES[name]
    module = with_numbers(make())
    theirs = results_of(copy.deepcopy(module), arguments, prepare)
    self.check_equal(results_of(portable(module), arguments, prepare), theirs)

  def test_results_are_those_of_torch(self):
    for name in CASES:
      with self.subTest(name):
        self.check_case(name)

  def test_input_may_have_any_order_in_memory(self):
    for name, (_, arguments) in CASES.items():
      if isinstance(arguments, tuple) and len(arguments) > 1:
        with self.subTest(name):
          self.check_case(name, lambda x: x.transpose(0, -1).contiguous().transpose(0, -1))
          self.check_case(name, lambda x: torch.stack([x, x], -1)[..., 0])

  def test_gradient_may_have_any_order_in_memory(self):
    for kind in (nn.ReLU, lambda: nn.MaxPool2d(1), lambda: nn.BatchNorm2d(3)):
      module = with_numbers(kind())
      gradients = []
      for used in (copy.deepcopy(module), portable(module)):
        x = numbers(2, 3, 4, 5).requires_grad_(True)
        used(x).transpose(1, 3).contiguous().backward(numbers(2, 5, 4, 3, seed=2))
        gradients.append(x.grad)
      np.testing.assert_allclose(*gradients, rtol=2e-4, atol=2e-5)

  def test_fused_activation_has_the_same_bits(self):
    for activation in nn.ReLU(), nn.ReLU6():
      model = portable(with_numbers(nn.Sequential(nn.BatchNorm2d(3), activation)))
      apart = copy.deepcopy(model)
      seen = []
      apart[0].register_forward_hook(lambda module, arguments, output: seen.append(output))
      fused = results_of(model, (5, 3, 4, 4))
      for name, tensor in results_of(apart, (5, 3, 4, 4)).items():
        self.assertTrue(torch.equal(tensor, fused[name]), name)
      self.assertEqual(len(seen), 1)

  def test_model_trains_as_with_torch(self):
    theirs = with_numbers(make_net())
    ours = portable(copy.deepcopy(theirs))
    x, y = numbers(12, 1, 8, 8), labels(12)
    for _ in range(2):  # Gradients accumulate.
      F.cross_entropy(theirs(x), y).backward()
      portable(nn.CrossEntropyLoss())(ours(x), y).backward()
    for (name, parameter), other in zip(ours.named_parameters(), theirs.parameters()):
      np.testing.assert_allclose(parameter.grad, other.grad, rtol=1e-3, atol=1e-4, err_msg=name)
    self.assertEqual(ours.norm.num_batches_tracked.item(), 2)

  def test_softmax_of_masked_row_is_finite(self):
    x = torch.tensor([[0.0, -torch.inf, 0.0]])
    self.assertEqual(portable(nn.Softmax(-1))(x).tolist(), [[0.5, 0, 0.5]])

  def test_wrong_inputs_are_named(self):
    linear = portable(nn.Linear(4, 3))
    for use, message in (
        (lambda: linear(torch.ones(2, 5)), r"Linear needs a tensor of shape \(..., 4\), not \(2, 5\)"),
        (lambda: linear(torch.ones(2, 4, dtype=torch.float64)), "float32 on the CPU, not with torch.float64"),
        (lambda: portable(nn.Conv2d(3, 3, 3))(torch.ones(1, 2, 9, 9)), r"\(count, 3, height, width\), not \(1, 2, 9, 9\)"),
        (lambda: portable(nn.Conv2d(3, 3, 3))(torch.ones(1, 3, 2, 9)), r"a window of \(3, 3\) does not fit images"),
        (lambda: portable(nn.LayerNorm(4))(torch.ones(2, 5)), r"shape \(..., 4\), not \(2, 5\)"),
        (lambda: portable(nn.BatchNorm1d(4))(torch.ones(2, 5)), r"\(count, 4, ...\), not \(2, 5\)"),
        (lambda: portable(nn.CrossEntropyLoss())(torch.ones(2, 5), torch.tensor([0, 5])), r"labels\[1\] is 5"),
        (lambda: portable(nn.CrossEntropyLoss())(torch.ones(2, 5), torch.tensor([0])), r"shape \(2,\) for its classes"),
        (lambda: portable(nn.MSELoss())(torch.ones(2, 5), torch.ones(5)), r"shape \(2, 5\), not \(5,\)")):
      with self.assertRaisesRegex(lockstep.ModelError, message):
        use()


class DropoutTest(unittest.TestCase):

  def test_share_is_kept_and_scaled(self):
    torch.manual_seed(5)
    x = torch.ones(100, 100, requires_grad=True)
    y = portable(nn.Dropout(0.2))(x)
    y.sum().backward()
    self.assertEqual(y.unique().tolist(), [0, 1.25])
    self.assertAlmostEqual((y == 0).float().mean().item(), 0.2, delta=0.02)
    self.assertTrue(torch.equal(x.grad, y))

  def test_numbers_are_those_of_the_seed(self):
    layer = portable(nn.Dropout(0.5))
    torch.manual_seed(5)
    first, second = layer(torch.ones(99)), layer(torch.ones(99))
    torch.manual_seed(5)
    self.assertTrue(torch.equal(layer(torch.ones(99)), first))
    self.assertFalse(torch.equal(first, second))

  def test_extreme_rates(self):
    self.assertEqual(portable(nn.Dropout(1.0))(torch.ones(9)).tolist(), [0] * 9)
    x = torch.ones(9)
    self.assertIs(portable(nn.Dropout(0.0))(x), x)
    self.assertIs(portable(nn.Dropout(0.5)).eval()(x), x)

  def test_layer_may_work_in_place(self):
    x = torch.ones(50)
    self.assertIs(portable(nn.Dropout(0.5, inplace=True))(x), x)
    self.assertEqual(x.unique().tolist(), [0, 2])


def make_net():
  return nn.Sequential(collections.OrderedDict(
      conv=nn.Conv2d(1, 6, 3, padding=1), norm=nn.BatchNorm2d(6), relu=nn.ReLU(), pool=nn.MaxPool2d(2), flat=nn.Flatten(),
      hidden=nn.Linear(96, 20), layer_norm=nn.LayerNorm(20), gelu=nn.GELU("tanh"), output=nn.Linear(20, 5)))


class Own(nn.Module):
  """A user's module with its own operation."""

  def __init__(self, operation):
    super().__init__()
    self.linear = nn.Linear(4, 4)
    self.operation = operation

  def forward(self, x):
    return self.operation(self.linear(x))


class OwnLinear(nn.Linear):

  def forward(self, input):
    return super().forward(input).exp()


class CoverageTest(unittest.TestCase):

  def test_every_uncovered_module_is_named(self):
    model = nn.Sequential(
        nn.Linear(4, 4), nn.GELU(), nn.Sequential(nn.LSTM(4, 4), nn.Conv2d(4, 4, 3, groups=2)), OwnLinear(4, 4),
        nn.MaxPool2d(2, ceil_mode=True), nn.AvgPool2d(3, padding=1), nn.Softmax(), nn.CrossEntropyLoss(torch.ones(4)))
    with self.assertRaises(lockstep.ModelError) as caught:
      portable(model)
    self.assertEqual(
        str(caught.exception),
        "lockstep.torch.portable() does not cover \"1\" (GELU with approximate='none'), \"2.0\" (LSTM), \"2.1\" (Conv2d "
        "with groups=2), \"3\" (OwnLinear, a class of its own), \"4\" (MaxPool2d with ceil_mode=True), \"5\" (AvgPool2d with "
        "padding=1 and count_include_pad=True), \"6\" (Softmax with dim=None), \"7\" (CrossEntropyLoss with weight=...)")
    self.assertIs(type(model[0]), nn.Linear)

  def test_other_uncovered_modules(self):
    for module, reason in (
        (nn.utils.parametrizations.weight_norm(nn.Linear(2, 2)), "ParametrizedLinear, a class of its own"),
        (torch.compile(nn.Linear(2, 2)), r"the model itself \(OptimizedModule\)"),
        (nn.Embedding(2, 2, sparse=True), "Embedding with sparse=True"),
        (nn.Conv2d(2, 2, 3, dilation=2), r"Conv2d with dilation=\(2, 2\)"),
        (nn.LeakyReLU(2), "LeakyReLU with negative_slope=2"),
        (nn.AdaptiveAvgPool2d(2), "AdaptiveAvgPool2d with output_size=2"),
        (nn.BCEWithLogitsLoss(pos_weight=torch.ones(2)), "BCEWithLogitsLoss with pos_weight=...")):
      with self.assertRaisesRegex(lockstep.ModelError, reason):
        portable(module)

  def test_model_keeps_names_and_objects(self):
    model = make_net()
    before, first = model.state_dict(), model.conv
    self.assertIs(portable(model), model)
    self.assertIs(model.conv, first)
    self.assertIsInstance(first, nn.Conv2d)
    self.assertEqual(repr(first), "PortableConv2d(1, 6, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1))")
    after = model.state_dict()
    self.assertEqual(list(after), list(before))
    for name, tensor in after.items():
      self.assertEqual(tensor.data_ptr(), before[name].data_ptr(), name)
    portable(model)  # A second call changes nothing.
    x = numbers(2, 1, 8, 8)
    self.assertTrue(torch.equal(copy.deepcopy(model).eval()(x), model.eval()(x)))

  def test_worker_gets_statistics_of_batch(self):
    model = portable(nn.Sequential(nn.Linear(6, 5), nn.BatchNorm1d(5, momentum=0.25)))
    tensors = ModelTensors(model, "moving_average", "error")
    with tensors.batch_statistics():
      tensors.begin(list(tensors.initial().values()), False, 0)
      x = numbers(4, 6)
      model(x)
    hidden = model[0](x).detach()
    for found, expected in zip(tensors.updates(), (hidden.mean(0), hidden.var(0))):
      np.testing.assert_allclose(found, expected, rtol=1e-5)


class ContractTest(unittest.TestCase):

  def test_contract_names_no_settings_of_kernels(self):
    settings = _framework.framework(portable(make_net()))
    version = settings.pop("kernels")
    self.assertGreaterEqual(int(version), 2)
    self.assertEqual(
        settings, {"name": "PyTorch", "version": torch.__version__, "portable": "true", "flush_denormal": "false"})

  def test_model_with_another_layer_is_not_portable(self):
    model = portable(make_net())
    model.append(nn.Linear(5, 5))
    self.assertIn("cpu_capability", _framework.framework(model))
    self.assertIn("cpu_capability", _framework.framework(nn.Sequential(nn.Flatten())))


class OperationsTest(unittest.TestCase):
  """A model's own operations are exact, or named in an error."""

  def run_step(self, model, loss=lambda y: portable(nn.MSELoss())(y, torch.zeros_like(y))):
    with _operations.OnlyExactOperations():
      x = torch.full((3, 4), 2.0).exp()  # The data need not be exact: no gradient flows to them.
      y = model(x)
      loss(y).backward()
      return (y.argmax(1) == 0).float().mean()

  def test_covered_modules_are_exact(self):
    for name, (make, arguments) in CASES.items():
      model = portable(with_numbers(make()))  # Its initial values are drawn before the slot.
      with self.subTest(name), _operations.OnlyExactOperations():
        results_of(model, arguments)

  def test_exact_operations_pass(self):
    self.run_step(portable(Own(lambda y: 1 - torch.cat([y[:, :2], y.relu()[:, 2:]], 1) * 0.5 + y / 3)))

  def test_other_operations_are_named(self):
    for name, operation in (("gelu", F.gelu), ("exp", torch.exp), ("mm", lambda y: y @ torch.ones(4, 4)),
                            ("mean", lambda y: y - y.mean()), ("add", lambda y: torch.add(y, y, alpha=0.3)),
                            ("sub", lambda y: torch.sub(y, 1, alpha=0.3))):
      with self.assertRaisesRegex(lockstep.ModelError, f"torch's own {name}, whose bits depend on the processor"):
        self.run_step(portable(Own(operation)))

  def test_operation_of_gradient_is_named(self):
    scale = torch.ones(4, requires_grad=True)  # Its gradient is a sum over rows.
    with self.assertRaisesRegex(lockstep.ModelError, "torch's own sum"):
      self.run_step(portable(Own(lambda y: y * scale)))


def digest():
  """Returns a digest of the values and gradients in all cases, of dropout, and of a model."""
  found = hashlib.sha256()
  torch.manual_seed(5)
  for make, arguments in [*CASES.values(), (lambda: nn.Dropout(0.3), (50, 7)), (make_net, (12, 1, 8, 8))]:
    for name, tensor in results_of(portable(with_numbers(make())), arguments).items():
      found.update(name.encode() + tensor.contiguous().numpy().tobytes())
  return found.hexdigest()


class BitsTest(unittest.TestCase):

  def test_settings_change_no_bit(self):
    settings = [
        (1, {}),
        (2, {"ATEN_CPU_CAPABILITY": "default", "LOCKSTEP_TARGET": "avx2", "ONEDNN_MAX_CPU_ISA": "SSE41"}),
        (1, {"ATEN_CPU_CAPABILITY": "avx2", "MKL_CBWR": "COMPATIBLE"}),
    ]
    if " avx512vl" in pathlib.Path("/proc/cpuinfo").read_text():
      settings.append((2, {"ATEN_CPU_CAPABILITY": "avx512", "LOCKSTEP_TARGET": "avx512"}))
    processes = [
        subprocess.Popen([sys.executable, __file__, "digest", str(threads)], stdout=subprocess.PIPE, text=True,
                         env={**os.environ, **environment}) for threads, environment in settings
    ]
    digests = [process.communicate()[0] for process in processes]
    self.assertEqual([process.returncode for process in processes], [0] * len(processes))
    self.assertEqual(digests, [digests[0]] * len(digests))

  def test_wrong_target_is_an_error(self):
    run = subprocess.run([sys.executable, __file__, "digest", "1"], check=False, capture_output=True, text=True,
                         env={**os.environ, "LOCKSTEP_TARGET": "sse2"})
    self.assertIn('ModelError: LOCKSTEP_TARGET is "sse2", but must be avx2, avx512, neon or empty', run.stderr)


if __name__ == "__main__":
  if sys.argv[1:2] == ["digest"]:
    torch.set_num_threads(int(sys.argv[2]))
    print(digest())
  else:
    unittest.main()
