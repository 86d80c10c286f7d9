#!/usr/bin/env python3
"""Writes torch_optimizers_golden.txt: what PyTorch's own optimizers and schedules compute.

Run with a Python that has PyTorch 2.x:  torch_optimizers_golden.py > torch_optimizers_golden.txt
The lines have the format of optimizers_golden.py.
"""
import math

import numpy as np
import torch

STEPS = 20
N = 19  # two vectors of eight and a remainder
RATES = 60

MOMENTUM = {"Momentum": "momentum_buffer"}
ADAM = {"Adam": "exp_avg", "Adam_1": "exp_avg_sq"}
AMSGRAD = dict(ADAM, Adam_2="max_exp_avg_sq")
NADAM = {"Nadam": "exp_avg", "Nadam_1": "exp_avg_sq"}

CASES = [
    ("sgd { weight_decay: 0.01 }", torch.optim.SGD, dict(lr=0.1, weight_decay=0.01), {}),
    ("momentum {}", torch.optim.SGD, dict(lr=0.1, momentum=0.9), MOMENTUM),
    ("momentum { momentum: 0.8 weight_decay: 0.01 dampening: 0.3 }", torch.optim.SGD,
     dict(lr=0.1, momentum=0.8, weight_decay=0.01, dampening=0.3), MOMENTUM),
    ("momentum { momentum: 0.8 weight_decay: 0.01 nesterov: true }", torch.optim.SGD,
     dict(lr=0.1, momentum=0.8, weight_decay=0.01, nesterov=True), MOMENTUM),
    ("adam { epsilon_on_corrected: true }", torch.optim.Adam, dict(lr=0.01), ADAM),
    ("adam { epsilon: 0.01 epsilon_on_corrected: true weight_decay: 0.04 }", torch.optim.AdamW,
     dict(lr=0.02, eps=0.01, weight_decay=0.04), ADAM),
    ("adam { epsilon_on_corrected: true amsgrad: true }", torch.optim.Adam, dict(lr=0.01, amsgrad=True), AMSGRAD),
    ("adam { beta1: 0.8 beta2: 0.9 epsilon: 0.01 epsilon_on_corrected: true weight_decay: 0.04 amsgrad: true }",
     torch.optim.AdamW, dict(lr=0.02, betas=(0.8, 0.9), eps=0.01, weight_decay=0.04, amsgrad=True), AMSGRAD),
    ("nadam {}", torch.optim.NAdam, dict(lr=0.01), NADAM),
    ("nadam { weight_decay: 0.04 }", torch.optim.NAdam, dict(lr=0.01, weight_decay=0.04), NADAM),
    ("nadam { weight_decay: 0.04 decoupled_weight_decay: true }", torch.optim.NAdam,
     dict(lr=0.01, weight_decay=0.04, decoupled_weight_decay=True), NADAM),
    ("nadam { beta1: 0.8 beta2: 0.95 epsilon: 0.01 momentum_decay: 0.1 }", torch.optim.NAdam,
     dict(lr=0.02, betas=(0.8, 0.95), eps=0.01, momentum_decay=0.1), NADAM),
    ("adagrad { initial_accumulator: 0.5 }", torch.optim.Adagrad, dict(lr=0.2, initial_accumulator_value=0.5),
     {"Adagrad": "sum"}),
    ("adadelta { rho: 0.9 epsilon: 0.0001 }", torch.optim.Adadelta, dict(lr=0.5, rho=0.9, eps=0.0001),
     {"Adadelta": "square_avg", "Adadelta_1": "acc_delta"}),
]


def warmup_stable_decay(step):
    return min(step / 10, 1, (RATES - 1 - step) / 19)


def half_cosine(step):
    return 0.5 * (1 + math.cos(math.pi * step / RATES))


SCHEDULES = [
    ([0, 14, RATES - 1], [0.004, 0.1, 4e-7],
     lambda optimizer: torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=RATES, pct_start=0.25,
                                                           anneal_strategy="linear", cycle_momentum=False)),
    ([0, 10, 40, RATES - 1], [0, 0.1, 0.1, 0],
     lambda optimizer: torch.optim.lr_scheduler.LambdaLR(optimizer, warmup_stable_decay)),
    (list(range(RATES)), ["%.9g" % (0.1 * half_cosine(step)) for step in range(RATES)],
     lambda optimizer: torch.optim.lr_scheduler.LambdaLR(optimizer, half_cosine)),
]


def bits(array):
    return " ".join("%08x" % word for word in np.asarray(array, np.float32).ravel().view(np.uint32))


def write_case(text, kind, options, slots, gradients, initial):
    print("case %s learning_rate { initial: %s }" % (text, options["lr"]))
    variable = torch.nn.Parameter(torch.tensor(initial))
    optimizer = kind([variable], foreach=False, **options)
    for step, gradient in enumerate(gradients):
        variable.grad = torch.tensor(gradient)
        optimizer.step()
        print("value %d %s" % (step, bits(variable.detach().numpy())))
    for name, theirs in slots.items():
        print("slot", name, bits(optimizer.state[variable][theirs].numpy()))


def write_schedule(steps, rates, make):
    print("schedule table { steps: [%s] rates: [%s] }" % (", ".join(map(str, steps)), ", ".join(map(str, rates))))
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.1)
    scheduler = make(optimizer)
    for step in range(RATES):
        print("rate %d %s" % (step, bits(optimizer.param_groups[0]["lr"])))
        if step + 1 < RATES:
            optimizer.step()
            scheduler.step()


def main():
    random = np.random.RandomState(17)
    gradients = random.normal(size=(STEPS, N)).astype(np.float32)
    gradients[:, 3] = 0  # an element that never moves
    gradients[5:, 7] *= 100
    gradients[:, 11] *= 1e-4
    initial = random.normal(size=N).astype(np.float32)
    for step, gradient in enumerate(gradients):
        print("gradient %d %s" % (step, bits(gradient)))
    print("initial " + bits(initial))
    for case in CASES:
        write_case(*case, gradients, initial)
    for schedule in SCHEDULES:
        write_schedule(*schedule)


main()
