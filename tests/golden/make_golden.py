#!/usr/bin/env python3
"""Writes the golden files next to this script, with TensorFlow 2.21. They record its file formats.

Run it again only to add files. The existing files must stay readable forever.

  bundle/model.ckpt-7      one data file, every element type, a scalar, an empty tensor
  partitioned/model.ckpt-7 variables partitioned along either axis, over two data files
  object_graph/ckpt-1      tf.train.Checkpoint, which adds a string tensor
  events                   an event file with fixed times
"""
import os
import sys

os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1
HERE = os.path.dirname(os.path.abspath(__file__))

# (name, element type, shape); element i has the value i % 100 + 1, or i % 2 == 0 for booleans.
BUNDLE = [
    ("bfloat16", tf.bfloat16, [3]),
    ("bool", tf.bool, [5]),
    ("empty", tf.float32, [0, 4]),
    ("float16", tf.float16, [3]),
    ("float32", tf.float32, [2, 3]),
    ("float64", tf.float64, [2, 2]),
    ("global_step", tf.int64, []),
    ("hidden1/kernel", tf.float32, [4, 5]),
    ("hidden1/kernel/Momentum", tf.float32, [4, 5]),
    ("int16", tf.int16, [3]),
    ("int32", tf.int32, [3]),
    ("int8", tf.int8, [3]),
    ("uint16", tf.uint16, [3]),
    ("uint32", tf.uint32, [3]),
    ("uint64", tf.uint64, [3]),
    ("uint8", tf.uint8, [3]),
]


def values(dtype, shape):
    flat = np.arange(int(np.prod(shape)))
    if dtype == tf.bool:
        return (flat % 2 == 0).reshape(shape)
    return (flat % 100 + 1).reshape(shape).astype(dtype.as_numpy_dtype)


def directory(name):
    path = os.path.join(HERE, name)
    os.makedirs(path, exist_ok=True)
    return path


def keep_bundle_only(path):
    for name in os.listdir(path):
        if name == "checkpoint" or name.endswith(".meta"):
            os.remove(os.path.join(path, name))


def write_bundle():
    path = directory("bundle")
    names = [name for name, _, _ in BUNDLE]
    tensors = [tf.constant(values(dtype, shape), dtype) for _, dtype, shape in BUNDLE]
    tf.raw_ops.SaveV2(prefix=os.path.join(path, "model.ckpt-7"), tensor_names=names,
                      shape_and_slices=[""] * len(names), tensors=tensors)


def write_partitioned():
    path = directory("partitioned")
    with tf.Graph().as_default(), tf1.Session() as session:
        with tf.device("/cpu:0"):
            # Creates keys with row offsets that take one, two and three bytes in a slice.
            tf1.get_variable("rows", initializer=tf.constant(values(tf.int8, [9000, 1]), tf.int8), use_resource=False,
                             partitioner=lambda **_: [5, 1])
            tf1.get_variable("step", initializer=tf.constant(7, tf.int64))
        with tf.device("/cpu:1"):
            tf1.get_variable("columns", initializer=tf.constant(values(tf.float32, [3, 5])),
                             use_resource=False, partitioner=lambda **_: [1, 2])
        session.run(tf1.global_variables_initializer())
        tf1.train.Saver(sharded=True).save(session, os.path.join(path, "model.ckpt"), global_step=7)
    keep_bundle_only(path)


def write_object_graph():
    path = directory("object_graph")
    checkpoint = tf.train.Checkpoint(v=tf.Variable([1.0, 2.0]))
    checkpoint.save(os.path.join(path, "ckpt"))
    keep_bundle_only(path)


def write_events():
    value = tf1.Summary.Value
    histogram = tf1.HistogramProto(min=-1, max=2, num=4, sum=1.5, sum_squares=5.25,
                                   bucket_limit=[-1, 0, 0.5, 2], bucket=[1, 1, 1, 1])
    log = tf1.SessionLog
    events = [
        tf1.Event(wall_time=1577836800, file_version="brain.Event:2"),
        tf1.Event(wall_time=1577836800.5, step=3, session_log=log(status=log.START)),
        tf1.Event(wall_time=1577836801, step=3, summary=tf1.Summary(value=[value(tag="loss", simple_value=0.25)])),
        tf1.Event(wall_time=1577836802, step=4,
                  summary=tf1.Summary(value=[value(tag="weights", histo=histogram)])),
        tf1.Event(wall_time=1577836803, step=4,
                  session_log=log(status=log.CHECKPOINT, checkpoint_path="logdir/model.ckpt-4")),
        tf1.Event(wall_time=1577836804, step=5, session_log=log(status=log.STOP)),
    ]
    with tf.io.TFRecordWriter(os.path.join(HERE, "events")) as writer:
        for event in events:
            writer.write(event.SerializeToString(deterministic=True))


def main():
    tf.config.set_logical_device_configuration(
        tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 2)
    write_bundle()
    write_partitioned()
    write_object_graph()
    write_events()


if __name__ == "__main__":
    sys.exit(main())
