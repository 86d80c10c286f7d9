"""Runs scripts with the library's ConditionalAccumulator and SparseConditionalAccumulator, and with TensorFlow's.

Both must agree after every action on its error code, the number of gradients, and which takes have ended with which
bits. Where docs/differences.md says that they differ, a test states both results.

Argument: accumulator_script, the program.
"""
import json
import os
import random
import subprocess
import sys
import threading
import time
import unittest

os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1
tf1.disable_eager_execution()

SCRIPT = None
SCRIPTS = 60  # Of each kind.
PATIENCE = 30  # Seconds after which it is a failure that the original has not reached a state.
CODES = {tf.errors.InvalidArgumentError: 3, tf.errors.CancelledError: 1}


def text(numbers):
    return ",".join("?" if number is None else repr(number) for number in numbers)


class Ours:
    """A process of accumulator_script."""

    def __init__(self, kind, dtype, shape, reduction):
        self.kind, self.dtype = kind, dtype
        self.process = subprocess.Popen([SCRIPT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.run("%s dtype=%s reduction=%s shape=%s" % (kind, dtype, reduction, "?" if shape is None else text(shape)))

    def run(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        for taken in answer["taken"].values():
            if taken["code"] == 0:
                taken["values"] = bits(np.array(taken["values"], self.dtype).reshape(taken.pop("dims")))
        return answer

    def apply(self, step, values, indices=None, dense=None):
        line = "apply step=%d dims=%s values=%s" % (step, text(values.shape), text(values.ravel().tolist()))
        if indices is not None:
            line += " index_dims=%s indices=%s" % (text(indices.shape), text(indices.ravel().tolist()))
            line += " dense=%s" % text(dense or [])
        return self.run(line)

    def take(self, name, number):
        return self.run("take id=%s n=%d" % (name, number))

    def set_step(self, step):
        return self.run("set step=%d" % step)

    def close(self):
        answer = self.run("close")
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()
        return answer


def bits(values):
    return [list(values.shape), values.tobytes().hex()]


class Original:
    """TensorFlow's accumulator, in a session that runs one operation at a time."""

    def __init__(self, kind, dtype, shape, reduction):
        self.sparse = kind == "sparse"
        self.takes, self.started, self.expected = {}, 0, []
        graph = tf1.Graph()
        with graph.as_default():
            make = tf1.SparseConditionalAccumulator if self.sparse else tf1.ConditionalAccumulator
            accumulator = make(dtype, shape=None if shape is None else tf.TensorShape(shape), reduction_type=reduction)
            self.step = tf1.placeholder(tf.int64, [])
            self.number = tf1.placeholder(tf.int32, [])
            self.values = tf1.placeholder(dtype)
            self.count = accumulator.num_accumulated()
            self.set_op = accumulator.set_global_step(self.step)
            if self.sparse:
                self.indices = tf1.placeholder(tf.int64)
                self.dense = tf1.placeholder(tf.int64, [None])
                self.apply_op = accumulator.apply_grad(self.indices, self.values, local_step=self.step)
                self.apply_dense_op = accumulator.apply_grad(self.indices, self.values, self.dense, self.step)
            else:
                self.apply_op = accumulator.apply_grad(self.values, self.step)
            # The counter shows that a take has begun.
            self.counter = tf1.get_variable("takes", [], tf.int32, tf1.zeros_initializer(), use_resource=True)
            read = self.counter.read_value()
            with tf1.control_dependencies([self.counter.assign_add(1)]):
                taken = accumulator.take_indexed_slices_grad(self.number) if self.sparse else accumulator.take_grad(
                    self.number)
            self.take_op = [taken.indices, taken.values, taken.dense_shape] if self.sparse else [taken]
            initialize = tf1.global_variables_initializer()
        self.read = read
        config = tf1.ConfigProto(intra_op_parallelism_threads=1)
        config.session_inter_op_thread_pool.add(num_threads=1)
        self.session = tf1.Session(graph=graph, config=config)
        self.session.run(initialize)

    def run(self, op, feed):
        try:
            self.session.run(op, feed)
            return 0
        except tuple(CODES) as error:
            return CODES[type(error)]

    def apply(self, step, values, indices=None, dense=None):
        feed = {self.step: step, self.values: values}
        if indices is not None:
            feed[self.indices] = indices
        if dense is None:
            return self.run(self.apply_op, feed)
        return self.run(self.apply_dense_op, {self.dense: dense, **feed})

    def take(self, name, number):
        results = []

        def run():
            try:
                taken = self.session.run(self.take_op, {self.number: number})
                result = dict(code=0, values=bits(taken[-2 if self.sparse else -1]))
                if self.sparse:
                    result.update(indices=taken[0].tolist(), dense=taken[2].tolist())
                results.append(result)
            except tuple(CODES) as error:
                results.append(dict(code=CODES[type(error)]))

        thread = threading.Thread(target=run, daemon=True)
        self.takes[name] = (thread, results)
        thread.start()
        self.started += 1
        end = time.monotonic() + PATIENCE
        while self.session.run(self.read) < self.started:
            assert time.monotonic() < end, "the original's take has not begun"
        self.session.run(self.read)  # Runs after the take was queued, because the session has one thread.
        return 0

    def set_step(self, step):
        return self.run(self.set_op, {self.step: step})

    def answer(self, code, ended):
        """Returns the answer that accumulator_script would give. Waits for the takes in `ended`."""
        taken = {}
        for name in list(self.takes):
            thread, results = self.takes[name]
            if name in ended:
                thread.join(PATIENCE)
            if not thread.is_alive():
                taken[name] = results[0]
                del self.takes[name]
        return {"code": code, "count": int(self.session.run(self.count)), "taken": taken}

    def close(self):
        self.session.close()
        for thread, _ in self.takes.values():
            thread.join(PATIENCE)
        return {name: results[0] for name, (_, results) in self.takes.items() if results}


class AccumulatorTest(unittest.TestCase):
    def start(self, kind, dtype="float32", shape=None, reduction="MEAN"):
        self.ours = Ours(kind, dtype, shape, reduction)
        self.theirs = Original(kind, dtype, shape, reduction)
        self.script = ["%s %s %s %s" % (kind, dtype, shape, reduction)]
        self.names = 0

    def act(self, action, *arguments):
        self.script.append("%s %s" % (action, arguments))
        ours = getattr(self.ours, action)(*arguments)
        theirs = self.theirs.answer(getattr(self.theirs, action)(*arguments), ours["taken"])
        self.assertEqual(ours, theirs, "\n".join(self.script))
        return ours

    def take(self, number):
        self.names += 1
        return self.act("take", "t%d" % self.names, number)

    def finish(self):
        """Closes both, which cancels waiting takes. The original cancels them one by one, in any order. If gradients
        are left, it may serve a take that waited behind a cancelled one."""
        ours, theirs = self.ours.close(), self.theirs.close()
        for name, taken in ours["taken"].items():
            self.assertEqual(taken, {"code": 1})
            served = ours["count"] > 0 and theirs[name]["code"] == 0
            self.assertTrue(served or theirs[name] == taken, "\n".join(self.script))
        self.assertEqual(set(ours["taken"]), set(theirs))

    def random_script(self, kind, rng):
        dtype = rng.choice(["float16", "float32", "float32", "float64"])
        shape = rng.choice([None, [3, 2], [None, 2], [3, None]] + ([[3, 2, None]] if kind == "sparse" else [[]]))
        self.start(kind, dtype, shape, rng.choice(["MEAN", "SUM"]))
        rank = 2 if shape is None else len(shape)
        inner = [rng.choice([2, 2, 3]) for _ in range(max(rank - 1, 0))]
        step = 0
        for _ in range(rng.randrange(10, 40)):
            kind_of_action = rng.random()
            if kind_of_action < 0.25:
                self.take(rng.choice([0, -1, 1, 1, 2, 2, 3, 4]) if rng.random() < 0.9 else 1)
            elif kind_of_action < 0.32:
                step = rng.randrange(6)
                self.act("set_step", step)
            else:
                self.apply_random(kind, dtype, shape, inner, step, rng)
                step = max(step, rng.randrange(step, step + 2))
        self.finish()

    def apply_random(self, kind, dtype, shape, inner, step, rng):
        local_step = max(0, step + rng.choice([-1, 0, 1, 2, 3]))
        dims = list(inner)
        if dims and rng.random() < 0.1:
            dims[rng.randrange(len(dims))] += 1
        if rng.random() < 0.05:
            dims = dims[:-1] if rng.random() < 0.5 else dims + [2]
        generator = np.random.default_rng(rng.randrange(2**32))
        if kind == "dense":
            if shape != []:
                dims = [3 if rng.random() < 0.9 else 2] + dims
            self.act("apply", local_step, np.array(generator.normal(size=dims), dtype))
            return
        indices = np.array(sorted(rng.sample(range(3 if rng.random() < 0.9 else 6), rng.randrange(4))), np.int64)
        rows = len(indices)
        if rng.random() < 0.05:
            rows += 1
        if rng.random() < 0.05:
            indices = indices.reshape([1, -1])
        values = np.array(generator.normal(size=[rows] + dims), dtype)
        if rng.random() < 0.03:
            values = np.array(1, dtype)
        dense = None
        if rng.random() < 0.4:
            dense = [3 if rng.random() < 0.9 else 4] + dims
        self.act("apply", local_step, values, indices, dense)

    def test_random_dense_scripts(self):
        for seed in range(SCRIPTS):
            self.random_script("dense", random.Random(seed))

    def test_random_sparse_scripts(self):
        for seed in range(SCRIPTS):
            self.random_script("sparse", random.Random(seed))

    def test_takes_are_served_in_order(self):
        self.start("dense")
        self.take(3)
        self.take(1)
        for value in (1.0, 2.0):
            self.assertEqual(self.act("apply", 0, np.float32(value))["taken"], {})
        self.assertEqual(set(self.act("apply", 0, np.float32(6))["taken"]), {"t1"})
        self.assertEqual(self.act("apply", 0, np.float32(1))["taken"], {}, "it is of step 0")
        self.assertEqual(set(self.act("apply", 1, np.float32(1))["taken"]), {"t2"})
        self.finish()

    def test_closing_cancels_takes(self):
        self.start("sparse")
        self.take(1)
        self.take(2)
        self.finish()

    def apply_to_both(self, values, indices):
        values, indices = np.array(values, np.float32), np.array(indices, np.int64)
        return self.ours.apply(0, values, indices)["code"], self.theirs.apply(0, values, indices)

    def take_both(self):
        ours = self.ours.take("t", 1)["taken"]["t"]
        self.theirs.take("t", 1)
        return ours, self.theirs.answer(0, ["t"])["taken"]["t"]

    def test_rows_that_repeat(self):
        self.start("sparse")
        self.assertEqual(self.apply_to_both([[1], [2], [4]], [5, 0, 5]), (0, 0))
        self.assertEqual(self.apply_to_both([[8]], [5]), (0, 0))
        ours, theirs = self.take_both()
        self.assertEqual((ours["indices"], ours["values"]), ([0, 5], bits(np.array([[2], [6.5]], np.float32))))
        self.assertEqual((theirs["indices"], theirs["values"]),
                         ([5, 0, 5], bits(np.array([[4.5], [2], [4]], np.float32))))
        self.finish()

    def test_a_negative_row(self):
        self.start("sparse", shape=[3, 1])
        self.assertEqual(self.apply_to_both([[1]], [-1]), (3, 0))
        self.finish()

    def test_a_closed_one_takes_no_gradient(self):
        self.start("dense")
        self.ours.run("close")
        self.assertEqual(self.ours.apply(0, np.float32(1))["code"], CODES[tf.errors.CancelledError])
        self.theirs.close()
        with self.assertRaises(RuntimeError):
            self.theirs.apply(0, np.float32(1))
        self.ours.close()


if __name__ == "__main__":
    SCRIPT = os.path.abspath(sys.argv.pop(1))
    unittest.main()
