"""Compares our Saver with TensorFlow's: the same saves leave the same names, the same files and the same state file.

Argument: saver_script, the program.
"""
import os
import re
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1
SAVER_SCRIPT = None
START = 1577836800.0  # Where our simulated clock starts.


class Theirs:
    """Runs a script of saver_script.cc with tf.compat.v1.train.Saver."""

    def __init__(self, **options):
        self.options = options
        self.now = START
        self.out = []

    def new(self):
        options = self.options
        self.saver = tf1.train.Saver(
            {"v": self.v, "w": self.w}, max_to_keep=options.get("max_to_keep", 5),
            keep_checkpoint_every_n_hours=options.get("every_n_hours", 10000.0), sharded="shards" in options,
            pad_step_number=bool(options.get("pad", 0)), save_relative_paths=bool(options.get("relative", 1)))

    def run(self, script):
        with tf.Graph().as_default(), tf1.Session() as session, mock.patch("time.time", lambda: self.now):
            self.v = tf1.get_variable("v", [], use_resource=True)
            self.w = tf1.get_variable("w", [2, 3], use_resource=True)
            self.new()
            for line in script:
                self.command(session, *line.split())
        return self.out

    def command(self, session, command, *words):
        if command == "advance":
            self.now += float(words[0])
        elif command == "new":
            self.new()
        elif command == "set":
            self.saver.set_last_checkpoints(list(words))
        elif command == "recover":
            state = tf1.train.get_checkpoint_state(words[0], self.options.get("latest_filename"))
            self.saver.recover_last_checkpoints(state.all_model_checkpoint_paths)
        elif command == "list":
            self.out.append(" ".join(self.saver.last_checkpoints))
        elif command == "save":
            path, step, value = words
            self.v.load(float(value), session)
            self.w.load(np.arange(6, dtype=np.float32).reshape(2, 3) + float(value), session)
            self.out.append(self.saver.save(session, path, None if step == "-" else int(step),
                                            latest_filename=self.options.get("latest_filename"),
                                            write_meta_graph=False))


class SaverTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))

    def ours(self, script, folder, **options):
        result = subprocess.run([SAVER_SCRIPT] + ["%s=%s" % item for item in options.items()], cwd=folder,
                                input="\n".join(script), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout.splitlines()

    # "DIR" in a line stands for an absolute directory, which differs between the two.
    def both(self, script, **options):
        """Returns the output of each, and the files that it left: their names, and the contents of the state files."""
        results = []
        for name in ("ours", "theirs"):
            folder = os.path.join(self.folder, name)
            os.makedirs(os.path.join(folder, "d"))
            lines = [line.replace("DIR", os.path.join(folder, "d")) for line in script]
            if name == "ours":
                out = self.ours(lines, folder, **options)
            else:
                before = os.getcwd()
                os.chdir(folder)
                try:
                    out = Theirs(**options).run(lines)
                finally:
                    os.chdir(before)
            state = options.get("latest_filename", "checkpoint")
            left = sorted(os.path.join(os.path.relpath(at, folder), f) for at, _, files in os.walk(folder) for f in files)
            texts = {}
            for path in left:
                if os.path.basename(path) == state:
                    with open(os.path.join(folder, path)) as f:
                        texts[path] = f.read().replace(folder, "FOLDER")
            results.append(([line.replace(folder, "FOLDER") for line in out], left, texts))
        return results

    def check(self, script, **options):
        ours, theirs = self.both(script, **options)
        self.assertEqual(ours[0], theirs[0], "printed")
        # If a data file replaced another, it has the other of two possible names (docs/checkpoint.md).
        self.assertEqual([f.replace("-of-00002", "-of-00001") for f in ours[1]], theirs[1], "files")
        self.assertEqual(ours[2], theirs[2], "state files")
        return ours

    def test_max_to_keep(self):
        script = ["save d/s %d %d" % (step, step) for step in (1, 2, 3)] + ["list"]
        script += ["save d/s 2 7", "list", "save d/s 1 8", "list"]
        for keep in (1, 2, 5):
            with self.subTest(keep):
                self.setUp()
                _, files, _ = self.check(script, max_to_keep=keep)
                self.assertEqual(len([f for f in files if f.endswith(".index")]), min(keep, 3))

    def test_no_limit(self):
        _, files, states = self.check(["save d/s %d 1" % step for step in range(8)] + ["list"], max_to_keep=0)
        self.assertEqual(len(files), 2 * 8 + 1)
        self.assertEqual(states["d/checkpoint"].count("all_model_checkpoint_paths"), 1)

    def test_every_n_hours(self):
        script = []
        for step in range(1, 13):
            script += ["advance %d" % (600 * (1 + step % 4)), "save d/s %d 1" % step]
        _, files, _ = self.check(script + ["list"], max_to_keep=2, every_n_hours=1)
        kept = [f for f in files if f.endswith(".index")]
        self.assertGreater(len(kept), 3, "some of those that fell out stay")
        self.assertLess(len(kept), 12)

    def test_saves_at_one_instant(self):
        _, files, _ = self.check(["advance 1"] + ["save d/s %d 1" % step for step in (1, 2, 3, 4)], max_to_keep=2,
                                 every_n_hours=0.7 / 3600)
        self.assertEqual([f for f in files if f.endswith(".index")], ["d/s-%d.index" % i for i in (1, 3, 4)])

    def test_names(self):
        self.check(["save d/s 5 1", "save d/s 123456789 1", "save d/s - 1", "list"], pad=1)
        self.setUp()
        self.check(["save d/s 5 1", "save d/model.ckpt - 1", "save here 3 1"], latest_filename="mine")

    def test_paths_in_the_state_file(self):
        for relative in (0, 1):
            for where in ("d", "DIR"):
                with self.subTest((relative, where)):
                    self.setUp()
                    _, _, states = self.check(["save %s/s %d 1" % (where, step) for step in (1, 2)],
                                              relative=relative)
                    self.assertEqual("FOLDER" in states["d/checkpoint"], where == "DIR" and not relative)

    def test_history(self):
        script = ["save d/s %d 1" % step for step in (1, 2, 3)]
        self.check(script + ["new", "list", "save d/s 4 1", "list"], max_to_keep=3)
        self.setUp()
        self.check(script + ["new", "recover d", "list", "save d/s 4 1", "list"], max_to_keep=3)
        self.setUp()
        self.check(script + ["set d/s-2 d/s-3", "save d/s 4 1", "save d/s 5 1", "list"], max_to_keep=2)

    def test_a_list_that_is_too_long_shrinks_at_once(self):
        """Deliberate difference: TensorFlow deletes one with each save, so its list stays too long."""
        script = ["save d/s %d 1" % step for step in (1, 2, 3, 4)]
        script += ["set d/s-1 d/s-2 d/s-3 d/s-4", "save d/s 5 1", "list"]
        ours, theirs = self.both(script, max_to_keep=2)
        self.assertEqual(ours[0][-1], "d/s-4 d/s-5")
        self.assertEqual(theirs[0][-1], "d/s-2 d/s-3 d/s-4 d/s-5")

    def test_each_reads_the_other(self):
        for shards in (None, 1, 3):
            with self.subTest(shards):
                self.setUp()
                options = {} if shards is None else {"shards": shards}
                prefix = os.path.join(self.folder, "s-7")
                for value in (2.5, 3.5):  # The second one replaces the first.
                    self.assertEqual(self.ours(["save %s 7 %f" % (prefix[:-2], value)], self.folder, **options), [prefix])
                    with tf.Graph().as_default(), tf1.Session() as session:
                        v = tf1.get_variable("v", [], use_resource=True)
                        w = tf1.get_variable("w", [2, 3], use_resource=True)
                        tf1.train.Saver().restore(session, tf.train.latest_checkpoint(self.folder))
                        self.assertEqual(session.run(v), value)
                        np.testing.assert_array_equal(session.run(w).ravel(), np.arange(6) + value)
                        theirs = os.path.join(self.folder, "theirs")
                        tf1.train.Saver(sharded=shards is not None).save(session, theirs, write_state=False)
                    self.assertEqual(self.ours(["restore " + theirs], self.folder),
                                     ["v [] %g" % value,
                                      "w [2,3] " + ",".join("%g" % (i + value) for i in range(6))])
                names = [f for f in os.listdir(self.folder) if re.match(r"s-7\.data-\d{5}-of-\d{5}$", f)]
                self.assertEqual(len(names), shards or 1)

    def test_tensorflow_lists_and_removes_ours(self):
        self.ours(["save s %d 1" % step for step in (1, 2)], self.folder, shards=2)
        prefixes = [os.path.join(self.folder, "s-%d" % step) for step in (1, 2)]
        self.assertEqual(list(tf.train.get_checkpoint_state(self.folder).all_model_checkpoint_paths), prefixes)
        self.assertEqual(len(tf1.train.get_checkpoint_mtimes(prefixes)), 2)
        tf1.train.remove_checkpoint(prefixes[0])
        self.assertEqual(len(os.listdir(self.folder)), 4, "state file, index and two data files")


if __name__ == "__main__":
    SAVER_SCRIPT = os.path.abspath(sys.argv.pop(1))
    unittest.main()
