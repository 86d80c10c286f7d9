"""The errors of the package. Each text is a sentence that names the problem and, where it helps, the remedy."""

from __future__ import annotations


class Error(Exception):
  """The base of all errors of Lockstep."""


class Refused(Error):
  """This program is not what the run needs: another model, other data, another framework, another configuration.

  Also a chief that the logdir refuses. Starting it again does not help.
  """


class RunFailed(Error):
  """The run has failed for all workers, as by a loss that is not a number."""


class ChiefLost(Error):
  """No chief answers. Starting the program again may help."""


class ModelError(Error):
  """The program's results do not fit its variables, or come in the wrong order."""


class ConfigurationError(Error):
  """A setting is wrong. The text has one line for each problem, which begins with the field."""
