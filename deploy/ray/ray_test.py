"""Trains on three Ray nodes of one machine; a worker, the chief and a node die. The digest must be that of one process.

Usage: ray_test.py LOCKSTEP CONFIG   (in a network namespace of its own: ray_test.sh)
"""

import os
import subprocess
import sys
import tempfile
import threading
import time

import ray
from ray.cluster_utils import Cluster

LOCKSTEP, CONFIG = (os.path.abspath(path) for path in sys.argv[1:])
STEPS = 6000


def say(*words):
  print(f"{time.monotonic() - BEGAN:4.0f}s", *words, flush=True)


def digest(logdir):
  return subprocess.run([LOCKSTEP, "inspect", logdir, "--digest"], capture_output=True, text=True, check=True).stdout


def processes(*words):
  """Returns the processes whose command line has all the words."""
  found = []
  for process in filter(str.isdigit, os.listdir("/proc")):
    try:
      with open(f"/proc/{process}/cmdline", encoding="utf-8", errors="replace") as file:
        line = file.read().split("\0")
    except OSError:
      continue
    if all(any(word in argument for argument in line) for word in words):
      found.append(int(process))
  return found


def await_processes(*words):
  deadline = time.monotonic() + 60
  while not processes(*words):
    assert time.monotonic() < deadline, f"no process {words}"
    time.sleep(0.1)
  return processes(*words)


def step(logdir):
  try:
    with open(os.path.join(logdir, "checkpoint"), encoding="utf-8") as file:
      return int(file.readline().split("ckpt-")[1].rstrip('"\n'))
  except (OSError, IndexError):
    return -1


def await_step(logdir, wanted):
  deadline = time.monotonic() + 120
  while step(logdir) < wanted:
    assert time.monotonic() < deadline, f"still at step {step(logdir)}"
    time.sleep(0.1)
  say("step", step(logdir))


def main():
  sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
  os.environ.update(LOCKSTEP=LOCKSTEP, RAY_USAGE_STATS_ENABLED="0", LOCKSTEP_STEPS=str(STEPS))
  work = tempfile.mkdtemp()
  alone, logdir = os.path.join(work, "alone"), os.path.join(work, "run")
  subprocess.run([LOCKSTEP, "local", CONFIG, f"--logdir={alone}"], check=True, capture_output=True)
  say("one process has", digest(alone).strip())
  node = {"num_cpus": 2, "object_store_memory": 100 << 20}
  cluster = Cluster(initialize_head=True, head_node_args={**node, "include_dashboard": False})
  nodes = [cluster.add_node(**node) for _ in range(2)]
  ray.init(address=cluster.address, _node_ip_address=ray.util.get_node_ip_address())
  say("a cluster of", len(cluster.list_all_nodes()), "nodes")
  import lockstep_on_ray  # pylint: disable=import-outside-toplevel
  result = []
  run = threading.Thread(target=lambda: result.append(lockstep_on_ray.train(CONFIG, logdir, 3)))
  run.start()
  await_step(logdir, 20)
  os.kill(await_processes("worker", "--name=worker-0", "--master=file:" + logdir)[0], 9)
  say("a worker was killed")
  await_step(logdir, step(logdir) + 200)
  os.kill(await_processes("chief_main", "--logdir=" + logdir)[0], 9)
  say("the chief was killed")
  await_step(logdir, step(logdir) + 200)
  cluster.remove_node(nodes[1], allow_graceful=False)
  say("a node is gone")
  run.join()
  say("the chief ended with", result)
  assert result == [0]
  assert digest(logdir) == digest(alone), digest(logdir)
  say("the same digest")
  ray.shutdown()
  cluster.shutdown()


if __name__ == "__main__":
  BEGAN = time.monotonic()
  main()
