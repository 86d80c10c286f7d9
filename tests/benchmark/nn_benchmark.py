#!/usr/bin/env python3
"""Compares whole models with PyTorch's, both on one thread, in turns in the same run.

    bazel build //tests/benchmark:nn_benchmark
    python3 tests/benchmark/nn_benchmark.py [--binary .bz/bin/tests/benchmark/nn_benchmark] [--rounds 5]

Needs `pip install torch`. Prints the processor time of a forward and backward pass (gradients of all variables, no
optimizer), the best of all rounds, and PyTorch's time divided by ours. PyTorch's convolutions run in both memory
formats; the ratio is to the default (NCHW) and to the faster one.
"""
import argparse
import json
import subprocess
import time

import torch
from torch import nn
from torch.nn import functional as F


class Cnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 32, 3, padding=1)
        self.norm1 = nn.BatchNorm2d(32)
        self.conv2 = nn.Conv2d(32, 64, 3, padding=1)
        self.norm2 = nn.BatchNorm2d(64)
        self.hidden = nn.Linear(64 * 7 * 7, 128)
        self.logits = nn.Linear(128, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.norm1(self.conv1(x))), 2)
        x = F.max_pool2d(F.relu(self.norm2(self.conv2(x))), 2)
        return self.logits(F.relu(self.hidden(x.flatten(1))))


def mlp():
    return nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))


def torch_step(model, x, y):
    def step():
        for parameter in model.parameters():
            parameter.grad = None
        F.cross_entropy(model(x), y).backward()

    return step


def torch_steps(name, batch):
    """By memory format."""
    y = torch.randint(0, 10, (batch,))
    if name == "softmax":
        return {"default": torch_step(nn.Linear(784, 10), torch.randn(batch, 784), y)}
    if name == "mlp":
        return {"default": torch_step(mlp(), torch.randn(batch, 784), y)}
    x = torch.randn(batch, 1, 28, 28)
    last = torch.channels_last
    return {"default": torch_step(Cnn(), x, y),
            "channels_last": torch_step(Cnn().to(memory_format=last), x.to(memory_format=last), y)}


def best_time(step, seconds):
    """Milliseconds of processor time of the fastest step."""
    step()
    best = float("inf")
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        begin = time.process_time()
        step()
        best = min(best, time.process_time() - begin)
    return best * 1e3


def our_time(binary, name, batch, seconds):
    """The same, from Google Benchmark: the best of short repetitions."""
    output = subprocess.run(
        [binary, f"--benchmark_filter=BM_Model/{name}/{batch}$", "--benchmark_format=json",
         f"--benchmark_min_time={seconds / 100}", "--benchmark_repetitions=50"],
        check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    runs = json.loads(output.stdout)["benchmarks"]
    unit = {"ns": 1e-6, "us": 1e-3, "ms": 1.0}
    return min(r["cpu_time"] * unit[r["time_unit"]] for r in runs if r["run_type"] == "iteration")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--binary", default=".bz/bin/tests/benchmark/nn_benchmark")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.0, help="for each measurement of a round")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    print(f"PyTorch {torch.__version__}, one thread, ms of processor time a step")
    print(f"{'model':<12}{'ours':>10}{'default':>10}{'ratio':>8}{'best':>10}{'ratio':>8}")
    for name, batch in (("softmax", 64), ("softmax", 256), ("mlp", 64), ("mlp", 256), ("cnn", 64), ("cnn", 256)):
        steps = torch_steps(name, batch)
        ours = float("inf")
        theirs = dict.fromkeys(steps, float("inf"))
        for _ in range(arguments.rounds):
            ours = min(ours, our_time(arguments.binary, name, batch, arguments.seconds))
            for layout, step in steps.items():
                theirs[layout] = min(theirs[layout], best_time(step, arguments.seconds))
        best = min(theirs.values())
        print(f"{name + ' ' + str(batch):<12}{ours:>10.3f}{theirs['default']:>10.3f}{theirs['default'] / ours:>8.2f}"
              f"{best:>10.3f}{best / ours:>8.2f}", flush=True)


if __name__ == "__main__":
    main()
