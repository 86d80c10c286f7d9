#!/usr/bin/env python3
"""A real Prometheus scrapes a real run's page: the metrics are well-formed, each dashboard expression has data, and an
alert fires when the chief makes no progress.

Usage: prometheus_test.py CHIEF WORKER LOCKSTEP CONFIG FOLDER_OF_PROMETHEUS DEPLOY
FOLDER_OF_PROMETHEUS contains the programs prometheus and promtool.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request

from cluster import Cluster

PROGRAMS = [os.path.abspath(path) for path in sys.argv[1:5]]
PROMETHEUS, DEPLOY = (os.path.abspath(path) for path in sys.argv[5:7])
PROMTOOL = os.path.join(PROMETHEUS, "promtool")


def get(url):
  with urllib.request.urlopen(url, timeout=5) as reply:
    return reply.read()


def wait_for(what, condition, seconds=60):
  end = time.monotonic() + seconds
  while True:
    try:
      if condition():
        return
    except OSError:
      pass
    assert time.monotonic() < end, f"{what}: not within {seconds} s"
    time.sleep(0.2)


def free_port():
  with socket.socket() as listener:
    listener.bind(("127.0.0.1", 0))
    return listener.getsockname()[1]


def write_configuration(directory, target):
  """Writes the configuration and the alerts of deploy/, but with shorter times: here an alert need not last for a
  minute."""
  with open(os.path.join(DEPLOY, "prometheus", "alerts.yml")) as rules:
    text = rules.read().replace("for: 1m", "for: 2s").replace("[2m]", "[5s]")
  with open(os.path.join(directory, "alerts.yml"), "w") as file:
    file.write(text)
  with open(os.path.join(DEPLOY, "prometheus", "prometheus.yml")) as configuration:
    text = configuration.read().replace("127.0.0.1:9464", target).replace("5s", "1s")
  path = os.path.join(directory, "prometheus.yml")
  with open(path, "w") as file:
    file.write(text)
  return path


def expressions():
  with open(os.path.join(DEPLOY, "grafana", "lockstep.json")) as file:
    for panel in json.load(file)["panels"]:
      for target in panel["targets"]:
        yield panel["title"], target["expr"].replace("$instance", ".*")


def main():
  with tempfile.TemporaryDirectory() as directory:
    cluster = Cluster(directory, *PROGRAMS)
    try:
      chief = cluster.start_chief(steps=100000)
      workers = [cluster.start_worker(i) for i in range(2)]
      _, url = cluster.start_page(f"--master=grpc://127.0.0.1:{cluster.port}")
      wait_for("a step", lambda: b"lockstep_checkpoint_step" in get(url + "/metrics"))
      subprocess.run([PROMTOOL, "check", "metrics"], input=get(url + "/metrics"), check=True)
      port = free_port()
      cluster.start(os.path.join(PROMETHEUS, "prometheus"),
                    "--config.file=" + write_configuration(directory, url[len("http://"):]),
                    "--storage.tsdb.path=" + os.path.join(directory, "data"), f"--web.listen-address=127.0.0.1:{port}")
      api = f"http://127.0.0.1:{port}/api/v1"

      def query(expression):
        return json.loads(get(f"{api}/query?query={urllib.parse.quote(expression)}"))["data"]["result"]

      wait_for("scrapes", lambda: query("rate(lockstep_steps_total[5s]) > 0"))
      for title, expression in expressions():
        wait_for(f"the panel \"{title}\": {expression}", lambda: query(expression), 90)
        print("has data:", title, flush=True)

      def firing(alert):
        return query(f'ALERTS{{alertname="{alert}", alertstate="firing"}}')

      assert not firing("LockstepNoProgress")
      for process in workers:
        process.send_signal(signal.SIGSTOP)
      wait_for("LockstepNoProgress", lambda: firing("LockstepNoProgress"))
      print("LockstepNoProgress fires while the workers are frozen", flush=True)
      chief.send_signal(signal.SIGSTOP)
      wait_for("LockstepChiefGone", lambda: firing("LockstepChiefGone"))
      print("LockstepChiefGone fires while the chief is frozen", flush=True)
      for process in workers:
        process.send_signal(signal.SIGCONT)
    finally:
      cluster.end()


if __name__ == "__main__":
  main()
