"""TensorBoard reads every kind of summary of a run, which has a chief and two worker processes.

Argument: summary_script (path of the program).
"""
import collections
import glob
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from tensorboard.backend.event_processing import event_accumulator, event_file_loader

SCRIPT = None
STEPS = 40
VARIABLES = 50
LIMIT = 120


def read(logdir):
    accumulator = event_accumulator.EventAccumulator(
        logdir, size_guidance={kind: 0 for kind in (event_accumulator.SCALARS, event_accumulator.HISTOGRAMS,
                                                    event_accumulator.IMAGES)})
    accumulator.Reload()
    return accumulator


def steps_of(events):
    return [event.step for event in events]


class Cluster:
    """A chief and two workers of a run."""

    def __init__(self, api, steps):
        self.folder = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
        self.logdir = os.path.join(self.folder, "run")
        self.api, self.steps = api, steps
        self.chief = self.start("chief")
        self.workers = [self.start("worker-%d" % i) for i in range(2)]

    def start(self, role):
        command = [SCRIPT, role, self.api, self.logdir, os.path.join(self.folder, "address"), str(self.steps)]
        with open(os.path.join(self.folder, role + ".log"), "ab") as log:
            return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)

    def finish(self):
        """Returns the exit codes, the chief's first, and what each worker printed."""
        printed = [worker.communicate(timeout=LIMIT)[0].splitlines() for worker in self.workers]
        self.chief.communicate(timeout=LIMIT)
        return [process.returncode for process in [self.chief] + self.workers], printed

    def logs(self):
        texts = []
        for path in sorted(glob.glob(os.path.join(self.folder, "*.log"))):
            with open(path) as log:
                texts.append("==== %s\n%s" % (os.path.basename(path), "".join(log.readlines()[-40:])))
        return "".join(texts)

    def close(self):
        for process in [self.chief] + self.workers:
            process.kill()
            process.wait()


class SummariesTest(unittest.TestCase):
    def run_cluster(self, api):
        cluster = Cluster(api, STEPS)
        self.addCleanup(cluster.close)
        codes, printed = cluster.finish()
        if any(codes):
            self.fail("exit codes %s\n%s" % (codes, cluster.logs()))
        return read(cluster.logdir), printed

    def check_library(self, events):
        """Checks the chief's scalars and the gradients' summaries, with their periods."""
        for tag in ("learning_rate", "global_norm/gradient_norm", "update_ratio", "examples/sec"):
            self.assertEqual(steps_of(events.Scalars(tag)), list(range(5, STEPS + 1, 5)), tag)
        self.assertAlmostEqual(events.Scalars("learning_rate")[0].value, 0.01, places=6)
        self.assertGreater(events.Scalars("examples/sec")[0].value, 0)
        begun = list(range(1, STEPS + 1, 10))
        histograms = [tag for tag in events.Tags()["histograms"] if tag.endswith("/gradient")]
        self.assertEqual(len(histograms), VARIABLES)
        for tag in histograms:
            self.assertEqual(steps_of(events.Histograms(tag)), begun, tag)
            norms = events.Scalars(tag + "_norm")
            self.assertEqual(steps_of(norms), begun, tag)
            for norm in norms:
                self.assertLess(norm.value, 0.00101, "%s is larger than the optimizer's clip" % tag)
        self.assertEqual(events.Histograms("h0/kernel/gradient")[0].histogram_value.num, 8 * 32)

    def check_workers(self, events, printed):
        """Checks that each summary that was reported to a worker as accepted is present, at the step that it
        specified."""
        self.assertTrue(any(printed), "no worker wrote a summary")
        for index, lines in enumerate(printed):
            accepted = collections.defaultdict(list)
            for line in lines:
                kind, step = line.split()
                accepted[kind].append(int(step))
            for kind, steps in accepted.items():
                found = steps_of(events.Scalars("worker-%d/%s" % (index, kind)))
                self.assertEqual(collections.Counter(found), collections.Counter(steps))

    def test_supervisor(self):
        events, printed = self.run_cluster("supervisor")
        self.check_library(events)
        self.check_workers(events, printed)
        weights, = events.Histograms("weights")
        self.assertEqual((weights.step, weights.histogram_value.num), (3, 3))
        picture, = events.Images("picture")
        self.assertEqual((picture.step, picture.height, picture.width), (3, 1, 2))
        loss = steps_of(events.Scalars("loss"))
        self.assertTrue(loss and set(loss) <= set(range(1, STEPS + 1)))
        self.assertEqual(len(loss), len(set(loss)), "the Supervisor and the chief both wrote a step's loss")
        self.assertGreater(len(events.Scalars("global_step/sec")), 0)

    def test_monitored_session(self):
        events, printed = self.run_cluster("monitored")
        self.check_library(events)
        self.check_workers(events, printed)
        self.assertEqual(steps_of(events.Scalars("loss")), list(range(1, STEPS + 1)))

    def test_slim(self):
        self.check_library(self.run_cluster("slim")[0])

    def test_estimator(self):
        events, _ = self.run_cluster("estimator")
        self.check_library(events)
        self.assertEqual(steps_of(events.Scalars("loss")), list(range(1, STEPS + 1)))

    def kill_chief(self):
        """Returns a cluster whose chief was killed, its newest checkpoint's step, and the steps of the losses so
        far."""
        cluster = Cluster("monitored", 400)
        self.addCleanup(cluster.close)
        while not glob.glob(os.path.join(cluster.logdir, "model.ckpt-2?.index")):
            self.assertIsNone(cluster.chief.poll(), "see %s" % cluster.folder)
            time.sleep(0.001)
        cluster.chief.send_signal(signal.SIGKILL)
        cluster.chief.wait()
        with open(os.path.join(cluster.logdir, "checkpoint")) as state:
            saved = int(state.readline().strip().rstrip('"').rsplit("-", 1)[1])
        path, = glob.glob(os.path.join(cluster.logdir, "events.out.tfevents.*"))
        losses = [event.step for event in event_file_loader.EventFileLoader(path).Load()
                  for value in event.summary.value if value.tag == "loss"]
        return cluster, saved, losses

    def test_restart(self):
        """TensorBoard drops no valid point when a killed chief is back."""
        for _ in range(10):
            cluster, saved, losses = self.kill_chief()
            if saved in losses:
                break
        self.assertIn(saved, losses, "the kill came before the events of the checkpoint in ten runs")
        cluster.chief = cluster.start("chief")
        codes, _ = cluster.finish()
        if any(codes):
            self.fail("exit codes %s\n%s" % (codes, cluster.logs()))
        shown = set(steps_of(read(cluster.logdir).Scalars("loss")))
        self.assertLessEqual({step for step in losses if step <= saved}, shown)
        self.assertLessEqual(set(range(saved + 1, 401)), shown)


if __name__ == "__main__":
    SCRIPT = sys.argv[1]
    unittest.main(argv=sys.argv[:1], verbosity=2)
