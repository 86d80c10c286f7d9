#!/usr/bin/env python3
"""Writes nn_golden.txt: layers and losses of worker/nn as TensorFlow computes them.

    python3 tests/golden/nn_golden.py > tests/golden/nn_golden.txt

Needs `pip install tensorflow`; the numbers in the repository come from 2.21.0. Each case has a configuration, the
inputs and variables, and the results: loss, gradients, reported updates and prediction.
Lines: "case NAME", "config TEXT", "classes N", then "KIND NAME DTYPE [DIMS] : NUMBERS" and "end".
"""
import sys

import numpy as np
import tensorflow as tf

L = tf.compat.v1.losses
rng = np.random.default_rng(20240607)


def normal(*shape, scale=1.0):
    return (rng.standard_normal(shape) * scale).astype(np.float32)


def write_tensor(kind, name, value):
    value = np.asarray(value)
    dtype = "int32" if value.dtype == np.int32 else "float32"
    numbers = " ".join("%d" % v if dtype == "int32" else "%.9g" % v for v in value.reshape(-1))
    print(f"{kind} {name} {dtype} [{','.join(map(str, value.shape))}] : {numbers}")


class Case:
    """Prints a case. `forward(v, x, training)` returns the output and the updates, `loss(output, labels, w)` a
    scalar."""

    def __init__(self, name, config, x, labels, variables, forward, loss=None, classes=0, weights=None, fixed=None,
                 regularizer=None):
        variables = {k: tf.Variable(v) for k, v in variables.items()}
        fixed = {k: tf.constant(v) for k, v in (fixed or {}).items()}
        loss = loss or (lambda y, t, w: L.mean_squared_error(t, y, weights=w))
        w = 1.0 if weights is None else tf.constant(weights)
        with tf.GradientTape() as tape:
            output, updates = forward({**variables, **fixed}, tf.constant(x), True)
            total = loss(output, tf.constant(labels), w)
            if regularizer:
                total = total + regularizer(variables)
        gradients = tape.gradient(total, variables)
        prediction, _ = forward({**variables, **fixed}, tf.constant(x), False)
        print("case", name)
        print("config", " ".join(config.split()))
        print("classes", classes)
        write_tensor("input", "features", x)
        write_tensor("input", "labels", labels)
        if weights is not None:
            write_tensor("input", "weights", weights)
        for k, v in {**variables, **fixed}.items():
            write_tensor("variable", k, v.numpy())
        write_tensor("expect", "loss", np.float32(total.numpy()))
        write_tensor("expect", "prediction", prediction.numpy())
        for k, g in gradients.items():
            write_tensor("gradient", k, tf.convert_to_tensor(g).numpy())
        for k, u in updates.items():
            write_tensor("update", k, u.numpy())
        print("end")


def simple(f):
    return lambda v, x, training: (f(v, x), {})


MSE = "loss { mean_squared_error {} }"
ACTIVATIONS = {
    "NONE": tf.identity,
    "RELU": tf.nn.relu,
    "LEAKY_RELU": tf.nn.leaky_relu,
    "TANH": tf.tanh,
    "SIGMOID": tf.sigmoid,
    "GELU": lambda x: tf.nn.gelu(x, approximate=True),
}


def dense_cases():
    for name, f in ACTIVATIONS.items():
        Case(f"dense_{name.lower()}", f"layer {{ name: 'd' dense {{ units: 11 activation: {name} }} }} {MSE}",
             normal(5, 7), normal(5, 11), {"d/kernel": normal(7, 11), "d/bias": normal(11)},
             simple(lambda v, x: f(x @ v["d/kernel"] + v["d/bias"])))
        Case(f"activation_{name.lower()}",
             f"layer {{ name: 'd' dense {{ units: 9 no_bias: true }} }} layer {{ name: 'a' activation {{ kind: {name} }} }} {MSE}",
             normal(3, 4), normal(3, 9), {"d/kernel": normal(4, 9)}, simple(lambda v, x: f(x @ v["d/kernel"])))


def conv_case(name, options, shape, kernel, filters, strides, padding):
    h, w, c = shape
    out = tf.nn.conv2d(np.zeros((1, h, w, c), np.float32), np.zeros((*kernel, c, filters), np.float32), strides, padding)
    Case(name,
         f"layer {{ name: 'first' conv2d {{ filters: {c} kernel: 1 no_bias: true }} }} "
         f"layer {{ name: 'c' conv2d {{ filters: {filters} {options} padding: {padding} }} }} "
         f"layer {{ name: 'f' flatten {{}} }} {MSE}",
         normal(2, h, w, 2), normal(2, int(np.prod(out.shape[1:]))),
         {"first/kernel": normal(1, 1, 2, c), "c/kernel": normal(*kernel, c, filters, scale=0.3), "c/bias": normal(filters)},
         simple(lambda v, x: tf.reshape(
             tf.nn.conv2d(tf.nn.conv2d(x, v["first/kernel"], 1, "SAME"), v["c/kernel"], strides, padding) + v["c/bias"],
             (2, -1))))


def conv_cases():
    for padding in ("SAME", "VALID"):
        p = padding.lower()
        conv_case(f"conv_3x3_{p}", "kernel: 3", (5, 4, 3), (3, 3), 5, (1, 1), padding)
        conv_case(f"conv_3x3_stride2_{p}", "kernel: 3 strides: 2", (6, 6, 2), (3, 3), 17, (2, 2), padding)
        conv_case(f"conv_2x4_stride3x1_{p}", "kernel: 2 kernel: 4 strides: 3 strides: 1", (7, 5, 3), (2, 4), 4, (3, 1), padding)
        conv_case(f"conv_1x1_stride2_{p}", "kernel: 1 strides: 2", (5, 5, 2), (1, 1), 3, (2, 2), padding)


def pool_case(kind, pool, window, strides, padding):
    def forward(v, x):
        return tf.reshape(pool(tf.nn.conv2d(x, v["c/kernel"], 1, "SAME"), window, strides, padding), (2, -1))

    x = normal(2, 6, 5, 2)
    kernel = normal(1, 1, 2, 3)
    Case(f"{kind}_{window}_{strides}_{padding.lower()}",
         f"layer {{ name: 'c' conv2d {{ filters: 3 kernel: 1 no_bias: true }} }} "
         f"layer {{ name: 'p' {kind} {{ window: {window} strides: {strides} padding: {padding} }} }} "
         f"layer {{ name: 'f' flatten {{}} }} {MSE}",
         x, normal(*forward({"c/kernel": kernel}, x).shape), {"c/kernel": kernel}, simple(forward))


def norm_cases():
    for name, activation in (("batch_norm", "NONE"), ("batch_norm_relu", "RELU")):

        def forward(v, x, training):
            x = tf.nn.conv2d(x[..., None], v["d/kernel"], 1, "SAME")
            if training:
                mean, variance = tf.nn.moments(x, [0, 1, 2])
            else:
                mean, variance = v["n/moving_mean"], v["n/moving_variance"]
            y = tf.nn.batch_normalization(x, mean, variance, v["n/beta"], v["n/gamma"], 0.001)
            y = tf.reshape(ACTIVATIONS[activation](y), (x.shape[0], -1))
            return y, {"n/moving_mean": mean, "n/moving_variance": variance}

        Case(name,
             f"layer {{ name: 'd' conv2d {{ filters: 9 kernel: 1 no_bias: true }} }} "
             f"layer {{ name: 'n' batch_norm {{ activation: {activation} }} }} layer {{ name: 'f' flatten {{}} }} {MSE}",
             normal(3, 4, 5), normal(3, 180),
             {"d/kernel": normal(1, 1, 1, 9), "n/beta": normal(9), "n/gamma": 1 + normal(9, scale=0.2)},
             forward, fixed={"n/moving_mean": normal(9), "n/moving_variance": 1 + np.abs(normal(9))})


def layer_norm_case():
    def forward(v, x):
        x = x @ v["d/kernel"]
        mean, variance = tf.nn.moments(x, [-1], keepdims=True)
        return tf.nn.batch_normalization(x, mean, variance, v["n/beta"], v["n/gamma"], 1e-5)

    Case("layer_norm",
         f"layer {{ name: 'd' dense {{ units: 19 no_bias: true }} }} layer {{ name: 'n' layer_norm {{}} }} {MSE}",
         normal(4, 6), normal(4, 19),
         {"d/kernel": normal(6, 19), "n/beta": normal(19), "n/gamma": 1 + normal(19, scale=0.2)}, simple(forward))


def structure_cases():
    Case("embedding",
         f"layer {{ name: 'e' embedding {{ vocabulary: 6 dimension: 10 }} }} layer {{ name: 'g' global_average_pool {{}} }} {MSE}",
         rng.integers(0, 6, (4, 5)).astype(np.int32), normal(4, 10), {"e/embeddings": normal(6, 10)},
         simple(lambda v, x: tf.reduce_mean(tf.gather(v["e/embeddings"], x), axis=1)))

    def residual(v, x):
        a = tf.nn.relu(x @ v["a/kernel"] + v["a/bias"])
        b = tf.tanh(a @ v["b/kernel"] + v["b/bias"])
        return (a + b) @ v["c/kernel"] + v["c/bias"]

    Case("residual",
         f"""layer {{ name: 'a' dense {{ units: 8 activation: RELU }} }} layer {{ name: 'b' dense {{ units: 8 activation: TANH }} }}
         layer {{ name: 's' input: 'a' input: 'b' add {{}} }} layer {{ name: 'c' dense {{ units: 3 }} }} {MSE}""",
         normal(5, 4), normal(5, 3),
         {"a/kernel": normal(4, 8), "a/bias": normal(8), "b/kernel": normal(8, 8), "b/bias": normal(8),
          "c/kernel": normal(8, 3), "c/bias": normal(3)}, simple(residual))


def loss_cases():
    def column(w):
        return w if isinstance(w, float) else w[:, None]

    elementwise = {
        "sigmoid_cross_entropy {}": lambda y, t, w: L.sigmoid_cross_entropy(t, y, weights=column(w)),
        "mean_squared_error {}": lambda y, t, w: L.mean_squared_error(t, y, weights=column(w)),
        "absolute_difference {}": lambda y, t, w: L.absolute_difference(t, y, weights=column(w)),
        "huber {}": lambda y, t, w: L.huber_loss(t, y, weights=column(w)),
        "huber { delta: 0.3 }": lambda y, t, w: L.huber_loss(t, y, weights=column(w), delta=0.3),
        "hinge {}": lambda y, t, w: L.hinge_loss(t, y, weights=column(w)),
    }
    weights = np.array([0.5, 0, 2, 1, 0, 1.5], np.float32)
    for i, (config, loss) in enumerate(elementwise.items()):
        for w in (None, weights):
            binary = config.startswith("hinge")
            labels = rng.integers(0, 2, (6, 9)).astype(np.float32) if binary else rng.random((6, 9)).astype(np.float32)
            Case(f"loss_{i}_{'weighted' if w is not None else 'plain'}",
                 f"layer {{ name: 'd' dense {{ units: 9 no_bias: true }} }} loss {{ {config} }}", normal(6, 4), labels,
                 {"d/kernel": normal(4, 9)}, simple(lambda v, x: x @ v["d/kernel"]), loss=loss, weights=w)
    for smoothing in (0.0, 0.1):
        for w in (None, weights):
            tag = f"{smoothing}_{'weighted' if w is not None else 'plain'}"
            config = (f"layer {{ name: 'd' dense {{ units: 10 no_bias: true }} }} "
                      f"loss {{ softmax_cross_entropy {{ label_smoothing: {smoothing} }} }}")
            Case(f"softmax_classes_{tag}", config, normal(6, 4), rng.integers(0, 10, 6).astype(np.int32),
                 {"d/kernel": normal(4, 10)}, simple(lambda v, x: x @ v["d/kernel"]), classes=10, weights=w,
                 loss=lambda y, t, w: L.softmax_cross_entropy(tf.one_hot(t, 10), y, weights=w, label_smoothing=smoothing))
            targets = rng.random((6, 10)).astype(np.float32)
            targets /= targets.sum(axis=1, keepdims=True)
            Case(f"softmax_targets_{tag}", config, normal(6, 4), targets,
                 {"d/kernel": normal(4, 10)}, simple(lambda v, x: x @ v["d/kernel"]), weights=w,
                 loss=lambda y, t, w: L.softmax_cross_entropy(t, y, weights=w, label_smoothing=smoothing))
    Case("regularized",
         """layer { name: 'a' dense { units: 8 activation: TANH } } layer { name: 'b' dense { units: 3 } }
         loss { weight: 0.5 softmax_cross_entropy {} } loss { weight: 2 mean_squared_error {} }
         regularizer { variables: 'kernel' l2: 0.1 } regularizer { variables: '^a/.*' l1: 0.01 }""",
         normal(5, 4), rng.integers(0, 3, 5).astype(np.int32),
         {"a/kernel": normal(4, 8), "a/bias": normal(8), "b/kernel": normal(8, 3), "b/bias": normal(3)},
         simple(lambda v, x: tf.tanh(x @ v["a/kernel"] + v["a/bias"]) @ v["b/kernel"] + v["b/bias"]), classes=3,
         loss=lambda y, t, w: 0.5 * L.sparse_softmax_cross_entropy(t, y) + 2 * L.mean_squared_error(tf.one_hot(t, 3), y),
         regularizer=lambda v: 0.1 * (tf.nn.l2_loss(v["a/kernel"]) + tf.nn.l2_loss(v["b/kernel"])) + 0.01 *
         (tf.reduce_sum(tf.abs(v["a/kernel"])) + tf.reduce_sum(tf.abs(v["a/bias"]))))


def further_cases():
    def pooled(v, x):
        return tf.reduce_mean(tf.nn.conv2d(x, v["c/kernel"], 1, "SAME"), axis=[1, 2])

    Case("global_average_pool_images",
         f"layer {{ name: 'c' conv2d {{ filters: 9 kernel: 2 no_bias: true }} }} layer {{ name: 'g' global_average_pool {{}} }} {MSE}",
         normal(3, 4, 5, 2), normal(3, 9), {"c/kernel": normal(2, 2, 2, 9)}, simple(pooled))
    Case("activation_leaky_slope",
         f"layer {{ name: 'd' dense {{ units: 9 no_bias: true }} }} layer {{ name: 'a' activation {{ kind: LEAKY_RELU slope: 0.5 }} }} {MSE}",
         normal(3, 4), normal(3, 9), {"d/kernel": normal(4, 9)},
         simple(lambda v, x: tf.nn.leaky_relu(x @ v["d/kernel"], 0.5)))

    def normalized(v, x):
        x = tf.gather(v["e/embeddings"], x)
        mean, variance = tf.nn.moments(x, [-1], keepdims=True)
        return tf.reshape(tf.nn.batch_normalization(x, mean, variance, v["n/beta"], v["n/gamma"], 0.01), (4, -1))

    Case("layer_norm_sequence",
         f"layer {{ name: 'e' embedding {{ vocabulary: 6 dimension: 10 }} }} layer {{ name: 'n' layer_norm {{ epsilon: 0.01 }} }} layer {{ name: 'f' flatten {{}} }} {MSE}",
         rng.integers(0, 6, (4, 3)).astype(np.int32), normal(4, 30),
         {"e/embeddings": normal(6, 10), "n/beta": normal(10), "n/gamma": 1 + normal(10, scale=0.2)}, simple(normalized))
    Case("add_three",
         f"""layer {{ name: 'a' dense {{ units: 4 }} }} layer {{ name: 'b' input: 'input' dense {{ units: 4 }} }}
         layer {{ name: 's' input: 'a' input: 'input' input: 'b' add {{}} }} {MSE}""",
         normal(5, 4), normal(5, 4),
         {"a/kernel": normal(4, 4), "a/bias": normal(4), "b/kernel": normal(4, 4), "b/bias": normal(4)},
         simple(lambda v, x: x @ v["a/kernel"] + v["a/bias"] + x + x @ v["b/kernel"] + v["b/bias"]))
    weights = np.array([0.5, 0, 2, 1, 0, 1.5], np.float32)
    for name, loss in (("sigmoid_cross_entropy", L.sigmoid_cross_entropy), ("hinge", L.hinge_loss)):
        Case(f"{name}_two_classes", f"layer {{ name: 'd' dense {{ units: 1 no_bias: true }} }} loss {{ {name} {{}} }}",
             normal(6, 4), rng.integers(0, 2, 6).astype(np.int32), {"d/kernel": normal(4, 1)},
             simple(lambda v, x: x @ v["d/kernel"]), classes=2, weights=weights,
             loss=lambda y, t, w: loss(tf.cast(t, tf.float32)[:, None], y, weights=w[:, None]))
    Case("softmax_more_outputs_than_classes",
         "layer { name: 'd' dense { units: 5 no_bias: true } } loss { softmax_cross_entropy {} }",
         normal(6, 4), rng.integers(0, 3, 6).astype(np.int32), {"d/kernel": normal(4, 5)},
         simple(lambda v, x: x @ v["d/kernel"]), classes=3,
         loss=lambda y, t, w: L.sparse_softmax_cross_entropy(t, y))
    Case("log_loss_probabilities",
         """layer { name: 'd' dense { units: 9 activation: SIGMOID no_bias: true } }
         loss { log_loss { epsilon: 0.001 } }""",
         normal(6, 4), rng.random((6, 9)).astype(np.float32), {"d/kernel": normal(4, 9)},
         simple(lambda v, x: tf.sigmoid(x @ v["d/kernel"])), weights=weights,
         loss=lambda y, t, w: L.log_loss(t, y, weights=w[:, None], epsilon=0.001))


def added_cases():
    """Cases added at the end, so that the numbers of earlier cases do not change."""
    Case("dense_relu6", f"layer {{ name: 'd' dense {{ units: 11 activation: RELU6 }} }} {MSE}",
         normal(5, 7, scale=3), normal(5, 11), {"d/kernel": normal(7, 11), "d/bias": normal(11)},
         simple(lambda v, x: tf.nn.relu6(x @ v["d/kernel"] + v["d/bias"])))
    for padding in ("SAME", "VALID"):
        for stride in (1, 2):
            out = tf.nn.depthwise_conv2d(np.zeros((1, 6, 5, 3), np.float32), np.zeros((3, 2, 3, 2), np.float32),
                                         [1, stride, stride, 1], padding)
            Case(f"depthwise_stride{stride}_{padding.lower()}",
                 f"layer {{ name: 'first' conv2d {{ filters: 3 kernel: 1 no_bias: true }} }} "
                 f"layer {{ name: 'c' depthwise_conv2d {{ kernel: 3 kernel: 2 strides: {stride} multiplier: 2 "
                 f"padding: {padding} activation: TANH }} }} layer {{ name: 'f' flatten {{}} }} {MSE}",
                 normal(2, 6, 5, 2), normal(2, int(np.prod(out.shape[1:]))),
                 {"first/kernel": normal(1, 1, 2, 3), "c/kernel": normal(3, 2, 3, 2), "c/bias": normal(6)},
                 simple(lambda v, x: tf.reshape(tf.tanh(tf.nn.depthwise_conv2d(
                     tf.nn.conv2d(x, v["first/kernel"], 1, "SAME"), v["c/kernel"], [1, stride, stride, 1], padding) +
                     v["c/bias"]), (2, -1))))
    Case("separable",
         f"layer {{ name: 'first' conv2d {{ filters: 3 kernel: 1 no_bias: true }} }} "
         f"layer {{ name: 's' separable_conv2d {{ filters: 4 kernel: 3 multiplier: 2 activation: TANH }} }} "
         f"layer {{ name: 'f' flatten {{}} }} {MSE}",
         normal(2, 4, 5, 2), normal(2, 80),
         {"first/kernel": normal(1, 1, 2, 3), "s/depthwise/kernel": normal(3, 3, 3, 2),
          "s/pointwise/kernel": normal(1, 1, 6, 4), "s/pointwise/bias": normal(4)},
         simple(lambda v, x: tf.reshape(tf.tanh(tf.nn.separable_conv2d(
             tf.nn.conv2d(x, v["first/kernel"], 1, "SAME"), v["s/depthwise/kernel"], v["s/pointwise/kernel"],
             [1, 1, 1, 1], "SAME") + v["s/pointwise/bias"]), (2, -1))))
    for name, options, arguments in (("lrn", "", {}), ("lrn_alexnet", "depth_radius: 2 bias: 2 alpha: 0.001 beta: 0.75",
                                                       dict(depth_radius=2, bias=2, alpha=0.001, beta=0.75))):
        Case(name,
             f"layer {{ name: 'c' conv2d {{ filters: 17 kernel: 1 no_bias: true }} }} layer {{ name: 'n' lrn {{ {options} }} }} "
             f"layer {{ name: 'f' flatten {{}} }} {MSE}",
             normal(2, 3, 2, 4), normal(2, 102), {"c/kernel": normal(1, 1, 4, 17)},
             simple(lambda v, x: tf.reshape(tf.nn.local_response_normalization(
                 tf.nn.conv2d(x, v["c/kernel"], 1, "SAME"), **arguments), (2, -1))))
    Case("concat",
         f"""layer {{ name: 'a' dense {{ units: 4 }} }} layer {{ name: 'b' input: 'input' dense {{ units: 3 }} }}
         layer {{ name: 'j' input: 'a' input: 'input' input: 'b' concat {{}} }} {MSE}""",
         normal(5, 2), normal(5, 9),
         {"a/kernel": normal(2, 4), "a/bias": normal(4), "b/kernel": normal(2, 3), "b/bias": normal(3)},
         simple(lambda v, x: tf.concat([x @ v["a/kernel"] + v["a/bias"], x, x @ v["b/kernel"] + v["b/bias"]], 1)))
    for size, stride, shape in ((3, 2, (6, 6)), (4, 2, (5, 6)), (3, 3, (7, 5))):
        pad = [[0, 0], [(size - 1) // 2, size // 2], [(size - 1) // 2, size // 2], [0, 0]]

        def half(v, x):
            x = tf.nn.conv2d(x, v["first/kernel"], 1, "SAME")
            return tf.reshape(tf.nn.conv2d(tf.pad(x, pad), v["c/kernel"], stride, "VALID"), (2, -1))

        x = normal(2, *shape, 2)
        variables = {"first/kernel": normal(1, 1, 2, 3), "c/kernel": normal(size, size, 3, 4)}
        Case(f"conv_half_{size}_{stride}",
             f"layer {{ name: 'first' conv2d {{ filters: 3 kernel: 1 no_bias: true }} }} "
             f"layer {{ name: 'c' conv2d {{ filters: 4 kernel: {size} strides: {stride} padding: HALF no_bias: true }} }} "
             f"layer {{ name: 'f' flatten {{}} }} {MSE}",
             x, normal(*half(variables, x).shape), variables, simple(half))

    def reshaped(v, x):
        x = tf.reshape(x @ v["d/kernel"], (3, 2, -1, 2))
        return tf.reshape(tf.nn.conv2d(x, v["c/kernel"], 1, "SAME"), (3, -1))

    Case("reshape",
         f"""layer {{ name: 'd' dense {{ units: 12 no_bias: true }} }}
         layer {{ name: 'r' reshape {{ shape: 2 shape: -1 shape: 2 }} }}
         layer {{ name: 'c' conv2d {{ filters: 3 kernel: 2 no_bias: true }} }} layer {{ name: 'f' flatten {{}} }} {MSE}""",
         normal(3, 5), normal(3, 18), {"d/kernel": normal(5, 12), "c/kernel": normal(2, 2, 2, 3)}, simple(reshaped))


def main():
    dense_cases()
    conv_cases()
    for kind, pool in (("max_pool", tf.nn.max_pool2d), ("average_pool", tf.nn.avg_pool2d)):
        for padding in ("SAME", "VALID"):
            pool_case(kind, pool, 2, 2, padding)
            pool_case(kind, pool, 3, 2, padding)
            pool_case(kind, pool, 3, 1, padding)
    norm_cases()
    layer_norm_case()
    structure_cases()
    loss_cases()
    further_cases()
    added_cases()


if __name__ == "__main__":
    sys.exit(main())
