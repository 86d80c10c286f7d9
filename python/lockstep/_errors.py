"""The package's errors. Each text is a sentence that names the problem and, where it helps, the remedy."""

from __future__ import annotations


class Error(Exception):
  """The base class of all Lockstep errors."""


class Refused(Error):
  """This program is not what the run needs: its model, data, framework or configuration differs.

  Also raised for a chief that the logdir refuses. Starting it again does not help.
  """


class RunFailed(Error):
  """The run has failed for all workers, e.g. because the loss is not a number."""


class ChiefLost(Error):
  """No chief answers. Restarting the program may help."""


class ModelError(Error):
  """The program's results do not fit its variables, or come in the wrong order."""


class ConfigurationError(Error):
  """A setting is wrong. The text has one line for each problem; the line begins with the name of the field."""
