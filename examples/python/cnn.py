"""Trains a convolutional network with batch norm on Fashion-MNIST: a Loader with processes, augmentation, AdamW."""

import argparse

import fashion_mnist
import lockstep
import lockstep.torch
import torch
from torch import nn
from torch.nn import functional as F


class Net(nn.Module):

  def __init__(self):
    super().__init__()
    self.body = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten())
    self.head = nn.Sequential(nn.Dropout(0.2), nn.Linear(32 * 7 * 7, 10))

  def forward(self, images):
    return self.head(self.body(images.view(-1, 1, 28, 28)))


class Images(torch.utils.data.Dataset):
  """Fashion-MNIST with half of the images mirrored."""

  def __init__(self, split):
    self.images, self.labels = map(torch.from_numpy, fashion_mnist.load(split))

  def __len__(self):
    return len(self.labels)

  def __getitem__(self, i):
    image = self.images[i].view(28, 28)
    return (image.flip(1) if torch.rand(()) < 0.5 else image), self.labels[i]


def main():
  parser = argparse.ArgumentParser()
  parser.add_argument("--logdir", default="runs/cnn")
  parser.add_argument("--steps", type=int, default=500)
  arguments = parser.parse_args()

  lockstep.torch.deterministic()
  torch.manual_seed(1)
  model = Net()
  schedule = lockstep.cosine(2e-3, arguments.steps)
  run = lockstep.Run(arguments.logdir, steps=arguments.steps, slots=4, batch=32, seed=1,
                     optimizer=lockstep.AdamW(schedule, weight_decay=0.01))
  loader = lockstep.torch.Loader(Images("train"), num_workers=1)

  with lockstep.torch.Worker(model, run, loader=loader) as worker:
    for slot in worker:
      images, labels = slot.batch
      loss = F.cross_entropy(model(images), labels)
      loss.backward()
      slot.done(loss)

  model.eval()
  x, y = map(torch.from_numpy, fashion_mnist.load("t10k"))
  with torch.no_grad():
    accuracy = (model(x).argmax(1) == y).float().mean()
  print(f"step {worker.result.step}: test accuracy {accuracy:.3f}, digest {worker.result.digest}")


if __name__ == "__main__":
  main()
