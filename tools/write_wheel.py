#!/usr/bin/env python3
"""Writes the wheel of the Python package, before auditwheel adds the libraries: write_wheel.py ROOT BIN OUT_FOLDER.

ROOT is the tree, BIN bazel's folder of built programs. The wheel's bytes depend on these files alone.
"""

import base64
import hashlib
import pathlib
import re
import sys
import zipfile

# Built files and their places in the package.
BINARIES = {
    "capi/liblockstep.so": "lockstep/liblockstep.so",
    "server/chief_main": "lockstep/bin/chief_main",
    "worker/worker_main": "lockstep/bin/worker_main",
    "cli/lockstep_main": "lockstep/bin/lockstep_main",
}
# zip has no earlier date.
DATE = (1980, 1, 1, 0, 0, 0)


def main():
  root, binaries, out = map(pathlib.Path, sys.argv[1:])
  header = (root / "common/base/version.h").read_text()
  version = re.search(r'kVersion\[\] = "(.*)";', header)[1]
  information = f"lockstep-{version}.dist-info"
  files = {f"lockstep/{path.relative_to(root / 'python/lockstep')}": path
           for path in sorted((root / "python/lockstep").rglob("*")) if path.suffix in (".py", ".typed")}
  contents = {name: path.read_bytes() for name, path in files.items()}
  contents.update({name: (binaries / path).read_bytes() for path, name in BINARIES.items()})
  contents[f"{information}/METADATA"] = f"""Metadata-Version: 2.1
Name: lockstep
Version: {version}
Summary: Elastic, fault-tolerant, reproducible training
Requires-Python: >=3.9
Requires-Dist: numpy
Provides-Extra: torch
Requires-Dist: torch; extra == "torch"
Provides-Extra: jax
Requires-Dist: jax; extra == "jax"
""".encode()
  contents[f"{information}/LICENSE"] = (root / "LICENSE").read_bytes()
  contents[f"{information}/WHEEL"] = b"""Wheel-Version: 1.0
Generator: lockstep
Root-Is-Purelib: false
Tag: py3-none-linux_x86_64
"""
  contents[f"{information}/entry_points.txt"] = b"[console_scripts]\nlockstep = lockstep.__main__:main\n"
  record = f"{information}/RECORD"
  lines = []
  for name, content in contents.items():
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    lines.append(f"{name},sha256={digest},{len(content)}\n")
  contents[record] = "".join([*lines, f"{record},,\n"]).encode()
  with zipfile.ZipFile(out / f"lockstep-{version}-py3-none-linux_x86_64.whl", "w", zipfile.ZIP_DEFLATED) as wheel:
    for name, content in contents.items():
      entry = zipfile.ZipInfo(name, DATE)
      entry.compress_type = zipfile.ZIP_DEFLATED
      entry.external_attr = (0o100755 if "/bin/" in name else 0o100644) << 16
      wheel.writestr(entry, content)


if __name__ == "__main__":
  main()
