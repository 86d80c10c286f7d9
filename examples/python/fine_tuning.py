"""Trains a new head on the frozen body of a network trained by cnn.py, to tell shoes from clothes."""

import argparse

import cnn
import fashion_mnist
import lockstep
import lockstep.torch
import torch
from torch import nn
from torch.nn import functional as F

SHOES = torch.tensor([5, 7, 9])  # sandal, sneaker, ankle boot

parser = argparse.ArgumentParser()
parser.add_argument("--body", default="runs/cnn", help="the logdir of cnn.py")
parser.add_argument("--logdir", default="runs/fine_tuning")
parser.add_argument("--steps", type=int, default=100)
arguments = parser.parse_args()

lockstep.torch.deterministic()
torch.manual_seed(1)
model = cnn.Net()
lockstep.torch.load_into(model, arguments.body)
model.body.requires_grad_(False).eval()  # Frozen tensors are not part of the run. The workers compare their digests.
model.head = nn.Linear(32 * 7 * 7, 2)
x, labels = map(torch.from_numpy, fashion_mnist.load("train"))
y = torch.isin(labels, SHOES).long()
run = lockstep.Run(arguments.logdir, steps=arguments.steps, slots=2, batch=32, seed=1, optimizer=lockstep.SGD(0.05))

with lockstep.torch.Worker(model, run, examples=len(x)) as worker:
  for slot in worker:
    loss = F.cross_entropy(model(x[slot.indices]), y[slot.indices])
    loss.backward()
    slot.done(loss)

x, labels = map(torch.from_numpy, fashion_mnist.load("t10k"))
with torch.no_grad():
  accuracy = (model(x).argmax(1) == torch.isin(labels, SHOES)).float().mean()
print(f"step {worker.result.step}: test accuracy {accuracy:.3f}, digest {worker.result.digest}")
