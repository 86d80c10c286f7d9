#!/usr/bin/env python3
"""Writes nets_golden.txt: the logits of tf_slim's nets, scaled down in width, for weights computed by a formula. With
--full, writes nets_golden_full.txt: some logits of the nets with all filters and 1000 classes.

Each line has the name, width, image size, classes, and logits of two images. If there are fewer logits than the net
has, they are evenly spaced, beginning with the first. train/slim/nets/nets_test.cc makes the same weights and images.
Needs `pip install tensorflow tf-slim tf_keras`. tf_slim 1.1 lacks MobileNet v1, so it is built here from tf_slim's
layers, as in tensorflow/models.
"""

import sys
import zlib

import numpy as np
import tensorflow as tf
import tf_slim as slim
from tf_keras.src import legacy_tf_layers
from tf_keras.src.legacy_tf_layers import convolutional, core, normalization, pooling
from tf_slim.nets import inception_v1, resnet_utils, resnet_v1, vgg

tf1 = tf.compat.v1
# TensorFlow's legacy layers, on which tf_slim is built, look for this module where older releases had it.
sys.modules["tf_keras.legacy_tf_layers"] = legacy_tf_layers
for module in (convolutional, core, normalization, pooling):
    sys.modules[module.__name__.replace(".src", "")] = module
FULL = sys.argv[1:] == ["--full"]
CLASSES = 1000 if FULL else 7
SIZE = 224
MOST_LOGITS = 20


def numbers(name, count):
    x = (np.arange(count, dtype=np.uint64) * 2654435761 + zlib.crc32(name.encode())).astype(np.uint32)
    x ^= x >> np.uint32(16)
    x = x * np.uint32(0x7FEB352D)
    x ^= x >> np.uint32(15)
    return (x.view(np.int32) >> 8).astype(np.float32) / np.float32(8388608)


def value(name, shape):
    """Returns the value of a variable, given Lockstep's name for it."""
    name = name.replace("/depthwise_weights", "/kernel").replace("/weights", "/kernel").replace("/biases", "/bias")
    scale, offset = 0.3, 0
    kind = name.split("/")[-1]
    if kind == "kernel":
        outputs = shape[2] * shape[3] if "_depthwise/" in name else shape[3]
        scale = 2.4 / np.sqrt(float(int(np.prod(shape)) // outputs))
    elif kind in ("gamma", "moving_variance"):
        offset = 1
    return (np.float32(offset) + np.float32(scale) * numbers(name, int(np.prod(shape)))).reshape(shape)


def scaled(convolution, width, keep):
    """Returns a convolution with fewer filters, except in the scopes in `keep`."""

    def narrow(inputs, num_outputs, *args, **kwargs):
        if kwargs.get("scope") not in keep:
            num_outputs = max(1, int(num_outputs * width))
        return convolution(inputs, num_outputs, *args, **kwargs)

    # Keeps the name under which arg_scope knows the function.
    narrow._key_op = getattr(convolution, "_key_op", None)
    return narrow


def vgg_16(images, width):
    original = vgg.layers.conv2d
    vgg.layers.conv2d = scaled(original, width, ["fc8"])
    try:
        with slim.arg_scope(vgg.vgg_arg_scope()):
            return vgg.vgg_16(images, CLASSES, is_training=False)[0]
    finally:
        vgg.layers.conv2d = original


def inception(images, width):
    original = inception_v1.layers.conv2d
    inception_v1.layers.conv2d = scaled(original, width, ["Conv2d_0c_1x1"])
    try:
        with slim.arg_scope(inception_v1.inception_v1_arg_scope()):
            return inception_v1.inception_v1(images, CLASSES, is_training=False)[0]
    finally:
        inception_v1.layers.conv2d = original


def resnet(images, width):
    def depth(base):
        return max(1, int(base * width))

    original = resnet_utils.conv2d_same

    def conv2d_same(inputs, num_outputs, *args, **kwargs):
        if kwargs["scope"] == "conv1":
            num_outputs = depth(num_outputs)
        return original(inputs, num_outputs, *args, **kwargs)

    resnet_utils.conv2d_same = conv2d_same
    try:
        blocks = [resnet_v1.resnet_v1_block(f"block{i + 1}", depth(64 << i), units, 1 if i == 3 else 2)
                  for i, units in enumerate((3, 4, 6, 3))]
        with slim.arg_scope(resnet_v1.resnet_arg_scope()):
            logits, _ = resnet_v1.resnet_v1(images, blocks, CLASSES, is_training=False, scope="resnet_v1_50")
        return tf1.squeeze(logits, [1, 2])
    finally:
        resnet_utils.conv2d_same = original


def mobilenet(images, width):
    def depth(filters):
        return max(8, int(filters * width))

    layers = [(64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2)] + [(512, 1)] * 5 + [(1024, 2), (1024, 1)]
    normal = dict(decay=0.9997, epsilon=0.001, center=True, scale=True, is_training=False)
    with tf1.variable_scope("MobilenetV1"), slim.arg_scope(
        [slim.conv2d, slim.separable_conv2d], activation_fn=tf.nn.relu6, normalizer_fn=slim.batch_norm,
        normalizer_params=normal, padding="SAME"):
        net = slim.conv2d(images, depth(32), [3, 3], stride=2, scope="Conv2d_0")
        for i, (filters, stride) in enumerate(layers, 1):
            net = slim.separable_conv2d(net, None, [3, 3], depth_multiplier=1, stride=stride,
                                        scope=f"Conv2d_{i}_depthwise")
            net = slim.conv2d(net, depth(filters), [1, 1], stride=1, scope=f"Conv2d_{i}_pointwise")
        with tf1.variable_scope("Logits"):
            net = slim.avg_pool2d(net, [7, 7], padding="VALID")
            net = slim.conv2d(net, CLASSES, [1, 1], activation_fn=None, normalizer_fn=None, scope="Conv2d_1c_1x1")
        return tf1.squeeze(net, [1, 2])


def main():
    lines = []
    for name, build, width in (("vgg_16", vgg_16, 1 / 32), ("inception_v1", inception, 1 / 8),
                               ("resnet_v1_50", resnet, 1 / 16), ("mobilenet_v1", mobilenet, 1 / 4)):
        with tf.Graph().as_default(), tf1.Session() as session:
            images = tf1.constant(numbers("images", 2 * SIZE * SIZE * 3).reshape(2, SIZE, SIZE, 3))
            logits = build(images, 1 if FULL else width)
            for variable in tf1.global_variables():
                variable.load(value(variable.op.name, variable.shape.as_list()), session)
            result = session.run(logits).reshape(-1)
            print(name, sum(int(np.prod(v.shape.as_list())) for v in tf1.global_variables()), result, file=sys.stderr)
        shown = result[::max(1, len(result) // MOST_LOGITS)]
        lines.append(" ".join([name, repr(1.0 if FULL else width), str(SIZE), str(CLASSES)] + ["%.9g" % x for x in shown]))
    print("\n".join(lines))


if __name__ == "__main__":
    main()
