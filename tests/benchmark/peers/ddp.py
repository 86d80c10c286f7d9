"""A worker of PyTorch's DistributedDataParallel over gloo; with one worker, PyTorch alone.

    ddp.py WORKER WORKERS PORT BATCH HIDDEN...
"""
import sys

import torch
from torch import distributed, nn
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel

import exchange


def main():
    worker, workers, port, batch, *hidden = [int(word) for word in sys.argv[1:]]
    torch.set_num_threads(1)
    torch.manual_seed(worker)
    layers = []
    inputs = exchange.PIXELS
    for units in hidden:
        layers += [nn.Linear(inputs, units), nn.ReLU()]
        inputs = units
    model = nn.Sequential(*layers, nn.Linear(inputs, exchange.CLASSES))
    if workers > 1:
        distributed.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=worker, world_size=workers)
        model = DistributedDataParallel(model, gradient_as_bucket_view=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=exchange.LEARNING_RATE)
    batches = [(torch.rand(batch, exchange.PIXELS), torch.randint(0, exchange.CLASSES, (batch,)))
               for _ in range(exchange.BATCHES)]
    done = 0

    def step():
        nonlocal done
        x, y = batches[done % len(batches)]
        done += 1
        optimizer.zero_grad(set_to_none=workers == 1)
        F.cross_entropy(model(x), y).backward()
        optimizer.step()

    step()
    exchange.serve(step)


if __name__ == "__main__":
    main()
