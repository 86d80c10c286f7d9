"""A training run on Ray: one actor is the chief, the others are workers. Ray replaces actors that it loses with a node.

  python lockstep_on_ray.py CONFIG LOGDIR WORKERS [-- COMMAND ...]

LOGDIR is a directory that all nodes can access. COMMAND computes, e.g. python train.py; the default is `lockstep
worker`. LOCKSTEP names the program; the default is "lockstep". `lockstep task` itself restarts processes that were
killed.
"""

import os
import subprocess
import sys

import ray
from ray.util.placement_group import placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

# Finished, failed, misconfigured or stopped: a restart does not help (lockstep --help).
FINAL = (0, 1, 2, 143)


@ray.remote(num_cpus=1, max_restarts=-1, max_task_retries=-1)
class Task:
  """Runs one `lockstep task`."""

  def run(self, arguments, environment):
    """Returns the exit code. If a restart may help, the actor ends, and Ray repeats the call on a new one."""
    here = {"LOCKSTEP_ADVERTISE": ray.util.get_node_ip_address()}
    # The processes end when the actor ends, for any reason.
    program = ["setpriv", "--pdeathsig=TERM", os.environ.get("LOCKSTEP", "lockstep"), "task", *arguments]
    code = subprocess.run(program, env={**os.environ, **here, **environment}, check=False).returncode
    if code not in FINAL:
      os._exit(1)  # pylint: disable=protected-access
    return code


def train(config, logdir, workers, command=()):
  """Runs the processes until the run is over. Returns the chief's exit code. Call this after ray.init."""
  environment = {"LOCKSTEP_MASTER": f"file:{os.path.abspath(logdir)}/chief.address"}
  os.makedirs(logdir, exist_ok=True)
  places = placement_group([{"CPU": 1}] * (workers + 1), strategy="SPREAD")
  ray.get(places.ready())
  task = Task.options(scheduling_strategy=PlacementGroupSchedulingStrategy(places))
  chief = task.remote()
  others = [task.remote() for _ in range(workers)]
  program = ["--", *command] if command else []
  ends = [worker.run.remote(["--role=worker", f"--name=worker-{index}", *program], environment)
          for index, worker in enumerate(others)]
  # Connections are unencrypted: Ray itself needs a network of trusted machines. A node with LOCKSTEP_TLS_DIR uses TLS
  # nevertheless.
  flags = ["--role=chief", f"--logdir={os.path.abspath(logdir)}", "--insecure"]
  code = ray.get(chief.run.remote([os.path.abspath(config), *flags], environment))
  ray.wait(ends, num_returns=workers, timeout=30)  # The workers learn of the end on their own.
  return code


if __name__ == "__main__":
  ray.init(address="auto")
  rest = sys.argv[4:]
  sys.exit(train(sys.argv[1], sys.argv[2], int(sys.argv[3]), rest[1:] if rest[:1] == ["--"] else rest))
