"""Runs scripts of session_script.cc with TensorFlow's MonitoredTrainingSession and hooks, and examines what is left."""
import glob
import os
import re
import subprocess
import time
from unittest import mock

os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import tensorflow as tf
from tensorflow.python.training import training_util

tf1 = tf.compat.v1
tf1.logging.set_verbosity(tf1.logging.ERROR)

# The errors of hooks and of Run, as each side names them.
CODES = {
    None: "OK", "RuntimeError": "FAILED_PRECONDITION", "InternalError": "INTERNAL", "ValueError": "INVALID_ARGUMENT",
}


def number(value):
    return None if value in (None, "none") else float(value) if "." in value else int(value)


class Recorder(tf1.train.SessionRunHook):
    """The "record" hook of session_script."""

    def __init__(self, run, values):
        self.run, self.values = run, values

    def begin(self):
        self.step = tf1.train.get_global_step()
        self.say("begin")

    def after_create_session(self, session, coord):
        self.say("created", session)

    def before_run(self, context):
        self.run.now += float(self.values.get("advance", 0))
        self.say("before", context.session, context)

    def after_run(self, context, values):
        self.run.now += float(self.values.get("lasts", 0))
        self.say("after", context.session, context)

    def end(self, session):
        self.say("end", session)

    def say(self, call, session=None, context=None):
        step = None if session is None else session.run(self.step)
        self.run.last = step
        self.run.out.append(" ".join([self.values["name"], call] + ([] if step is None else [str(step)])))
        where = call if context is None else "%s@%d" % (call, step)
        if context is not None and self.values.get("stop") == where:
            context.request_stop()
        if self.values.get("range") == where:
            raise tf.errors.OutOfRangeError(None, None, "the script says so")
        if self.values.get("fail") == where:
            raise tf.errors.InternalError(None, None, "the script says so")


class Listener(tf1.train.CheckpointSaverListener):
    def __init__(self, run, values):
        self.run, self.name, self.stop = run, values["listener"], number(values.get("listener_stop"))

    def begin(self):
        self.run.out.append(self.name + " begin")

    def before_save(self, session, step):
        self.run.out.append("%s before %d" % (self.name, step))

    def after_save(self, session, step):
        self.run.out.append("%s after %d" % (self.name, step))
        return step == self.stop

    def end(self, session, step):
        self.run.out.append("%s end %d" % (self.name, step))


class Theirs:
    """Runs a script of session_script.cc with tf.compat.v1."""

    def __init__(self):
        self.out = []
        self.now = time.time()  # Savers compare it with the times of files.

    def hook(self, kind, values):
        steps, secs = number(values.get("steps")), number(values.get("secs"))
        logdir = self.session.get("logdir")
        if kind == "record":
            return Recorder(self, values)
        if kind == "stop":
            return tf1.train.StopAtStepHook(number(values.get("num_steps")), number(values.get("last_step")))
        if kind == "saver":
            return tf1.train.CheckpointSaverHook(
                logdir or "nowhere", secs, steps, scaffold=self.scaffold,
                listeners=[Listener(self, values)] if "listener" in values else None)
        if kind == "counter":
            return tf1.train.StepCounterHook(steps, secs, logdir or "nowhere")
        if kind == "summary":
            return tf1.train.SummarySaverHook(
                steps, secs, logdir or "nowhere",
                summary_op=None if values.get("provider") == "none" else tf1.summary.scalar("value", 1.0))
        if kind == "logging":
            return tf1.train.LoggingTensorHook(
                {"step": tf.constant(0)}, number(values.get("iter")), secs, bool(number(values.get("at_end", "0"))),
                formatter=lambda tensors: self.out.append("logged %d" % self.last))
        if kind == "profiler":
            return tf1.train.ProfilerHook(steps, secs, values.get("directory", ""))
        raise NotImplementedError(kind)

    def graph(self):
        step = tf1.train.get_or_create_global_step()
        inputs = []
        if "input_steps" in self.session:
            dataset = tf.data.Dataset.range(int(self.session["input_steps"]))
            inputs = [tf1.data.make_one_shot_iterator(dataset).get_next()]
        # Hooks must see the step before it is counted, not sometimes one value and sometimes the other.
        with tf.control_dependencies(inputs + [training_util._get_or_create_global_step_read()]):
            self.train = tf1.assign_add(step, 1)
        with tf.control_dependencies([self.train]):
            self.after = step.read_value()
        saver = tf1.train.Saver(max_to_keep=int(self.session.get("keep", 5)))
        self.scaffold = tf1.train.Scaffold(saver=saver)

    def options(self):
        names = {"save_checkpoint_steps": "checkpoint_steps", "save_checkpoint_secs": "checkpoint_secs",
                 "save_summaries_steps": "summary_steps", "save_summaries_secs": "summary_secs",
                 "log_step_count_steps": "log_steps"}
        given = {theirs: number(self.session[ours]) for theirs, ours in names.items() if ours in self.session}
        return dict(given, checkpoint_dir=self.session.get("logdir"), scaffold=self.scaffold,
                    is_chief=bool(int(self.session.get("chief", 1))))

    def loop(self, session):
        forever = "forever" in self.session
        while forever or not session.should_stop():
            step = session.run(self.after)
            self.out.append("ran %d" % step)
            if self.session.get("fail_at") == str(step):
                raise tf.errors.InternalError(None, None, "the script says so")
            if self.session.get("break_at") == str(step):
                return

    def run(self, script):
        lines = [parse(line) for line in script]
        self.session = next((values for words, values in lines if words[0] == "session"), {})
        error = None
        with tf.Graph().as_default(), mock.patch("time.time", lambda: self.now):
            self.graph()
            if "summary_steps" in self.session or "summary_secs" in self.session:
                tf1.summary.scalar("loss", 1.0)
            try:
                hooks = [self.hook(words[1], values) for words, values in lines if words[0] == "hook"]
                if "session" in [words[0] for words, _ in lines]:
                    with tf1.train.MonitoredTrainingSession(hooks=hooks, **self.options()) as session:
                        self.loop(session)
                        if "more" in self.session:
                            session.run(self.after)
                        if "close_twice" in self.session:
                            session.close()
            except (RuntimeError, ValueError, tf.errors.OpError) as e:
                error = type(e).__name__
        tf1.summary.FileWriterCache.clear()
        return self.out, CODES[error]


def parse(line):
    words = [word for word in line.split() if "=" not in word]
    return words, dict(word.split("=", 1) for word in line.split() if "=" in word)


def run_ours(program, script, mode="run"):
    """Returns the lines that session_script prints."""
    result = subprocess.run([program, mode], input="\n".join(script) + "\n", stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, timeout=100)
    if result.returncode != 0:
        raise AssertionError("session_script %s: %d: %s" % (mode, result.returncode, result.stderr))
    return result.stdout.splitlines()


def checkpoints(folder):
    """Returns the steps of the checkpoints that exist, and the steps named by the state file."""
    if not os.path.isdir(folder):
        return None
    files = sorted(int(re.search(r"-(\d+)\.index$", f).group(1)) for f in glob.glob(folder + "/model.ckpt-*.index"))
    state = tf.train.get_checkpoint_state(folder)
    named = [] if state is None else [int(p.rsplit("-", 1)[1]) for p in state.all_model_checkpoint_paths]
    if state is not None:
        assert os.path.basename(state.model_checkpoint_path) == "model.ckpt-%d" % named[-1]
    return files, named


def events(folder):
    """Returns the (kind, step, tag) of each record in the event files, in order. The tag of a log is empty."""
    found = []
    for path in sorted(glob.glob(folder + "/events.*")):
        for event in tf1.train.summary_iterator(path):
            if event.HasField("session_log"):
                found.append((tf1.SessionLog.SessionStatus.Name(event.session_log.status), event.step, ""))
            for value in event.summary.value:
                found.append(("summary", event.step, value.tag))
    return found
