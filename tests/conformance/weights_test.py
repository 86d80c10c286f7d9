"""NumPy and safetensors read weights and data that `lockstep export` writes, and Lockstep reads what they write.

Argument: lockstep_main, the program.
"""
import os
import subprocess
import sys
import tempfile
import unittest

import numpy as np

try:
    import safetensors.numpy as safetensors
except ImportError:
    safetensors = None

LOCKSTEP = None

CONFIG = """
model {
  layer { name: "grid" reshape { shape: 2 shape: -1 } }
  layer { name: "flat" flatten {} }
  layer { name: "hidden" dense { units: 5 activation: RELU } }
  layer { name: "logits" dense { units: 3 } }
  loss { softmax_cross_entropy {} }
}
input { split { name: "train" %s } batch_size: 4 }
optimizer { %s learning_rate { initial: %s } }
training { steps: %d seed: 1 }
%s
"""
NPZ = 'npz { file: "data.npz" features: "features" labels: "labels" }'


def lockstep(directory, *arguments, fails=False):
    result = subprocess.run([LOCKSTEP, *arguments], cwd=directory, capture_output=True, text=True)
    if (result.returncode != 0) != fails:
        raise AssertionError(f"{arguments} exited with {result.returncode}\n{result.stdout}\n{result.stderr}")
    return result.stderr if fails else result.stdout


class WeightsTest(unittest.TestCase):

    def setUp(self):
        self.directory = tempfile.mkdtemp()
        random = np.random.default_rng(1)
        self.features = random.normal(size=(40, 4)).astype(np.float32)
        self.labels = (self.features[:, 0] > 0).astype(np.int64) + (self.features[:, 1] > 1)
        np.savez_compressed(self.path("data.npz"), features=self.features, labels=self.labels)

    def path(self, name):
        return os.path.join(self.directory, name)

    def train(self, logdir, split=NPZ, optimizer="adam {}", rate=0.1, steps=5, more=""):
        with open(self.path("config.textproto"), "w") as file:
            file.write(CONFIG % (split, optimizer, rate, steps, more))
        lockstep(self.directory, "local", "config.textproto", f"--logdir={logdir}")
        return lockstep(self.directory, "inspect", logdir, "--digest")

    def export(self, name, *flags):
        lockstep(self.directory, "export", "run", f"--out={name}", *flags)
        return self.path(name)

    def test_numpy_and_safetensors_read_ours(self):
        self.train("run")
        with np.load(self.export("weights.npz")) as weights:
            arrays = {name: weights[name] for name in weights.files}
        self.assertEqual(sorted(arrays), ["hidden/bias", "hidden/kernel", "logits/bias", "logits/kernel"])
        self.assertEqual(arrays["hidden/kernel"].shape, (4, 5))
        self.assertEqual(arrays["hidden/kernel"].dtype, np.float32)
        # These are the run's weights, because the answers are the same.
        lockstep(self.directory, "predict", "--logdir=run", "--split=train", "--output=out.csv", "--probabilities")
        answers = np.loadtxt(self.path("out.csv"), delimiter=",", skiprows=1)
        hidden = np.maximum(self.features @ arrays["hidden/kernel"] + arrays["hidden/bias"], 0)
        logits = hidden @ arrays["logits/kernel"] + arrays["logits/bias"]
        probabilities = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
        np.testing.assert_array_equal(answers[:, 1], self.labels)
        np.testing.assert_allclose(answers[:, 3:], probabilities, atol=1e-5)
        with np.load(self.export("all.npz", "--optimizer_state")) as everything:
            self.assertEqual(everything["global_step"], 5)
            self.assertEqual(everything["global_step"].dtype, np.int64)
            self.assertEqual(everything["hidden/kernel/Adam_1"].shape, (4, 5))
            self.assertEqual(everything["beta1_power"].shape, ())
        if safetensors is None:
            return
        theirs = safetensors.load_file(self.export("weights.safetensors"))
        self.assertEqual(sorted(theirs), sorted(arrays))
        for name, value in arrays.items():
            np.testing.assert_array_equal(theirs[name], value)
        everything = safetensors.load_file(self.export("all.safetensors", "--optimizer_state"))
        self.assertEqual(everything["global_step"], 5)

    def test_a_run_starts_from_files_that_they_wrote(self):
        start = {
            "hidden/kernel": np.arange(20, dtype=np.float32).reshape(4, 5),
            "hidden/bias": np.full(5, 0.25, np.float32),
            "logits/kernel": np.arange(15, dtype=np.float32).reshape(5, 3),
            "logits/bias": np.array([1, 2, 3], np.float32),
        }
        np.savez(self.path("start.npz"), **start)
        np.savez_compressed(self.path("packed.npz"), **start)
        # These values are the same in every float type.
        np.savez(self.path("double.npz"), **{name: value.astype(np.float64) for name, value in start.items()})
        np.savez(self.path("half.npz"), **{name: value.astype(np.float16) for name, value in start.items()})
        files = ["start.npz", "packed.npz", "double.npz", "half.npz"]
        if safetensors is not None:
            safetensors.save_file(start, self.path("start.safetensors"), metadata={"format": "np"})
            files.append("start.safetensors")
        for file in files:
            # A step at this rate changes no bit of these values.
            self.train("run", optimizer="sgd {}", rate="1e-30", steps=1,
                       more=f'checkpoint {{ warm_start: "{file}" warm_start_variables {{ require_all: true }} }}')
            with np.load(self.export("started.npz")) as weights:
                for name, value in start.items():
                    np.testing.assert_array_equal(weights[name], value, file)
            subprocess.run(["rm", "-r", self.path("run")], check=True)

    def test_what_is_not_read_says_what_to_do(self):
        for name, array, says in (
            ("fortran.npz", np.asfortranarray(np.zeros((4, 5), np.float32)), "is in Fortran order"),
            ("big.npz", np.zeros((4, 5), ">f4"), "is big-endian"),
            ("objects.npz", np.array([None, 1], object), "has elements of the type"),
            ("integers.npz", np.zeros((4, 5), np.int32), "is int32[4,5], the model declares float32[4,5]"),
        ):
            np.savez(self.path(name), **{"hidden/kernel": array})
            with open(self.path("config.textproto"), "w") as file:
                file.write(CONFIG % (NPZ, "sgd {}", 0.1, 1, f'checkpoint {{ warm_start: "{name}" }}'))
            self.assertIn(says, lockstep(self.directory, "local", "config.textproto", "--logdir=refused", fails=True))

    def test_every_format_gives_the_same_data(self):
        digest = self.train("run")
        np.savez(self.path("data.npz"), features=self.features, labels=self.labels.astype(np.uint8))
        self.assertEqual(self.train("stored"), digest)
        np.save(self.path("x.npy"), self.features)
        np.save(self.path("y.npy"), self.labels.astype(np.int32))
        self.assertEqual(self.train("npy", 'npy { features: "x.npy" labels: "y.npy" }'), digest)
        for number, rows in enumerate(np.array_split(np.arange(40), 3)):
            with open(self.path(f"part-{number}.csv"), "w") as file:
                file.write("a,b,c,d,label\n")
                for row in rows:
                    file.write(",".join(repr(float(x)) for x in self.features[row]) + f",{self.labels[row]}\n")
        columns = 'column { name: "a" last: "d" } column { name: "label" type: LABEL }'
        self.assertEqual(self.train("csv", f'csv {{ file: "part-*.csv" {columns} }}'), digest)


if __name__ == "__main__":
    LOCKSTEP = os.path.abspath(sys.argv[1])
    if safetensors is None and os.environ.get("CI") == "true":
        sys.exit("safetensors is not installed")
    unittest.main(argv=sys.argv[:1], verbosity=2)
