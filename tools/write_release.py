#!/usr/bin/env python3
"""Writes parts of a release whose bytes depend only on their inputs.

  write_release.py sbom LIB_FOLDER VERSION EPOCH                        the packages of the libraries, as CycloneDX
  write_release.py man PROGRAM VERSION EPOCH                            the manual page
  write_release.py image BASE_TAR FOLDER VERSION REVISION EPOCH OUT     an image for docker load: the base and FOLDER
"""

import datetime
import hashlib
import io
import json
import os
import pathlib
import subprocess
import sys
import tarfile

# The user that runs the image's processes (docker/Dockerfile).
USER = 10001


def moment(epoch):
  return datetime.datetime.fromtimestamp(int(epoch), datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def output(*command):
  return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def package_of(library):
  """Returns the name and version of the Debian package that contains a library with this name."""
  for line in output("dpkg", "-S", f"*/{library}").splitlines():
    package = line.partition(":")[0]
    return package, output("dpkg-query", "-W", "-f", "${Version}", package).strip()
  sys.exit(f"no package has {library}")


def write_sbom(folder, version, epoch):
  packages = {}
  for path in sorted(pathlib.Path(folder).iterdir()):
    name, package_version = package_of(path.name)
    packages.setdefault((name, package_version), []).append((path.name, hashlib.sha256(path.read_bytes()).hexdigest()))
  components = [{
      "type": "library",
      "name": name,
      "version": package_version,
      "purl": f"pkg:deb/debian/{name}@{package_version}?arch=amd64",
      "components": [{"type": "file", "name": library, "hashes": [{"alg": "SHA-256", "content": digest}]}
                     for library, digest in libraries],
  } for (name, package_version), libraries in sorted(packages.items())]
  json.dump({
      "bomFormat": "CycloneDX",
      "specVersion": "1.4",
      "version": 1,
      "metadata": {"timestamp": moment(epoch),
                   "component": {"type": "application", "name": "lockstep", "version": version}},
      "components": components,
  }, sys.stdout, indent=1)
  print()


def write_man(program, version, epoch):
  lines = output(program, "--help").splitlines()
  commands = [line.split(None, 1) for line in lines if line.startswith("  ")]
  date = moment(epoch)[:10]
  print(f'.TH LOCKSTEP 1 {date} "Lockstep {version}" "User Commands"')
  print(".SH NAME\nlockstep \\- elastic, fault\\-tolerant, reproducible training")
  print(".SH SYNOPSIS\n.B lockstep\n.I COMMAND\n.RI [ arguments ]")
  print(".SH COMMANDS")
  for name, summary in commands:
    print(f".TP\n.B {name}\n{summary}")
  print(".PP\nEach command explains its arguments with\n.BR \\-\\-help .\nA flag that is not given has the value of its\n"
        "environment variable, such as LOCKSTEP_MASTER for \\-\\-master.")
  print(".SH EXIT STATUS\n0 done; 1 failed; 2 wrong arguments or configuration; 138 starting again may help; 143 stopped.")


def tar_of(files):
  """Returns a tar file of (member, content) pairs."""
  buffer = io.BytesIO()
  with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as archive:
    for member, content in files:
      archive.addfile(member, None if content is None else io.BytesIO(content))
  return buffer.getvalue()


def layer_of(folder, epoch):
  files = []
  for path in sorted(pathlib.Path(folder).rglob("*")):
    member = tarfile.TarInfo(str(path.relative_to(folder)))
    member.mtime = int(epoch)
    if member.name == "logdir":
      member.uid = member.gid = USER
    if path.is_dir():
      member.type, member.mode = tarfile.DIRTYPE, 0o755
      files.append((member, None))
    else:
      content = path.read_bytes()
      member.size, member.mode = len(content), 0o755 if os.access(path, os.X_OK) else 0o644
      files.append((member, content))
  return tar_of(files)


def write_image(base, folder, version, revision, epoch, out):
  with tarfile.open(base) as archive:
    read = lambda name: archive.extractfile(name).read()
    manifest = json.loads(read("manifest.json"))[0]
    layers = [read(name) for name in manifest["Layers"]]
  layers.append(layer_of(folder, epoch))
  created = moment(epoch)
  digests = [hashlib.sha256(layer).hexdigest() for layer in layers]
  image = json.dumps({
      "architecture": "amd64",
      "os": "linux",
      "created": created,
      "config": {
          "User": f"{USER}:{USER}",
          "Env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"],
          "Entrypoint": ["lockstep"],
          "Cmd": ["help"],
          "WorkingDir": "/logdir",
          "Volumes": {"/logdir": {}},
          "ExposedPorts": {"2222/tcp": {}},
          "Labels": {"org.opencontainers.image.version": version, "org.opencontainers.image.revision": revision,
                     "org.opencontainers.image.created": created},
      },
      "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}" for digest in digests]},
      "history": [{"created": created, "created_by": "debootstrap"}] * (len(layers) - 1) +
                 [{"created": created, "created_by": "./lockstep dist"}],
  }, sort_keys=True).encode()
  name = f"{hashlib.sha256(image).hexdigest()}.json"
  files = [(name, image)]
  files += [(f"{digest}.tar", layer) for digest, layer in zip(digests, layers)]
  files.append(("manifest.json", json.dumps([{
      "Config": name, "RepoTags": [f"lockstep:{version}"], "Layers": [f"{digest}.tar" for digest in digests]}]).encode()))
  members = []
  for path, content in files:
    member = tarfile.TarInfo(path)
    member.size, member.mtime = len(content), int(epoch)
    members.append((member, content))
  pathlib.Path(out).write_bytes(tar_of(members))


if __name__ == "__main__":
  {"sbom": write_sbom, "man": write_man, "image": write_image}[sys.argv[1]](*sys.argv[2:])
