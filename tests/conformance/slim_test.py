"""Compares our slim::Train with tf_slim.learning.train for the same arguments: steps, losses, checkpoints, records,
traces, log lines and errors. The model is linear and learns from the same four examples in each step.

Argument: slim_script, the program. Tests of deliberate differences say so (docs/differences.md).
"""
import glob
import logging
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from unittest import mock

os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import numpy as np
import tensorflow as tf
import tf_slim
from tensorflow.python.framework import ops

# Newer versions of TensorFlow have moved names that tf-slim looks for.
for name in ("IndexedSlices", "Tensor"):
    if not hasattr(ops, name):
        setattr(ops, name, getattr(tf, name))
tf1 = tf.compat.v1
tf1.disable_v2_behavior()
SLIM_SCRIPT = None

X = np.array([[1, 2], [-1, 0.5], [0.25, -2], [2, 1]], np.float32)
Y = np.array([[1], [-2], [0.5], [3]], np.float32)
CODES = [(ValueError, "INVALID_ARGUMENT"), (tf.errors.InternalError, "INTERNAL"), (RuntimeError, "FAILED_PRECONDITION")]
ERRORS = {"fail": tf.errors.InternalError, "range": tf.errors.OutOfRangeError, "abort": tf.errors.AbortedError}
# The lines that the loop itself logs. The others are TensorFlow's, or the chief's.
LINE = re.compile(r"(Starting Session\.|Stopping Training\.|Finished training! Saving model to disk\.|Retrying training!|"
                  r"Caught OutOfRangeError\. Stopping Training\.|tf_trace-\d+\.json|"
                  r"global step \d+: loss = -?[0-9.]+ \([0-9.]+ sec/step\))")
STEP = re.compile(r"global step (\d+): loss = (-?[0-9.]+)")


def loop_lines(text):
    """Returns the loop's log lines. A step's line becomes ("step", its number, its loss)."""
    lines = []
    for line in LINE.findall(text):
        step = STEP.match(line)
        lines.append(("step", int(step.group(1)), float(step.group(2))) if step else line)
    return lines


class Theirs:
    """Runs a line of slim_script.cc with tf_slim."""

    def __init__(self):
        self.log = []
        handler = logging.Handler()
        handler.emit = lambda record: self.log.append(record.getMessage())
        logger = logging.getLogger("tensorflow")
        logger.handlers = [handler]
        logger.propagate = False
        logger.setLevel(logging.INFO)

    def run(self, line):
        """Does the same as slim_script: sets the output and the log."""
        self.log.clear()
        self.out = []
        try:
            with tf.Graph().as_default():
                self.train(**dict(word.split("=", 1) for word in line.split()[1:]))
            self.out.append("OK")
        except Exception as e:  # pylint: disable=broad-except
            codes = [code for kind, code in CODES if isinstance(e, kind)]
            if not codes:
                raise
            self.out.append(codes[0])
        return self.out, "\n".join(self.log)

    def train_op(self, epochs, rate, clip, multiply, transform):
        step = tf1.train.get_or_create_global_step()
        kernel = tf1.get_variable("dense/kernel", [2, 1], initializer=tf1.zeros_initializer())
        inputs = []
        if epochs is not None:
            inputs = [tf1.data.make_one_shot_iterator(tf.data.Dataset.range(int(epochs))).get_next()]
        with tf.control_dependencies(inputs):
            loss = tf.reduce_mean(tf.square(tf.matmul(tf.constant(X), kernel) - Y))
        optimizer = tf1.train.GradientDescentOptimizer(rate)
        if transform:
            return tf_slim.training.create_train_op(
                loss, optimizer, step,
                transform_grads_fn=lambda pairs: [(tf.where(g < 0, -0.5 + 0 * g, 0.5 + 0 * g), v) for g, v in pairs])
        return tf_slim.learning.create_train_op(
            loss, optimizer, step, clip_gradient_norm=clip,
            gradient_multipliers={"dense/kernel": multiply} if multiply else None)

    def train(self, data=None, examples=None, logdir=None, steps=None, log="1", trace=None, interval="600",
              summaries="600", summary=None, writer=None, saver=None, sync=None, delay="0", init=None, ready=None, op=None,
              epochs=None, rate="0.05", clip="0", multiply=None, transform=None, wrapper=None, kwargs=None, step=None,
              at="0"):
        train_op = self.train_op(epochs, float(rate), float(clip), float(multiply or 0), transform)
        options = {"summary_op": None} if summary == "none" else {}
        if summary == "given":
            options["summary_op"] = tf1.summary.scalar("mine", 1.0)
        if writer == "none":
            options["summary_writer"] = None
        if saver:
            options["saver"] = tf1.train.Saver()
        if sync:
            # An object that is not an optimizer corresponds to an optimizer of ours that does not average gradients.
            options["sync_optimizer"] = tf1.train.SyncReplicasOptimizer(
                tf1.train.GradientDescentOptimizer(0.1), int(sync)) if sync != "0" else ["x"]
        kernel = tf1.global_variables()[1]
        if init == "none":
            options["init_op"] = None
        if init == "given":
            options["init_op"] = tf.group(tf1.global_variables_initializer(), kernel.initializer, name="all")
            with tf.control_dependencies([options["init_op"]]):
                options["init_op"] = tf1.assign(kernel, [[1.0], [2.0]])
        if init == "fn":
            assigned = tf1.assign(kernel, [[3.0], [4.0]])
            options["init_fn"] = lambda session: session.run(assigned)
        if ready == "none":
            options["ready_op"] = None
        elif ready:
            options["ready_op"] = tf.constant([ready])
        if kwargs is not None:
            options["train_step_kwargs"] = {"should_trace": tf.constant(True)} if kwargs == "trace" else {}
        self.calls = self.runs = 0
        written = threading.Semaphore(0)
        if step:
            def take_step(session, op, global_step, given):
                if summary == "given" and not self.calls:
                    written.acquire(timeout=30)
                self.calls += 1
                ends = self.calls == int(at)
                if ends and step in ERRORS:
                    raise ERRORS[step](None, None, "the script says so")
                loss, stop = tf_slim.learning.train_step(session, op, global_step, given)
                return loss, stop or (ends and step == "stop")
            options["train_step_fn"] = take_step
        if wrapper:
            theirs = self

            class Counted:
                def __init__(self, session):
                    self.session = session

                def run(self, fetches, *args, **others):
                    theirs.runs += isinstance(fetches, list) and fetches[:1] == [train_op]
                    return self.session.run(fetches, *args, **others)

                def __getattr__(self, name):
                    return getattr(self.session, name)

            options["session_wrapper"] = Counted

        start = tf1.train.Supervisor.start_standard_services

        def start_and_wait(supervisor, session):
            # Our chief saves its first step before the next.
            found = start(supervisor, session)
            while float(interval) and not glob.glob(logdir + "/*.index") and not supervisor.should_stop():
                time.sleep(0.001)
            return found

        add_summary = tf1.summary.FileWriter.add_summary

        def add_and_tell(file_writer, *args, **others):
            add_summary(file_writer, *args, **others)
            written.release()

        try:
            with mock.patch.object(tf1.train.Supervisor, "start_standard_services", start_and_wait), \
                    mock.patch.object(tf1.summary.FileWriter, "add_summary", add_and_tell):
                loss = tf_slim.learning.train(
                    None if op == "none" else train_op, logdir, log_every_n_steps=int(log),
                    number_of_steps=None if steps is None else int(steps), save_summaries_secs=float(summaries),
                    save_interval_secs=float(interval), startup_delay_steps=int(delay),
                    trace_every_n_steps=None if trace is None else int(trace), **options)
        finally:
            if step:
                self.out.append("calls %d" % self.calls)
            if wrapper:
                self.out.append("runs %d" % self.runs)
            if summary == "given" and self.calls:
                self.out.append("summaries 1")
        self.out.append("loss none" if loss is None else "loss %.9g" % loss)


def files(folder, pattern):
    return sorted(int(re.findall(r"\d+", os.path.basename(path))[-1])
                  for path in glob.glob(os.path.join(folder, pattern)))


def records(folder):
    found = []
    for path in sorted(glob.glob(os.path.join(folder, "events.*"))):
        for event in tf1.train.summary_iterator(path):
            if event.HasField("session_log"):
                found.append((tf1.SessionLog.SessionStatus.Name(event.session_log.status), event.step))
            found += [(value.tag, event.step) for value in event.summary.value if value.tag != "global_step/sec"]
    return found


class SlimTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.base = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
        cls.data = os.path.join(cls.base, "data.csv")
        with open(cls.data, "w") as f:
            f.write("a,b,y\n" + "".join("%r,%r,%r\n" % (float(a), float(b), float(y)) for (a, b), (y,) in zip(X, Y)))
        cls.theirs = Theirs()
        cls.settings = 0

    def both(self, lines):
        """Returns, for each line, (what ours printed, its log), (what theirs printed, its log). LOGDIR is a separate
        folder for each."""
        type(self).settings += len(lines)
        self.folder = tempfile.mkdtemp(dir=self.base)
        lines = ["train data=%s examples=4 %s" % (self.data, line) for line in lines]
        mine, others = ([line.replace("LOGDIR", os.path.join(self.folder, name)) for line in lines]
                        for name in ("ours", "theirs"))
        result = subprocess.run([SLIM_SCRIPT], input="\n".join(mine) + "\n", stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, timeout=120)
        self.assertEqual(result.returncode, 0, result.stderr)
        printed, group = [], []
        for line in result.stdout.splitlines():
            group.append(line)
            if re.match(r"(OK|[A-Z_]+:)", line):
                printed.append(group)
                group = []
        ours = list(zip(printed, result.stderr.split("END\n")))
        self.assertEqual(len(ours), len(lines), result.stdout + result.stderr)
        return ours, [self.theirs.run(line) for line in others]

    def assert_same_log(self, mine, other):
        self.assertEqual([line[:2] if line[0] == "step" else line for line in mine],
                         [line[:2] if line[0] == "step" else line for line in other])
        for one, two in zip(mine, other):
            if one[0] == "step":
                self.assertAlmostEqual(one[2], two[2], delta=1.5e-4)

    def check(self, *lines, log=True):
        """Checks that output, loss and log are the same. Returns our last output."""
        ours, theirs = self.both(lines)
        for line, (mine, my_log), (other, other_log) in zip(lines, ours, theirs):
            with self.subTest(line):
                codes = [text.split(":")[0] for text in mine]
                self.assertEqual([text for text in codes if not text.startswith("loss")],
                                 [text for text in other if not text.startswith("loss")], (mine, other, my_log))
                if other[-1] == "OK":
                    self.assert_same_loss(mine[-2], other[-2])
                if log:
                    self.assert_same_log(loop_lines(my_log), loop_lines(other_log))
        return ours[-1][0]

    def assert_same_loss(self, mine, other):
        if "none" in (mine.split()[1], other.split()[1]):
            self.assertEqual(mine, other)
        else:
            self.assertAlmostEqual(float(mine.split()[1]), float(other.split()[1]), delta=2e-6)

    def logdirs(self):
        return [os.path.join(self.folder, name) for name in ("ours", "theirs")]

    def checkpoints(self):
        return [files(folder, "model.ckpt-*.index") for folder in self.logdirs()]

    # The number of steps, the log, and the files.

    def test_steps_and_log_lines(self):
        for steps in (1, 2, 3, 5, 8):
            for log in (0, 1, 2, 3):
                self.check("logdir=LOGDIR steps=%d log=%d summaries=0" % (steps, log))
                mine, others = self.checkpoints()
                self.assertEqual(mine, others)
                self.assertEqual(mine[-1], steps)

    def test_without_a_logdir(self):
        for steps in (1, 4):
            for log in (1, 2):
                self.check("steps=%d log=%d" % (steps, log))
        self.assertEqual(os.listdir(self.folder), [])

    def test_the_input_ends(self):
        for epochs in (1, 3, 5):
            self.check("logdir=LOGDIR epochs=%d summaries=0" % epochs)
            self.assertEqual(*self.checkpoints())
        self.check("epochs=2")
        self.check("epochs=4 steps=3")

    def test_another_call_takes_at_least_one_step(self):
        for calls in ((3, 3), (3, 5), (3, 2), (2, 2, 2), (1, 4, 4)):
            self.check(*("logdir=LOGDIR summaries=0 steps=%d" % steps for steps in calls))
            mine, others = self.checkpoints()
            self.assertEqual(mine[-1], others[-1])
            # TensorFlow's saver thread begins with a save. Its step is the call's first one, or a later one if the
            # thread starts slowly.
            self.assertLessEqual(len(set(others) - set(mine)), len(calls))

    def test_traces(self):
        for every in (1, 2, 3, 10):
            self.check("logdir=LOGDIR steps=7 log=0 summaries=0 trace=%d" % every)
            mine, others = (files(folder, "tf_trace-*.json") for folder in self.logdirs())
            self.assertEqual(mine, others)
            self.assertEqual(mine, list(range(1, 8, every)))

    def test_gradients(self):
        for transform in ("clip=0.5", "clip=100", "clip=-1", "multiply=0.5", "multiply=3 clip=1", "transform=1",
                          "rate=0.2"):
            self.check("steps=6 " + transform)

    def test_initial_values(self):
        for init in ("given", "fn"):
            self.check("logdir=LOGDIR summaries=0 steps=2 init=" + init, "logdir=LOGDIR summaries=0 steps=4 init=" + init)

    # Step functions.

    def test_a_step_function(self):
        for call in ("step=count steps=4", "step=count steps=1", "step=stop at=3 steps=9", "step=stop at=1",
                     "step=stop at=2 kwargs=none", "step=stop at=5 kwargs=none log=1", "step=range at=1",
                     "step=range at=4"):
            self.check("logdir=LOGDIR summaries=0 " + call)
            self.assertEqual(*self.checkpoints())
        self.check("step=stop at=4 wrapper=1")

    def test_a_step_function_that_fails(self):
        """Deliberate difference: the chief saves what it has."""
        for at in (1, 3):
            self.check("logdir=LOGDIR summaries=0 step=fail at=%d" % at)
            mine, others = self.checkpoints()
            self.assertEqual((mine, others), (sorted({0, at - 1}), [0]))

    def test_an_aborted_step(self):
        """Deliberate difference: training continues from the last step, instead of repeating steps from a
        checkpoint."""
        for at in (1, 2, 4):
            ours, theirs = self.both(["logdir=LOGDIR summaries=0 steps=6 step=abort at=%d" % at])
            (mine, my_log), (other, other_log) = ours[0], theirs[0]
            self.assertEqual((mine[0], other[0]), ("calls 7", "calls %d" % (6 + at)))
            self.assert_same_loss(mine[1], other[1])
            self.assertEqual([log.count("Retrying training!") for log in (my_log, other_log)], [1, 1])
            self.assertEqual([found[-1] for found in self.checkpoints()], [6, 6])

    def test_a_bound_holds_without_kwargs(self):
        """Deliberate difference: a step function that does not look at number_of_steps does not make more steps than
        that."""
        ours, theirs = self.both(["logdir=LOGDIR summaries=0 steps=3 kwargs=none step=stop at=5"])
        self.assertEqual((ours[0][0][0], theirs[0][0][0]), ("calls 4", "calls 5"))
        self.assertEqual([found[-1] for found in self.checkpoints()], [3, 5])

    def test_a_wrapped_session(self):
        self.assertIn("runs 4", self.check("steps=4 wrapper=1"))

    # Records.

    def test_records(self):
        """START comes first and STOP last. Deliberate difference: only ours has the last checkpoint's record."""
        for options in ("steps=3", "epochs=3"):
            self.check("logdir=LOGDIR summaries=0 " + options)
            mine, others = (records(folder) for folder in self.logdirs())
            self.assertEqual(mine, [("START", 0), ("CHECKPOINT", 0), ("CHECKPOINT", 3), ("STOP", 0)])
            # Its thread determines the step that it saves after the loop may have continued.
            self.assertEqual([record[0] for record in others], ["START", "CHECKPOINT", "STOP"])

    def test_summaries(self):
        self.check("logdir=LOGDIR steps=3 summary=given step=count")
        mine, others = (records(folder) for folder in self.logdirs())
        self.assertEqual([record for record in mine if record[0] == "mine"], [("mine", 0)])
        self.assertEqual([record for record in others if record[0] == "mine"], [("mine", 0)])

    def test_no_summaries(self):
        for options in ("summary=none", "summaries=0", "summary=none summaries=0"):
            self.check("logdir=LOGDIR steps=2 " + options)
            tags = [set(tag for tag, _ in records(folder)) for folder in self.logdirs()]
            self.assertEqual(*tags)

    def test_no_events(self):
        self.check("logdir=LOGDIR steps=2 writer=none")
        self.assertEqual(*self.checkpoints())
        self.assertEqual([records(folder) for folder in self.logdirs()], [[], []])

    def test_no_timer(self):
        """Deliberate difference: the first step is saved even without a timer."""
        self.check("logdir=LOGDIR steps=2 interval=0 summaries=0")
        self.assertEqual(self.checkpoints(), [[0, 2], [2]])

    # Wrong arguments, in the original's order.

    def test_wrong_arguments(self):
        for options, names in (
                ("op=none", "train_op"), ("summary=none", "summary_op"), ("summary=given", "summary_op"),
                ("saver=1", "saver"), ("trace=2", "trace_every_n_steps"),
                ("logdir=LOGDIR sync=1 delay=1", "startup_delay_steps"), ("logdir=LOGDIR steps=0", "number_of_steps"),
                ("logdir=LOGDIR steps=-1", "number_of_steps"), ("logdir=LOGDIR sync=0", "sync_optimizer"),
                ("op=none summary=none steps=0", "train_op"), ("summary=none saver=1 trace=2", "summary_op"),
                ("saver=1 trace=2 steps=0", "saver"), ("trace=2 sync=0 delay=2", "trace_every_n_steps"),
                ("sync=0 delay=2 steps=0", "startup_delay_steps"), ("sync=0 steps=0", "number_of_steps")):
            said = self.check(options, log=False)
            self.assertRegex(said[-1], "^INVALID_ARGUMENT: %s:" % names)
            self.assertFalse(os.path.exists(os.path.join(self.folder, "ours")), options)

    def test_a_trace_without_a_place(self):
        self.assertIn("logdir", self.check("logdir=LOGDIR summaries=0 kwargs=trace", log=False)[-1])

    def test_nothing_initializes(self):
        self.check("logdir=LOGDIR steps=2 init=none", log=False)

    def test_what_is_not_ready(self):
        said = self.check("logdir=LOGDIR steps=2 ready=some/name", log=False)
        self.assertIn("some/name", said[-1])
        self.check("logdir=LOGDIR steps=2 summaries=0 ready=none")

    def test_zz_there_were_many(self):
        self.assertGreaterEqual(type(self).settings, 40)


if __name__ == "__main__":
    SLIM_SCRIPT = os.path.abspath(sys.argv.pop(1))
    unittest.main()
