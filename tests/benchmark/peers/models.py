"""Runs forward and backward passes of a model in PyTorch on one thread: gradients of all variables, no optimizer.

    models.py softmax|mlp|cnn BATCH nchw|nhwc
"""
import sys

import torch
from torch import nn
from torch.nn import functional as F

import exchange


class Cnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 32, 3, padding=1)
        self.norm1 = nn.BatchNorm2d(32)
        self.conv2 = nn.Conv2d(32, 64, 3, padding=1)
        self.norm2 = nn.BatchNorm2d(64)
        self.hidden = nn.Linear(64 * 7 * 7, 128)
        self.logits = nn.Linear(128, exchange.CLASSES)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.norm1(self.conv1(x))), 2)
        x = F.max_pool2d(F.relu(self.norm2(self.conv2(x))), 2)
        return self.logits(F.relu(self.hidden(x.flatten(1))))


def mlp():
    return nn.Sequential(nn.Linear(exchange.PIXELS, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(),
                         nn.Linear(512, exchange.CLASSES))


def main():
    name, batch, memory_format = sys.argv[1:]
    torch.set_num_threads(1)
    torch.manual_seed(1)
    if name == "cnn":
        layout = {"nchw": torch.contiguous_format, "nhwc": torch.channels_last}[memory_format]
        model = Cnn().to(memory_format=layout)
        x = torch.randn(int(batch), 1, 28, 28).to(memory_format=layout)
    else:
        model = {"softmax": lambda: nn.Linear(exchange.PIXELS, exchange.CLASSES), "mlp": mlp}[name]()
        x = torch.randn(int(batch), exchange.PIXELS)
    y = torch.randint(0, exchange.CLASSES, (int(batch),))
    parameters = list(model.parameters())

    def step():
        for parameter in parameters:
            parameter.grad = None
        F.cross_entropy(model(x), y).backward()

    step()
    exchange.serve(step)


if __name__ == "__main__":
    main()
