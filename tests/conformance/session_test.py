"""Compares our MonitoredTrainingSession and hooks with TensorFlow's on the same schedules: both make the same calls in
the same order, leave the same checkpoints, write the same records to event files, and fail in the same cases.

Argument: session_script, the program. Tests of deliberate differences say so (docs/differences.md).
"""
import os
import random
import sys
import tempfile
import unittest
from unittest import mock

from script_session import Theirs, checkpoints, events, run_ours, tf1

SESSION_SCRIPT = None


def ours(script, mode="run"):
    return run_ours(SESSION_SCRIPT, script, mode)


class SessionTest(unittest.TestCase):
    def setUp(self):
        os.chdir(tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR")))  # Some of TensorFlow's hooks write immediately.

    def both(self, script, folder=None):
        """Returns the output of each, its result, and its folder, which the script calls LOGDIR."""
        folder = folder or tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
        results = []
        for name in ("ours", "theirs"):
            logdir = os.path.join(folder, name)
            lines = [line.replace("LOGDIR", logdir) for line in script]
            if name == "ours":
                out = ours(lines)
                out, end = out[:-1], out[-1]
            else:
                out, end = Theirs().run(lines)
            results.append((out, end, logdir))
        return results

    def check_calls(self, script, end="OK"):
        (ours_out, ours_end, _), (theirs_out, theirs_end, _) = self.both(script)
        self.assertEqual(ours_out, theirs_out)
        self.assertEqual(theirs_end, end)
        self.assertEqual(ours_end.split(":")[0], end)
        return ours_out, ours_end

    # Calls of hooks.

    def test_order_of_calls(self):
        for count in (1, 2, 3):
            hooks = ["hook record name=" + name for name in "abc"[:count]]
            with self.subTest(count):
                out, _ = self.check_calls(hooks + ["hook stop last_step=3", "session"])
                self.assertEqual(len(out), count * (3 + 2 * 3) + 3)

    def test_stop_at_step(self):
        for stop in ("num_steps=4", "last_step=4", "num_steps=1", "last_step=1"):
            with self.subTest(stop):
                self.check_calls(["hook record name=a", "hook stop " + stop, "session"])

    def test_stop_at_step_in_a_second_life(self):
        """num_steps counts from the current step. A last_step that has been reached still allows the one run that
        always happens."""
        folder = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
        for stop, last in (("num_steps=4", 4), ("num_steps=4", 8), ("num_steps=3", 11), ("last_step=9", 12)):
            script = ["hook record name=a", "hook stop " + stop, "session logdir=LOGDIR"]
            (ours_out, ours_end, _), (theirs_out, theirs_end, _) = self.both(script, folder)
            self.assertEqual((ours_out, ours_end), (theirs_out, theirs_end))
            self.assertEqual(ours_out[-1], "a end %d" % last)

    def test_a_hook_requests_the_stop(self):
        for where in ("before@0", "after@1", "before@2", "after@3"):
            for asks in (0, 2):
                hooks = ["hook record name=" + name for name in "abc"]
                hooks[asks] += " stop=" + where
                with self.subTest((where, asks)):
                    self.check_calls(hooks + ["session"])

    def test_no_run_after_a_stop(self):
        for hook in ("hook record name=a stop=after@2", "hook stop num_steps=2"):
            self.check_calls([hook, "session more=1"], "FAILED_PRECONDITION")

    def test_a_hook_fails(self):
        """No hook's End is called. A failure in End itself skips the End of later hooks."""
        for where in ("begin", "created", "before@0", "before@2", "after@1", "after@3", "end"):
            for fails in (0, 1):
                hooks = ["hook record name=" + name for name in "abc"]
                hooks[fails] += " fail=" + where
                with self.subTest((where, fails)):
                    _, end = self.check_calls(hooks + ["hook stop last_step=4", "session"], "INTERNAL")
                    self.assertIn("abc"[fails], end, "it is named")

    def test_the_loop_fails(self):
        out, _ = self.check_calls(["hook record name=a", "session fail_at=3"], "INTERNAL")
        self.assertEqual(out[-1], "ran 3")

    def test_the_loop_is_left(self):
        out, _ = self.check_calls(["hook record name=a", "session break_at=3"])
        self.assertEqual(out[-1], "a end 3")

    def test_the_input_ends(self):
        for steps in (1, 4):
            with self.subTest(steps):
                out, _ = self.check_calls(["hook record name=a", "hook record name=b",
                                           "session forever=1 input_steps=%d" % steps])
                self.assertEqual(out[-4:], ["a before %d" % steps, "b before %d" % steps, "a end %d" % steps,
                                            "b end %d" % steps])

    def test_out_of_range_of_a_hook_is_a_good_end(self):
        for where in ("before@0", "before@2", "after@3"):
            with self.subTest(where):
                hooks = ["hook record name=a", "hook record name=b range=" + where, "hook record name=c"]
                self.check_calls(hooks + ["session"])

    def test_a_stop_does_not_hide_an_error(self):
        self.check_calls(["hook record name=a stop=after@2", "hook record name=b fail=after@2", "session"], "INTERNAL")
        self.check_calls(["hook record name=a stop=after@2", "hook record name=b fail=end", "session"], "INTERNAL")

    def test_closed_once(self):
        """TensorFlow calls End again if it is closed twice. The second close is an error for both."""
        script = ["hook record name=a", "hook stop last_step=2", "session close_twice=1"]
        (ours_out, ours_end, _), (theirs_out, theirs_end, _) = self.both(script)
        self.assertEqual(ours_out, theirs_out[:-1])
        self.assertEqual(theirs_out[-2:], ["a end 2", "a end"])
        self.assertEqual((ours_end.split(":")[0], theirs_end), ("FAILED_PRECONDITION", "FAILED_PRECONDITION"))

    # Other hooks.

    def test_logging(self):
        for every in ("iter=1", "iter=3", "iter=10", "secs=2.5", "at_end=1", "iter=4 at_end=1", "secs=1.1 at_end=1"):
            with self.subTest(every):
                self.check_calls(["hook record name=a advance=1", "hook logging " + every, "hook stop last_step=11",
                                  "session"])

    def test_listeners(self):
        for period in ("steps=1", "steps=2", "steps=7", "secs=2", "secs=2.4"):
            for more in ("", " listener_stop=0", " listener_stop=4"):
                with self.subTest((period, more)):
                    script = ["hook record name=a advance=0.7", "hook saver %s listener=l%s" % (period, more),
                              "hook stop last_step=8",
                              "session logdir=LOGDIR checkpoint_secs=none checkpoint_steps=none"]
                    self.check_calls(script)

    # Checkpoints.

    def check_checkpoints(self, script, ours_more=(), folder=None):
        """Both leave the same checkpoints, except for `ours_more`."""
        (_, _, ours_dir), (_, _, theirs_dir) = self.both(script, folder)
        mine, others = checkpoints(ours_dir), checkpoints(theirs_dir)
        self.assertEqual(mine[0], sorted(set(others[0]) | set(ours_more)), "files")
        self.assertEqual(mine[1], sorted(set(others[1]) | set(ours_more)), "the state file")
        return mine

    def test_checkpoints_that_are_left(self):
        left = set()
        for steps in (1, 2, 3, 5, 100):
            for keep in (1, 2, 5):
                with self.subTest((steps, keep)):
                    left.add(tuple(self.check_checkpoints(
                        ["hook record name=a", "hook stop last_step=%d" % (6 + steps % 3),
                         "session logdir=LOGDIR checkpoint_steps=%d keep=%d" % (steps, keep)])[0]))
        self.assertGreaterEqual(len(left), 10, "settings differ in what they leave")

    def test_all_checkpoints_are_kept(self):
        files, named = self.check_checkpoints(["hook stop last_step=9",
                                               "session logdir=LOGDIR checkpoint_steps=1 keep=0"])
        self.assertEqual((files, named), (list(range(10)), [9]))

    def test_checkpoints_by_default(self):
        """The default is every 600 seconds, so the first and the last step are saved."""
        self.assertEqual(self.check_checkpoints(["hook stop last_step=3", "session logdir=LOGDIR"])[0], [0, 3])

    def test_checkpoints_of_the_hook(self):
        for period in ("steps=1", "steps=3", "steps=4", "secs=2 listener=l", "secs=100 listener=l"):
            for keep in (1, 3):
                with self.subTest((period, keep)):
                    self.check_checkpoints(
                        ["hook record name=a advance=0.7", "hook saver " + period, "hook stop last_step=8",
                         "session logdir=LOGDIR checkpoint_secs=none checkpoint_steps=none keep=%d" % keep])

    def test_checkpoints_of_several_lives(self):
        folder = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
        for life in range(3):
            self.check_checkpoints(["hook record name=a", "hook stop num_steps=6",
                                    "session logdir=LOGDIR checkpoint_steps=3 keep=4"], folder=folder)

    def test_restart_between_two_checkpoints(self):
        """Deliberate difference: the chief saves at multiples of the period, TensorFlow counts from where a life
        begins."""
        folder = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
        for last in (7, 18):
            (_, _, ours_dir), (_, _, theirs_dir) = self.both(
                ["hook record name=a", "hook stop last_step=%d" % last,
                 "session logdir=LOGDIR checkpoint_steps=5 keep=9"], folder)
        self.assertEqual(checkpoints(ours_dir)[0], [0, 5, 7, 10, 15, 18])
        self.assertEqual(checkpoints(theirs_dir)[0], [0, 5, 7, 12, 17, 18])

    def test_a_failure_is_saved(self):
        """Deliberate difference: TensorFlow saves nothing after an error."""
        for where, step in (("after@4", 4), ("before@3", 3)):
            self.check_checkpoints(["hook record name=a fail=" + where, "session logdir=LOGDIR checkpoint_steps=100"],
                                   ours_more=[step])
        self.check_checkpoints(["hook record name=a", "session logdir=LOGDIR checkpoint_steps=2 fail_at=3"],
                               ours_more=[3])

    def test_both_periods_of_checkpoints(self):
        """Deliberate difference: ours may have both, and 0 is not a period."""
        for periods in ("checkpoint_steps=2 checkpoint_secs=3", "summary_steps=0 summary_secs=3"):
            script = ["hook stop last_step=2", "session logdir=LOGDIR " + periods]
            (_, ours_end, _), (_, theirs_end, _) = self.both(script)
            self.assertEqual((ours_end, theirs_end), ("OK", "INVALID_ARGUMENT"))

    def test_none_without_a_logdir(self):
        (_, _, ours_dir), (_, _, theirs_dir) = self.both(["hook stop last_step=3", "session checkpoint_steps=1"])
        self.assertFalse(os.path.exists(ours_dir) or os.path.exists(theirs_dir))

    # Records in event files.

    def check_events(self, script, ours_more=(), folder=None):
        """Both write the same records of each kind in the same order, except for `ours_more`, START and STOP. Ours
        writes START and STOP in every life. TensorFlow writes START in its SummarySaverHook, at the first run, and STOP
        only in a Supervisor."""
        (_, _, ours_dir), (_, _, theirs_dir) = self.both(script, folder)
        mine, others = events(ours_dir), events(theirs_dir)
        for kind in ("summary", "CHECKPOINT"):
            kept = [event for event in mine if event[0] == kind and event not in ours_more]
            self.assertEqual(kept, [event for event in others if event[0] == kind])
        self.assertLessEqual(set(ours_more), set(mine))
        self.assertEqual([event for event in mine if event[0] == "START"], [("START", 0, "")])
        self.assertEqual([kind for kind, _, _ in mine].count("STOP"), 1)
        self.assertEqual(mine[-1][0], "STOP")
        self.assertNotIn("STOP", [kind for kind, _, _ in others])
        self.assertIn([event for event in others if event[0] == "START"], ([], [("START", 1, "")]))
        return mine

    def test_records_of_a_session(self):
        for periods in ("summary_steps=1 log_steps=1", "summary_steps=4 log_steps=3", "summary_steps=100 log_steps=0",
                        "summary_steps=none summary_secs=none", "summary_steps=0"):
            with self.subTest(periods):
                mine = self.check_events(["hook record name=a advance=0.7", "hook stop last_step=10",
                                          "session logdir=LOGDIR checkpoint_steps=4 " + periods])
                self.assertEqual([step for kind, step, _ in mine if kind == "CHECKPOINT"], [0, 4, 8, 10])

    NO_DEFAULTS = ("session logdir=LOGDIR summary_steps=none summary_secs=none log_steps=0 checkpoint_steps=none "
                   "checkpoint_secs=none")

    def test_records_of_hooks(self):
        """The first and the last step are saved in every logdir."""
        for period in ("steps=1", "steps=3", "steps=8", "secs=2", "secs=0.3", "secs=50"):
            with self.subTest(period):
                self.check_events(["hook record name=a advance=0.7", "hook summary " + period, "hook counter " + period,
                                   "hook stop last_step=20", self.NO_DEFAULTS],
                                  ours_more=[("CHECKPOINT", 0, ""), ("CHECKPOINT", 20, "")])

    def test_timed_summaries_are_decided_after_a_run(self):
        """Deliberate difference: TensorFlow decides before the run, because it fetches the summary with the run."""
        script = ["hook record name=a lasts=0.7", "hook summary secs=2", "hook stop last_step=10", self.NO_DEFAULTS]
        (_, _, ours_dir), (_, _, theirs_dir) = self.both(script)
        steps = [[step for kind, step, _ in events(d) if kind == "summary"] for d in (ours_dir, theirs_dir)]
        self.assertEqual(steps, [[1, 4, 7, 10], [1, 5, 9]])

    # The timer.

    def test_second_or_step_timer(self):
        for seed in range(20):
            rng = random.Random(seed)
            period = {"steps": rng.randrange(1, 8)} if seed % 2 else {"secs": rng.choice([0.5, 1, 1.75, 3])}
            timer = tf1.train.SecondOrStepTimer(every_steps=period.get("steps"), every_secs=period.get("secs"))
            script, expected, step, now = ["timer %s=%s" % item for item in period.items()], [], 0, 0.0
            for _ in range(200):
                step = max(0, step + rng.choice([-2, 0, 1, 1, 2, 5]))
                with mock.patch("time.time", lambda: now):
                    if rng.random() < 0.3:
                        now += (seconds := rng.choice([0, 0.25, 0.5, 1.25]))
                        script.append("advance secs=%s" % seconds)
                    elif rng.random() < 0.7:
                        script.append("ask step=%d" % step)
                        expected.append(str(int(timer.should_trigger_for_step(step))))
                    else:
                        script.append("update step=%d" % step)
                        seconds, steps = timer.update_last_triggered_step(step)
                        expected.append("first" if seconds is None else "%g %d" % (seconds, steps))
            self.assertEqual(ours(script, "timer"), expected, seed)

    # Wrong arguments.

    WRONG = [  # The line, and a part of our error message. TensorFlow also fails.
        ("hook stop", "num_steps and last_step"),
        ("hook stop num_steps=3 last_step=4", "num_steps and last_step"),
        ("hook saver", "period"),
        ("hook saver steps=2 secs=3", "period"),
        ("hook counter", "period"),
        ("hook counter steps=2 secs=3", "period"),
        ("hook summary", "period"),
        ("hook summary steps=2 secs=3", "period"),
        ("hook summary steps=2 provider=none", "provider"),
        ("hook logging", "every_n_iter and every_n_secs"),
        ("hook logging iter=2 secs=2", "every_n_iter and every_n_secs"),
        ("hook logging iter=2 secs=2 at_end=1", "every_n_iter and every_n_secs"),
        ("hook logging iter=0", "every_n_iter"),
        ("hook logging iter=-1", "every_n_iter"),
        ("hook profiler directory=d", "period"),
        ("hook profiler steps=2 secs=3 directory=d", "period"),
        ("session logdir=LOGDIR summary_steps=2 summary_secs=3", "save_summaries_secs"),
    ]
    # Deliberately an error only in ours: TensorFlow accepts each, but does not do what it says, or fails later.
    WRONG_HERE = [
        ("hook stop num_steps=0", "num_steps is 0"),
        ("hook stop num_steps=-2", "num_steps is -2"),
        ("hook stop last_step=0", "last_step is 0"),
        ("hook saver steps=0", "period"),
        ("hook saver secs=-1", "period"),
        ("hook counter steps=0", "period"),
        ("hook summary steps=-3", "period"),
        ("hook summary secs=0", "period"),
        ("hook logging secs=0", "every_n_secs"),
        ("hook profiler secs=-1 directory=d", "period"),
        ("session logdir=LOGDIR checkpoint_steps=-1", "save_checkpoint_steps: -1"),
        ("session logdir=LOGDIR checkpoint_secs=-1", "save_checkpoint_secs: -1s"),
        ("session logdir=LOGDIR summary_steps=-1", "save_summaries_steps: -1"),
        ("session logdir=LOGDIR summary_secs=-1", "save_summaries_secs: -1s"),
        ("session logdir=LOGDIR log_steps=-1", "log_step_count_steps: -1"),
    ]
    # Options without a counterpart in TensorFlow.
    WRONG_OF_OURS = [
        ("hook early patience=0", "patience is 0"),
        ("hook early min_delta=-1", "min_delta is -1"),
        ("hook early steps=0", "every_n_steps is 0"),
        ("hook waiter poll=0", "poll_interval is 0"),
        ("hook nan", "tensor"),
        ("hook final", "variables"),
        ("hook profiler steps=2", "output_directory"),
        ("hook logging iter=2 tensors=none", "tensors"),
        ("session logdir=LOGDIR grace=-1", "stop_grace"),
        ("session logdir=LOGDIR max_wait=-1", "max_wait: -1s"),
        ("session chief=0", "master"),
    ]

    def test_wrong_arguments(self):
        folder = os.path.join(tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR")), "logdir")
        lines = [line.replace("LOGDIR", folder) for line, _ in self.WRONG + self.WRONG_HERE + self.WRONG_OF_OURS]
        said = ours(lines, "check")
        self.assertEqual(len(said), len(lines))
        for line, text, (_, expected) in zip(lines, said, self.WRONG + self.WRONG_HERE + self.WRONG_OF_OURS):
            with self.subTest(line):
                self.assertTrue(text.startswith("INVALID_ARGUMENT: "), text)
                self.assertIn(expected, text)
        self.assertFalse(os.path.exists(folder), "nothing was started")
        for line, _ in self.WRONG:
            with self.subTest(line):
                self.assertEqual(Theirs().run([line.replace("LOGDIR", folder)])[1], "INVALID_ARGUMENT")
        for line, _ in self.WRONG_HERE:
            if line.startswith("hook"):
                with self.subTest(line):
                    self.assertEqual(Theirs().run([line])[1], "OK")


if __name__ == "__main__":
    SESSION_SCRIPT = os.path.abspath(sys.argv.pop(1))
    unittest.main()
