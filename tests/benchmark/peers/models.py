"""Runs forward and backward passes of a model in PyTorch on one thread: gradients of all variables, no optimizer.

    models.py softmax|mlp|cnn BATCH nchw|nhwc|portable

With "portable", the layers are those of lockstep.torch.portable(), from this tree.
"""
import sys

import torch
from torch import nn

import exchange


def cnn():
    layers = []
    for inputs, filters in (1, 32), (32, 64):
        layers += [nn.Conv2d(inputs, filters, 3, padding=1), nn.BatchNorm2d(filters), nn.ReLU(), nn.MaxPool2d(2)]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(64 * 7 * 7, 128), nn.ReLU(), nn.Linear(128, exchange.CLASSES))


def mlp():
    return nn.Sequential(nn.Linear(exchange.PIXELS, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(),
                         nn.Linear(512, exchange.CLASSES))


def make(name):
    return {"softmax": lambda: nn.Linear(exchange.PIXELS, exchange.CLASSES), "mlp": mlp, "cnn": cnn}[name]()


def examples(name, count):
    """Returns random examples and labels."""
    shape = (1, 28, 28) if name == "cnn" else (exchange.PIXELS,)
    return torch.randn(count, *shape), torch.randint(0, exchange.CLASSES, (count,))


def main():
    name, batch, layers = sys.argv[1:]
    torch.set_num_threads(1)
    torch.manual_seed(1)
    loss = nn.CrossEntropyLoss()
    model = make(name)
    x, y = examples(name, int(batch))
    if layers == "nhwc":
        model, x = model.to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)
    if layers == "portable":
        exchange.use_lockstep()
        from lockstep.torch import portable
        model, loss = portable(model), portable(loss)
    parameters = list(model.parameters())

    def step():
        for parameter in parameters:
            parameter.grad = None
        loss(model(x), y).backward()

    step()
    exchange.serve(step)


if __name__ == "__main__":
    main()
