#!/usr/bin/env python3
"""Writes v1_checkpoint.ckpt, a checkpoint in TensorFlow's format V1.

    python3 tests/golden/v1_checkpoint.py tests/golden/v1_checkpoint.ckpt
"""

import os
import sys

import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1


def main():
    with tf.Graph().as_default(), tf1.Session() as session:
        tf1.get_variable("net/weights", initializer=np.array([[0.5, -1, 2], [3.25, 0, 7]], np.float32))
        tf1.get_variable("net/parts", shape=[10], partitioner=tf1.fixed_size_partitioner(3),
                         initializer=lambda shape, dtype, partition_info: tf.range(
                             float(partition_info.var_offset[0]), float(partition_info.var_offset[0] + shape[0])))
        tf1.get_variable("global_step", initializer=np.int64(-1234567890123))
        tf1.get_variable("ints", initializer=np.array([1, -2, 300], np.int32))
        tf1.get_variable("double", initializer=np.float64(0.1))
        tf1.get_variable("text", initializer=tf.constant("hello"))
        session.run(tf1.global_variables_initializer())
        saver = tf1.train.Saver(write_version=tf1.train.SaverDef.V1)
        path = saver.save(session, sys.argv[1] + ".tmp", write_meta_graph=False, write_state=False)
        os.replace(path, sys.argv[1])


if __name__ == "__main__":
    main()
