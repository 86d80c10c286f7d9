"""Runs the pods of a manifest in deploy/kubernetes in Docker, as the kubelet would: with their arguments, environment,
host names, volumes, user and restrictions. The chief is killed, and a new one gets another address. When the chief has
ended with 0, the others are stopped, as the success policies would do. The digest must be the same as with one
process.

Usage: pods.py IMAGE PREFIX MANIFEST   (needs a Python with yaml; removes everything it creates, named PREFIX-...)
"""

import concurrent.futures
import datetime
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

import yaml

IMAGE, PREFIX, MANIFEST = sys.argv[1:]
ENDLESS = 1000000000
# A chief that moved must be found within this time.
FOUND_WITHIN_SECONDS = 2
BEGAN = time.monotonic()


def say(*words):
  print(f"{time.monotonic() - BEGAN:5.1f}s", *words, flush=True)


def docker(*arguments, check=True):
  """Returns what the docker command prints on both streams."""
  ended = subprocess.run(["docker", *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
  assert not check or ended.returncode == 0, f"docker {' '.join(arguments)}: {ended.stdout}"
  return ended.stdout.strip()


def wait_until(what, happened, seconds=60):
  end = time.monotonic() + seconds
  while not (value := happened()):
    assert time.monotonic() < end, f"never: {what}"
    time.sleep(0.1)
  say(what)
  return value


class Pod:
  """A pod of a Job: one container with the pod's name."""

  def __init__(self, manifest, name, subdomain, index, spec):
    self.manifest, self.name, self.index, self.spec = manifest, name, index, spec
    self.container_name = f"{PREFIX}-{name}"
    self.domain_name = f"{name}.{subdomain}"
    self.worker_name = f"worker-{index}"  # `lockstep task` derives it from the index.
    (self.container,) = spec["containers"]

  def start(self):
    user, security = self.spec["securityContext"], self.container["securityContext"]
    assert security["allowPrivilegeEscalation"] is False and user["seccompProfile"]["type"] == "RuntimeDefault"
    words = ["run", "--detach", "--name", self.container_name, "--hostname", self.name, "--network", PREFIX,
             "--network-alias", self.domain_name, "--user", f"{user['runAsUser']}:{user['runAsGroup']}",
             "--security-opt", "no-new-privileges", "--memory", self.container["resources"]["limits"]["memory"][:-1]]
    words += ["--read-only"] if security["readOnlyRootFilesystem"] else []
    words += [f"--cap-drop={capability}" for capability in security["capabilities"]["drop"]]
    # The controller of Indexed Jobs sets this variable.
    environment = {"JOB_COMPLETION_INDEX": self.index, **{e["name"]: e["value"] for e in self.container.get("env", [])}}
    words += [f"--env={name}={value}" for name, value in environment.items()]
    volumes = {volume["name"]: volume for volume in self.spec["volumes"]}
    for mount in self.container["volumeMounts"]:
      words += self.manifest.mount(volumes[mount["name"]], mount)
    docker(*words, IMAGE, *self.container["args"])

  def logs(self):
    return docker("logs", self.container_name)

  def address(self):
    return docker("inspect", "--format", "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}", self.container_name)

  def check_restrictions(self):
    status = docker("exec", self.container_name, "sh", "-c", "cat /proc/1/status; touch /opt/file 2>&1 || true")
    for field, value in (("Uid", "10001"), ("Gid", "10001"), ("CapEff", "0" * 16), ("CapBnd", "0" * 16),
                         ("NoNewPrivs", "1"), ("Seccomp", "2")):
      assert re.search(rf"^{field}:\s+{value}\b", status, re.MULTILINE), f"{self.name}: {field} is not {value}:\n{status}"
    assert "Read-only file system" in status, f"{self.name}: {status}"

  def check_probes(self):
    probes = ("startupProbe", "readinessProbe", "livenessProbe")
    for port in {self.container[probe]["grpc"]["port"] for probe in probes if probe in self.container}:
      docker("exec", self.container_name, "lockstep", "probe", f"--master=grpc://localhost:{port}")

  def check(self):
    self.check_restrictions()
    self.check_probes()

  def stop(self):
    """Stops the pod. Returns the exit code."""
    docker("stop", f"--time={self.spec['terminationGracePeriodSeconds']}", self.container_name)
    return docker("inspect", "--format", "{{.State.ExitCode}}", self.container_name)


class Manifest:
  """The pods in a manifest, and the volumes that they share."""

  def __init__(self, path, work):
    documents = list(yaml.safe_load_all(pathlib.Path(path).read_text(encoding="utf-8")))
    of_kind = lambda kind: [document for document in documents if document["kind"] == kind]
    (configuration,) = of_kind("ConfigMap")
    self.configuration = configuration["data"]
    self.folder = work
    jobs = [(job["metadata"]["name"], job["spec"]["template"]["spec"].get("subdomain"), job["spec"])
            for job in of_kind("Job")]
    for jobset in of_kind("JobSet"):
      jobs += [(f"{jobset['metadata']['name']}-{part['name']}-0", jobset["spec"]["network"]["subdomain"],
                part["template"]["spec"]) for part in jobset["spec"]["replicatedJobs"]]
    self.pods = [Pod(self, f"{name}-{index}", subdomain, index, job["template"]["spec"])
                 for name, subdomain, job in jobs for index in range(job["completions"])]
    self.chief, *self.workers = self.pods

  def mount(self, volume, mount):
    """Returns docker's flags for mounting a pod's volume."""
    path = mount["mountPath"]
    if "emptyDir" in volume:
      return ["--tmpfs", f"{path}:mode=1777"]
    if "configMap" in volume:
      return ["--volume", f"{self.folder}:{path}:ro"]
    return ["--volume", f"{PREFIX}-{volume['persistentVolumeClaim']['claimName']}:{path}"]

  def write_configuration(self, steps):
    """Writes the ConfigMap's files, with a different last step, more checkpoints, and less time for late workers."""
    for name, text in self.configuration.items():
      text, steps_count = re.subn(r"steps: \d+", f"steps: {steps}", text)
      text, saves_count = re.subn(r"every_seconds: \d+", "every_steps: 200", text)
      assert (steps_count, saves_count) == (1, 1), text
      text = re.sub(r"linger_seconds: \d+", "linger_seconds: 1", text)
      pathlib.Path(self.folder, name).write_text(text, encoding="utf-8")
      os.chmod(pathlib.Path(self.folder, name), 0o644)


def saved_step(chief):
  return max(map(int, re.findall(r"saved \S*ckpt-(\d+)", chief.logs())), default=-1)


def seconds_of(line):
  stamp = re.search(r"^.(\d{8} \d\d:\d\d:\d\d\.\d+)", line).group(1)
  return datetime.datetime.strptime(stamp, "%Y%m%d %H:%M:%S.%f").timestamp()


def sessions(chief):
  """Returns the log line of each worker's first session, by the worker's name."""
  found = {}
  for line in re.finditer(r"^.* (\S+) opened session.*$", chief.logs(), re.MULTILINE):
    found.setdefault(line.group(1), line.group())
  return found


def have_joined(manifest):
  return {worker.worker_name for worker in manifest.workers} <= set(sessions(manifest.chief))


def of_all(pods, do):
  """Calls do for all pods concurrently. Returns the results."""
  with concurrent.futures.ThreadPoolExecutor(len(pods)) as executor:
    return list(executor.map(do, pods))


def move_chief(manifest):
  """Kills the chief. The new chief has the same name, volume and environment, but another address."""
  chief = manifest.chief
  old = chief.address()
  docker("kill", "--signal=KILL", chief.container_name)
  docker("rm", "--force", chief.container_name)
  # Takes the old address, so that the chief gets another one.
  docker("run", "--detach", "--name", f"{PREFIX}-other", "--network", PREFIX, "--entrypoint", "sleep", IMAGE, "60")
  chief.start()
  assert chief.address() != old, old
  say(f"the chief was killed at {old} and starts at {chief.address()}")


def check_found(manifest):
  """Checks that each worker opened a session with the moved chief soon after it started to listen."""
  wait_until("the workers found it", lambda: have_joined(manifest))
  (listening,) = re.findall(r"^.*listening on.*$", manifest.chief.logs(), re.MULTILINE)
  found = sessions(manifest.chief)
  seconds = max(seconds_of(found[worker.worker_name]) for worker in manifest.workers) - seconds_of(listening)
  say(f"the last one after {seconds:.2f} s")
  assert seconds <= FOUND_WITHIN_SECONDS, f"{seconds} s"


def finish(manifest):
  """Gives the chief its last step."""
  code = manifest.chief.stop()
  assert code == "143", f"the stopped chief ended with {code}"
  manifest.write_configuration(saved_step(manifest.chief) + 200)
  docker("start", manifest.chief.container_name)
  code = docker("wait", manifest.chief.container_name)
  assert code == "0", f"the chief ended with {code}"
  codes = of_all(manifest.workers, Pod.stop)
  assert set(codes) <= {"0", "143"}, f"the workers ended with {codes}"
  say("all have ended")


def digest_of(text):
  return re.findall(r"\b[0-9a-f]{64}\b", text)


def run(work):
  manifest = Manifest(MANIFEST, work)
  manifest.write_configuration(ENDLESS)
  docker("network", "create", PREFIX)
  # The chief gets the first address, which the container in move_chief takes later.
  manifest.chief.start()
  of_all(manifest.workers, Pod.start)
  wait_until("it trains with all workers", lambda: saved_step(manifest.chief) > 0 and have_joined(manifest))
  of_all(manifest.pods, Pod.check)
  say("the pods are restricted, and probes succeed")
  move_chief(manifest)
  check_found(manifest)
  finish(manifest)
  claim = next(name for name in docker("volume", "ls", "--quiet").split() if name.startswith(f"{PREFIX}-"))
  cluster = docker("run", "--rm", "--network=none", "--volume", f"{claim}:/logdir:ro", IMAGE, "inspect", "--digest", "/logdir")
  alone = docker("run", "--rm", "--network=none", "--volume", f"{work}:/config:ro", "--entrypoint", "sh", IMAGE, "-c",
                 "lockstep local /config/run.textproto --logdir=/tmp/alone >&2 && lockstep inspect --digest /tmp/alone")
  assert digest_of(cluster) and digest_of(cluster) == digest_of(alone), f"{cluster} {alone}"
  say("with the digest of one process")


def remove_all():
  containers = docker("ps", "--all", "--quiet", "--filter", f"name=^{PREFIX}-").split()
  if containers:
    docker("rm", "--force", "--volumes", *containers, check=False)
  docker("network", "rm", PREFIX, check=False)
  for volume in docker("volume", "ls", "--quiet", "--filter", f"name=^{PREFIX}-").split():
    docker("volume", "rm", volume, check=False)


def main():
  work = tempfile.mkdtemp()
  os.chmod(work, 0o755)
  try:
    run(work)
  except AssertionError:
    for name in docker("ps", "--all", "--filter", f"name=^{PREFIX}-", "--format", "{{.Names}}").split():
      print(f"---- {name}\n{docker('logs', '--tail=15', name, check=False)}")
    raise
  finally:
    remove_all()
    shutil.rmtree(work)


if __name__ == "__main__":
  main()
