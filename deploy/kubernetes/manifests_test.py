"""Checks the manifests in this folder: Kubernetes' schemas, our own rules, and how `lockstep task` interprets each pod.

Usage: manifests_test.py LOCKSTEP PROCESS_H MANIFEST...
The rules cover what an API server or a run refuses, but a schema allows. No real API server has accepted the manifests.
"""

import copy
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import kubernetes_validate
import pydantic
import yaml
from kubeflow_trainer_api.models.jobset_v1alpha2_job_set import JobsetV1alpha2JobSet

LOCKSTEP, PROCESS_H, *MANIFESTS = [os.path.abspath(path) for path in sys.argv[1:]]
del sys.argv[1:]
VERSIONS = ("1.30", "1.31", "1.32", "1.33", "1.34", "1.35", "1.36", "1.37")
PORT = 2222


def exit_codes():
  return {name: int(code) for name, code in re.findall(r"^  (kExit\w+) = (\d+),", pathlib.Path(PROCESS_H).read_text(),
                                                       re.MULTILINE)}


def stop_seconds():
  """Returns how long a chief may take to end: the time to save (checkpoint.stop_seconds, 30 by default), and to
  exit."""
  (limit,) = re.findall(r"kEndingLimit = absl::Seconds\((\d+)\)", pathlib.Path(PROCESS_H).read_text())
  return 30 + int(limit)


def load(name):
  """Returns the documents in a manifest, including policies.yaml, which belongs to each manifest."""
  paths = [path for path in MANIFESTS if os.path.basename(path) in (name, "policies.yaml")]
  # Copies away YAML's aliases, so that a change affects only one place.
  return [copy.deepcopy(document) for path in paths for document in yaml.safe_load_all(pathlib.Path(path).read_text())]


def of_kind(documents, kind):
  return [document for document in documents if document["kind"] == kind]


def jobs(documents):
  """Returns, for each Job: the name of its pods without the index, the subdomain, the number of pods, and the spec of
  the Job."""
  found = [(job["metadata"]["name"], job["spec"]["template"]["spec"].get("subdomain"), job["spec"])
           for job in of_kind(documents, "Job")]
  for jobset in of_kind(documents, "JobSet"):
    found += [(f"{jobset['metadata']['name']}-{part['name']}-0", jobset["spec"]["network"]["subdomain"],
               part["template"]["spec"]) for part in jobset["spec"]["replicatedJobs"]]
  return found


def environment(container):
  return {variable["name"]: variable["value"] for variable in container.get("env", [])}


def matches(selector, labels):
  return all(labels.get(key) == value for key, value in selector.items())


def job_errors(name, spec):
  codes, pod = exit_codes(), spec["template"]["spec"]
  (container,) = pod["containers"]
  rules = spec["podFailurePolicy"]["rules"]
  errors = []
  for action, wanted in (("FailJob", {codes["kExitFailed"], codes["kExitBadConfiguration"]}),
                         ("Ignore", {codes["kExitRetryable"], codes["kExitTerminated"]})):
    values = {value for rule in rules if rule["action"] == action
              for value in rule.get("onExitCodes", {}).get("values", [])}
    if values != wanted:
      errors.append(f"{name}: {action} is for the exit codes {sorted(values)}, must be {sorted(wanted)}")
  for rule in rules:
    if rule.get("onExitCodes", {}).get("containerName", container["name"]) != container["name"]:
      errors.append(f"{name}: a rule names the container {rule['onExitCodes']['containerName']}, which does not exist")
    if "onPodConditions" in rule and rule["action"] != "Ignore":
      errors.append(f"{name}: a disruption counts as a failure")
  if pod["restartPolicy"] != "Never":
    errors.append(f"{name}: restartPolicy is {pod['restartPolicy']}; podFailurePolicy needs Never")
  if pod.get("terminationGracePeriodSeconds", 30) < stop_seconds():
    errors.append(f"{name}: terminationGracePeriodSeconds is below {stop_seconds()}, the time of a stop")
  if spec.get("podReplacementPolicy") != "Failed":
    errors.append(f"{name}: podReplacementPolicy must be Failed, or the pod that ends is a second chief")
  if spec.get("completionMode") != "Indexed" or spec["completions"] != spec["parallelism"]:
    errors.append(f"{name}: must be Indexed, and run all its pods at a time")
  return errors + pod_errors(name, pod, container)


def pod_errors(name, pod, container):
  errors = []
  security = container["securityContext"]
  if not (pod["securityContext"].get("runAsNonRoot") and pod["securityContext"].get("runAsUser") == 10001 and
          security.get("readOnlyRootFilesystem") and security.get("allowPrivilegeEscalation") is False and
          security.get("capabilities") == {"drop": ["ALL"]}):
    errors.append(f"{name}: the pod is not restricted to the user 10001, a read-only root and no capabilities")
  mounts = {mount["name"] for mount in container["volumeMounts"]}
  volumes = {volume["name"]: volume for volume in pod["volumes"]}
  if mounts != set(volumes):
    errors.append(f"{name}: mounts {sorted(mounts)} of the volumes {sorted(volumes)}")
  if "emptyDir" not in volumes.get("tmp", {}):
    errors.append(f"{name}: lockstep task needs a writable /tmp")
  if environment(container).get("LOCKSTEP_ROLE") != "worker" and not any(
      argument == "--insecure" or argument.startswith("--tls_dir=") for argument in container["args"]):
    errors.append(f"{name}: a chief that other pods reach needs --tls_dir or --insecure")
  probes = [probe for probe in ("startupProbe", "readinessProbe", "livenessProbe") if probe in container]
  if environment(container).get("LOCKSTEP_ROLE") == "chief":
    startup = container.get("startupProbe", {})
    if startup.get("grpc", {}).get("port") != PORT or startup["periodSeconds"] * startup["failureThreshold"] < 600:
      errors.append(f"{name}: a chief needs a startupProbe that leaves it ten minutes to restore")
    liveness = container.get("livenessProbe", {"periodSeconds": 60, "failureThreshold": 1})
    if liveness["periodSeconds"] * liveness["failureThreshold"] < 60:
      errors.append(f"{name}: the livenessProbe kills a chief whose disk is slow")
  elif probes:
    errors.append(f"{name}: has a {probes[0]}, but a worker listens on nothing")
  return errors


def run_errors(documents):
  """Returns the inconsistencies between a run's objects."""
  errors = []
  found = jobs(documents)
  pods = sum(spec["completions"] for _, _, spec in found)
  labels = [spec["template"]["metadata"]["labels"] for _, _, spec in found]
  for service in of_kind(documents, "Service"):
    names = {subdomain for _, subdomain, _ in found}
    if names != {service["metadata"]["name"]}:
      errors.append(f"the service is {service['metadata']['name']}, the subdomain of the pods {names}")
    if service["spec"].get("clusterIP") != "None" or not service["spec"].get("publishNotReadyAddresses"):
      errors.append("the service must be headless, and name pods that are not ready")
    if not all(matches(service["spec"]["selector"], each) for each in labels):
      errors.append("the service does not select the pods")
  (policy,) = of_kind(documents, "NetworkPolicy")
  ports = {port["port"] for rule in policy["spec"]["ingress"] for port in rule["ports"]}
  peers = [peer["podSelector"]["matchLabels"] for rule in policy["spec"]["ingress"] for peer in rule["from"]]
  if ports != {PORT} or not all(matches(peer, each) for peer in peers + [policy["spec"]["podSelector"]["matchLabels"]]
                                for each in labels):
    errors.append(f"the NetworkPolicy must let the pods of the run reach port {PORT}")
  (budget,) = of_kind(documents, "PodDisruptionBudget")
  if not all(matches(budget["spec"]["selector"]["matchLabels"], each) for each in labels):
    errors.append("the PodDisruptionBudget does not select the pods")
  if budget["spec"].get("minAvailable") != pods - 1:
    errors.append(f"the PodDisruptionBudget's minAvailable must be {pods - 1}: one pod of {pods} at a time")
  claims = {claim["metadata"]["name"]: claim["spec"]["accessModes"]
            for claim in of_kind(documents, "PersistentVolumeClaim")}
  for name, _, spec in found:
    for volume in spec["template"]["spec"]["volumes"]:
      claim = volume.get("persistentVolumeClaim", {}).get("claimName")
      if claim and spec["completions"] > 1 and claims[claim] != ["ReadWriteMany"]:
        errors.append(f"{name}: {spec['completions']} pods mount {claim}, which is {claims[claim][0]}")
  return errors


def missing_fields(wanted, known, path):
  """Returns the paths of the fields in `wanted` that `known` lacks."""
  if isinstance(wanted, list):
    return [field for i, part in enumerate(wanted) for field in missing_fields(part, known[i], f"{path}[{i}]")]
  if not isinstance(wanted, dict):
    return []
  return [field for name, part in wanted.items() for field in (
      missing_fields(part, known[name], f"{path}.{name}") if name in known else [f"{path}.{name}"])]


def jobset_errors(documents):
  """Uses Kubeflow's classes for JobSet, because kubernetes-validate does not know this kind. They are generated from
  its schema, and drop what they do not know."""
  errors = []
  for jobset in of_kind(documents, "JobSet"):
    try:
      known = JobsetV1alpha2JobSet.from_dict(jobset).to_dict()
    except pydantic.ValidationError as error:
      errors.append(f"JobSet: {error}")
    else:
      errors += [f"JobSet has no {field}" for field in missing_fields(jobset["spec"], known["spec"], "spec")]
  return errors


def errors_of(documents):
  return [error for name, _, spec in jobs(documents) for error in job_errors(name, spec)] + run_errors(documents) + (
      jobset_errors(documents))


class ManifestsTest(unittest.TestCase):

  def test_every_version_accepts_the_manifests(self):
    for path in MANIFESTS:
      for document in yaml.safe_load_all(pathlib.Path(path).read_text()):
        parts = [document]
        if document["kind"] == "JobSet":
          parts = [{"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": part["name"]}, "spec":
                    part["template"]["spec"]} for part in document["spec"]["replicatedJobs"]]
        for part in parts:
          for version in VERSIONS:
            kubernetes_validate.validate(part, version, strict=True)

  def test_the_manifests_follow_the_rules(self):
    for name in ("job.yaml", "jobset.yaml"):
      self.assertEqual(errors_of(load(name)), [])

  def test_each_rule_finds_a_violation(self):
    def kind(documents, name):
      return of_kind(documents, name)[0]["spec"]
    def job(documents):
      return of_kind(documents, "Job")[0]["spec"]
    def pod(documents):
      return job(documents)["template"]["spec"]
    def container(documents):
      return pod(documents)["containers"][0]
    def chief(documents):
      return of_kind(documents, "JobSet")[0]["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    rules = lambda documents: job(documents)["podFailurePolicy"]["rules"]
    for name, change, error in (
        ("job.yaml", lambda d: rules(d)[0]["onExitCodes"].update(values=[1]), "FailJob is for the exit codes [1]"),
        ("job.yaml", lambda d: rules(d)[2]["onExitCodes"]["values"].append(137), "Ignore is for the exit codes"),
        ("job.yaml", lambda d: rules(d)[0]["onExitCodes"].update(containerName="main"), "names the container main"),
        ("job.yaml", lambda d: rules(d)[1].update(action="Count"), "a disruption counts as a failure"),
        ("job.yaml", lambda d: pod(d).update(restartPolicy="OnFailure"), "restartPolicy is OnFailure"),
        ("job.yaml", lambda d: pod(d).pop("terminationGracePeriodSeconds"), "is below 45, the time of a stop"),
        ("job.yaml", lambda d: job(d).pop("podReplacementPolicy"), "podReplacementPolicy must be Failed"),
        ("job.yaml", lambda d: job(d).update(parallelism=2), "must be Indexed, and run all its pods at a time"),
        ("job.yaml", lambda d: container(d)["securityContext"].pop("readOnlyRootFilesystem"), "pod is not restricted"),
        ("job.yaml", lambda d: container(d)["volumeMounts"].pop(), "mounts ['config', 'logdir'] of the volumes"),
        ("job.yaml", lambda d: pod(d)["volumes"].pop(), "needs a writable /tmp"),
        ("job.yaml", lambda d: container(d)["args"].remove("--insecure"), "needs --tls_dir or --insecure"),
        ("job.yaml", lambda d: container(d).update(readinessProbe={"grpc": {"port": PORT}}), "has a readinessProbe"),
        ("jobset.yaml", lambda d: chief(d)["containers"][0]["startupProbe"].update(failureThreshold=30), "ten minutes"),
        ("jobset.yaml", lambda d: chief(d)["containers"][0]["livenessProbe"].update(failureThreshold=1), "is slow"),
        ("job.yaml", lambda d: pod(d).update(subdomain="other"), "the service is fashion, the subdomain"),
        ("job.yaml", lambda d: kind(d, "Service").pop("clusterIP"), "the service must be headless"),
        ("job.yaml", lambda d: kind(d, "Service").update(selector={"run": "x"}), "the service does not select"),
        ("job.yaml", lambda d: kind(d, "NetworkPolicy")["ingress"][0]["ports"][0].update(port=1), "reach port"),
        ("job.yaml", lambda d: job(d)["template"]["metadata"].update(labels={}), "PodDisruptionBudget does not select"),
        ("jobset.yaml", lambda d: kind(d, "PodDisruptionBudget").update(minAvailable=5), "minAvailable must be 4"),
        ("job.yaml", lambda d: kind(d, "PersistentVolumeClaim").update(accessModes=["ReadWriteOnce"]),
         "5 pods mount fashion-logdir, which is ReadWriteOnce"),
        ("jobset.yaml", lambda d: kind(d, "JobSet")["network"].update(subDomain="x"),
         "JobSet has no spec.network.subDomain"),
        ("jobset.yaml", lambda d: kind(d, "JobSet").update(maxRestarts=1), "JobSet has no spec.maxRestarts"),
        ("jobset.yaml", lambda d: kind(d, "JobSet")["failurePolicy"].update(maxRestarts="0"), "valid integer"),
    ):
      documents = load(name)
      change(documents)
      self.assertIn(error, "\n".join(errors_of(documents)))

  def show(self, name, index, container):
    """Returns what `lockstep task` says about a pod, by the name of the value."""
    variables = {**environment(container), "JOB_COMPLETION_INDEX": str(index), "HOSTNAME": f"{name}-{index}"}
    shown = subprocess.run([LOCKSTEP, *container["args"], "--show"], env=variables, capture_output=True, text=True,
                           check=True)
    return {line.split()[1]: line.split(None, 2)[2].split("  (")[0] for line in shown.stdout.splitlines()}

  def test_each_pod_finds_its_role_and_its_chief(self):
    for name in ("job.yaml", "jobset.yaml"):
      documents = load(name)
      chiefs, masters, names = [], set(), []
      for pods, subdomain, spec in jobs(documents):
        (container,) = spec["template"]["spec"]["containers"]
        for index in range(spec["completions"]):
          shown = self.show(pods, index, container)
          masters.add(shown["chief"])
          if shown["role"].startswith("chief"):
            chiefs.append(f"grpc://{pods}-{index}.{subdomain}:{PORT}")
            self.assertEqual(shown["listen"], f"0.0.0.0:{PORT}")
            self.assertEqual(container["ports"][0]["containerPort"], PORT)
            self.assertEqual(shown["logdir"], "/logdir")
          if "name" in shown:
            names.append(shown["name"])
      self.assertEqual(len(chiefs), 1)
      self.assertEqual(masters, set(chiefs))
      self.assertEqual(len(names), len(set(names)))

  def test_the_configurations_are_correct(self):
    for name in ("job.yaml", "jobset.yaml"):
      (config,) = of_kind(load(name), "ConfigMap")
      with tempfile.TemporaryDirectory() as directory:
        path = pathlib.Path(directory, "run.textproto")
        path.write_text(config["data"]["run.textproto"])
        ended = subprocess.run([LOCKSTEP, "check", str(path)], capture_output=True, text=True, check=False)
        self.assertEqual(ended.returncode, 0, ended.stderr)


if __name__ == "__main__":
  unittest.main()
