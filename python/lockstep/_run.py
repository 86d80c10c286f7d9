"""Declarations of runs: the configuration proto (proto/lockstep/config/v1) in Python."""

from __future__ import annotations

import dataclasses
import json
import os
from typing import Any, Callable, Mapping, Sequence, Union

import numpy as np
import numpy.typing as npt

from lockstep import _core
from lockstep._errors import ConfigurationError
from lockstep._initial import IN_ORDER
from lockstep._text import field, fields, message


@dataclasses.dataclass(frozen=True)
class Schedule:
  """A learning rate as a function of the global step: config.v1.LearningRate in text format. The chief computes it."""
  text: str


def _schedule(initial: float, schedule: str, warmup: int) -> Schedule:
  return Schedule(fields(initial=float(initial)) + schedule + field("warmup_steps", warmup or None))


def constant(lr: float, *, warmup: int = 0) -> Schedule:
  """The rate is `lr`, after a linear increase from 0 during the first `warmup` steps."""
  return _schedule(lr, "", warmup)


def exponential(lr: float, decay_steps: int, decay_rate: float, *, staircase: bool = False, warmup: int = 0) -> Schedule:
  """lr * decay_rate ** (step / decay_steps); with `staircase`, an integer division."""
  return _schedule(
      lr, message("exponential", fields(decay_steps=decay_steps, decay_rate=float(decay_rate), staircase=staircase)),
      warmup)


def piecewise(boundaries: Sequence[int], values: Sequence[float], *, warmup: int = 0) -> Schedule:
  """values[i] while step <= boundaries[i]; there is one more value than boundaries."""
  content = "".join(field("boundaries", int(step)) for step in boundaries)
  content += "".join(field("values", float(value)) for value in values)
  return _schedule(values[0] if values else 0.0, message("piecewise", content), warmup)


def polynomial(lr: float, decay_steps: int, end: float = 0.0, power: float = 1.0, *, cycle: bool = False,
               warmup: int = 0) -> Schedule:
  """(lr - end) * (1 - min(step, decay_steps) / decay_steps) ** power + end."""
  return _schedule(
      lr, message("polynomial", fields(decay_steps=decay_steps, end=float(end), power=float(power), cycle=cycle)),
      warmup)


def inverse_time(lr: float, decay_steps: int, decay_rate: float, *, staircase: bool = False,
                 warmup: int = 0) -> Schedule:
  """lr / (1 + decay_rate * step / decay_steps)."""
  return _schedule(
      lr, message("inverse_time", fields(decay_steps=decay_steps, decay_rate=float(decay_rate), staircase=staircase)),
      warmup)


def cosine(lr: float, decay_steps: int, alpha: float = 0.0, *, warmup: int = 0) -> Schedule:
  """Falls from lr to alpha * lr along half a period of a cosine."""
  return _schedule(lr, message("cosine", fields(decay_steps=decay_steps, alpha=float(alpha))), warmup)


def warmup_cosine(lr: float, warmup: int, steps: int, alpha: float = 0.0) -> Schedule:
  """cosine(lr, steps, alpha), multiplied by (step + 1) / warmup in the first `warmup` steps."""
  return cosine(lr, steps, alpha, warmup=warmup)


def schedule(fn: Callable[[int], float], steps: int, *, every: int = 1) -> Schedule:
  """The rate is fn(step) in steps 0 to steps - 1, and then stays at the last value. Accepts any function, e.g. a
  LambdaLR's.

  fn is called here, to give the chief a table of its values. With `every`, the table has only one step in that many,
  and the rate is linear between them. This suits a smooth function of very many steps.
  """
  if steps < 1 or every < 1:
    raise ConfigurationError(f"schedule() has steps={steps} and every={every}, both must be 1 or more")
  knots = [(step, float(fn(step))) for step in [*range(0, steps - 1, every), steps - 1]]
  # A step adds nothing if its neighbours have the same rate.
  needed = [
      knot for i, knot in enumerate(knots)
      if i in (0, len(knots) - 1) or not knots[i - 1][1] == knot[1] == knots[i + 1][1]
  ]
  return Schedule(message("table", "".join(field("steps", step) + field("rates", rate) for step, rate in needed)))


Rate = Union[float, Schedule]


@dataclasses.dataclass(frozen=True)
class Optimizer:
  """An optimizer and its learning rate, both computed by the chief: config.v1.OptimizerConfig in text format."""
  text: str


@dataclasses.dataclass(frozen=True)
class Group:
  """Trained variables with their own settings. None means the setting of the other variables.

    variables     a regular expression (RE2) that may match any part of a name. The chief refuses a run in which it
                  matches no variable, or a variable that another group matches
    lr_factor     multiplies the learning rate
    weight_decay  replaces the optimizer's
    average       if False, Run(average=...) keeps no averages of these variables
    clip_norm     the maximum L2 norm of these variables' mean gradient; Run(clip_norm=...) limits the others
    optimizer     a separate rule and learning rate
  """
  variables: str
  lr_factor: float | None = None
  weight_decay: float | None = None
  average: bool = True
  clip_norm: float | None = None
  optimizer: Optimizer | None = None

  @property
  def text(self) -> str:
    """config.v1.OptimizerConfig.Group in text format."""
    own = self.optimizer.text if self.optimizer else ""
    clip = fields(mean_by_global_norm=_limit("clip_norm of a group", self.clip_norm))
    own += message("clip", clip) if clip else ""
    return fields(variables=self.variables, rate_factor=_float(self.lr_factor),
                  weight_decay=_float(self.weight_decay),
                  moving_average=None if self.average else False) + (message("optimizer", own) if own else "")


Groups = Sequence[Group]


def _float(value: float | None) -> float | None:
  return None if value is None else float(value)


def _limit(name: str, value: float | None) -> float | None:
  """Returns a limit on gradients as the proto has it, where 0 means no limit."""
  if value is not None and not value > 0:
    raise ConfigurationError(f"{name} is {value}, must be above 0; None is no limit")
  return _float(value)


def _optimizer(kind: str, content: str, lr: Rate, groups: Groups) -> Optimizer:
  rate = lr if isinstance(lr, Schedule) else constant(lr)
  return Optimizer(message(kind, content) + message("learning_rate", rate.text) +
                   "".join(message("group", group.text) for group in groups))


def _with_no_decay(groups: Groups, no_decay: str | None, weight_decay: float) -> Groups:
  if no_decay is None:
    return groups
  if weight_decay == 0:
    raise ConfigurationError(f"no_decay is {no_decay!r}, but weight_decay is 0 for all variables; leave it out")
  return [*groups, Group(no_decay, weight_decay=0.0)]


def SGD(lr: Rate, momentum: float = 0.0, *, dampening: float = 0.0, weight_decay: float = 0.0, nesterov: bool = False,
        no_decay: str | None = None, groups: Groups = ()) -> Optimizer:
  """torch.optim.SGD: g = gradient + weight_decay * value, v = momentum * v + (1 - dampening) * g, value -= lr * v.

  The first update is not dampened. `no_decay` is a regular expression: variables whose names it matches anywhere do not
  decay.
  """
  groups = _with_no_decay(groups, no_decay, weight_decay)
  decay = fields(weight_decay=float(weight_decay) or None)
  if momentum == 0.0 and not nesterov:
    if dampening != 0:
      raise ConfigurationError(f"dampening is {dampening}, but momentum is 0, which it would dampen; leave it out")
    return _optimizer("sgd", decay, lr, groups)
  return _optimizer(
      "momentum", fields(momentum=float(momentum), nesterov=nesterov, dampening=float(dampening) or None) + decay, lr,
      groups)


def Adam(lr: Rate, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8, *, amsgrad: bool = False,
         groups: Groups = ()) -> Optimizer:
  """torch.optim.Adam without weight decay: adds epsilon to the root of the bias-corrected second moment.

  Run(overrides=["optimizer.adam.epsilon_on_corrected=false"]) adds it before the correction, as TensorFlow 1 does.
  """
  return AdamW(lr, betas, eps, 0.0, amsgrad=amsgrad, groups=groups)


def AdamW(lr: Rate, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8, weight_decay: float = 0.01, *,
          amsgrad: bool = False, no_decay: str | None = None, groups: Groups = ()) -> Optimizer:
  """torch.optim.AdamW: Adam, but each variable also shrinks by the fraction lr * weight_decay (Loshchilov and Hutter
  2019).

  `no_decay` is a regular expression such as r"bias$|norm": variables whose names it matches anywhere do not shrink.
  """
  return _optimizer(
      "adam",
      fields(beta1=float(betas[0]), beta2=float(betas[1]), epsilon=float(eps), weight_decay=float(weight_decay),
             epsilon_on_corrected=True, amsgrad=amsgrad or None), lr, _with_no_decay(groups, no_decay, weight_decay))


def NAdam(lr: Rate, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8, weight_decay: float = 0.0,
          momentum_decay: float = 0.004, *, decoupled_weight_decay: bool = False, no_decay: str | None = None,
          groups: Groups = ()) -> Optimizer:
  """torch.optim.NAdam. The weight decay is added to the gradient; with decoupled_weight_decay, it works like
  AdamW's."""
  return _optimizer(
      "nadam",
      fields(beta1=float(betas[0]), beta2=float(betas[1]), epsilon=float(eps), momentum_decay=float(momentum_decay),
             weight_decay=float(weight_decay), decoupled_weight_decay=decoupled_weight_decay or None), lr,
      _with_no_decay(groups, no_decay, weight_decay))


def Lion(lr: Rate, betas: tuple[float, float] = (0.9, 0.99), weight_decay: float = 0.0, *,
         no_decay: str | None = None, groups: Groups = ()) -> Optimizer:
  """Lion (Chen et al. 2023), with AdamW's weight decay."""
  return _optimizer("lion", fields(beta1=float(betas[0]), beta2=float(betas[1]), weight_decay=float(weight_decay)), lr,
                    _with_no_decay(groups, no_decay, weight_decay))


def RMSprop(lr: Rate, decay: float = 0.9, momentum: float = 0.0, eps: float = 1e-10, centered: bool = False, *,
            groups: Groups = ()) -> Optimizer:
  return _optimizer("rmsprop",
                    fields(decay=float(decay), momentum=float(momentum), epsilon=float(eps), centered=centered), lr,
                    groups)


def Adagrad(lr: Rate, initial_accumulator: float = 0.1, *, groups: Groups = ()) -> Optimizer:
  return _optimizer("adagrad", fields(initial_accumulator=float(initial_accumulator)), lr, groups)


def Adadelta(lr: Rate, rho: float = 0.95, eps: float = 1e-8, *, groups: Groups = ()) -> Optimizer:
  return _optimizer("adadelta", fields(rho=float(rho), epsilon=float(eps)), lr, groups)


def Ftrl(lr: Rate, lr_power: float = -0.5, initial_accumulator: float = 0.1, l1: float = 0.0, l2: float = 0.0, *,
         groups: Groups = ()) -> Optimizer:
  return _optimizer(
      "ftrl",
      fields(learning_rate_power=float(lr_power), initial_accumulator=float(initial_accumulator), l1=float(l1),
             l2=float(l2)), lr, groups)


@dataclasses.dataclass(frozen=True)
class EMA:
  """Averages of the trained variables: average -= (1 - decay) * (average - value) after each update."""
  decay: float
  # If true, the decay is min(decay, (1 + step) / (10 + step)).
  num_updates: bool = False
  # If there are any, only trained variables of which these regular expressions (RE2) match any part of the name.
  variables: Sequence[str] = ()

  @property
  def text(self) -> str:
    """config.v1.OptimizerConfig.MovingAverage in text format."""
    # A str is a sequence of its letters, too.
    expressions = (self.variables,) if isinstance(self.variables, str) else self.variables
    return (fields(decay=float(self.decay), num_updates=self.num_updates) +
            "".join(field("variables", expression) for expression in expressions))


Initial = Union[None, str, "os.PathLike[str]", Mapping[str, npt.NDArray[np.float32]]]

_COMPRESSIONS = {None: None, "bf16": "BFLOAT16", "fp16": "FLOAT16"}


class Run:
  """Everything that a run's weights depend on, and where the run lives. Immutable.

  The first worker declares the run. The others' declarations must agree in everything that the weights depend on.

    steps             the global step at which the run finishes
    slots             how many gradients are averaged in one step, whatever the number of workers
    batch             the number of examples in a slot
    seed              determines the initial values, the order of examples and the slots' seeds
    epochs            the run also ends before a step that needs more than this many epochs of the examples
    shuffle           if False, the slots' indices are in ascending order
    clip_norm         the maximum L2 norm of a step's mean gradient, all variables together, like torch's
                      clip_grad_norm_ after the last backward()
    clip_slot_norm    the maximum L2 norm of all gradients of one slot together
    clip_slot_value   the maximum absolute value of an element of a slot's gradient
    average           averages of the trained variables
    checkpoint_every  steps between checkpoints, in addition to one every 600 seconds and the last one
    keep              how many of the newest checkpoints to keep; 0 keeps all
    compression       "bf16" or "fp16": the format in which gradients and values are sent
    audit             the fraction of slots that two workers compute and the chief compares
    skip_non_finite   a step with a value that is not finite changes nothing, instead of failing the run
    initial           the values that a new run starts from: a file (.safetensors, .npz, a checkpoint), or arrays by
                      variable name. Variables without a value use their own rule
    overrides         any other fields of RunSpec, e.g. "cluster.lease_seconds=2"

  Raises ConfigurationError, with one line for each problem.
  """

  logdir: str | None
  steps: int
  slots: int
  batch: int
  seed: int
  initial: Initial
  # True if each worker reads its own stream: training.async or training.first_arrivals.
  streams: bool

  def __init__(self, logdir: str | os.PathLike[str] | None, *, steps: int, optimizer: Optimizer, slots: int = 1,
               batch: int = 1, seed: int = 0, epochs: int | None = None, shuffle: bool = True,
               clip_norm: float | None = None, clip_slot_norm: float | None = None,
               clip_slot_value: float | None = None, average: EMA | None = None, checkpoint_every: int | None = None,
               keep: int = 5, compression: str | None = None, audit: float = 0.0, skip_non_finite: bool = False,
               initial: Initial = None, overrides: Sequence[str] = ()) -> None:
    if compression not in _COMPRESSIONS:
      raise ConfigurationError(f"compression is {compression!r}, must be None, \"bf16\" or \"fp16\"")
    kind = _COMPRESSIONS[compression]
    text = message("training", fields(steps=steps, replicas_to_aggregate=slots, seed=seed,
                                      skip_non_finite=skip_non_finite or None))
    text += message("input", fields(batch_size=batch, epochs=epochs, no_shuffle=None if shuffle else True))
    clip = fields(mean_by_global_norm=_limit("clip_norm", clip_norm),
                  by_global_norm=_limit("clip_slot_norm", clip_slot_norm),
                  by_value=_limit("clip_slot_value", clip_slot_value))
    text += message("optimizer", optimizer.text + (message("clip", clip) if clip else "") +
                    (message("moving_average", average.text) if average else ""))
    start = None if initial is None or isinstance(initial, Mapping) else os.path.abspath(os.fspath(initial))
    text += message("checkpoint", fields(every_steps=checkpoint_every, keep=keep, warm_start=start) + (
        message("warm_start_variables", IN_ORDER)
        if start and not any("warm_start_variables" in override for override in overrides) else ""))
    if kind:
      text += message("compression", f"gradients: {kind} values: {kind} ")
    if audit:
      text += message("audit", fields(fraction=float(audit)))
    self._set(logdir, initial, *_core.parse(text, None, list(overrides)))

  @classmethod
  def from_file(cls, path: str | os.PathLike[str], *, logdir: str | os.PathLike[str] | None = None,
                overrides: Sequence[str] = ()) -> Run:
    """Reads a configuration in text format. Raises ConfigurationError with lines of the file."""
    run = cls.__new__(cls)
    run._set(logdir, None, *_core.parse(None, os.fspath(path), list(overrides)))
    return run

  def _set(self, logdir: str | os.PathLike[str] | None, initial: Initial, text: str, as_json: str) -> None:
    spec: dict[str, Any] = json.loads(as_json)
    training, input_ = spec.get("training", {}), spec.get("input", {})
    object.__setattr__(self, "logdir", None if logdir is None else os.path.abspath(os.fspath(logdir)))
    # An int64 of the proto is a string in JSON.
    object.__setattr__(self, "steps", int(training.get("steps", 0)))
    object.__setattr__(self, "slots", int(training.get("replicas_to_aggregate", 1)))
    object.__setattr__(self, "seed", int(training.get("seed", 0)))
    object.__setattr__(self, "batch", int(input_.get("batch_size", 0)))
    object.__setattr__(self, "streams", "async" in training or "first_arrivals" in training)
    start = spec.get("checkpoint", {}).get("warm_start") or None
    object.__setattr__(self, "initial", start if initial is None else initial)
    object.__setattr__(self, "_text", text)

  def __setattr__(self, name: str, value: object) -> None:
    raise AttributeError(f"a Run does not change; make another one to set {name}")

  def to_text(self) -> str:
    """Returns the complete configuration, including all defaults, as a file that `lockstep chief` accepts."""
    text: str = getattr(self, "_text")
    return text

  def __eq__(self, other: object) -> bool:
    return isinstance(other, Run) and (self.logdir, self.to_text()) == (other.logdir, other.to_text())

  def __hash__(self) -> int:
    return hash((self.logdir, self.to_text()))

  def __repr__(self) -> str:
    return (f"Run({self.logdir!r}, steps={self.steps}, slots={self.slots}, batch={self.batch}, seed={self.seed}, ...)")
