"""Trains a softmax classifier in NumPy, and prints the digest of the result. The tests run it in many ways.

Usage: softmax.py LOGDIR [die_at=STEP:FILE] [initial=SEED] [compression=KIND] [overrides=A;B] [nan_at=STEP]
  die_at       kills its own process before it reports this step, but only once: FILE then exists
  initial      starts from random values drawn from SEED instead of zeros
  compression  as for lockstep.Run
  overrides    more of them for lockstep.Run
  nan_at       slot 1 of this step has a loss that is not a number
"""

import os
import signal
import sys

import numpy as np

import lockstep

STEPS, EXAMPLES, FEATURES, CLASSES = 60, 500, 20, 5
VARIABLES = [
    lockstep.Variable("softmax/kernel", (FEATURES, CLASSES)),
    lockstep.Variable("softmax/bias", (CLASSES,)),
    lockstep.Variable("mean", (FEATURES,), trainable=False, update=("zero_debias_moving_average", 0.9)),
]


def data():
  generator = np.random.default_rng(7)
  x = generator.standard_normal((EXAMPLES, FEATURES), np.float32)
  return x, np.argmax(x[:, :CLASSES], axis=1)


def declare(logdir, **changes):
  settings = dict(steps=STEPS, slots=4, batch=16, seed=3, optimizer=lockstep.SGD(0.1, momentum=0.9),
                  checkpoint_every=20, overrides=["cluster.lease_seconds=1"])
  settings.update(changes)
  return lockstep.Run(logdir, **settings)


def loss_and_gradients(values, x, y, seed):
  """Returns the mean cross entropy, the gradients and the update, with noise from the slot's seed."""
  kernel, bias, _ = values
  x = x + 0.01 * np.random.default_rng(seed).standard_normal(x.shape, np.float32)
  logits = x @ kernel + bias
  logits -= logits.max(axis=1, keepdims=True)
  probabilities = np.exp(logits)
  probabilities /= probabilities.sum(axis=1, keepdims=True)
  loss = -np.mean(np.log(probabilities[np.arange(len(y)), y]))
  probabilities[np.arange(len(y)), y] -= 1
  probabilities /= np.float32(len(y))
  return loss, [x.T @ probabilities, probabilities.sum(axis=0), None], [x.mean(axis=0)]


def train(run, on_slot=lambda worker, slot: None, nan_at=None, **options):
  """Returns the result, and the number of slots that this worker computed."""
  x, y = data()
  count = 0
  with lockstep.Worker(VARIABLES, run, examples=EXAMPLES, data_digest=lockstep.data_digest(x, y), **options) as worker:
    for slot in worker:
      on_slot(worker, slot)
      loss, gradients, updates = loss_and_gradients(slot.values, x[slot.indices], y[slot.indices], slot.seed)
      if (slot.step, slot.index) == (nan_at, 1):
        loss = float("nan")
      slot.done(loss, gradients, updates, loss_again=loss)
      count += 1
    return worker.result, count


def main():
  options = dict(word.split("=", 1) for word in sys.argv[2:])
  initial = None
  if "initial" in options:
    generator = np.random.default_rng(int(options["initial"]))
    initial = {"softmax/kernel": generator.standard_normal((FEATURES, CLASSES), np.float32)}

  def die(worker, slot):
    del worker
    step, mark = options["die_at"].split(":", 1)
    if slot.step >= int(step) and not os.path.exists(mark):
      with open(mark, "w", encoding="utf-8"):
        pass
      os.kill(os.getpid(), signal.SIGKILL)

  run = declare(sys.argv[1], compression=options.get("compression"),
                overrides=["cluster.lease_seconds=1", *filter(None, options.get("overrides", "").split(";"))])
  result, count = train(run, die if "die_at" in options else lambda worker, slot: None, initial=initial,
                        nan_at=int(options.get("nan_at", -1)))
  print(f"slots {count} step {result.step} digest {result.digest}", flush=True)


if __name__ == "__main__":
  main()
