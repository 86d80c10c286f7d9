"""Compares our Supervisor with TensorFlow's on the same calls: the order of stops, the returned errors, the files.

Argument: supervisor_script, the program. Tests of deliberate differences say so (docs/differences.md).
"""
import glob
import os
import select
import subprocess
import sys
import tempfile
import threading
import time
import unittest

os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import tensorflow as tf

tf1 = tf.compat.v1
tf1.disable_v2_behavior()  # Its threads have another default graph, in which a resource variable cannot be read.
tf1.logging.set_verbosity(tf1.logging.FATAL)
SUPERVISOR_SCRIPT = None


class Failure(Exception):
    """The scripts' own error."""


CODES = [  # The other's error may have any of these codes.
    (tf.errors.OutOfRangeError, ("OUT_OF_RANGE",)), (tf.errors.DeadlineExceededError, ("DEADLINE_EXCEEDED",)),
    (Failure, ("INTERNAL",)), (ValueError, ("INVALID_ARGUMENT",)),
    (RuntimeError, ("FAILED_PRECONDITION", "DEADLINE_EXCEEDED")),  # The state is wrong, or threads hang.
]


def ending(end):
    if end == "fail":
        raise Failure("the script says so")
    if end == "range":
        raise tf.errors.OutOfRangeError(None, None, "the script says so")


class Theirs:
    """Runs a script of supervisor_script.cc with tf.compat.v1.train.Supervisor."""

    def __init__(self):
        self.out = []
        self.release = threading.Event()

    def run(self, script):
        try:
            with tf.Graph().as_default():
                for line in script:
                    words = [word for word in line.split() if "=" not in word]
                    values = dict(word.split("=", 1) for word in line.split() if "=" in word)
                    try:
                        getattr(self, words[0])(*words[1:], **values)
                        self.out.append(("OK",))
                    except Exception as e:  # pylint: disable=broad-except
                        codes = [codes for kind, codes in CODES if isinstance(e, kind)]
                        if not codes:
                            raise
                        self.out.append(codes[0])
        finally:
            self.release.set()
        return self.out

    def create(self, logdir=None, chief="1", master="", model="600", summaries="120", grace="120", recovery="30",
               summary=None, events="1", ready=None, initialize="1", local=None, local_ready=None, input_steps=None):
        self.logdir = logdir
        self.master = master
        with tf.device("/job:localhost/task:0" if master else None):  # A worker's variables require a device.
            self.step = tf1.train.get_or_create_global_step()
        inputs = []
        if input_steps is not None:
            inputs = [tf1.data.make_one_shot_iterator(tf.data.Dataset.range(int(input_steps))).get_next()]
        with tf.control_dependencies(inputs):
            self.train = tf1.assign_add(self.step, 1)
        tf1.summary.scalar("loss", 1.0)
        options = {}
        if summary == "none":
            options["summary_op"] = None
        if events == "0":
            options["summary_writer"] = None
        if ready is not None:
            options["ready_op"] = tf.constant([ready])
        if initialize == "0":
            options["init_op"] = None
        if local_ready is not None:
            options["ready_for_local_init_op"] = tf.constant([], tf.string)
        options["local_init_op"] = tf.no_op() if local is not None else None
        self.sv = tf1.train.Supervisor(
            is_chief=bool(int(chief)), logdir=logdir, save_model_secs=float(model),
            save_summaries_secs=float(summaries), stop_grace_secs=float(grace), recovery_wait_secs=float(recovery),
            **options)

    def prepare(self, services="1", wait="0", max_wait="7200"):
        services = bool(int(services))
        self.session = self.sv.prepare_or_wait_for_session(
            self.master, wait_for_checkpoint=wait != "0", max_wait_secs=float(max_wait),
            start_standard_services=services)
        # Our chief saves its first step before the next.
        if services and self.logdir and self.sv.save_model_secs:
            while not glob.glob(self.logdir + "/model.ckpt-*.index") and not self.sv.should_stop():
                time.sleep(0.001)

    def run_steps(self, count):
        for _ in range(int(count)):
            self.out.append("ran %d" % self.session.run(self.train))

    def loop(self, calls="1", end=None, interval="0.001"):
        left = [int(calls)]

        def call():
            left[0] -= 1
            if left[0] > 0:
                return
            if end == "stop":
                self.sv.request_stop()
            ending(end)

        self.sv.loop(float(interval), call)

    def thread(self):
        thread = threading.Thread(target=self.release.wait, daemon=True)
        self.sv.coord.register_thread(thread)
        thread.start()

    def wait(self):
        self.sv.wait_for_stop()

    def should_stop(self):
        self.out.append("%d" % self.sv.should_stop())

    def request_stop(self, end=None):
        try:
            ending(end)
            self.sv.request_stop()
        except (Failure, tf.errors.OpError) as e:
            self.sv.request_stop(e)

    def services(self):
        self.sv.start_standard_services(self.session)

    def summary(self):
        self.sv.summary_computed(self.session, tf1.Summary(), 1)

    def stop(self):
        self.sv.stop()

    def close(self):
        self.session.close()

    def managed(self, count, end=None, then=None):
        with self.sv.managed_session(self.master) as self.session:
            self.run_steps(count)
            if then is not None:
                self.request_stop(then)
            ending(end)


class SupervisorTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))

    def both(self, script):
        """Returns the output of both: steps, and the code of each command. LOGDIR stands for a separate directory of
        each."""
        printed = []
        for name in ("ours", "theirs"):
            lines = [line.replace("LOGDIR", os.path.join(self.folder, name)) for line in script]
            if name == "theirs":
                lines = [line.replace("run ", "run_steps ") if line.startswith("run ") else line for line in lines]
                printed.append(Theirs().run(lines))
                continue
            result = subprocess.run([SUPERVISOR_SCRIPT], input="\n".join(lines) + "\n", stdout=subprocess.PIPE,
                                    stderr=subprocess.PIPE, text=True, timeout=60)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.said = result.stdout.splitlines()
            printed.append([line.split(":")[0] for line in self.said])
        return printed

    def check(self, script):
        mine, others = self.both(script)
        self.assertEqual(len(mine), len(others), (mine, others))
        for one, other in zip(mine, others):
            self.assertTrue(one in other if isinstance(other, tuple) else one == other, (mine, others))
        return mine

    def records(self, name):
        found = []
        for path in sorted(glob.glob(os.path.join(self.folder, name, "events.*"))):
            for event in tf1.train.summary_iterator(path):
                if event.HasField("session_log"):
                    found.append((tf1.SessionLog.SessionStatus.Name(event.session_log.status), event.step))
                found += [(value.tag, event.step) for value in event.summary.value]
        return found

    def checkpoints(self, name):
        return sorted(int(path[:-len(".index")].rsplit("-", 1)[1])
                      for path in glob.glob(os.path.join(self.folder, name, "model.ckpt-*.index")))

    # Ends.

    def test_managed_session(self):
        for end in ("ok", "fail", "range"):
            with self.subTest(end):
                self.setUp()
                self.check(["create logdir=LOGDIR input_steps=5", "should_stop", "managed 3 end=" + end, "should_stop"])

    def test_the_input_ends(self):
        for count in (4, 9):
            self.check(["create input_steps=4", "managed %d" % count, "should_stop"])

    def test_a_thread_ends_it(self):
        for end in ("range", "stop"):
            for calls in (1, 3):
                with self.subTest((end, calls)):
                    self.check(["create", "prepare", "loop calls=%d end=%s" % (calls, end), "wait", "should_stop",
                                "stop", "close"])

    def test_a_thread_that_fails(self):
        """Deliberate difference: a failed session also returns the error when it is closed."""
        for calls in (1, 3):
            with self.subTest(calls):
                mine, others = self.both(["create", "prepare", "loop calls=%d end=fail" % calls, "wait", "should_stop",
                                          "stop", "close"])
                self.assertEqual((mine[-2], others[-2]), ("INTERNAL", ("INTERNAL",)))
                self.assertEqual((mine[-1], others[-1]), ("INTERNAL", ("OK",)))

    def test_threads_of_one_error(self):
        mine = self.check(["create", "prepare", "loop calls=2 end=fail", "loop calls=1000000 end=ok", "wait", "stop"])
        self.assertEqual(mine[-1], "INTERNAL")

    def test_the_stop_is_asked_for(self):
        for end in ("ok", "fail", "range"):
            self.check(["create input_steps=60", "prepare", "run 2", "should_stop", "request_stop end=" + end,
                        "should_stop", "wait", "stop"])

    def test_the_first_of_two_errors(self):
        self.check(["create", "prepare", "request_stop end=fail", "request_stop end=range", "stop"])

    def test_an_error_after_a_stop(self):
        """Deliberate difference: TensorFlow loses the error."""
        for first in ("ok", "range"):
            mine, others = self.both(["create", "prepare", "request_stop end=" + first, "request_stop end=fail",
                                      "stop"])
            self.assertEqual((mine[-1], others[-1]), ("INTERNAL", ("OK",)))

    def test_a_stop_and_an_error_of_the_body(self):
        """TensorFlow also loses the error if the body requests the stop and then fails."""
        mine, others = self.both(["create input_steps=60", "managed 2 then=ok end=fail"])
        self.assertEqual((mine[-1], others[-1]), ("INTERNAL", ("OK",)))
        self.check(["create input_steps=60", "managed 2 then=fail end=ok"])

    def test_used_again_after_a_stop(self):
        self.check(["create logdir=LOGDIR input_steps=8", "prepare", "stop", "should_stop", "prepare", "should_stop",
                    "stop", "close"])

    # The order of waits.

    def test_a_thread_that_does_not_end(self):
        for grace in ("0.001", "0.05"):
            self.check(["create grace=" + grace, "prepare", "thread", "request_stop", "stop"])
            self.assertIn("held", self.said[-1], "it is named")

    def test_a_worker_whose_chief_does_not_come(self):
        script = ["create chief=0 recovery=0.1 master=%s", "prepare max_wait=0.4"]
        server = tf1.train.Server.create_local_server()  # Nothing initializes its variables.
        self.assertEqual(Theirs().run([line.replace("%s", server.target) for line in script]),
                         [("OK",), ("DEADLINE_EXCEEDED",)])
        result = subprocess.run([SUPERVISOR_SCRIPT], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                timeout=60,
                                input="\n".join(script).replace("%s", "unix-abstract:nobody-%d" % os.getpid()) + "\n")
        self.assertEqual([line.split(":")[0] for line in result.stdout.splitlines()], ["OK", "DEADLINE_EXCEEDED"])

    def test_a_worker_waits_for_its_chief(self):
        server = tf1.train.Server.create_local_server()
        worker = Theirs()
        waiting = threading.Thread(target=worker.run, args=[[
            "create chief=0 recovery=0.05 master=" + server.target, "prepare", "run_steps 1"]])
        waiting.start()
        waiting.join(0.3)
        self.assertEqual(worker.out, [("OK",)], "there is no session yet")
        Theirs().run(["create master=" + server.target, "prepare", "run_steps 2"])
        waiting.join()
        self.assertEqual(worker.out[:2] + worker.out[3:], [("OK",), ("OK",), ("OK",)])
        self.assertRegex(worker.out[2], "^ran [123]$")  # Falls between the chief's steps.

        address = "unix-abstract:supervisor-test-%d" % os.getpid()
        start = lambda: subprocess.Popen([SUPERVISOR_SCRIPT], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                         stderr=subprocess.DEVNULL, text=True, bufsize=1)
        with start() as worker, start() as chief:
            worker.stdin.write("create chief=0 recovery=0.05 master=%s\nprepare\nrun 3\nstop\n" % address)
            self.assertEqual(worker.stdout.readline(), "OK\n")
            self.assertEqual(select.select([worker.stdout], [], [], 0.3)[0], [], "there is no session yet")
            chief.stdin.write("create workers=0 listen=%s\nprepare\nrun 3\n" % address)
            self.assertEqual([chief.stdout.readline() for _ in range(6)],
                             ["OK\n", "OK\n", "ran 1\n", "ran 2\n", "ran 3\n", "OK\n"])
            self.assertEqual([worker.stdout.readline() for _ in range(5)],
                             ["OK\n", "ran 1\n", "ran 2\n", "ran 3\n", "OK\n"])
            worker.stdin.close()
            chief.stdin.close()

    def test_what_is_not_ready(self):
        self.check(["create ready=w", "prepare"])
        self.assertIn("w", self.said[-1].split(":", 1)[1], "it is named")

    def test_a_checkpoint_that_does_not_come(self):
        """Deliberate difference: when the time is over, TensorFlow initializes, and fails only if something is
        still missing."""
        script = ["create logdir=LOGDIR recovery=0.1", "prepare wait=1 max_wait=0.2"]
        mine, others = self.both(script)
        self.assertEqual((mine[-1], others[-1]), ("DEADLINE_EXCEEDED", ("OK",)))

    # The files.

    def test_records(self):
        """START comes first and STOP last, and the first step is saved. Deliberate difference: only ours has the last
        step."""
        self.check(["create logdir=LOGDIR input_steps=6 summaries=0", "managed 9"])
        mine, others = self.records("ours"), self.records("theirs")
        self.assertEqual(mine, [("START", 0), ("CHECKPOINT", 0), ("CHECKPOINT", 6), ("STOP", mine[-1][1])])
        self.assertEqual([record[0] for record in others], ["START", "CHECKPOINT", "STOP"])
        self.assertEqual((self.checkpoints("ours"), self.checkpoints("theirs")), ([0, 6], [0]))

    def test_no_timer(self):
        """Deliberate difference: the first and the last step are saved even without a timer."""
        self.check(["create logdir=LOGDIR input_steps=3 model=0 summaries=0", "managed 9"])
        self.assertEqual((self.checkpoints("ours"), self.checkpoints("theirs")), ([0, 3], []))

    def test_summaries(self):
        """The rate from the start, and the loss, have the same tags."""
        self.check(["create logdir=LOGDIR summaries=0.02 input_steps=60", "prepare", "run 2",
                    "loop calls=20 end=stop interval=0.01", "wait", "run 1", "stop", "close"])
        for name in ("ours", "theirs"):
            tags = set(tag for tag, _ in self.records(name))
            self.assertLessEqual({"START", "STOP", "CHECKPOINT", "global_step/sec", "loss"}, tags, name)

    def test_nothing_without_a_logdir(self):
        self.check(["create input_steps=3", "managed 9"])
        self.assertEqual(os.listdir(self.folder), [])

    # Wrong calls and arguments.

    def test_wrong_calls(self):
        self.check(["create input_steps=3", "prepare services=0", "summary", "stop"])
        self.check(["create logdir=LOGDIR input_steps=3 events=0", "prepare services=0", "summary", "stop"])

    def test_local_init(self):
        self.check(["create local_ready=1"])
        self.assertIn("ready_for_local_init", self.said[-1])
        self.check(["create local=1 local_ready=1", "prepare", "stop"])

    def test_nothing_initializes(self):
        self.check(["create logdir=LOGDIR initialize=0", "prepare"])

    def test_arguments_that_are_ours_alone(self):
        """TensorFlow accepts them and does not wait, or waits forever."""
        for argument, text in (("model=-1", "save_model_period: -1s"), ("summaries=-1", "save_summaries_period: -1s"),
                               ("grace=-1", "stop_grace: -1s"), ("recovery=0", "recovery_wait: 0"),
                               ("chief=0", "master: "), ("master=grpc://a:1", "master: ")):
            with self.subTest(argument):
                mine, _ = self.both(["create logdir=LOGDIR " + argument])
                self.assertEqual(mine, ["INVALID_ARGUMENT"])
                self.assertIn(text, self.said[-1])
        self.assertFalse(os.path.exists(os.path.join(self.folder, "ours")))


if __name__ == "__main__":
    SUPERVISOR_SCRIPT = os.path.abspath(sys.argv.pop(1))
    unittest.main()
