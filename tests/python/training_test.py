"""Trains PyTorch and JAX models with real chiefs and processes, some of which are killed. The bits must be the same.

Usage: training_test.py torch|jax LOCKSTEP   (the program)
Each worker is a process forked from this one, which has imported the framework and computed nothing.
With LOCKSTEP_TORCH_DEVICE=cuda, BitsTest and ContractTest train on a GPU.
"""

import collections
import contextlib
import importlib
import multiprocessing
import multiprocessing.connection
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import traceback
import unittest

import numpy as np

FRAMEWORK, LOCKSTEP = sys.argv[1], os.path.abspath(sys.argv[2])
if FRAMEWORK == "torch":
  import torch
  import torch._inductor.config  # Takes seconds, and use_deterministic_algorithms() of each process imports it.
  from torch import nn
  from torch.nn import functional as F
else:
  import jax
  from jax import numpy as jnp

STEPS, SLOTS, BATCH, EXAMPLES, WIDTH, LIMIT_S = 24, 3, 8, 200, 36, 120
EPSILON, DECAY, NO_DECAY, CLIP = 1e-4, 0.5, r"bias$|norm", 0.5
FORK = multiprocessing.get_context("fork")


def examples():
  generator = np.random.default_rng(7)
  return generator.random((EXAMPLES, WIDTH), np.float32), generator.integers(0, 5, EXAMPLES)


def rate(step):
  return 1e-2 * min(1, (step + 1) / 6) * (1 - step / STEPS)


def adam():
  return {"optimizer": lockstep.AdamW(lockstep.cosine(1e-2, STEPS))}


def sgd():
  return {"optimizer": lockstep.SGD(0.1, momentum=0.5)}


def script():
  """Returns the settings of a script with parameter groups, a clip and a scheduler."""
  optimizer = lockstep.AdamW(lockstep.schedule(rate, STEPS), eps=EPSILON, weight_decay=DECAY, no_decay=NO_DECAY)
  return {"optimizer": optimizer, "clip_norm": CLIP}


def declare(directory, settings=adam):
  return lockstep.Run(None, steps=STEPS, slots=SLOTS, batch=BATCH, seed=3, checkpoint_every=8,
                      initial=directory / "initial.npz", overrides=["cluster.lease_seconds=1"], **settings())


class Doom:
  """Sends signals at the given steps, once each: by step, the file with the process id, and the signal."""

  def __init__(self, directory, deaths):
    self._directory = directory
    self._deaths = deaths

  def at(self, step):
    for due in [due for due in self._deaths if due <= step]:
      victim, number = self._deaths[due]
      with contextlib.suppress(FileExistsError):
        (self._directory / f"death-{due}").touch(exist_ok=False)
        os.kill(int((self._directory / victim).read_text()), number)

  def after_batch(self):
    """Counts the batches of all workers together, for a program that does not know its step."""
    with open(self._directory / "batches", "ab") as file:
      file.write(b".")
      self.at(file.tell() // SLOTS)


def make_model(kind, hidden=24, dropout=0.2):
  torch.manual_seed(1)
  if kind == "mlp":
    return nn.Sequential(nn.Linear(WIDTH, hidden), nn.ReLU(), nn.Dropout(dropout), nn.Linear(hidden, 5))
  if kind == "normed":
    return nn.Sequential(collections.OrderedDict(
        hidden=nn.Linear(WIDTH, hidden), norm=nn.LayerNorm(hidden), relu=nn.ReLU(), dropout=nn.Dropout(dropout),
        output=nn.Linear(hidden, 5)))
  if kind == "cnn":
    return nn.Sequential(nn.Unflatten(1, (1, 6, 6)), nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(),
                         nn.Dropout(dropout), nn.Flatten(), nn.Linear(64, 5))
  layer = nn.TransformerEncoderLayer(6, 2, 12, dropout=0.1, batch_first=True)
  return nn.Sequential(nn.Unflatten(1, (6, 6)), nn.TransformerEncoder(layer, 2, enable_nested_tensor=False),
                       nn.Flatten(), nn.Linear(WIDTH, 5))


def make_params():
  generator = np.random.default_rng(1)
  return [{"w": generator.normal(0, 0.2, shape).astype(np.float32), "b": np.zeros(shape[1], np.float32)}
          for shape in ((WIDTH, 24), (24, 5))]


def write_configuration(directory, kind, settings):
  if FRAMEWORK == "torch":
    tensors = make_model(kind).state_dict().items()
    values = {name: tensor.numpy() for name, tensor in tensors if tensor.dtype == torch.float32}
  else:
    values = {f"{i}/{name}": value for i, layer in enumerate(make_params()) for name, value in layer.items()}
  np.savez(directory / "initial.npz", **values)
  (directory / "run.textproto").write_text(declare(directory, settings).to_text())


def train_torch(cluster, kind, deaths, on_slot=lambda slot: None, threads=1, settings=adam, ignored=-100,
                **model_changes):
  """Trains on examples whose label is not `ignored`; a slot's weight is their number."""
  lockstep.torch.deterministic(threads)
  device = os.environ.get("LOCKSTEP_TORCH_DEVICE", "cpu")
  model = make_model(kind, **model_changes).to(device)
  x, y = (torch.from_numpy(array).to(device) for array in examples())
  doom = Doom(cluster.directory, deaths)
  with lockstep.torch.Worker(model, declare(cluster.directory, settings), examples=EXAMPLES,
                             master=cluster.master) as worker:
    for slot in worker:
      on_slot(slot)
      doom.at(slot.step)
      labels = y[slot.indices]
      loss = F.cross_entropy(model(x[slot.indices]), labels, ignore_index=ignored)
      loss.backward()
      slot.done(loss, weight=(labels != ignored).sum(), loss_again=loss)


def portable_cross_entropy():
  return lockstep.torch.portable(nn.CrossEntropyLoss())


def train_portable(cluster, kind, deaths, threads=1, make_loss=portable_cross_entropy):
  torch.set_num_threads(threads)
  model = lockstep.torch.portable(make_model(kind))
  loss_of = make_loss()
  x, y = map(torch.from_numpy, examples())
  doom = Doom(cluster.directory, deaths)
  with lockstep.torch.Worker(model, declare(cluster.directory), examples=EXAMPLES, master=cluster.master) as worker:
    for slot in worker:
      doom.at(slot.step)
      scores, labels = model(x[slot.indices]), y[slot.indices]
      loss = loss_of(scores, labels)
      loss.backward()
      slot.done(loss, accuracy=(scores.argmax(1) == labels).float().mean())


def train_jax(cluster, kind, deaths, on_batch=lambda: None):
  del kind
  lockstep.jax.deterministic()
  x, y = examples()
  doom = Doom(cluster.directory, deaths)

  def loss(params, batch, key):
    images, labels = batch
    hidden = jax.nn.relu(images @ params[0]["w"] + params[0]["b"]) * jax.random.bernoulli(key, 0.8, (BATCH, 24))
    scores = jax.nn.log_softmax(hidden @ params[1]["w"] + params[1]["b"])
    return -jnp.take_along_axis(scores, labels[:, None], 1).mean(), {"largest": scores.max()}

  def data(indices):
    doom.after_batch()
    on_batch()
    return x[indices], y[indices]

  lockstep.jax.train(loss, make_params(), declare(cluster.directory), data=data, examples=EXAMPLES, has_aux=True,
                     master=cluster.master)


def run_process(directory, name, function, arguments, options):
  """The body of a forked process. It writes its id to the file `name`, and its error, if any, to `name`.error.

  The option `environment` sets variables that libraries read when they are loaded.
  """
  global lockstep
  os.environ.update(options.pop("environment", {}))
  (directory / name).write_text(str(os.getpid()))
  try:
    # Imported only after the fork, because a process must not use the library if it was imported before the fork.
    lockstep = importlib.import_module("lockstep")
    importlib.import_module(f"lockstep.{FRAMEWORK}")
    function(*arguments, **options)
  except BaseException:
    (directory / f"{name}.error").write_text(traceback.format_exc())
    os._exit(1)
  os._exit(0)


class Cluster:
  """A chief and its workers in their own folder. As a context manager, it ends them all."""

  def __init__(self, kind, settings=adam):
    self.directory = pathlib.Path(tempfile.mkdtemp())
    self.master = f"unix:{self.directory}/socket"
    self._chief = None
    self._processes = {}
    self.start("configuration", write_configuration, self.directory, kind, settings)
    self.expect_end("configuration")
    self.start_chief()

  def __enter__(self):
    return self

  def __exit__(self, *unused):
    for process in self._processes.values():
      process.kill()
      process.join()
    if self._chief is not None:
      self._chief.kill()
      self._chief.wait()
    shutil.rmtree(self.directory)

  def start_chief(self):
    command = [LOCKSTEP, "chief", self.directory / "run.textproto", f"--logdir={self.directory}/logdir",
               "--lock_wait_seconds=60", f"--listen=127.0.0.1:0,unix:{self.directory}/socket"]
    with open(self.directory / "chief.log", "a", encoding="utf-8") as log:
      self._chief = subprocess.Popen(command, stderr=log)
    (self.directory / "chief").write_text(str(self._chief.pid))

  def start(self, name, function, *arguments, **options):
    process = FORK.Process(target=run_process, args=(self.directory, name, function, arguments, options))
    process.start()
    self._processes[name] = process

  def end_of(self, name):
    """Waits for a process. Returns its exit code, or -9 if it was killed, and its error."""
    process = self._processes.pop(name)
    process.join(LIMIT_S)
    path = self.directory / f"{name}.error"
    return process.exitcode, path.read_text() if path.exists() else ""

  def expect_end(self, name):
    code, error = self.end_of(name)
    assert code == 0, f"{name} ended with {code}: {error}"

  def end_of_chief(self):
    """Waits for the chief. Returns its exit code. Fails if a worker ends with an error before."""
    chief = os.pidfd_open(self._chief.pid)
    try:
      while self._chief.poll() is None:
        sentinels = {process.sentinel: name for name, process in self._processes.items()}
        ended = multiprocessing.connection.wait([chief, *sentinels], LIMIT_S)
        assert ended, "nothing has ended in time"
        for name in [sentinels[end] for end in ended if end != chief]:
          if self._processes[name].exitcode != -signal.SIGKILL:
            self.expect_end(name)
    finally:
      os.close(chief)
    return self._chief.returncode

  def expect_end_of_chief(self):
    code = self.end_of_chief()
    assert code == 0, f"the chief ended with {code}: " + (self.directory / "chief.log").read_text()

  def digest(self):
    command = [LOCKSTEP, "inspect", f"{self.directory}/logdir", "--digest"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[0]


def digest_of_run(kind, workers, deaths):
  """Trains with workers w0, w1, …, and restarts processes that die. Returns the digest of the final weights."""
  train = train_torch if FRAMEWORK == "torch" else train_jax
  with Cluster(kind) as cluster:
    for i in range(workers):
      cluster.start(f"w{i}", train, cluster, kind, deaths)
    for victim, number in deaths.values():
      if victim == "chief":
        assert cluster.end_of_chief() == (-number if number == signal.SIGKILL else 128 + number)
        cluster.start_chief()
      else:
        assert cluster.end_of(victim)[0] == -number
        cluster.start("again", train, cluster, kind, deaths)
        workers += 1
    cluster.expect_end_of_chief()
    return cluster.digest()


class BitsTest(unittest.TestCase):
  """The digest is the same, whatever happens to workers and chief."""

  def check_kind(self, kind):
    alone = digest_of_run(kind, 1, {})
    self.assertEqual(digest_of_run(kind, 2, {6: ("w0", signal.SIGKILL), 13: ("chief", signal.SIGKILL)}), alone)
    self.assertEqual(digest_of_run(kind, 3, {11: ("chief", signal.SIGTERM)}), alone)

  @unittest.skipIf(FRAMEWORK == "jax", "torch")
  def test_convolutions_with_batch_norm(self):
    self.check_kind("cnn")

  @unittest.skipIf(FRAMEWORK == "jax", "torch")
  def test_transformer(self):
    self.check_kind("transformer")

  def test_perceptron_with_dropout(self):
    self.check_kind("mlp")


@unittest.skipIf(FRAMEWORK == "jax", "torch")
class PortableTest(unittest.TestCase):
  """Workers with different instruction sets and thread counts share a run of a portable model."""

  # The smallest instruction sets that torch and Lockstep can use.
  LEAST = {"ATEN_CPU_CAPABILITY": "default", "ONEDNN_MAX_CPU_ISA": "SSE41", "LOCKSTEP_TARGET": "avx2"}

  def digest_of(self, workers, deaths):
    with Cluster("cnn") as cluster:
      for i, options in enumerate(workers):
        cluster.start(f"w{i}", train_portable, cluster, "cnn", deaths, **options)
      if deaths:
        self.assertEqual(cluster.end_of("w0")[0], -signal.SIGKILL)
        cluster.start("again", train_portable, cluster, "cnn", deaths)
      cluster.expect_end_of_chief()
      return cluster.digest()

  def test_workers_may_differ(self):
    alone = self.digest_of([{}], {})
    mixed = [{"threads": 2, "environment": self.LEAST}, {}]
    self.assertEqual(self.digest_of(mixed, {9: ("w0", signal.SIGKILL)}), alone)
    self.assertEqual(self.digest_of(mixed[:1], {}), alone)

  def test_operation_of_torch_is_named(self):
    with Cluster("cnn") as cluster:
      cluster.start("worker", train_portable, cluster, "cnn", {}, make_loss=nn.CrossEntropyLoss)
      code, error = cluster.end_of("worker")
      self.assertEqual(code, 1)
      self.assertIn("ModelError: the slot computes with torch's own _log_softmax, whose bits depend on the", error)


@unittest.skipIf(FRAMEWORK == "jax", "torch")
class ContractTest(unittest.TestCase):
  """A worker that would compute something different is refused, by name."""

  def setUp(self):
    self.cluster = self.enterContext(Cluster("mlp"))
    self.may_go_on = FORK.Event()
    self.has_joined = FORK.Event()

    def hold(slot):
      if slot.step == 1:
        self.has_joined.set()
        self.may_go_on.wait(LIMIT_S)

    self.cluster.start("first", train_torch, self.cluster, "mlp", {}, hold)
    self.assertTrue(self.has_joined.wait(LIMIT_S))

  def check_refusal(self, message, function=None, **options):
    self.cluster.start("other", function or train_torch, self.cluster, "mlp", {}, **options)
    code, error = self.cluster.end_of("other")
    self.assertEqual(code, 1)
    self.assertRegex(error, "lockstep.*Refused: .*" + message)

  def test_each_difference_is_named(self):

    def train_with_other_version(*arguments):
      torch.__version__ = "9.9"
      train_torch(*arguments)

    self.check_refusal("this process computes with 2 threads, the run with 1: call lockstep.torch.deterministic", threads=2)
    self.check_refusal("9.9", train_with_other_version)
    self.check_refusal(r'variable 1 is "0.weight" \(25, 36\) in .*, "0.weight" \(24, 36\) in ', hidden=25)
    self.check_refusal("0.weight", dropout=0.3)
    self.may_go_on.set()
    self.cluster.expect_end("first")
    self.cluster.expect_end_of_chief()


class ReadTest(unittest.TestCase):
  """Values of a running chief, in the framework's form."""

  def test_values_of_running_chief(self):
    with Cluster("mlp") as cluster:
      if FRAMEWORK == "torch":
        cluster.start("worker", train_torch, cluster, "mlp", {}, lambda slot: self.check_torch(cluster, slot))
      else:
        cluster.start("worker", train_jax, cluster, "mlp", {}, lambda: self.check_jax(cluster))
      cluster.expect_end("worker")
      cluster.expect_end_of_chief()

  def check_torch(self, cluster, slot):
    if (slot.step, slot.index) == (5, 0):
      state = lockstep.torch.state_dict(cluster.master, make_model("mlp"))
      started = make_model("mlp").state_dict()
      self.assertEqual(state.keys(), started.keys())
      for name, tensor in state.items():
        self.assertEqual(tensor.shape, started[name].shape)
        self.assertFalse(torch.equal(tensor, started[name]))

  def check_jax(self, cluster):
    if (cluster.directory / "batches").stat().st_size == 11:  # The canary's batch, those of three steps, and the next.
      step, params = next(lockstep.jax.follow(cluster.master, make_params()))
      self.assertEqual(step, 3)
      self.assertEqual(params[0]["w"].shape, (WIDTH, 24))
      self.assertFalse(np.array_equal(params[0]["w"], make_params()[0]["w"]))


@unittest.skipIf(FRAMEWORK == "torch", "JAX")
class JaxSettingsTest(unittest.TestCase):

  def error_of(self, program, **environment):
    run = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True,
                         env={**os.environ, **environment})
    return run.stderr

  def test_late_call_is_refused(self):
    program = "import jax.numpy; jax.numpy.ones(3); import lockstep.jax; lockstep.jax.deterministic()"
    self.assertIn("must be called before the first operation of JAX", self.error_of(program))

  def test_contrary_flag_is_refused(self):
    error = self.error_of("import lockstep.jax; lockstep.jax.deterministic()", XLA_FLAGS="--xla_cpu_max_isa=AVX512")
    self.assertIn("XLA_FLAGS has --xla_cpu_max_isa=AVX512; lockstep.jax.deterministic() needs AVX2", error)

  def test_other_types_are_refused(self):
    program = ("import lockstep, lockstep.jax, numpy; lockstep.jax.train(None, {'w': numpy.ones(3)}, "
               "lockstep.Run(None, steps=1, optimizer=lockstep.SGD(0.1)), data=None, examples=1)")
    self.assertIn('"w" is float64; parameters must be float32', self.error_of(program))

  def test_keys_of_a_tree_may_have_any_type(self):
    program = ("import collections, jax, lockstep, lockstep.jax, numpy; Box = collections.UserList\n"
               "jax.tree_util.register_pytree_with_keys(Box, lambda box: ([('a', box[0])], None), lambda _, x: Box(x))\n"
               "lockstep.jax.train(None, {'w': Box([numpy.ones(3)])}, "
               "lockstep.Run(None, steps=1, optimizer=lockstep.SGD(0.1)), data=None, examples=1)")
    self.assertIn('"w/a" is float64; parameters must be float32', self.error_of(program))


@unittest.skipIf(FRAMEWORK == "torch", "JAX")
class JaxWeightTest(unittest.TestCase):

  def test_entry_weight_is_weight_of_slot(self):
    with Cluster("mlp") as cluster:  # For its folder and processes.
      cluster.start("alone", self.train, cluster)
      cluster.expect_end("alone")

  def train(self, cluster):
    run = lockstep.Run(cluster.directory / "own", steps=1, slots=2, batch=1, optimizer=lockstep.SGD(1.0))
    # The gradients are 1 and 2, and so are the weights.
    params = lockstep.jax.train(lambda params, batch, key: (params["w"][0] * batch[0], {"weight": batch[0]}),
                                {"w": np.zeros(1, np.float32)}, run, data=lambda i: (i + 1).astype(np.float32), examples=2,
                                has_aux=True)
    np.testing.assert_allclose(params["w"], [-5 / 3], rtol=1e-6)


@unittest.skipIf(FRAMEWORK == "jax", "torch")
class OwnChiefTest(unittest.TestCase):
  """A program without a master starts a chief with the model's values."""

  def test_run_begins_and_ends_with_values_of_model(self):
    with Cluster("mlp") as cluster:  # For its folder and processes.
      cluster.start("alone", self.train, cluster)
      cluster.expect_end("alone")

  def test_stop_ends_the_loop(self):
    with Cluster("mlp") as cluster:
      cluster.start("alone", self.stop, cluster)
      cluster.expect_end("alone")

  def stop(self, cluster):
    model = nn.Linear(4, 4)
    run = lockstep.Run(cluster.directory / "own", steps=9, optimizer=lockstep.SGD(0.5))
    with lockstep.torch.Worker(model, run, examples=1) as worker:
      for slot in worker:
        loss = model(torch.eye(4)).sum()
        loss.backward()
        worker.stop()
        slot.done(loss)
      with self.assertRaisesRegex(lockstep.Error, "not over"):
        _ = worker.result

  def test_worker_after_its_canary_keeps_its_model(self):
    with Cluster("mlp") as cluster:
      cluster.start("alone", self.join_late, cluster)
      cluster.expect_end("alone")

  def join_late(self, cluster):
    model, late = nn.Linear(4, 4), nn.Linear(4, 4)
    start = cluster.directory / "start.npz"
    np.savez(start, weight=np.zeros((4, 4), np.float32), bias=np.zeros(4, np.float32))
    run = lockstep.Run(None, steps=1, optimizer=lockstep.SGD(0.5), initial=start,
                       overrides=["cluster.linger_seconds=20"])
    before = late.weight.detach().clone()
    with lockstep.Chief(run) as chief, lockstep.torch.Worker(late, run, examples=1, master=chief.address) as worker:
      slots = iter(worker)
      canary = next(slots)
      late(torch.eye(4)).sum().backward()
      with lockstep.torch.Worker(model, run, examples=1, master=chief.address) as other:
        for slot in other:
          model(torch.eye(4)).sum().backward()
          slot.done(0.0)
      canary.done(0.0)
      self.assertIsNone(next(slots, None))
      self.assertTrue(torch.equal(late.weight, before))

  def test_remote_chief_takes_values_of_model(self):
    with Cluster("mlp") as cluster:
      cluster.start("alone", self.start_elsewhere)
      cluster.expect_end("alone")

  def start_elsewhere(self):
    model = nn.Linear(4, 4)
    before, seen = model.weight.detach().clone(), []
    run = lockstep.Run(None, steps=1, optimizer=lockstep.SGD(0.5), overrides=["cluster.linger_seconds=20"])
    with lockstep.Chief(run) as chief, lockstep.torch.Worker(model, run, examples=1, master=chief.address) as worker:
      for slot in worker:
        seen.append((slot.canary, torch.equal(model.weight, before)))
        model(torch.eye(4)).sum().backward()
        slot.done(0.0)
    self.assertEqual(seen, [(True, False), (False, True)], "the canary's values are random")

  def test_chief_may_have_more_steps(self):
    with Cluster("mlp") as cluster:
      cluster.start("alone", self.train_longer, cluster)
      cluster.expect_end("alone")

  def train_longer(self, cluster):
    model = make_model("mlp")
    x, y = map(torch.from_numpy, examples())
    loader = lockstep.torch.Loader(torch.utils.data.TensorDataset(x, y), num_workers=1)
    fewer = lockstep.Run(None, steps=STEPS // 2, slots=SLOTS, batch=BATCH, seed=3,
                         optimizer=lockstep.AdamW(lockstep.cosine(1e-2, STEPS)), initial=cluster.directory / "initial.npz")
    with lockstep.torch.Worker(model, fewer, loader=loader, master=cluster.master) as worker:
      for slot in worker:
        loss = F.cross_entropy(model(slot.batch[0]), slot.batch[1])
        loss.backward()
        slot.done(loss)
    self.assertEqual(worker.result.step, STEPS)

  def train(self, cluster):
    model = nn.Linear(4, 4)  # A square matrix has a valid shape in both orders.
    start = model.weight.detach().clone()
    run = lockstep.Run(cluster.directory / "own", steps=1, slots=1, batch=1, optimizer=lockstep.SGD(0.5))
    with lockstep.torch.Worker(model, run, examples=1) as worker:
      for slot in worker:
        seen = model.weight.detach().clone()  # In the end, from the slot after the canary.
        loss = model(torch.eye(4)).sum()
        loss.backward()
        slot.done(loss)
    self.assertEqual(worker.result.step, 1)
    self.assertTrue(torch.equal(seen, start))
    self.assertTrue(torch.equal(model.weight, start - 0.5))


@unittest.skipIf(FRAMEWORK == "jax", "torch")
class PlainLoopTest(unittest.TestCase):
  """A run computes the same as a loop with gradient accumulation, up to rounding."""

  def test_run_equals_accumulating_loop(self):
    self.check("cnn", sgd, self.train_with_sgd)

  def test_run_equals_script_with_groups(self):
    self.check("normed", script, self.train_as_scripts_do, ignored=0)

  def check(self, kind, settings, train, **options):
    with Cluster(kind, settings) as cluster:
      slots = FORK.SimpleQueue()
      cluster.start("worker", train_torch, cluster, kind, {}, settings=settings,
                    on_slot=lambda slot: slots.put((slot.indices.tolist(), slot.seed)), **options)
      cluster.start("plain", self.compare, cluster, kind, train, slots)
      cluster.expect_end("worker")
      cluster.expect_end("plain")

  def train_with_sgd(self, model, slots):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.5)
    for step in slots:
      optimizer.zero_grad()
      for x, y, seed in step:
        torch.default_generator.manual_seed(seed)
        (F.cross_entropy(model(x), y) / SLOTS).backward()
      optimizer.step()

  def train_as_scripts_do(self, model, slots):
    decayed, others = [], []
    for name, parameter in model.named_parameters():
      (others if re.search(NO_DECAY, name) else decayed).append(parameter)
    optimizer = torch.optim.AdamW([{"params": decayed}, {"params": others, "weight_decay": 0.0}], lr=1.0, eps=EPSILON,
                                  weight_decay=DECAY)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, rate)
    clipped = 0
    for step in slots:
      optimizer.zero_grad()
      tokens = sum((y != 0).sum() for _, y, _ in step)
      for x, y, seed in step:
        torch.default_generator.manual_seed(seed)
        (F.cross_entropy(model(x), y, ignore_index=0, reduction="sum") / tokens).backward()
      clipped += int(torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP) > CLIP)
      optimizer.step()
      scheduler.step()
    self.assertGreater(clipped, 0)

  def compare(self, cluster, kind, train, slots):
    model = make_model(kind)
    x, y = map(torch.from_numpy, examples())

    def step():
      pairs = [slots.get() for _ in range(SLOTS)]
      return [(x[indices], y[indices], seed) for indices, seed in pairs]

    slots.get()  # Skips the canary.
    train(model, (step() for _ in range(STEPS)))
    cluster.expect_end_of_chief()
    trained = lockstep.torch.state_dict(cluster.directory / "logdir", make_model(kind))
    for name, tensor in model.state_dict().items():
      if tensor.dtype == torch.float32:
        np.testing.assert_allclose(trained[name], tensor, rtol=1e-3, atol=1e-5, err_msg=name)


if __name__ == "__main__":
  unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
