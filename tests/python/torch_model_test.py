"""Tests lockstep.torch without a chief: a model's variables, the rules for a slot, loaders, settings, weights."""

import os
import random
import select
import subprocess
import sys
import unittest

import lockstep
import lockstep.torch
import numpy as np
import torch
from lockstep.torch import _framework, _seeds
from lockstep.torch._model import ModelTensors
from torch import nn


class Net(nn.Module):
  """A network with batch norm, dropout and a frozen first layer."""

  def __init__(self):
    super().__init__()
    self.frozen = nn.Linear(6, 5).requires_grad_(False)
    self.norm = nn.BatchNorm1d(5, momentum=0.25)
    self.head = nn.Sequential(nn.Dropout(0.5), nn.Linear(5, 3))

  def forward(self, x):
    return self.head(self.norm(self.frozen(x)))


class Tied(nn.Module):

  def __init__(self):
    super().__init__()
    self.embedding = nn.Embedding(4, 3)
    self.output = nn.Linear(3, 4, bias=False)
    self.output.weight = self.embedding.weight

  def forward(self, i):
    return self.output(self.embedding(i))


def begin(tensors, values=None, same_values=False, slots_before=0):
  tensors.begin(list(tensors.initial().values()) if values is None else values, same_values, slots_before)


def step(model, tensors):
  """Computes gradients like the body of a slot loop."""
  begin(tensors)
  model(torch.ones(4, 6)).square().mean().backward()
  return tensors.gradients()


@unittest.skipUnless(torch.cuda.is_available(), "no GPU")
class GpuTest(unittest.TestCase):
  """A model gives the same results on a GPU as on the processor. Copies go through page-locked memory."""

  def test_slot_of_gpu_is_slot_of_cpu(self):
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(6, 5), nn.BatchNorm1d(5), nn.Linear(5, 3))
    x = torch.rand(4, 6)
    values = [2 * value for value in ModelTensors(model, "moving_average", "error").initial().values()]
    results = []
    for device in "cpu", "cuda":
      tensors = ModelTensors(model.to(device), "moving_average", "error")
      with tensors.batch_statistics():
        begin(tensors, values)
        begin(tensors, values)  # Before the first call's copies have ended.
        model(x.to(device)).square().mean().backward()
      self.assertEqual(any(pinned is not None and pinned.is_pinned() for pinned in tensors._pinned), device == "cuda")
      results.append([np.array(value) for value in tensors.gradients() if value is not None] + tensors.updates())
    for cpu, gpu in zip(*results):
      np.testing.assert_allclose(gpu, cpu, rtol=1e-3, atol=1e-5)


class ModelTest(unittest.TestCase):

  def test_trained_and_averaged_are_variables(self):
    tensors = ModelTensors(Net(), "moving_average", "error")
    self.assertEqual([v.name for v in tensors.variables], [
        "norm.weight", "norm.bias", "head.1.weight", "head.1.bias", "norm.running_mean", "norm.running_var"])
    self.assertEqual([v.trainable for v in tensors.variables], [True] * 4 + [False] * 2)
    self.assertEqual(tensors.variables[4].update, ("moving_average", 0.75))
    self.assertEqual(list(tensors.parts()), ["constant frozen.weight", "constant frozen.bias"])

  def test_constants_have_other_digests(self):
    model = Net()
    before = ModelTensors(model, "moving_average", "error").parts()
    with torch.no_grad():
      model.frozen.bias[0] += 1
    after = ModelTensors(model, "moving_average", "error").parts()
    self.assertEqual([name for name in before if before[name] != after[name]], ["constant frozen.bias"])

  def test_forward_leaves_batch_statistics(self):
    model = Net()
    tensors = ModelTensors(model, "moving_average", "error")
    with tensors.batch_statistics():
      begin(tensors)
      x = torch.arange(24.0).view(4, 6)
      model(x)
    seen = model.frozen(x)
    mean, variance = tensors.updates()
    np.testing.assert_allclose(mean, seen.mean(0).numpy(), rtol=1e-5)
    np.testing.assert_allclose(variance, seen.var(0).numpy(), rtol=1e-4)
    self.assertEqual(model.norm.momentum, 0.25)

  def test_batches_are_counted_by_slot(self):
    model = Net()
    tensors = ModelTensors(model, "moving_average", "error")
    begin(tensors, slots_before=7)
    model(torch.ones(4, 6))
    self.assertEqual(model.norm.num_batches_tracked.item(), 8)

  def test_last_slot_makes_buffers_variables(self):
    tensors = ModelTensors(nn.utils.spectral_norm(nn.Linear(6, 5)), "last_slot", "error")
    self.assertEqual([(v.name, v.trainable) for v in tensors.variables],
                     [("bias", True), ("weight_orig", True), ("weight_u", False), ("weight_v", False)])

  def test_changed_buffer_is_named(self):
    model = nn.utils.spectral_norm(nn.Linear(6, 5))
    tensors = ModelTensors(model, "moving_average", "error")
    with self.assertRaisesRegex(lockstep.ModelError, '"weight_u" was changed in the slot but is no variable'):
      step(model, tensors)

  def test_tied_parameter_is_one_variable(self):
    model = Tied()
    tensors = ModelTensors(model, "moving_average", "error")
    self.assertEqual([v.name for v in tensors.variables], ["embedding.weight"])
    begin(tensors)
    model(torch.tensor([0, 1])).sum().backward()
    np.testing.assert_array_equal(tensors.gradients()[0], model.output.weight.grad.numpy())

  def test_compiled_model_keeps_names(self):
    tensors = ModelTensors(torch.compile(Net(), backend="eager"), "moving_average", "error")
    self.assertEqual(tensors.variables[0].name, "norm.weight")

  def test_compiled_model_computes_with_new_values(self):
    model = nn.Linear(6, 1, bias=False)
    compiled = torch.compile(model, backend="aot_eager")
    tensors = ModelTensors(compiled, "moving_average", "error")
    for value in 2, 3:
      begin(tensors, [np.full((1, 6), value, np.float32)])
      compiled(torch.ones(1, 6)).square().sum().backward()
      np.testing.assert_array_equal(tensors.gradients()[0], np.full((1, 6), 2 * 6 * value, np.float32))

  def test_gradients_are_those_of_the_slot(self):
    model = Net()
    tensors = ModelTensors(model, "moving_average", "error")
    step(model, tensors)
    bias = step(model, tensors)[3]
    np.testing.assert_array_equal(bias, model.head[1].bias.grad.numpy())
    begin(tensors)
    self.assertIsNone(model.head[1].bias.grad)

  def test_autocast_leaves_float32_gradients(self):
    model = Net()
    tensors = ModelTensors(model, "moving_average", "error")
    begin(tensors)
    with torch.autocast("cpu", torch.bfloat16):
      loss = model(torch.rand(4, 6)).square().mean()
    loss.backward()
    self.assertEqual({g.dtype for g in tensors.gradients() if g is not None}, {np.dtype(np.float32)})

  def test_missing_gradient_is_named(self):
    model = nn.Sequential(nn.Linear(6, 5), nn.Linear(5, 3))
    tensors = ModelTensors(model, "moving_average", "error")
    begin(tensors)
    model[0](torch.ones(2, 6)).sum().backward()
    with self.assertRaisesRegex(lockstep.ModelError, r'"1.weight" has no gradient after backward\(\).*unused="zeros"'):
      tensors.gradients()

  def test_unused_parameter_may_have_zeros(self):
    model = nn.Sequential(nn.Linear(6, 5), nn.Linear(5, 3))
    tensors = ModelTensors(model, "moving_average", "zeros")
    begin(tensors)
    model[0](torch.ones(2, 6)).sum().backward()
    np.testing.assert_array_equal(tensors.gradients()[2], np.zeros((3, 5), np.float32))

  def test_gradient_of_frozen_is_named(self):
    model = Net()
    tensors = ModelTensors(model, "moving_average", "error")
    begin(tensors)
    model.frozen.requires_grad_(True)
    model(torch.ones(4, 6)).sum().backward()
    with self.assertRaisesRegex(lockstep.ModelError, '"frozen.weight" is frozen .* but has a gradient'):
      tensors.gradients()

  def test_sparse_gradient_is_named(self):
    model = nn.Embedding(4, 3, sparse=True)
    tensors = ModelTensors(model, "moving_average", "error")
    begin(tensors)
    model(torch.tensor([1])).sum().backward()
    with self.assertRaisesRegex(lockstep.ModelError, '"weight" has a sparse gradient'):
      tensors.gradients()

  def test_own_optimizer_is_refused(self):
    model = Net()
    tensors = ModelTensors(model, "moving_average", "error")
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    step(model, tensors)
    optimizer.step()
    with self.assertRaisesRegex(lockstep.ModelError, r"was changed in the slot.*remove optimizer.step\(\)"):
      tensors.gradients()

  def test_change_between_slots_is_undone(self):
    model = Net()
    tensors = ModelTensors(model, "moving_average", "error")
    values = list(tensors.initial().values())
    begin(tensors, values)
    with torch.no_grad():
      model.head[1].bias.fill_(7)
    begin(tensors, values, same_values=True)
    np.testing.assert_array_equal(model.head[1].bias.detach().numpy(), values[3])

  def test_unfit_models_are_refused(self):
    for model, message in (
        (nn.Linear(2, 2).requires_grad_(False), "no parameter with requires_grad=True"),
        (nn.Linear(2, 2).to(torch.bfloat16), '"weight" is torch.bfloat16; trainable parameters must be float32'),
        (nn.LazyLinear(2), '"weight" has no shape yet'),
        (nn.DataParallel(nn.Linear(2, 2)), "wrapped in DataParallel"),
        (nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2, momentum=None)), '"1" has momentum=None')):
      with self.assertRaisesRegex(lockstep.ModelError, message):
        ModelTensors(model, "moving_average", "error")

  def test_unknown_policies_are_refused(self):
    with self.assertRaisesRegex(ValueError, 'buffers is "mean"'):
      ModelTensors(Net(), "mean", "error")
    with self.assertRaisesRegex(ValueError, 'unused is "skip"'):
      ModelTensors(Net(), "frozen", "skip")


class Noisy(torch.utils.data.Dataset):
  """Examples that draw from each of the three generators."""

  def __len__(self):
    return 50

  def __getitem__(self, i):
    return i, torch.rand(()), np.random.rand(), random.random()


def address(step, slot):
  return (None if step >= 3 else ((np.arange(4) + 10 * step + slot).astype(np.int64), _seeds.mix(step, slot)))


class LoaderTest(unittest.TestCase):

  def batches(self, **options):
    loader = lockstep.torch.Loader(Noisy(), **options)
    loader.start()
    try:
      return [[part.tolist() for part in loader.batch(step, slot, address)] for step in range(3) for slot in (0, 2)]
    finally:
      loader.close()

  def test_processes_make_the_same_batches(self):
    alone = self.batches()
    self.assertEqual(alone[0][0], [0, 1, 2, 3])
    self.assertEqual(self.batches(num_workers=2, start_method="fork"), alone)
    self.assertEqual(self.batches(num_workers=1, start_method="spawn", prefetch=0), alone)

  def test_examples_have_seeds_of_their_own(self):
    for part in self.batches()[0][1:]:
      self.assertEqual(len(set(part)), 4)

  def test_killed_loop_leaves_no_processes(self):
    program = ("import os, torch, lockstep.torch; loader = lockstep.torch.Loader([0], num_workers=1); loader.start(); "
               "print(*loader._pool._processes, flush=True); input()")
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as loop:
      process = os.pidfd_open(int(loop.stdout.readline()))
      loop.kill()
    self.assertTrue(select.select([process], [], [], 60)[0], "the loader's process lives")
    os.close(process)

  def test_error_of_dataset_reaches_the_loop(self):
    loader = lockstep.torch.Loader([0, 1], num_workers=1)
    loader.start()
    try:
      with self.assertRaises(IndexError):
        loader.batch(0, 0, lambda step, slot: ([5], 1))
    finally:
      loader.close()

  def test_stream_is_refused(self):

    class Stream(torch.utils.data.IterableDataset):

      def __iter__(self):
        return iter(())

    with self.assertRaisesRegex(TypeError, "Stream has no example number i"):
      lockstep.torch.Loader(Stream())

  def test_negative_numbers_are_refused(self):
    with self.assertRaisesRegex(ValueError, "num_workers is -1"):
      lockstep.torch.Loader(Noisy(), num_workers=-1)


class SeedsTest(unittest.TestCase):

  def draw(self, seed):
    _seeds.seed_all(seed)
    return torch.rand(1).item(), torch.randn(1).item(), np.random.rand(), random.random()

  def test_seed_decides_every_generator(self):
    for seed in (0, 2**63, 2**64 - 1):
      self.assertEqual(self.draw(seed), self.draw(seed))
    for one, other in zip(self.draw(1), self.draw(2)):
      self.assertNotEqual(one, other)

  def test_seeds_of_torch_are_manual_seeds(self):
    _seeds.seed_all(5)
    ours = torch.rand(3)
    torch.manual_seed(5)
    self.assertTrue(torch.equal(ours, torch.rand(3)))


class DeterministicTest(unittest.TestCase):

  def run_python(self, program):
    return subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True).stderr

  def test_late_call_is_refused(self):
    error = self.run_python("import torch; torch.ones(9).sum(); import lockstep.torch as t; t.deterministic()")
    self.assertRegex(error, r"RuntimeError: lockstep.torch.deterministic\(\) must be called before the first operation")

  def test_refused_call_leaves_mkl_as_it_was(self):
    error = self.run_python("""
import ctypes, sys, lockstep.torch
from lockstep.torch import _framework

def checks():
  return [ctypes.string_at(ctypes.cast(getattr(_framework._library(), name), ctypes.c_void_p).value, 6)
          for name in _framework._INTEL_CHECKS]

before = checks()
lockstep.torch.deterministic()
try:
  lockstep.torch.deterministic(mkl="avx2")
except RuntimeError as refusal:
  sys.exit(f"{refusal}; functions as before: {checks() == before}")
""")
    self.assertIn("MKL has chosen its code path 3 already; functions as before: True", error)

  def test_settings_enter_the_contract(self):
    program = ("import torch, sys, lockstep.torch as t; from lockstep.torch import _framework; t.deterministic(); "
               "sys.exit(str(_framework.framework(torch.nn.Linear(2, 2))))")
    settings = self.run_python(program)
    for setting in ("'threads': '1'", "'deterministic_algorithms': 'true'", "'cpu_capability': 'AVX2'", "'onednn': 'AVX2'",
                    "'flush_denormal': 'false'"):
      self.assertIn(setting, settings)

  def test_wrong_arguments_are_refused(self):
    with self.assertRaisesRegex(ValueError, "threads is 0"):
      lockstep.torch.deterministic(threads=0)
    with self.assertRaisesRegex(ValueError, 'isa is "sse"'):
      lockstep.torch.deterministic(isa="sse")
    with self.assertRaisesRegex(ValueError, 'mkl is "avx2"; it must be "compatible" or, unless isa is "native"'):
      lockstep.torch.deterministic(isa="native", mkl="avx2")

  def test_flushing_and_compiling_are_seen(self):
    model = nn.Linear(2, 2)
    self.assertEqual(_framework.framework(torch.compile(model, backend="eager"))["compiled"], "true")
    torch.set_flush_denormal(True)
    try:
      self.assertEqual(_framework.framework(model)["flush_denormal"], "true")
    finally:
      torch.set_flush_denormal(False)


class WeightsTest(unittest.TestCase):

  def test_values_take_the_place_of_the_models(self):
    model = Net()
    values = ModelTensors(model, "moving_average", "error").initial()
    values["norm.running_mean"] = np.full(5, 3, np.float32)
    state = lockstep.torch.state_dict(values, model)
    self.assertEqual(list(state), list(model.state_dict()))
    self.assertEqual(state["norm.running_mean"].tolist(), [3] * 5)
    self.assertTrue(torch.equal(state["frozen.weight"], model.frozen.weight))
    self.assertEqual(model.norm.running_mean.tolist(), [0] * 5)
    lockstep.torch.load_into(model, values)
    self.assertEqual(model.norm.running_mean.tolist(), [3] * 5)

  def test_tied_tensors_have_one_value(self):
    model = Tied()
    state = lockstep.torch.state_dict({"embedding.weight": np.ones((4, 3), np.float32)}, model)
    self.assertEqual(state["output.weight"].sum().item(), 12)

  def test_missing_and_misshapen_are_named(self):
    with self.assertRaisesRegex(lockstep.ModelError, 'the mapping has no variable "embedding.weight"'):
      lockstep.torch.state_dict({}, Tied())
    with self.assertRaisesRegex(lockstep.ModelError, r'"embedding.weight" has shape \(3, 4\) in the mapping, .* \(4, 3\)'):
      lockstep.torch.state_dict({"embedding.weight": np.ones((3, 4), np.float32)}, Tied())


if __name__ == "__main__":
  unittest.main()
