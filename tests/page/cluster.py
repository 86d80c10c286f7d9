"""Real processes of a run, for tests of its page."""

import os
import subprocess
import time


class Cluster:
  """A chief, workers and a page as processes, with one log."""

  def __init__(self, directory, chief, worker, lockstep, config):
    self.directory = directory
    self.chief, self.worker, self.lockstep, self.config = chief, worker, lockstep, config
    self.logdir = os.path.join(directory, "run")
    self.processes = []
    self.port = 0

  def start(self, *command):
    with open(os.path.join(self.directory, "log"), "ab") as log:
      process = subprocess.Popen(command, stdout=log, stderr=log)
    self.processes.append(process)
    return process

  def start_chief(self, steps=400):
    port_file = os.path.join(self.directory, "port")
    if os.path.exists(port_file):
      os.remove(port_file)
    chief = self.start(self.chief, self.config, f"--logdir={self.logdir}", f"--listen=127.0.0.1:{self.port}",
                       f"--port_file={port_file}", f"--set=training.steps={steps}", "--set=checkpoint.every_steps=50",
                       "--set=training.replicas_to_aggregate=2", "--set=cluster.linger_seconds=6",
                       "--set=input.batch_size=1024")
    while not os.path.exists(port_file):
      time.sleep(0.02)
      assert chief.poll() is None, "the chief has ended"
    with open(port_file) as file:
      self.port = int(file.read())
    return chief

  def start_worker(self, i):
    return self.start(self.worker, f"--master=grpc://127.0.0.1:{self.port}", f"--name=worker-{i}", "--compute_threads=1")

  def start_page(self, *flags):
    url_file = os.path.join(self.directory, "url")
    if os.path.exists(url_file):
      os.remove(url_file)
    page = self.start(self.lockstep, "page", "--http=127.0.0.1:0", f"--url_file={url_file}", *flags)
    while not os.path.exists(url_file):
      time.sleep(0.02)
      assert page.poll() is None, "the page has ended"
    with open(url_file) as file:
      return page, file.read().strip()

  def end(self):
    for process in self.processes:
      if process.poll() is None:
        process.kill()
        process.wait()
