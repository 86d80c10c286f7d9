"""Trains a perceptron on Fashion-MNIST with JAX."""

import argparse

import fashion_mnist
import jax
import jax.numpy as jnp
import lockstep
import lockstep.jax
import numpy as np

SIZES = (784, 256, 10)

parser = argparse.ArgumentParser()
parser.add_argument("--logdir", default="runs/jax_mlp")
parser.add_argument("--steps", type=int, default=1000)
arguments = parser.parse_args()

lockstep.jax.deterministic()
generator = np.random.default_rng(1)
params = [{"w": generator.normal(0, n**-0.5, (n, m)).astype(np.float32), "b": np.zeros(m, np.float32)}
          for n, m in zip(SIZES, SIZES[1:])]
x, y = fashion_mnist.load("train")


def scores(params, images, kept=1.0):
  hidden = jax.nn.relu(images @ params[0]["w"] + params[0]["b"])
  return (hidden * kept) @ params[1]["w"] + params[1]["b"]


def loss(params, batch, key):
  images, labels = batch
  kept = jax.random.bernoulli(key, 0.9, (len(images), SIZES[1])) / 0.9  # dropout
  return -jnp.take_along_axis(jax.nn.log_softmax(scores(params, images, kept)), labels[:, None], 1).mean()


run = lockstep.Run(arguments.logdir, steps=arguments.steps, slots=4, batch=32, seed=1,
                   optimizer=lockstep.SGD(0.05, momentum=0.9))
params = lockstep.jax.train(loss, params, run, data=lambda indices: (x[indices], y[indices]), examples=len(x))

x, y = fashion_mnist.load("t10k")
accuracy = (scores(params, x).argmax(1) == y).mean()
print(f"step {arguments.steps}: test accuracy {accuracy:.3f}, digest {lockstep.digest(arguments.logdir)}")
