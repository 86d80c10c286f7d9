"""A whole run together with TensorFlow: it starts from TensorFlow's checkpoint, TensorFlow continues from ours, TensorBoard
reads its events.

Argument: lockstep_main, the program.
"""
import csv
import glob
import os
import subprocess
import sys
import tempfile
import unittest

os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import numpy as np
import tensorflow as tf
from tensorboard.backend.event_processing import event_accumulator

tf1 = tf.compat.v1
LOCKSTEP = None

CONFIG = """
model {
  layer { name: "hidden" dense { units: 7 activation: RELU } }
  layer { name: "logits" dense { units: 3 } }
  loss { softmax_cross_entropy {} }
}
input {
  split { name: "train" csv { file: "train.csv" %(columns)s } }
  split { name: "test" csv { file: "train.csv" %(columns)s } }
  batch_size: 10
}
optimizer { momentum { momentum: 0.9 } learning_rate { initial: 0.1 } }
training { steps: 20 replicas_to_aggregate: 2 seed: 1 }
checkpoint { every_steps: 5 }
summary { every_steps: 1 }
""" % {"columns": " ".join('column { name: "f%d" }' % i for i in range(5)) + ' column { name: "label" type: LABEL }'}


class RunTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
        self.logdir = os.path.join(self.folder, "run")
        rng = np.random.default_rng(3)
        self.features = rng.standard_normal((60, 5)).astype(np.float32)
        labels = rng.integers(0, 3, 60)
        with open(os.path.join(self.folder, "train.csv"), "w") as f:
            f.write("f0,f1,f2,f3,f4,label\n")
            for row, label in zip(self.features, labels):
                f.write(",".join(repr(float(x)) for x in row) + ",%d\n" % label)
        with open(os.path.join(self.folder, "run.textproto"), "w") as f:
            f.write(CONFIG)

    def lockstep(self, command, *arguments):
        result = subprocess.run([LOCKSTEP, command, *arguments], cwd=self.folder, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True)
        self.assertEqual(result.returncode, 0, result.stdout)
        return result.stdout

    def train(self, *flags):
        return self.lockstep("local", "run.textproto", "--logdir=" + self.logdir, *flags)

    def test_starts_from_a_checkpoint_of_tensorflow(self):
        prefix = os.path.join(self.folder, "theirs")
        with tf.Graph().as_default(), tf1.Session() as session:
            shapes = {"hidden/kernel": [5, 7], "hidden/bias": [7], "logits/kernel": [7, 3]}  # no logits/bias
            for name, shape in shapes.items():
                tf1.get_variable(name, shape, initializer=tf1.random_normal_initializer(seed=5))
            tf1.train.get_or_create_global_step()
            session.run(tf1.global_variables_initializer())
            tf1.train.Saver().save(session, prefix)
        # A step at this rate changes no bit of a value.
        said = self.train("--steps=1", "--set=optimizer.learning_rate.initial=1e-30",
                          "--set=checkpoint.warm_start=" + prefix)
        theirs, ours = (tf.train.load_checkpoint(p) for p in (prefix, os.path.join(self.logdir, "model.ckpt-1")))
        for name in shapes:
            np.testing.assert_array_equal(ours.get_tensor(name), theirs.get_tensor(name), name)
        self.assertEqual(ours.get_tensor("global_step"), 1, "the run's own, not the other's")
        self.assertIn("logits/bias", said, "the one that it lacks")

    def test_tensorflow_agrees_with_our_variables(self):
        self.train()
        answers = os.path.join(self.folder, "answers.csv")
        self.lockstep("predict", "--logdir=" + self.logdir, "--output=" + answers)
        with open(answers) as f:
            ours = np.array([[float(row["output_%d" % i]) for i in range(3)] for row in csv.DictReader(f)])
        with tf.Graph().as_default(), tf1.Session() as session:
            hidden = tf.nn.relu(self.features @ tf1.get_variable("hidden/kernel", [5, 7]) +
                                tf1.get_variable("hidden/bias", [7]))
            logits = hidden @ tf1.get_variable("logits/kernel", [7, 3]) + tf1.get_variable("logits/bias", [3])
            tf1.train.Saver().restore(session, tf.train.latest_checkpoint(self.logdir))
            theirs = session.run(logits)
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)

    def test_tensorflow_trains_on_with_our_slots(self):
        self.train()
        with tf.Graph().as_default(), tf1.Session() as session:
            for name, shape in [("hidden/kernel", [5, 7]), ("hidden/bias", [7]), ("logits/kernel", [7, 3]),
                                ("logits/bias", [3])]:
                tf1.get_variable(name, shape)
            step = tf1.train.get_or_create_global_step()
            loss = tf.add_n([tf.reduce_sum(v) for v in tf1.trainable_variables()])
            train = tf1.train.MomentumOptimizer(0.1, 0.9).minimize(loss, global_step=step)
            saver = tf1.train.Saver()
            saver.restore(session, tf.train.latest_checkpoint(self.logdir))  # fails if a slot is missing
            self.assertEqual(session.run(step), 20)
            slots = [v for v in tf1.global_variables() if v.op.name.endswith("/Momentum")]
            self.assertEqual(len(slots), 4)
            self.assertTrue(all(np.abs(session.run(v)).max() > 0 for v in slots))
            session.run(train)
            self.assertEqual(session.run(step), 21)

    def test_tensorflow_restores_the_slots_of_groups(self):
        groups = ("--set=optimizer={adam {} learning_rate { initial: 0.01 } clip { mean_by_global_norm: 0.5 } "
                  "group { variables: 'bias$' optimizer { adam { beta1: 0.5 } } } "
                  "group { variables: '^logits/kernel' optimizer { adagrad {} } rate_factor: 2 }}")
        self.train("--steps=12", groups)
        self.train("--steps=20", groups)
        resumed = tf.train.load_checkpoint(tf.train.latest_checkpoint(self.logdir))
        with tf.Graph().as_default(), tf1.Session() as session:
            shapes = {"hidden/kernel": [5, 7], "hidden/bias": [7], "logits/kernel": [7, 3], "logits/bias": [3]}
            v = {name: tf1.get_variable(name, shape) for name, shape in shapes.items()}
            step = tf1.train.get_or_create_global_step()
            ones = lambda *names: [(tf.ones_like(v[name]), v[name]) for name in names]
            tf1.train.AdamOptimizer().apply_gradients(ones("hidden/kernel"))
            tf1.train.AdamOptimizer(beta1=0.5).apply_gradients(ones("hidden/bias", "logits/bias"))
            tf1.train.AdagradOptimizer(0.1).apply_gradients(ones("logits/kernel"))
            names = {variable.op.name for variable in tf1.global_variables()}
            self.assertEqual(names, set(resumed.get_variable_to_shape_map()))
            tf1.train.Saver().restore(session, tf.train.latest_checkpoint(self.logdir))
            self.assertEqual(session.run(step), 20)
        self.assertAlmostEqual(resumed.get_tensor("beta1_power"), 0.9 ** 21, places=6)
        self.assertAlmostEqual(resumed.get_tensor("beta1_power_1"), 0.5 ** 21, places=9)
        self.logdir += "-undisturbed"
        self.train("--steps=20", groups)
        undisturbed = tf.train.load_checkpoint(tf.train.latest_checkpoint(self.logdir))
        for name in names:
            np.testing.assert_array_equal(resumed.get_tensor(name), undisturbed.get_tensor(name), name)

    def test_tensorboard_shows_a_resumed_run(self):
        self.train("--steps=12")
        self.train("--steps=20")
        files = sorted(glob.glob(os.path.join(self.logdir, "events.out.tfevents.*")))
        self.assertEqual(len(files), 2)
        starts, saved = [], []
        for path in files:
            events = list(tf1.train.summary_iterator(path))
            self.assertEqual(events[0].file_version, "brain.Event:2")
            for event in events:
                if event.session_log.status == tf1.SessionLog.START:
                    starts.append(event.step)
                elif event.session_log.status == tf1.SessionLog.CHECKPOINT:
                    saved.append((event.step, os.path.basename(event.session_log.checkpoint_path)))
        self.assertEqual(starts, [0, 13])
        # With such short steps, some checkpoints are left out because they were due while another was being written.
        self.assertEqual(saved, [(step, "model.ckpt-%d" % step) for step, _ in saved])
        self.assertEqual([step for step, _ in saved if step in (12, 20)], [12, 20])
        self.assertLessEqual({step for step, _ in saved}, {0, 5, 10, 12, 15, 20})
        accumulator = event_accumulator.EventAccumulator(self.logdir)
        accumulator.Reload()
        # TensorBoard drops everything at or after the step of a START.
        self.assertEqual([s.step for s in accumulator.Scalars("loss")], list(range(1, 21)))
        rates = accumulator.Scalars("global_step/sec")
        self.assertTrue(rates and all(r.value > 0 for r in rates))


if __name__ == "__main__":
    LOCKSTEP = os.path.abspath(sys.argv[1])
    unittest.main(argv=sys.argv[:1], verbosity=2)
