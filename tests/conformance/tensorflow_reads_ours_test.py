"""TensorFlow and TensorBoard read our files; we read TensorFlow's.

Arguments: write_sample, dump_checkpoint (paths of the programs).
"""
import glob
import hashlib
import os
import struct
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
WRITE_SAMPLE = None
DUMP_CHECKPOINT = None


def digest(prefix):
    """The digest of common/checkpoint/digest.h, computed from what TensorFlow reads."""
    reader = tf.train.load_checkpoint(prefix)
    types = reader.get_variable_to_dtype_map()
    sha = hashlib.sha256()
    for name in sorted(types, key=lambda n: n.encode()):
        value = np.asarray(reader.get_tensor(name))
        fields = [name.encode(), types[name].name.encode(), struct.pack("<%dq" % value.ndim, *value.shape),
                  value.tobytes()]
        for field in fields:
            sha.update(struct.pack("<Q", len(field)) + field)
    return sha.hexdigest()


def dump(prefix):
    """Returns the output of our reader: {name: (dtype, shape, bytes)} and the digest."""
    result = subprocess.run([DUMP_CHECKPOINT, prefix], stdout=subprocess.PIPE, check=True, text=True)
    *lines, found = result.stdout.splitlines()
    variables = {}
    for line in lines:
        name, dtype, shape, size = line.split(" ")
        variables[name] = (dtype, shape, int(size))
    return variables, found


class ReadsOursTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.logdir = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
        subprocess.run([WRITE_SAMPLE, cls.logdir], check=True)

    def test_state_file(self):
        state = tf.train.get_checkpoint_state(self.logdir)
        paths = [os.path.join(self.logdir, "model.ckpt-%d" % step) for step in (3, 4)]
        self.assertEqual(state.model_checkpoint_path, paths[1])
        self.assertEqual(list(state.all_model_checkpoint_paths), paths)
        self.assertEqual(tf.train.latest_checkpoint(self.logdir), paths[1])
        self.assertFalse(tf1.train.checkpoint_exists(os.path.join(self.logdir, "model.ckpt-2")))

    def test_checkpoints(self):
        for step in (3, 4):  # 4 was saved twice: its data file is 00000-of-00002.
            prefix = os.path.join(self.logdir, "model.ckpt-%d" % step)
            reader = tf1.train.NewCheckpointReader(prefix)
            ramp = np.arange(12, dtype=np.float32).reshape(3, 4)
            np.testing.assert_array_equal(reader.get_tensor("hidden1/kernel"), ramp + step)
            np.testing.assert_array_equal(reader.get_tensor("hidden1/kernel/Momentum"), ramp - step)
            self.assertEqual(reader.get_tensor("global_step"), step)
            self.assertEqual(reader.get_tensor("global_step").dtype, np.int64)
            np.testing.assert_array_equal(reader.get_tensor("large").ravel(), np.arange(1000000, dtype=np.float32))
            self.assertEqual(reader.get_tensor("none").shape, (0, 7))
            self.assertEqual(reader.get_tensor("flags").tolist(), [True, False])
            self.assertEqual(dump(prefix)[1], digest(prefix))

    def test_saver_restores(self):
        with tf.Graph().as_default(), tf1.Session() as session:
            kernel = tf1.get_variable("hidden1/kernel", [3, 4])
            global_step = tf1.train.get_or_create_global_step()
            tf1.train.Saver().restore(session, tf.train.latest_checkpoint(self.logdir))
            self.assertEqual(session.run(global_step), 4)
            self.assertEqual(session.run(kernel)[0, 0], 4.0)

    def test_wide_checkpoint_has_the_same_bytes(self):
        count = 12000
        theirs = os.path.join(self.logdir, "theirs")
        tf.raw_ops.SaveV2(prefix=theirs, tensor_names=["layer%05d/kernel" % i for i in range(count)],
                          shape_and_slices=[""] * count,
                          tensors=[np.array([[i, i + 1]], np.float32) for i in range(count)])
        for suffix in (".index", ".data-00000-of-00001"):
            with open(theirs + suffix, "rb") as a, open(os.path.join(self.logdir, "wide-1" + suffix), "rb") as b:
                self.assertTrue(a.read() == b.read(), suffix)
        self.assertGreater(os.path.getsize(theirs + ".index"), 300000, "not more than one block")

    def test_events(self):
        paths = glob.glob(os.path.join(self.logdir, "events.out.tfevents.*"))
        self.assertEqual(len(paths), 1)
        events = list(tf1.train.summary_iterator(paths[0]))
        self.assertEqual(events[0].file_version, "brain.Event:2")
        self.assertEqual(len(events), 1 + 1 + 25 + 2)
        self.assertEqual(events[1].session_log.status, tf1.SessionLog.START)
        self.assertEqual(events[-2].session_log.checkpoint_path, "model.ckpt-25")
        self.assertEqual(events[-1].session_log.status, tf1.SessionLog.STOP)

    def test_tensorboard(self):
        accumulator = event_accumulator.EventAccumulator(self.logdir, size_guidance={event_accumulator.HISTOGRAMS: 0})
        accumulator.Reload()
        scalars = accumulator.Scalars("loss")
        self.assertEqual([s.step for s in scalars], list(range(1, 26)))
        self.assertAlmostEqual(scalars[3].value, 0.25)
        histograms = accumulator.Histograms("weights")
        self.assertEqual([h.step for h in histograms], [10, 20])
        self.assertEqual(histograms[0].histogram_value.num, 100)
        self.assertEqual(histograms[0].histogram_value.min, -50)

    def test_images(self):
        accumulator = event_accumulator.EventAccumulator(self.logdir)
        accumulator.Reload()
        for channels in (1, 2, 3, 4):
            image, = accumulator.Images("image%d" % channels)
            self.assertEqual((image.step, image.height, image.width), (25, 30, 40))
            pixels = tf.io.decode_png(image.encoded_image_string).numpy()
            wanted = np.arange(30 * 40 * channels, dtype=np.int64) ** 2 % 251
            np.testing.assert_array_equal(pixels, wanted.reshape(30, 40, channels))

    def test_histogram_is_tensorflows(self):
        path, = glob.glob(os.path.join(self.logdir, "events.out.tfevents.*"))
        ours = [v.histo for e in tf1.train.summary_iterator(path) for v in e.summary.value if v.tag == "weights"][0]
        with tf.Graph().as_default(), tf1.Session() as session:
            values = tf.constant(np.arange(-50, 50, dtype=np.float32))
            theirs = tf1.Summary.FromString(session.run(tf1.summary.histogram("weights", values))).value[0].histo
        self.assertEqual(ours, theirs)


class ReadsTheirsTest(unittest.TestCase):
    def setUp(self):
        self.prefix = os.path.join(tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR")), "model.ckpt-5")

    def check(self):
        variables, found = dump(self.prefix)
        reader = tf.train.load_checkpoint(self.prefix)
        types = reader.get_variable_to_dtype_map()
        self.assertEqual(sorted(variables), sorted(types))
        for name, (dtype, shape, size) in variables.items():
            value = np.asarray(reader.get_tensor(name))
            self.assertEqual(dtype, types[name].name)
            self.assertEqual(shape, "[" + ",".join(map(str, value.shape)) + "]")
            self.assertEqual(size, value.nbytes)
        self.assertEqual(found, digest(self.prefix))

    def test_every_type(self):
        types = [tf.float32, tf.float64, tf.int32, tf.uint8, tf.int16, tf.int8, tf.int64, tf.bool, tf.bfloat16,
                 tf.uint16, tf.half, tf.uint32, tf.uint64]
        tf.raw_ops.SaveV2(prefix=self.prefix, tensor_names=[t.name for t in types], shape_and_slices=[""] * len(types),
                          tensors=[tf.cast(tf.reshape(tf.range(24), [2, 3, 4]), t) for t in types])
        self.check()

    def test_partitions(self):
        rng = np.random.default_rng(1)
        with tf.Graph().as_default(), tf1.Session() as session:
            for name, shape, parts in [("rows", [10007, 3], [7, 1]), ("columns", [3, 101], [1, 4]),
                                       ("cube", [2, 9, 5], [1, 3, 1])]:
                value = tf.constant(rng.standard_normal(shape).astype(np.float32))
                tf1.get_variable(name, initializer=value, use_resource=False,
                                 partitioner=lambda parts=parts, **_: parts)
            session.run(tf1.global_variables_initializer())
            tf1.train.Saver().save(session, self.prefix)
        self.check()

    def test_saver_of_a_graph(self):
        with tf.Graph().as_default(), tf1.Session() as session:
            weights = tf1.get_variable("weights", [20, 30])
            step = tf1.train.get_or_create_global_step()
            train = tf1.train.AdamOptimizer().minimize(tf.reduce_sum(weights**2), global_step=step)
            session.run(tf1.global_variables_initializer())
            session.run(train)
            tf1.train.Saver().save(session, self.prefix)
        self.check()
        self.assertIn("weights/Adam_1", dump(self.prefix)[0])


if __name__ == "__main__":
    WRITE_SAMPLE, DUMP_CHECKPOINT = sys.argv[1:3]
    unittest.main(argv=sys.argv[:1], verbosity=2)
