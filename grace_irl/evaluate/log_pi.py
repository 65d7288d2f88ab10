"""log pi(a | s) in the discriminator: constant, uniform, recorded or cloned (docs/fitness.md)."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from grace_irl.demos.labels import Labelled, Problem
from grace_irl.demos.trajectory import Trajectory
from grace_irl.errors import InputError
from grace_irl.evaluate.cloning import clone

Choice = Literal["constant", "uniform", "recorded", "cloned"]
CHOICES: tuple[str, ...] = get_args(Choice)
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class LogPi:
    """log pi for every state of a problem.

    Attributes:
        constant: the value everywhere, where `values` is empty.
        values: from a trajectory's `key` to `(T+1,)`: entry t is log pi(a_t | s_t); the last state has no
            action and takes the mean over the training data.
    """

    constant: float = 0.0
    values: dict[str, Floats] = field(default_factory=dict)

    @property
    def zero(self) -> bool:
        """Whether log pi is 0 everywhere, so that the logit is the reward itself."""
        return not self.values and self.constant == 0.0

    def of(self, trajectory: Trajectory) -> Floats:
        """Values `(T+1,)` for one trajectory."""
        if self.values:
            return self.values[key(trajectory)]
        return np.full(len(trajectory.states), self.constant)


def key(trajectory: Trajectory) -> str:
    """What tells trajectories apart here: the digest, and what was recorded, which a digest does not cover.

    Two policies may have acted alike: states and actions are then equal, and their log-probabilities are not.
    """
    if trajectory.log_probs is None:
        return trajectory.digest
    recorded = np.ascontiguousarray(trajectory.log_probs, dtype="<f8")
    return f"{trajectory.digest} {hashlib.sha256(recorded.data).hexdigest()[:16]}"


def align(values: Floats, *, takes_action: bool) -> Floats:
    """Puts log pi beside the rewards: entry t for states, t+1 for the transition (s_t, a_t, s_{t+1})."""
    return values[:-1] if takes_action else values


def log_pi(problem: Problem, choice: str) -> LogPi:
    """log pi for every trajectory of the problem, by one of `CHOICES`; fitted to training data only.

    Raises:
        InputError: for an unknown choice, or data that lacks what the choice needs.
    """
    if choice == "constant":
        return LogPi()
    if choice == "uniform":
        return LogPi(constant=_uniform([item.trajectory for item in _with_actions(problem.train, choice)]))
    if choice == "recorded":
        return _completed(problem, {key(item.trajectory): _recorded(item.trajectory) for item in problem})
    if choice == "cloned":
        _with_actions(problem.items, choice)
        experts = [item.trajectory for item in problem.train if item.demonstration.role == "expert"]
        policy = clone(experts, [item.trajectory for item in problem.train])
        return _completed(problem, {key(item.trajectory): policy(item.trajectory) for item in problem})
    raise InputError(f"log pi {choice!r} is unknown; expected one of {', '.join(CHOICES)}")


def _completed(problem: Problem, by_step: dict[str, Floats]) -> LogPi:
    """Adds an entry for each last state: the mean over all training steps."""
    steps = [by_step[key(item.trajectory)] for item in problem.train]
    known = np.concatenate(steps) if steps else np.zeros(0)
    mean = float(known.mean()) if len(known) else 0.0
    return LogPi(values={name: np.append(values, mean) for name, values in by_step.items()})


def _with_actions(items: Sequence[Labelled], choice: str) -> Sequence[Labelled]:
    for item in items:
        if item.trajectory.actions is None:
            raise InputError(
                f"{item.trajectory.source or 'a trajectory'}: no actions; --log-pi {choice} needs them: "
                "use --log-pi constant"
            )
    return items


def _recorded(trajectory: Trajectory) -> Floats:
    if trajectory.log_probs is None:
        raise InputError(
            f"{trajectory.source or 'a trajectory'}: no recorded log-probabilities; "
            "--log-pi recorded needs a log_prob for every step: use --log-pi constant or cloned"
        )
    return np.asarray(trajectory.log_probs, dtype=np.float64)


def _uniform(trajectories: Sequence[Trajectory]) -> float:
    """Minus the log of the action space's size, as the data shows it.

    Discrete actions: the number of different actions. Continuous: the volume of the box that holds every
    action.
    """
    actions = np.concatenate([np.asarray(t.actions) for t in trajectories])
    if len(actions) == 0:
        return 0.0
    if actions.dtype.kind in "iub":
        return -float(np.log(len(np.unique(actions, axis=0))))
    flat = actions.reshape(len(actions), -1)
    width = flat.max(axis=0) - flat.min(axis=0)
    return -float(np.log(width[width > 0]).sum())
