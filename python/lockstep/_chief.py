"""Chiefs started by a program: in a child process, or through `lockstep launch`."""

from __future__ import annotations

import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time
from typing import Any, Callable

from lockstep import _core
from lockstep._errors import ChiefLost, ConfigurationError, Error, Refused, RunFailed
from lockstep._run import Run

# The chief's exit codes (common/base/process/process.h).
_BAD_CONFIGURATION, _RETRYABLE, _TERMINATED = 2, 138, 143
_MOST_RESTARTS = 10
_LOOPBACK = "127.0.0.1:0"
_START_SECONDS = 600.0
# The time limit for a chief to save its last step and exit.
_STOP_SECONDS = 60.0


def _program() -> list[str]:
  """Returns the program of a chief: LOCKSTEP_CHIEF_BINARY if it is set, or else the command line's `chief`."""
  named = os.environ.get("LOCKSTEP_CHIEF_BINARY")
  if named:
    return [named]
  found = _core.find_file("bin/lockstep_main", "../../cli/lockstep_main", "../../.bz/out/k8-opt/bin/cli/lockstep_main")
  if found is None:
    raise Error("there is no program lockstep_main in the package; install the wheel, or build //cli:lockstep_main")
  return [found, "chief"]


class Chief:
  """A chief in a child process. As a context manager, it saves and stops on exit.

  It ends when its parent ends, for any reason. Workers on this machine use `master`, others `address`. In a program
  that `lockstep replay` has started, there is no child process.

    run       the run to serve
    listen    "host:port"; port 0 takes any free port
    tls_dir   a folder with a chief's ca.crt, tls.crt and tls.key; default: LOCKSTEP_TLS_DIR
    insecure  allows an unencrypted `listen` address that other machines can reach

  Not thread-safe. Raises Refused if the logdir does not accept the run.
  """

  def __init__(self, run: Run, *, listen: str = _LOOPBACK,
               tls_dir: str | os.PathLike[str] | None = None, insecure: bool = False,
               make_text: Callable[[str], str] | None = None) -> None:
    """`make_text` is for Worker: it returns the configuration, given a folder for the files that the configuration
    names."""
    if _core.in_fork():
      raise Error("this process was forked from one that had imported lockstep, whose core it cannot use; import lockstep "
                  "in the child, or start it with \"spawn\"")
    # The master string for workers on this machine. The file also tells late workers that the run is over.
    self.master = ""
    # The master string for workers on other machines: "grpc://host:port". It changes after a restart.
    self.address = ""
    self._process: subprocess.Popen[bytes] | None = None
    if _core.in_replay():
      return
    program = _program()
    self._directory = tempfile.mkdtemp(prefix="lockstep-")
    self._address_file = os.path.join(self._directory, "address")
    configuration = pathlib.Path(self._directory, "run.textproto")
    configuration.write_text(run.to_text() if make_text is None else make_text(self._directory))
    self.master = f"file:{self._address_file}"
    self._log = os.path.join(run.logdir, "log", "chief.log") if run.logdir else os.path.join(self._directory, "log")
    os.makedirs(os.path.dirname(self._log), exist_ok=True)
    self._command = [*program, str(configuration), f"--logdir={run.logdir or ''}", f"--listen={listen}",
                     f"--address_file={self._address_file}", "--lock_wait_seconds=60", "--stop_with_stdin"]
    if listen == _LOOPBACK:
      # Late workers are on this machine, and learn of the end from the file.
      self._command.append("--linger_seconds=0")
    if tls_dir is not None:
      self._command.append(f"--tls_dir={os.fspath(tls_dir)}")
    if insecure:
      self._command.append("--insecure")
    self._restarts = 0
    try:
      self._start()
      self._await_service()
    except BaseException:
      self.close()
      raise

  def _start(self) -> None:
    with open(self._log, "ab") as log:
      # The chief gets its own session, so that Ctrl-C in the terminal reaches only the program.
      self._process = subprocess.Popen(self._command, stdin=subprocess.PIPE, stdout=log, stderr=log,
                                       start_new_session=True)

  def _await_service(self) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while True:
      code = self._check()
      if os.path.exists(self._address_file):
        break
      if code is not None:
        raise ChiefLost(f"the chief ended ({code}) before it served: {self._last_line()}")
      if time.monotonic() > deadline:
        raise ChiefLost(f"the chief did not start within {_START_SECONDS:.0f} s; its log is {self._log}")
      time.sleep(0.01)
    self.address = pathlib.Path(self._address_file).read_text().strip()

  def _last_line(self) -> str:
    lines = pathlib.Path(self._log).read_text(errors="replace").splitlines()
    last = next((line for line in reversed(lines) if line.strip()), "it wrote no log")
    # Removes the log's own prefix, "E1126 19:31:00.123456  1234 chief_program.cc:120] chief: ".
    return last.rpartition("] ")[2].replace("chief: ", "", 1)

  def _check(self) -> int | None:
    """Returns the exit code, or None while the chief runs. Raises if it ended with an error that a restart does not
    fix."""
    assert self._process is not None
    code = self._process.poll()
    if code is None or code in (0, _TERMINATED, _RETRYABLE) or code < 0:
      return code
    if code == _BAD_CONFIGURATION:
      raise Refused(self._last_line())
    raise RunFailed(self._last_line())

  def tend(self) -> bool:
    """Restarts the chief if it was killed. Returns False if it has ended successfully. Raises if it has failed."""
    if _core.in_replay():
      return True
    code = self._check()
    if code is None:
      return True
    if code in (0, _TERMINATED):
      return False
    if self._restarts == _MOST_RESTARTS:
      raise ChiefLost(f"the chief ended {_MOST_RESTARTS} times; its log is {self._log}")
    self._restarts += 1
    self._close_input()
    pathlib.Path(self._address_file).unlink(missing_ok=True)
    self._start()
    self._await_service()
    return True

  def wait(self) -> bool:
    """Waits until the chief has saved the last step and exited.

    Returns True if the run is over, False if the chief was stopped. Raises RunFailed if the run has failed, and
    SystemExit in a program that `lockstep replay` has started.
    """
    if _core.in_replay():
      raise SystemExit
    assert self._process is not None
    while self.tend():
      self._process.wait()
    return self._check() == 0

  @property
  def pid(self) -> int:
    """The chief's process id. Raises Error in a program that `lockstep replay` has started."""
    if _core.in_replay():
      raise Error("there is no chief in a replay")
    assert self._process is not None
    return self._process.pid

  def save(self) -> None:
    """Makes the chief save now; the run continues. Returns before the checkpoint is written. Does nothing in a program
    that `lockstep replay` has started."""
    if _core.in_replay():
      return
    assert self._process is not None
    self._process.send_signal(signal.SIGUSR1)

  def _close_input(self) -> None:
    if self._process is not None and self._process.stdin is not None:
      self._process.stdin.close()

  def close(self) -> None:
    """Makes the chief save its last step and exit, and waits for it. The run can be continued. Idempotent."""
    if self._process is not None and not _core.in_fork():
      self._close_input()
      # A process forked from this one may still hold the pipe open.
      self._process.terminate()
      try:
        self._process.wait(_STOP_SECONDS)
      except subprocess.TimeoutExpired:
        self._process.kill()
        self._process.wait()
      shutil.rmtree(self._directory, ignore_errors=True)

  def __enter__(self) -> Chief:
    return self

  def __exit__(self, *unused: Any) -> None:
    self.close()


def declare_to_launcher(directory: str, run: Run, text: str) -> str:
  """Declares the run to `lockstep launch`, unless another worker has. Returns the master string.

  Raises ConfigurationError if a run with a different logdir has been declared.
  """
  declared = os.path.join(directory, "declared")
  if not os.path.isdir(declared):
    own = tempfile.mkdtemp(dir=directory)
    pathlib.Path(own, "run.textproto").write_text(text)
    pathlib.Path(own, "logdir").write_text(run.logdir or "")
    try:
      os.rename(own, declared)
    except OSError:
      # Another worker was faster.
      shutil.rmtree(own)
  logdir = pathlib.Path(declared, "logdir").read_text()
  if logdir != (run.logdir or ""):
    raise ConfigurationError(f"lockstep launch serves one run, with the logdir \"{logdir}\", not also one with "
                             f"\"{run.logdir or ''}\"; launch the program once for each run")
  return f"file:{os.path.join(directory, 'address')}"
