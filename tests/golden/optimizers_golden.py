#!/usr/bin/env python3
"""Writes optimizers_golden.txt: what TensorFlow's own optimizers and learning rate decays compute.

Run with a Python that has TensorFlow 2.x (tf.compat.v1):  optimizers_golden.py > optimizers_golden.txt
Floats are written as their 32 bits in hexadecimal. Lines:
  gradient <step> <bits>...        the gradients in every case
  initial <bits>...                the initial value in every case
  case <OptimizerConfig as text>   starts a case; its lines follow:
  value <step> <bits>...           after that step's update
  slot <name> <bits>...            after the last step
  scalar <name> <bits>             after the last step
  schedule <LearningRate as text>  starts a schedule; its lines follow:
  rate <step> <bits>
"""
import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""

import numpy as np
import tensorflow as tf

v1 = tf.compat.v1
train = v1.train
STEPS = 20
N = 19  # two vectors of eight and a remainder


def bits(array):
    return " ".join("%08x" % word for word in np.asarray(array, np.float32).ravel().view(np.uint32))


class AdamW:
    """Applies the decay of Keras's AdamW, then a step of AdamOptimizer."""

    def __init__(self, rate, weight_decay, **adam):
        self.rate, self.weight_decay = rate, weight_decay
        self.adam = train.AdamOptimizer(rate, **adam)
        self.get_slot_names, self.get_slot = self.adam.get_slot_names, self.adam.get_slot

    def apply_gradients(self, pairs):
        (gradient, variable), = pairs
        decay = variable.assign_sub(variable * np.float32(self.weight_decay) * np.float32(self.rate))
        with tf.control_dependencies([decay]):
            return self.adam.apply_gradients([(tf.identity(gradient), variable)])


class AdagradDA:
    """AdagradDAOptimizer with its own global step."""

    def __init__(self, rate, **regularization):
        self.step = v1.get_variable("global_step", initializer=np.int64(0), use_resource=True)
        self.optimizer = train.AdagradDAOptimizer(rate, self.step, **regularization)

    def apply_gradients(self, pairs):
        return self.optimizer.apply_gradients(pairs, global_step=self.step)


CASES = [
    ("sgd {}", lambda: train.GradientDescentOptimizer(0.3), 0.3),
    ("momentum {}", lambda: train.MomentumOptimizer(0.1, 0.9), 0.1),
    ("momentum { momentum: 0.7 }", lambda: train.MomentumOptimizer(0.05, 0.7), 0.05),
    ("momentum { momentum: 0.8 nesterov: true }",
     lambda: train.MomentumOptimizer(0.1, 0.8, use_nesterov=True), 0.1),
    ("adam {}", lambda: train.AdamOptimizer(0.01), 0.01),
    ("adam { beta1: 0.8 beta2: 0.95 epsilon: 0.001 }", lambda: train.AdamOptimizer(0.02, 0.8, 0.95, 0.001), 0.02),
    ("adam { weight_decay: 0.04 }", lambda: AdamW(0.02, 0.04), 0.02),
    ("adagrad {}", lambda: train.AdagradOptimizer(0.1), 0.1),
    ("adagrad { initial_accumulator: 0.5 }", lambda: train.AdagradOptimizer(0.2, 0.5), 0.2),
    ("rmsprop {}", lambda: train.RMSPropOptimizer(0.01), 0.01),
    ("rmsprop { decay: 0.8 momentum: 0.6 epsilon: 0.0001 }",
     lambda: train.RMSPropOptimizer(0.02, 0.8, 0.6, 0.0001), 0.02),
    ("rmsprop { centered: true }", lambda: train.RMSPropOptimizer(0.01, centered=True), 0.01),
    ("rmsprop { decay: 0.8 momentum: 0.5 epsilon: 0.01 centered: true }",
     lambda: train.RMSPropOptimizer(0.01, 0.8, 0.5, 0.01, centered=True), 0.01),
    ("adadelta {}", lambda: train.AdadeltaOptimizer(1.0), 1.0),
    ("adadelta { rho: 0.8 epsilon: 0.0001 }", lambda: train.AdadeltaOptimizer(0.5, 0.8, 0.0001), 0.5),
    ("ftrl {}", lambda: train.FtrlOptimizer(0.1), 0.1),
    ("ftrl { initial_accumulator: 0.3 l1: 0.2 l2: 0.05 }",
     lambda: train.FtrlOptimizer(0.2, -0.5, 0.3, 0.2, 0.05), 0.2),
    ("ftrl { learning_rate_power: -0.7 l1: 0.1 }",
     lambda: train.FtrlOptimizer(0.2, -0.7, l1_regularization_strength=0.1), 0.2),
    ("ftrl { learning_rate_power: 0 }", lambda: train.FtrlOptimizer(0.2, 0.0), 0.2),
    ("proximal_sgd {}", lambda: train.ProximalGradientDescentOptimizer(0.1), 0.1),
    ("proximal_sgd { l1: 0.2 l2: 0.3 }", lambda: train.ProximalGradientDescentOptimizer(0.1, 0.2, 0.3), 0.1),
    ("proximal_adagrad {}", lambda: train.ProximalAdagradOptimizer(0.1), 0.1),
    ("proximal_adagrad { initial_accumulator: 0.3 l1: 0.2 l2: 0.3 }",
     lambda: train.ProximalAdagradOptimizer(0.2, 0.3, 0.2, 0.3), 0.2),
    ("adagrad_da {}", lambda: AdagradDA(0.1), 0.1),
    ("adagrad_da { initial_accumulator: 0.3 l1: 0.1 l2: 0.3 }",
     lambda: AdagradDA(0.2, initial_gradient_squared_accumulator_value=0.3, l1_regularization_strength=0.1,
                       l2_regularization_strength=0.3), 0.2),
]

KERAS_CASES = [
    ("lion {}", lambda: tf.keras.optimizers.Lion(0.01), 0.01, {"Lion": "momentum"}),
    ("lion { beta1: 0.8 beta2: 0.95 weight_decay: 0.1 }",
     lambda: tf.keras.optimizers.Lion(0.02, 0.8, 0.95, weight_decay=0.1), 0.02, {"Lion": "momentum"}),
]

SCHEDULES = [
    ("exponential { decay_steps: 10 decay_rate: 0.9 }", lambda s: train.exponential_decay(0.1, s, 10, 0.9)),
    ("exponential { decay_steps: 10 decay_rate: 0.9 staircase: true }",
     lambda s: train.exponential_decay(0.1, s, 10, 0.9, staircase=True)),
    ("piecewise { boundaries: [10, 30] values: [0.1, 0.05, 0.01] }",
     lambda s: train.piecewise_constant(s, [10, 30], [0.1, 0.05, 0.01])),
    ("polynomial { decay_steps: 30 end: 0.01 }", lambda s: train.polynomial_decay(0.1, s, 30, 0.01)),
    ("polynomial { decay_steps: 30 end: 0.02 power: 0.5 }", lambda s: train.polynomial_decay(0.1, s, 30, 0.02, 0.5)),
    ("polynomial { decay_steps: 16 end: 0.02 power: 2 cycle: true }",
     lambda s: train.polynomial_decay(0.1, s, 16, 0.02, 2.0, cycle=True)),
    ("inverse_time { decay_steps: 7 decay_rate: 0.5 }", lambda s: train.inverse_time_decay(0.1, s, 7, 0.5)),
    ("inverse_time { decay_steps: 7 decay_rate: 0.5 staircase: true }",
     lambda s: train.inverse_time_decay(0.1, s, 7, 0.5, staircase=True)),
    ("cosine { decay_steps: 40 }", lambda s: train.cosine_decay(0.1, s, 40)),
    ("cosine { decay_steps: 40 alpha: 0.1 }", lambda s: train.cosine_decay(0.1, s, 40, 0.1)),
    ("cosine_restarts { first_decay_steps: 8 }", lambda s: train.cosine_decay_restarts(0.1, s, 8)),
    ("cosine_restarts { first_decay_steps: 8 t_mul: 1 m_mul: 0.5 alpha: 0.1 }",
     lambda s: train.cosine_decay_restarts(0.1, s, 8, t_mul=1.0, m_mul=0.5, alpha=0.1)),
    ("cosine_restarts { first_decay_steps: 9 t_mul: 1.5 m_mul: 0.8 }",
     lambda s: train.cosine_decay_restarts(0.1, s, 9, t_mul=1.5, m_mul=0.8)),
]


def write_case(text, make, rate, gradients, initial):
    print("case %s learning_rate { initial: %s }" % (text, rate))
    with tf.Graph().as_default(), v1.Session() as session:
        variable = v1.get_variable("v", initializer=initial, use_resource=True)
        feed = v1.placeholder(tf.float32, [N])
        optimizer = make()
        update = optimizer.apply_gradients([(feed, variable)])
        session.run(v1.global_variables_initializer())
        for step, gradient in enumerate(gradients):
            session.run(update, {feed: gradient})
            print("value %d %s" % (step, bits(session.run(variable))))
        for other in v1.global_variables():
            name = other.op.name
            if name in ("v", "global_step"):
                continue
            kind = "slot" if name.startswith("v/") else "scalar"
            print(kind, name[2:] if kind == "slot" else name, bits(session.run(other)))


def write_keras_case(text, make, rate, slots, gradients, initial):
    print("case %s learning_rate { initial: %s }" % (text, rate))
    variable = tf.Variable(initial)
    optimizer = make()
    for step, gradient in enumerate(gradients):
        optimizer.apply_gradients([(tf.constant(gradient), variable)])
        print("value %d %s" % (step, bits(variable.numpy())))
    for name, theirs in slots.items():
        slot, = [v for v in optimizer.variables if v.path.endswith(theirs)]
        print("slot", name, bits(slot.numpy()))


def write_schedule(text, make):
    print("schedule initial: 0.1 " + text)
    with tf.Graph().as_default(), v1.Session() as session:
        step = v1.placeholder(tf.int64, [])
        rate = make(step)
        if callable(rate):
            rate = rate()
        for s in list(range(0, 64)) + [100, 1000, 12345]:
            print("rate %d %s" % (s, bits(session.run(rate, {step: s}))))


def main():
    random = np.random.RandomState(17)
    gradients = random.normal(size=(STEPS, N)).astype(np.float32)
    gradients[:, 3] = 0  # an element that never moves
    gradients[5:, 7] *= 100
    gradients[:, 11] *= 1e-4
    initial = random.normal(size=N).astype(np.float32)
    for step, gradient in enumerate(gradients):
        print("gradient %d %s" % (step, bits(gradient)))
    print("initial " + bits(initial))
    for text, make, rate in CASES:
        write_case(text, make, rate, gradients, initial)
    for text, make, rate, slots in KERAS_CASES:
        write_keras_case(text, make, rate, slots, gradients, initial)
    for text, make in SCHEDULES:
        write_schedule(text, make)


main()
