"""A learning curve: evaluations of a policy during training, on the environment's own reward."""

from __future__ import annotations

import json
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from grace_irl import toml
from grace_irl.rl.method import Kept, Policy, PolicyProblem, Watch

VALUES = 10
"""Maximum number of values of a `course`."""


@dataclass(frozen=True)
class Point:
    """One evaluation of a policy, a point of its learning curve.

    Attributes:
        steps: environment steps of training so far.
        episodes: number of episodes of the evaluation.
        mean, deviation: mean and standard deviation of the true return.
        success: share of episodes that reached the goal; None if the environment has no goal.
        length: mean steps of an episode.
        components: sum of each reward component over an episode, averaged over the episodes, by the component's key in
            `info` (`reward_forward`, …).
        paid: mean return, under the learner's reward, of the training episodes since the previous point; None if it was
            not recorded or no episode ended.
        seconds: seconds of training so far, without evaluations.
        score: mean score of the episodes in a task; None without a task.
        terms: mean value of each component of the learner's reward over the training steps since the previous point, by
            the names in the program's `terms_fn`.
    """

    steps: int
    episodes: int
    mean: float
    deviation: float
    success: float | None
    length: float
    components: dict[str, float]
    paid: float | None = None
    seconds: float = 0.0
    score: float | None = None
    terms: dict[str, float] = field(default_factory=dict)


def to_json(points: Sequence[Point]) -> str:
    """A curve as JSON text."""
    return json.dumps([asdict(each) for each in points])


def from_json(text: str) -> tuple[Point, ...]:
    """A curve from the JSON text of `to_json`."""
    return toml.from_json(tuple[Point, ...], text)


def evaluated_at(steps: int, evaluations: int, rollout: int) -> tuple[int, ...]:
    """Numbers of environment steps at which PPO is evaluated. They are evenly spaced, at the ends of rollouts.

    Args:
        steps: environment steps of the training, which are rounded up to whole rollouts.
        evaluations: number of evaluations.
        rollout: environment steps of a rollout.
    """
    return tuple(-(-steps * (part + 1) // (evaluations * rollout)) * rollout for part in range(evaluations))


def course(values: Sequence[float | None]) -> dict[str, Any]:
    """The course of a number along a training.

    Args:
        values: the number at each evaluation, or None if it is unknown; at least one is known.

    Returns:
        At most `VALUES` of the values, evenly spaced, as "values"; "max", "mean" and "min" of all known values.
    """
    known = [value for value in values if value is not None]
    places = np.linspace(0, len(values) - 1, min(VALUES, len(values))).round().astype(int)
    return {
        "values": [values[place] for place in places],
        "max": max(known),
        "mean": float(np.mean(known)),
        "min": min(known),
    }


class Watching:
    """A schedule that calls a `Watch` at `problem.watches` evenly spaced numbers of steps.

    The schedule also keeps a copy of the policy at each number of steps in `problem.keeps`. For learners of
    Stable-Baselines3, the callback `grace_irl.rl.learning.AfterUpdates` calls `at`.
    """

    def __init__(self, problem: PolicyProblem, watch: Watch) -> None:
        self._points = [round(part * problem.steps) for part in np.linspace(0, 1, problem.watches + 1)[1:-1]]
        self._keeps = list(problem.keeps)
        self._kept: list[Kept] = []
        self._watch = watch
        self._shown = -1

    def at(self, steps: int, policy: Policy) -> None:
        """Call the `Watch` if training has reached the next of the evenly spaced numbers of steps. `end` does the last.

        Keep a copy of the policy if training has reached the next number of steps in `problem.keeps`.

        Args:
            steps: environment steps of training so far.
            policy: the learner's current policy. Within a rollout, the policy is not yet updated on this rollout.
        """
        if self._keeps and steps >= self._keeps[0]:
            self._keeps = [point for point in self._keeps if point > steps]
            self._kept.append(Kept(steps, _copy(policy)))
        if self._points and steps >= self._points[0]:
            self._points = [point for point in self._points if point > steps]
            self._show(steps, policy)

    def end(self, steps: int, policy: Policy) -> None:
        """Call the `Watch` with the last policy, unless the previous call was at the same number of steps."""
        if steps != self._shown:
            self._show(steps, policy)

    @property
    def kept(self) -> tuple[Kept, ...]:
        """The copies kept so far (`Trained.kept`)."""
        return tuple(self._kept)

    def _show(self, steps: int, policy: Policy) -> None:
        self._shown = steps
        self._watch(steps, policy)


def _copy(policy: Policy) -> Policy:
    """A deep copy of a policy, without the distribution of its last actions.

    After an update, the tensors of this distribution belong to a graph, and torch does not copy them.
    """
    last = getattr(getattr(policy, "action_dist", None), "distribution", None)
    return deepcopy(policy, {id(last): None} if last is not None else {})
