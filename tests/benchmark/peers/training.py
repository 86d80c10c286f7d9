"""A worker that trains with PyTorch: in a run of Lockstep, or with DistributedDataParallel over gloo. With one worker, the
latter is PyTorch alone.

    training.py lockstep WORKER CONFIG ADDRESS MODEL BATCH plain|deterministic
    training.py ddp WORKER WORKERS PORT MODEL BATCH plain|deterministic
"""
import sys

import torch
from torch import distributed
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel

import exchange
import models

exchange.use_lockstep()


def train_in_run(model, name, batch, worker, config, address):
    import lockstep.torch
    x, y = models.examples(name, exchange.BATCHES * batch)
    turns = exchange.Turns()
    run = lockstep.Run.from_file(config)
    with lockstep.torch.Worker(model, run, examples=len(x), master=address, name=f"worker-{worker}") as slots:
        for slot in slots:
            turns.wait(slot)
            loss = F.cross_entropy(model(x[slot.indices]), y[slot.indices])
            loss.backward()
            slot.done(loss)


def train_alike(model, name, batch, worker, workers, port):
    if workers > 1:
        distributed.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=worker, world_size=workers)
        model = DistributedDataParallel(model, gradient_as_bucket_view=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=exchange.LEARNING_RATE)
    batches = [models.examples(name, batch) for _ in range(exchange.BATCHES)]
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


def main():
    system, worker, where, address, name, batch, settings = sys.argv[1:]
    torch.set_num_threads(1)
    if settings == "deterministic":
        import lockstep.torch
        lockstep.torch.deterministic()
    # The workers of a run have the same data.
    torch.manual_seed(int(worker) if system == "ddp" else 1)
    model = models.make(name)
    if system == "lockstep":
        train_in_run(model, name, int(batch), worker, where, address)
    else:
        train_alike(model, name, int(batch), int(worker), int(where), address)


if __name__ == "__main__":
    main()
