"""How a peer's worker is driven: a line with a number of steps comes in, "done" goes out after them."""
import os
import sys

PIXELS = 784
CLASSES = 10
BATCHES = 16
LEARNING_RATE = 0.01


def serve(step):
    """Calls step as often as is asked, until the input ends."""
    def advance(steps):
        for _ in range(steps):
            step()
    serve_steps(advance)


def serve_steps(advance):
    """Answers until the input ends: advance does a number of steps. What libraries print must not reach the pipe: it
    goes to stderr."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    print("done", file=answers, flush=True)
    for line in sys.stdin:
        advance(int(line))
        print("done", file=answers, flush=True)
    os._exit(0)
