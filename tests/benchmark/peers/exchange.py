"""Drives a peer's worker: reads a number of steps from each input line, runs them, and writes "done"."""
import os
import pathlib
import sys

PIXELS = 784
CLASSES = 10
BATCHES = 16
LEARNING_RATE = 0.01


def use_lockstep():
    """Puts this tree's package on the path."""
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "python"))


def _answers():
    """Returns the pipe to the benchmark. Redirects the libraries' output to stderr, to keep it out of the pipe."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    return answers


def serve(step):
    """Calls step as often as each input line requests, until the input ends."""
    def advance(steps):
        for _ in range(steps):
            step()
    serve_steps(advance)


def serve_steps(advance):
    """Calls advance with each number of steps until the input ends."""
    answers = _answers()
    print("done", file=answers, flush=True)
    for line in sys.stdin:
        advance(int(line))
        print("done", file=answers, flush=True)
    os._exit(0)


class Turns:
    """Does the same for a loop over the slots of a run that has one slot for each worker."""

    def __init__(self):
        self._answers = _answers()
        self._step = -1
        self._slots = 0  # of this step, computed here
        self._began = False
        self._end = 0

    def wait(self, slot):
        """Returns when the slot is to be computed: before the first turn, or when a turn has requested its step."""
        if slot.canary:
            return
        if slot.step != self._step:
            # At first, this worker also gets the slots of workers that have not joined yet.
            self._began = self._began or self._slots == 1
            self._step, self._slots = slot.step, 0
        self._slots += 1
        while self._began and slot.step >= self._end:
            print("done", file=self._answers, flush=True)
            line = sys.stdin.readline()
            if not line:
                os._exit(0)
            self._end = slot.step + int(line)
