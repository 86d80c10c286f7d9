"""Runs scripts with training.first_arrivals and with the real tf.compat.v1.train.SyncReplicasOptimizer.

Both must agree after every action on the global step, the variables, the number of tokens in the queue, the number of
accumulated gradients and, for each worker, whether it waits, its local step and the values that it reads. Where
docs/differences.md says that they differ, a test states both results.

Arguments: first_arrivals_script, the program; the number of random scripts.
"""
import json
import math
import os
import random
import socket
import subprocess
import sys
import threading
import time
import unittest
from unittest import mock

os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import numpy as np
import tensorflow as tf
from tensorflow.python.ops import data_flow_ops

tf1 = tf.compat.v1
tf1.disable_eager_execution()
tf1.logging.set_verbosity(tf1.logging.ERROR)

SCRIPT = None
SCRIPTS = 0
WORKERS = 4
PATIENCE = 30  # Seconds after which it is a failure that the original has not reached a state.

OPTIMIZERS = {  # Both compute the same bits with these.
    "sgd{}learning_rate{initial:0.5}": lambda: tf1.train.GradientDescentOptimizer(0.5),
    "momentum{momentum:0.9}learning_rate{initial:0.5}": lambda: tf1.train.MomentumOptimizer(0.5, 0.9),
    "adam{}learning_rate{initial:0.125}": lambda: tf1.train.AdamOptimizer(0.125),
}
SGD = next(iter(OPTIMIZERS))


class Ours:
    """A process of first_arrivals_script."""

    def __init__(self, replicas, total, tokens, optimizer):
        self.process = subprocess.Popen([SCRIPT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.run("start replicas=%d total=%d tokens=%d optimizer=%s" % (replicas, total, tokens, optimizer))

    def run(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        self.state = json.loads(self.process.stdout.readline(), parse_float=lambda text: float(np.float32(text)))
        return self.state

    def push(self, worker, gradient, part=""):
        return self.run("push worker=%d gradient=%s part=%s" % (worker, ",".join("%.9g" % g for g in gradient), part))

    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()


class Cluster:
    """TensorFlow's servers, in this process: a parameter server, and a server for the chief and for each worker."""

    def __init__(self):
        sockets = [socket.socket() for _ in range(WORKERS + 2)]
        for listener in sockets:
            listener.bind(("127.0.0.1", 0))
        ports = ["127.0.0.1:%d" % listener.getsockname()[1] for listener in sockets]
        for listener in sockets:
            listener.close()
        self.spec = tf.train.ClusterSpec({"ps": ports[:1], "worker": ports[1:]})
        tasks = [("ps", 0)] + [("worker", task) for task in range(WORKERS + 1)]
        self.servers = [tf1.train.Server(self.spec, job_name=job, task_index=task) for job, task in tasks]
        self.containers = 0

    def target(self, task):
        return self.servers[1 + task].target


class Original:
    """A SyncReplicasOptimizer in its own container. The chief is not a worker; worker K is task K + 1."""

    cluster = None

    def __init__(self, replicas, total, tokens, optimizer, run_chief=True):
        if Original.cluster is None:
            Original.cluster = Cluster()
        self.replicas, self.total, self.optimizer = replicas, total, OPTIMIZERS[optimizer]
        self.cluster.containers += 1
        self.container = "script%d" % self.cluster.containers
        self.graphs = {}
        self.sessions, self.threads, self.read = {}, {}, {}
        self.pushed = [0] * WORKERS
        self.chief = self.graph(0)
        with self.chief["graph"].as_default():
            initial = self.chief["sync"].get_init_tokens_op(tokens)
            initialize = tf1.global_variables_initializer()
        self.session = tf1.Session(self.cluster.target(0), graph=self.chief["graph"])
        for op in (initialize, self.chief["sync"].chief_init_op, initial):
            self.session.run(op)
        self.coordinator = tf1.train.Coordinator()
        self.runners = []
        if run_chief:
            self.run_chief()

    def run_chief(self):
        with self.chief["graph"].as_default():
            self.runners = self.chief["sync"].get_chief_queue_runner().create_threads(
                self.session, coord=self.coordinator, daemon=True, start=True)

    def graph(self, task):
        """Returns the graph of one process. It counts the pushes that have passed the accumulators, which shows when a
        worker has begun to wait for a token."""
        if task in self.graphs:
            return self.graphs[task]
        graph = tf1.Graph()
        device = tf1.train.replica_device_setter(worker_device="/job:worker/task:%d" % task, cluster=self.cluster.spec)
        with graph.as_default(), graph.device(device), graph.container(self.container):
            step = tf1.get_variable("global_step", [], tf.int64, tf1.zeros_initializer(), trainable=False,
                                    use_resource=False)
            variables = [tf1.get_variable("v0", initializer=0.0, use_resource=False),
                         tf1.get_variable("v1", initializer=[1.0, 1.0], use_resource=False)]
            counters = [tf1.get_variable("pushes%d" % k, [], tf.int32, tf1.zeros_initializer(), trainable=False,
                                         use_resource=False) for k in range(WORKERS)]
            gradients = [tf1.placeholder(tf.float32, variable.shape) for variable in variables]
            sync = tf1.train.SyncReplicasOptimizer(self.optimizer(), self.replicas, total_num_replicas=self.total)
            dequeue = data_flow_ops.QueueBase.dequeue

            def counted(queue, name=None):
                with tf1.control_dependencies([counters[task - 1].assign_add(1)]):
                    return dequeue(queue, name)

            with mock.patch.object(data_flow_ops.QueueBase, "dequeue", counted):
                train = sync.apply_gradients(zip(gradients, variables), global_step=step)
            sync.ready_for_local_init_op.mark_used()  # Prevents a complaint by TensorFlow.
            accumulated = [accumulator.num_accumulated() for accumulator, _ in sync._accumulator_list]
            state = [step, variables, sync._sync_token_queue.size(), accumulated, counters]
        self.graphs[task] = dict(graph=graph, sync=sync, gradients=gradients, train=train, variables=variables,
                                 state=state)
        return self.graphs[task]

    def join(self, worker):
        built = self.graph(worker + 1)
        self.sessions[worker] = tf1.Session(self.cluster.target(worker + 1), graph=built["graph"])
        self.sessions[worker].run(built["sync"].local_step_init_op)

    def push(self, worker, gradient):
        built, session = self.graph(worker + 1), self.sessions[worker]
        feed = dict(zip(built["gradients"], (gradient[0], gradient[1:])))
        self.read.pop(worker)

        def run():
            try:
                session.run(built["train"], feed)
            except tf.errors.CancelledError:
                pass  # The worker has left.

        self.pushed[worker] += 1
        self.threads[worker] = threading.Thread(target=run, daemon=True)
        self.threads[worker].start()

    def push_one(self, worker, variable, gradient):
        """Makes a part of a push: one accumulator gets its gradient."""
        built = self.graph(worker + 1)
        pushes = [op for op in built["graph"].get_operations() if op.type.endswith("AccumulatorApplyGradient")]
        self.sessions[worker].run(pushes[variable], {built["gradients"][variable]: gradient})

    def leave(self, worker):
        self.sessions.pop(worker).close()
        if worker in self.threads:
            self.threads.pop(worker).join(PATIENCE)
        self.read.pop(worker, None)

    def waits(self, worker):
        return worker in self.threads and self.threads[worker].is_alive()

    def state(self):
        """Returns the state as first_arrivals_script prints it, or None while a push has not reached the queue."""
        step, variables, tokens, accumulated, pushed = self.session.run(self.chief["state"])
        workers = {}
        for worker, session in self.sessions.items():
            workers[str(worker)] = None
            if self.waits(worker):
                continue
            built = self.graph(worker + 1)
            if worker not in self.read:
                self.read[worker] = flat(session.run(built["variables"]))
            workers[str(worker)] = [int(session.run(built["sync"]._local_step)), self.read[worker]]
        if pushed != self.pushed or len(set(accumulated)) > 1:
            return None
        return {"step": int(step), "values": flat(variables), "tokens": int(tokens),
                "accumulated": int(accumulated[0]), "workers": workers}

    def close(self):
        for worker in list(self.sessions):
            self.leave(worker)
        self.coordinator.request_stop()
        self.session.close()
        self.coordinator.join(self.runners, stop_grace_period_secs=PATIENCE, ignore_live_threads=True)


def flat(variables):
    return [float(value) for value in np.concatenate([np.ravel(variable) for variable in variables])]


def visible(state):
    return {name: state[name] for name in ("step", "values", "tokens", "accumulated", "workers")}


class FirstArrivalsTest(unittest.TestCase):
    def start(self, replicas, total, tokens, optimizer=SGD, run_chief=True):
        self.ours = Ours(replicas, total, tokens, optimizer)
        self.addCleanup(self.ours.close)
        self.theirs = Original(replicas, total, tokens, optimizer, run_chief)
        self.addCleanup(self.theirs.close)
        self.history = ["R %d, T %d, initial tokens %d, %s" % (replicas, total, tokens, optimizer)]

    def act(self, action, worker, gradient=None, compare=True):
        self.history.append("%s %d %s" % (action, worker, gradient or ""))
        if action == "push":
            self.ours.push(worker, gradient)
            self.theirs.push(worker, gradient)
        else:
            self.ours.run("%s worker=%d" % (action, worker))
            getattr(self.theirs, action)(worker)
        self.assertEqual(self.ours.state["error"], "")
        self.assert_original(visible(self.ours.state) if compare else None)

    def assert_original(self, expected):
        """Waits until the original is in this state, where None stands for any. If the original then leaves the state
        on its own, the comparison after the next action fails."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            state = self.theirs.state()
            if state is not None and expected in (None, state):
                return
            time.sleep(0.001)
        self.assertEqual(state, expected, "the original (first) and ours (second):\n" + "\n".join(self.history))

    def values_read_by(self, worker):
        held = self.ours.state["workers"][str(worker)]
        return held and held[1]

    # Equal behavior.

    def test_random_scripts(self):
        for seed in range(SCRIPTS):
            with self.subTest(seed):
                self.play(random.Random(seed))
                self.doCleanups()

    def play(self, rng):
        replicas, total = rng.randint(1, 4), rng.randint(1, 4)
        tokens = rng.choice([replicas, max(0, replicas - total), replicas + 1])
        self.start(replicas, total, tokens, rng.choice(list(OPTIMIZERS)))
        workers = rng.randint(2, WORKERS)
        fresh = set()  # Workers that have not pushed. Their tokens are not from the queue, so they may leave.
        for _ in range(25):
            present = [int(worker) for worker in self.ours.state["workers"]]
            absent = sorted(set(range(workers)) - set(present))
            free = [worker for worker in present if self.values_read_by(worker)]
            leaving = [worker for worker in present if worker in fresh or worker not in free]
            if absent and (not free or rng.random() < 0.25):
                worker = rng.choice(absent)
                fresh.add(worker)
                self.act("join", worker)
            elif leaving and rng.random() < 0.08:
                worker = rng.choice(leaving)
                fresh.discard(worker)
                self.act("leave", worker)
            elif free:
                worker = rng.choice(free)
                fresh.discard(worker)
                self.act("push", worker, self.gradient(rng, replicas, worker))
            else:
                break  # All workers wait. Another test covers this.

    def gradient(self, rng, replicas, worker):
        """Draws a gradient. The order of a sum of four differs (see below), so the sums of these gradients need no
        rounding."""
        if replicas > 3:
            return [rng.randint(-128, 128) / 64 for _ in range(3)]
        if rng.random() < 0.3:
            return self.values_read_by(worker)
        return [float(np.float32(rng.uniform(-2, 2))) for _ in range(3)]

    def test_a_worker_that_joins_late(self):
        self.start(replicas=1, total=1, tokens=1)
        self.act("join", 0)
        for _ in range(5):
            self.act("push", 0, [1.0, 2.0, 3.0])
        step = self.ours.state["step"]
        self.act("join", 1)
        self.assertEqual(self.ours.state["workers"]["1"][0], step)
        self.act("push", 1, [1.0, 0.0, 0.0])
        self.assertEqual(self.ours.state["step"], step + 1)

    def test_an_old_token_comes_with_new_values(self):
        self.start(replicas=1, total=1, tokens=1)
        self.act("join", 0)
        self.act("push", 0, [1.0, 0.0, 0.0])
        self.assertEqual(self.ours.state["workers"]["0"], [0, [-0.5, 1.0, 1.0]])

    # Differences: see docs/differences.md.

    def two_workers_at_step_1(self):
        self.start(replicas=2, total=2, tokens=0)
        for worker in (0, 1):
            self.act("join", worker)
        for worker in (0, 1):
            self.act("push", worker, [1.0, 0.0, 0.0])
        self.act("push", 0, [1.0, 0.0, 0.0])
        self.assertIsNone(self.values_read_by(0))

    def test_a_token_of_a_lost_worker(self):
        self.two_workers_at_step_1()
        self.act("leave", 1, compare=False)
        lost = dict(step=1, values=[-0.5, 1.0, 1.0], tokens=0, accumulated=1)
        self.assert_original(dict(lost, workers={"0": None}))
        self.assertEqual(visible(self.ours.state), dict(lost, workers={"0": [1, [-0.5, 1.0, 1.0]]}))
        self.assertEqual(self.ours.push(0, [1.0, 0.0, 0.0])["step"], 2)

    def test_all_workers_wait(self):
        self.start(replicas=2, total=2, tokens=0)
        self.act("join", 0)
        self.act("push", 0, [1.0, 0.0, 0.0])
        self.assertIsNone(self.values_read_by(0))
        self.assertIsNone(self.ours.run("advance seconds=4")["workers"]["0"])
        self.assertEqual(self.ours.run("advance seconds=2")["workers"]["0"], [0, [0.0, 1.0, 1.0]])
        self.assertEqual(self.ours.push(0, [1.0, 0.0, 0.0])["step"], 1)
        self.assert_original(dict(step=0, values=[0.0, 1.0, 1.0], tokens=0, accumulated=1, workers={"0": None}))

    def test_more_than_r_before_the_update(self):
        self.start(replicas=2, total=3, tokens=0, run_chief=False)
        for worker in (0, 1, 2):
            self.act("join", worker)
        for worker, gradient in enumerate((1.0, 2.0, 6.0)):
            self.act("push", worker, [gradient, 0.0, 0.0], compare=False)
        self.assertEqual(self.ours.state["values"], [-0.5 * (1 + 2) / 2, 1.0, 1.0])
        three = dict(step=0, values=[0.0, 1.0, 1.0], tokens=0, accumulated=3)
        self.assert_original(dict(three, workers={"0": None, "1": None, "2": None}))
        self.theirs.run_chief()
        mean_of_three = [-0.5 * (1 + 2 + 6) / 3, 1.0, 1.0]
        self.assert_original(dict(step=1, values=mean_of_three, tokens=0, accumulated=0,
                                  workers={str(worker): [1, mean_of_three] for worker in (0, 1, 2)}))

    def test_an_update_in_the_middle_of_a_push(self):
        self.start(replicas=2, total=3, tokens=0)
        for worker in (0, 1, 2):
            self.act("join", worker)
        self.act("push", 0, [1.0, 1.0, 1.0])
        self.ours.push(1, [3.0, 3.0, 3.0], part="first")
        self.theirs.push_one(1, 0, 3.0)
        self.ours.push(2, [5.0, 5.0, 5.0])
        self.theirs.push(2, [5.0, 5.0, 5.0])
        mixed = [-0.5 * (1 + 3) / 2, 1 - 0.5 * (1 + 5) / 2, 1 - 0.5 * (1 + 5) / 2]
        workers = {"0": [1, mixed], "1": [0, [0.0, 1.0, 1.0]], "2": [1, mixed]}
        self.assert_original(dict(step=1, values=mixed, tokens=1, accumulated=0, workers=workers))
        self.theirs.push_one(1, 1, [3.0, 3.0])
        self.assert_original(dict(step=1, values=mixed, tokens=1, accumulated=0, workers=workers))
        whole = [value - 0.5 * (1 + 5) / 2 for value in (0, 1, 1)]
        self.assertEqual(self.ours.state["values"], whole)
        state = self.ours.push(1, [3.0, 3.0, 3.0], part="rest")
        self.assertEqual((state["step"], state["values"], state["accumulated"]), (1, whole, 0))
        self.assertEqual(state["error"], "")

    def test_the_order_of_a_sum(self):
        self.start(replicas=4, total=4, tokens=0)
        for worker in range(4):
            self.act("join", worker)
        for worker, gradient in enumerate((1e8, 1.0, -1e8, 1.0)):
            self.act("push", worker, [gradient, 0.0, 0.0], compare=False)
        self.assertEqual(self.ours.state["values"][0], 0.0)
        in_turn = [-0.5 * 1 / 4, 1.0, 1.0]
        self.assert_original(dict(step=1, values=in_turn, tokens=0, accumulated=0,
                                  workers={str(worker): [1, in_turn] for worker in range(4)}))

    def test_a_gradient_that_is_not_finite(self):
        self.start(replicas=1, total=1, tokens=0)
        self.act("join", 0)
        self.assertIn("v0", self.ours.push(0, [math.nan, 0.0, 0.0])["error"])
        self.assertEqual(self.ours.state["values"], [0.0, 1.0, 1.0])
        self.theirs.push(0, [math.nan, 0.0, 0.0])
        self.theirs.threads[0].join(PATIENCE)
        self.assertTrue(math.isnan(self.theirs.state()["values"][0]))

    def test_the_end_of_the_input(self):
        self.two_workers_at_step_1()
        self.theirs.leave(1)  # Its loop has ended.
        self.ours.run("end_input worker=1")
        self.assert_original(dict(step=1, values=[-0.5, 1.0, 1.0], tokens=0, accumulated=1, workers={"0": None}))
        self.assertFalse(self.ours.state["finished"])
        self.assertEqual(self.ours.state["workers"]["0"], [1, [-0.5, 1.0, 1.0]])
        self.assertTrue(self.ours.run("end_input worker=0")["finished"])

    def test_too_few_initial_tokens(self):
        with self.assertRaisesRegex(ValueError, r"1 \(given\) vs 2 \(needed\)"):
            Original(4, 2, 1, SGD)


if __name__ == "__main__":
    SCRIPT = os.path.abspath(sys.argv.pop(1))
    SCRIPTS = int(sys.argv.pop(1))
    unittest.main()
