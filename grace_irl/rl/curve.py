"""A learning curve: what policies on the way were worth, by the environment's own account."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np

from grace_irl import typed
from grace_irl.rl.rollouts import Rollout


@dataclass(frozen=True)
class Point:
    """One evaluation.

    Attributes:
        steps: environment steps of training so far.
        episodes: how many were played.
        mean, deviation: of the true return.
        success: share of episodes that reached the goal; None where the environment has none.
        length: mean steps of an episode.
        components: mean sums of the parts that the environment names (`reward_forward`, `reward_survive`, …).
        paid: mean return in training since the last point, of the reward that was trained on; None where no episode
            ended.
        seconds: of training so far, evaluation left out.
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


def point(rollouts: Sequence[Rollout], steps: int, *, paid: float | None = None, seconds: float = 0.0) -> Point:
    """Sums up the episodes of one evaluation."""
    totals = np.array([rollout.total for rollout in rollouts])
    successes = [rollout.success for rollout in rollouts if rollout.success is not None]
    names = sorted({name for rollout in rollouts for name in rollout.components})
    return Point(
        steps=steps,
        episodes=len(rollouts),
        mean=float(totals.mean()),
        deviation=float(totals.std()),
        success=float(np.mean(successes)) if successes else None,
        length=float(np.mean([rollout.trajectory.num_steps for rollout in rollouts])),
        components={
            name: float(np.mean([rollout.components.get(name, 0.0) for rollout in rollouts])) for name in names
        },
        paid=paid,
        seconds=seconds,
    )


def to_json(points: Sequence[Point]) -> str:
    """As text."""
    return json.dumps([asdict(each) for each in points])


def from_json(text: str) -> tuple[Point, ...]:
    """What `to_json` wrote."""
    return typed.from_json(tuple[Point, ...], text)
