"""Our model starts from a checkpoint written by tf-slim.

Argument: lockstep_main, the program.
"""
import os
import subprocess
import sys
import tempfile
import unittest

os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import numpy as np
import tensorflow as tf
import tf_slim as slim
from tensorflow.python.framework import ops

tf1 = tf.compat.v1
ops.Tensor = tf.Tensor  # tf-slim looks for it there.
LOCKSTEP = None

CONFIG = r"""
model {
  layer { name: "conv1" conv2d { filters: 4 kernel: 3 padding: SAME no_bias: true } }
  layer { name: "bn1" batch_norm { activation: RELU decay: 0.9999999 } }
  layer { name: "flat" flatten {} }
  layer { name: "fc1" dense { units: 5 activation: RELU } }
  layer { name: "logits" dense { units: 2 } }
  loss { softmax_cross_entropy {} }
}
input {
  split { name: "train" synthetic { shape: 6 shape: 6 shape: 1 classes: 2 examples: 40 } }
  batch_size: 4
}
optimizer { sgd {} learning_rate { initial: 1e-30 } }
training { steps: 1 seed: 1 }
checkpoint {
  warm_start: "theirs"
  warm_start_variables {
    exclude: "logits"
    rename { variable: "bn(\\d)/(.*)" key: "conv\\1/BatchNorm/\\2" }
    rename { variable: "(.*)/kernel" key: "\\1/weights" }
    rename { variable: "(.*)/bias" key: "\\1/biases" }
    require_all: true
    reshape: true
  }
}
"""

# Our name, their name. A step at the rate used changes no bit of a trained value, and hardly changes the moving
# averages.
LOADED = {
    "conv1/kernel": "conv1/weights",
    "bn1/beta": "conv1/BatchNorm/beta",
    "bn1/gamma": "conv1/BatchNorm/gamma",
    "bn1/moving_mean": "conv1/BatchNorm/moving_mean",
    "bn1/moving_variance": "conv1/BatchNorm/moving_variance",
    "fc1/kernel": "fc1/weights",
    "fc1/bias": "fc1/biases",
}


class SlimCheckpointTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
        self.theirs = os.path.join(self.folder, "theirs")
        self.logdir = os.path.join(self.folder, "run")
        with open(os.path.join(self.folder, "run.textproto"), "w") as f:
            f.write(CONFIG)

    # Makes the variables of slim.conv2d, slim.batch_norm and slim.fully_connected with slim's own functions. slim's
    # convolution and dense layer themselves need a Keras that this TensorFlow no longer has.
    def write(self, fc_weights):
        random = tf1.random_normal_initializer(seed=3)
        with tf.Graph().as_default(), tf1.Session() as session:
            images = tf.ones([1, 6, 6, 1])
            with tf1.variable_scope("conv1"):
                kernel = slim.model_variable("weights", [3, 3, 1, 4], initializer=random)
                slim.batch_norm(tf.nn.conv2d(images, kernel, 1, "SAME"), scale=True, updates_collections=None,
                                param_initializers={name: random for name in
                                                    ["beta", "gamma", "moving_mean", "moving_variance"]})
            with tf1.variable_scope("fc1"):
                slim.model_variable("weights", fc_weights, initializer=random)
                slim.model_variable("biases", [5], initializer=random)
            slim.get_or_create_global_step()
            session.run(tf1.global_variables_initializer())
            tf1.train.Saver(slim.get_variables_to_restore()).save(session, self.theirs)

    def lockstep(self, command, *arguments):
        return subprocess.run([LOCKSTEP, command, "run.textproto", *arguments], cwd=self.folder, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True)

    def test_starts_our_model(self):
        self.write([144, 5])
        result = self.lockstep("local", "--logdir=" + self.logdir)
        self.assertEqual(result.returncode, 0, result.stdout)
        theirs, ours = (tf.train.load_checkpoint(p) for p in (self.theirs, os.path.join(self.logdir, "model.ckpt-1")))
        for name, key in LOADED.items():
            if "moving" in name:
                np.testing.assert_allclose(ours.get_tensor(name), theirs.get_tensor(key), 1e-5, 1e-4, err_msg=name)
            else:
                np.testing.assert_array_equal(ours.get_tensor(name), theirs.get_tensor(key), name)
            self.assertIn("from " + key, result.stdout)
        self.assertIn("7 of 9 variables", result.stdout)
        self.assertIn("not to be loaded: logits/kernel, logits/bias", result.stdout)

    def test_reshapes_when_asked_to(self):
        self.write([6, 6, 4, 5])
        result = self.lockstep("local", "--logdir=" + self.logdir)
        self.assertEqual(result.returncode, 0, result.stdout)
        theirs, ours = (tf.train.load_checkpoint(p) for p in (self.theirs, os.path.join(self.logdir, "model.ckpt-1")))
        np.testing.assert_array_equal(ours.get_tensor("fc1/kernel"), theirs.get_tensor("fc1/weights").reshape(144, 5))
        strict = self.lockstep("check", "--set=checkpoint.warm_start_variables.reshape=false")
        self.assertEqual(strict.returncode, 2, strict.stdout)
        self.assertIn("fc1/weights is float32[6,6,4,5], the model declares float32[144,5]", strict.stdout)

    def test_reports_what_is_missing_before_starting(self):
        self.write([144, 5])
        with open(os.path.join(self.folder, "run.textproto"), "w") as f:
            f.write(CONFIG.replace('exclude: "logits"', ""))
        for command in ["check", "local"]:
            result = self.lockstep(command)
            self.assertEqual(result.returncode, 2, result.stdout)
            self.assertIn("lacks logits/kernel (logits/weights), logits/bias (logits/biases)", result.stdout)


if __name__ == "__main__":
    LOCKSTEP = os.path.abspath(sys.argv.pop(1))
    unittest.main()
