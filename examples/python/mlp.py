"""Trains a perceptron on Fashion-MNIST with PyTorch. Run alone, or as a copy of `lockstep launch --workers=N -- python mlp.py`."""

import argparse

import fashion_mnist
import lockstep
import lockstep.torch
import torch
from torch.nn import functional as F

parser = argparse.ArgumentParser()
parser.add_argument("--logdir", default="runs/mlp")
parser.add_argument("--steps", type=int, default=1000)
arguments = parser.parse_args()

lockstep.torch.deterministic()
torch.manual_seed(1)
model = torch.nn.Sequential(
    torch.nn.Linear(784, 256), torch.nn.ReLU(), torch.nn.Dropout(0.1), torch.nn.Linear(256, 10))
x, y = map(torch.from_numpy, fashion_mnist.load("train"))
run = lockstep.Run(arguments.logdir, steps=arguments.steps, slots=4, batch=32, seed=1,
                   optimizer=lockstep.SGD(0.05, momentum=0.9))

with lockstep.torch.Worker(model, run, examples=len(x)) as worker:
  for slot in worker:
    logits = model(x[slot.indices])
    loss = F.cross_entropy(logits, y[slot.indices])
    loss.backward()
    slot.done(loss, accuracy=(logits.argmax(1) == y[slot.indices]).float().mean())

model.eval()
x, y = map(torch.from_numpy, fashion_mnist.load("t10k"))
with torch.no_grad():
  accuracy = (model(x).argmax(1) == y).float().mean()
print(f"step {worker.result.step}: test accuracy {accuracy:.3f}, digest {worker.result.digest}")
