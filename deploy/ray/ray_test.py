"""Trains on three Ray nodes on one machine, where a worker, a node and the chief die. The digest must be the same as
with one process.

Usage: ray_test.py LOCKSTEP CONFIG   (in separate namespaces: ray_test.sh)

The run cannot reach its end before the last kill. The chief that Ray starts afterwards reads its last step from the
configuration. Then one process computes the same number of steps.
"""

import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

import ray
from ray.cluster_utils import Cluster

LOCKSTEP, CONFIG = (os.path.abspath(path) for path in sys.argv[1:])
WORKERS = 3
# So many steps that on no machine an event below comes too late.
ENDLESS = 1000000000
# Lets Ray detect a dead node after one second instead of half a minute, and prevents it from starting processes in
# advance.
RAY = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_enable_worker_prestart": "0", "RAY_prestart_worker_first_driver": "0",
       "RAY_health_check_initial_delay_ms": "500", "RAY_health_check_period_ms": "500"}
BEGAN = time.monotonic()


def say(*words):
  print(f"{time.monotonic() - BEGAN:4.0f}s", *words, flush=True)


def write_config(path, steps):
  """Writes CONFIG's run with small layers, ending at `steps`. Steps are so short that a kill comes between two of
  many."""
  with open(CONFIG, encoding="utf-8") as file:
    text = file.read()
  for old, new in ((r"units: 256", "units: 16"), (r"shape: 256", "shape: 16"), (r"batch_size: \d+", "batch_size: 8"),
                   (r"{ steps: \d+", f"{{ steps: {steps}"), (r"every_steps: \d+", "every_steps: 100")):
    text, count = re.subn(old, new, text)
    assert count, old
  with open(path, "w", encoding="utf-8") as file:
    file.write(text)


def digest(logdir):
  return subprocess.run([LOCKSTEP, "inspect", logdir, "--digest"], capture_output=True, text=True, check=True).stdout


def processes(*words):
  """Returns the running processes that have each of the words as an argument, or as the last part of a path."""
  found = set()
  for process in filter(str.isdigit, os.listdir("/proc")):
    try:
      with open(f"/proc/{process}/cmdline", encoding="utf-8", errors="replace") as file:
        arguments = file.read().split("\0")[:-1]  # Empty for a process that has ended.
    except OSError:
      continue
    if arguments and all(any(argument == word or argument.endswith("/" + word) for argument in arguments) for word in words):
      found.add(int(process))
  return found


def tasks(*words):
  """Returns the processes of `lockstep task`, one for each actor."""
  return processes("task", *words)


def descendants(ancestor):
  """Returns the process and all its descendants."""
  children = {}
  for process in filter(str.isdigit, os.listdir("/proc")):
    try:
      with open(f"/proc/{process}/stat", encoding="utf-8", errors="replace") as file:
        children.setdefault(int(file.read().rpartition(")")[2].split()[1]), []).append(int(process))
    except OSError:
      continue
  found = [ancestor]
  for process in found:  # The list grows during the loop.
    found += children.get(process, [])
  return set(found)


def wait_until(what, happened):
  """Returns the result of happened() once it is true. The limit catches a test that hangs."""
  end = time.monotonic() + 120
  while not (value := happened()):
    assert time.monotonic() < end, f"never: {what}"
    time.sleep(0.05)
  say(what)
  return value


def kill(doomed):
  """Kills the processes such that none of them sees another one end."""
  for number in (signal.SIGSTOP, signal.SIGKILL):
    for process in doomed:
      with contextlib.suppress(ProcessLookupError):  # It ended on its own.
        os.kill(process, number)
  wait_until("they are dead", lambda: not doomed & processes())


def saved_step(logdir):
  try:
    with open(os.path.join(logdir, "checkpoint"), encoding="utf-8") as file:
      return int(file.readline().split("ckpt-")[1].rstrip('"\n'))
  except (OSError, IndexError):
    return -1


def await_progress(logdir):
  before = saved_step(logdir)
  wait_until(f"trains on after step {before}", lambda: saved_step(logdir) > before)


def kill_worker(logdir):
  """Kills a worker. Its `lockstep task` starts a new one."""
  name = ("worker", "--name=worker-0")
  killed = wait_until("a worker is killed", lambda: processes(*name))
  kill(killed)
  wait_until("another one runs", lambda: processes(*name) - killed)
  await_progress(logdir)


def kill_node(nodes, logdir):
  """Kills everything that runs on a node with a task. Ray restarts the actor on another node."""
  on_node = [descendants(node.all_processes["raylet"][0].process.pid) for node in nodes]
  say("a node is killed")
  kill(next(running for running in on_node if running & tasks()))
  wait_until("its tasks run on other ones", lambda: len(tasks()) == WORKERS + 1)
  await_progress(logdir)


def kill_chief(config, logdir):
  """Kills the chief with its `lockstep task`. Ray restarts the actor, whose chief ends 200 steps after a checkpoint."""
  both = lambda: tasks("--role=chief") | processes("chief", "--logdir=" + logdir)
  wait_until("the chief is killed", lambda: len(both()) == 2)
  doomed = both()
  for process in doomed:
    os.kill(process, signal.SIGSTOP)
  write_config(config, saved_step(logdir) + 200)
  kill(doomed)


def main():
  sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
  os.environ.update(RAY, LOCKSTEP=LOCKSTEP)
  work = tempfile.mkdtemp()
  config, alone, logdir = (os.path.join(work, name) for name in ("run.textproto", "alone", "run"))
  write_config(config, ENDLESS)
  node = {"num_cpus": 2, "object_store_memory": 100 << 20}
  cluster = Cluster(initialize_head=True, head_node_args={**node, "include_dashboard": False})
  nodes = [cluster.add_node(**node) for _ in range(2)]
  ray.init(address=cluster.address, _node_ip_address=ray.util.get_node_ip_address())
  say("a cluster of", len(cluster.list_all_nodes()), "nodes")
  import lockstep_on_ray  # pylint: disable=import-outside-toplevel
  result = []
  run = threading.Thread(target=lambda: result.append(lockstep_on_ray.train(config, logdir, WORKERS)), daemon=True)
  run.start()
  wait_until("every task runs", lambda: len(tasks()) == WORKERS + 1)
  await_progress(logdir)
  kill_worker(logdir)
  kill_node(nodes, logdir)
  kill_chief(config, logdir)
  run.join()
  say("the chief ended with", result, "at step", saved_step(logdir))
  assert result == [0]
  subprocess.run([LOCKSTEP, "local", config, f"--logdir={alone}"], check=True, capture_output=True)
  say("one process has", digest(alone).strip())
  assert digest(logdir) == digest(alone), digest(logdir)


if __name__ == "__main__":
  main()
  sys.stdout.flush()
  os._exit(0)  # A regular exit of Ray takes five seconds. Its processes end with their namespace.
