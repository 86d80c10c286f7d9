"""A task of TensorFlow's parameter server training with SyncReplicasOptimizer, using tf.compat.v1.

    sync_replicas.py ps 0 PORT,PORT,... 0
    sync_replicas.py worker WORKER PORT,PORT,... BATCH HIDDEN...

The first port belongs to the parameter server, the others to the workers.
"""
import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import numpy as np
import tensorflow.compat.v1 as tf

import exchange


def loss_of(hidden, x, y):
    inputs = exchange.PIXELS
    for i, units in enumerate(hidden + [exchange.CLASSES]):
        kernel = tf.get_variable(f"kernel{i}", [inputs, units])
        bias = tf.get_variable(f"bias{i}", [units], initializer=tf.zeros_initializer())
        x = tf.matmul(x, kernel) + bias
        if i < len(hidden):
            x = tf.nn.relu(x)
        inputs = units
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=x))


def work(server, cluster, worker, batch, hidden):
    workers = cluster.num_tasks("worker")
    random = np.random.default_rng(worker)
    with tf.device(tf.train.replica_device_setter(cluster=cluster, worker_device=f"/job:worker/task:{worker}")):
        step = tf.train.get_or_create_global_step()
        xs = tf.constant(random.random((exchange.BATCHES, batch, exchange.PIXELS), np.float32))
        ys = tf.constant(random.integers(exchange.CLASSES, size=(exchange.BATCHES, batch)))
        place = tf.cast(step % exchange.BATCHES, tf.int32)
        loss = loss_of(hidden, xs[place], ys[place])
        optimizer = tf.train.SyncReplicasOptimizer(tf.train.GradientDescentOptimizer(exchange.LEARNING_RATE),
                                                   replicas_to_aggregate=workers, total_num_replicas=workers)
        train = optimizer.minimize(loss, global_step=step)
    config = tf.ConfigProto(device_filters=["/job:ps", f"/job:worker/task:{worker}"])
    with tf.train.MonitoredTrainingSession(master=server.target, is_chief=worker == 0, config=config,
                                           hooks=[optimizer.make_session_run_hook(worker == 0)],
                                           log_step_count_steps=None) as session:
        run = session._tf_sess().make_callable(train)  # returns the token's global step
        step, end = run(), 0

        # Steps count up to a global step, as in StopAtStepHook. One of two contributions may arrive too late and be
        # dropped. If each worker counted its own steps, workers would end up waiting for tokens that no other worker
        # produces.
        def advance(steps):
            nonlocal step, end
            end += steps
            while step < end:
                step = run()

        exchange.serve_steps(advance)


def main():
    tf.disable_v2_behavior()
    job, task, ports, *numbers = sys.argv[1:]
    addresses = [f"127.0.0.1:{port}" for port in ports.split(",")]
    cluster = tf.train.ClusterSpec({"ps": addresses[:1], "worker": addresses[1:]})
    server = tf.train.Server(cluster, job_name=job, task_index=int(task))
    if job == "ps":
        exchange.serve(None)
    else:
        batch, *hidden = [int(word) for word in numbers]
        work(server, cluster, int(task), batch, hidden)


if __name__ == "__main__":
    main()
