"""A worker of Lockstep's Python package whose gradients need no computation. In a loop, or in worker.run(function).

    slots.py loop|function WORKER CONFIG ADDRESS SHAPE...      (a SHAPE is 784x512)
"""
import sys

import exchange

exchange.use_lockstep()

import lockstep


def main():
    way, name, config, address, *shapes = sys.argv[1:]
    variables = [lockstep.Variable(f"v{i}", tuple(map(int, shape.split("x")))) for i, shape in enumerate(shapes)]
    turns = exchange.Turns()
    cleared = {}

    def compute(slot):
        turns.wait(slot)
        if not slot.loss(1.0):
            return
        for i in reversed(range(len(variables))):
            gradient = slot.gradient(i)
            # As in lockstep_exchange.cc, clearing each buffer once is enough.
            if id(gradient) not in cleared:
                gradient.fill(0)
                cleared[id(gradient)] = gradient
            slot.ready(i)
        slot.done()

    with lockstep.Worker(variables, lockstep.Run.from_file(config), master=address, name=name) as worker:
        if way == "function":
            worker.run(compute)
        else:
            for slot in worker:
                compute(slot)


if __name__ == "__main__":
    main()
