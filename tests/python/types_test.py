"""Checks the package's types in mypy's strict mode, and that it works with Python 3.9. Skipped without mypy and vermin,
or fails if CI is true."""

import ast
import os
import pathlib
import subprocess
import sys

try:
  from mypy import api
  import vermin  # pylint: disable=unused-import
except ImportError:
  print(f"SKIPPED: {sys.executable} has no mypy or no vermin")
  sys.exit(int(os.environ.get("CI") == "true"))

PACKAGE = pathlib.Path("python/lockstep")
# Modules of torch and JAX that the package does not use. With them, mypy takes twice as long.
UNUSED = ("torch._inductor.*,torch._functorch.*,torch._export.*,torch.export.*,torch.onnx.*,torch.fx.*,torch.ao.*,"
          "torch.distributed.*,torch.testing.*,jaxlib.*,jax.scipy.*,jax._src.scipy.*,jax._src.lax.*,sympy.*")


class WithoutAnnotations(ast.NodeTransformer):
  """Removes annotations, which Python does not evaluate after `from __future__ import annotations`."""

  def visit_arg(self, node):
    node.annotation = None
    return node

  def visit_FunctionDef(self, node):
    node.returns = None
    return self.generic_visit(node)

  def visit_AnnAssign(self, node):
    return node.value and self.visit(node.value)


def unions(source):
  """Returns the lines that evaluate `X | Y` for types, which Python 3.9 cannot. vermin does not find them."""
  tree = ast.parse(source, feature_version=(3, 9))
  if "from __future__ import annotations\n" in source:
    tree = WithoutAnnotations().visit(tree)
  alternatives = [node for node in ast.walk(tree) if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr)]
  # Only integers and constants, such as os.RTLD_NOW, are taken for numbers.
  return [f"{node.lineno}: {ast.unparse(node)}" for node in alternatives
          if not (ast.unparse(node.right).isdigit() or ast.unparse(node.right).rpartition(".")[2].isupper())]


assert unions("from __future__ import annotations\ndef f(x: int | None) -> int | None:\n  y: int | None = x\n") == []
assert unions("Either = int | None\n") == ["1: int | None"]

settings = pathlib.Path(os.environ["TEST_TMPDIR"]) / "mypy.ini"
settings.write_text(f"[mypy]\n[mypy-{UNUSED}]\nfollow_imports = skip\n")
output, errors, code = api.run(["--strict", f"--config-file={settings}", f"--cache-dir={os.devnull}", str(PACKAGE)])
print(output, errors, sep="")
newer = [f"{path}:{line}" for path in PACKAGE.rglob("*.py") for line in unions(path.read_text())]
print(*newer, sep="\n")
command = [pathlib.Path(sys.executable).with_name("vermin"), "--target=3.9-", "--violations", "--quiet", PACKAGE]
vermin_code = subprocess.run(command, check=False).returncode
sys.exit(code or vermin_code or int(bool(newer)))
