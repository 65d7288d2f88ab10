"""The edges of the rewards of both sides: they decide whether a calibration has an optimum, and how far out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from grace_irl.evaluate.discriminator import Objective


@dataclass(frozen=True)
class Edges:
    """Extremes of the rewards of an objective with both sides.

    Attributes:
        low, high: the smallest and the largest reward.
        expert: the smallest reward of a positive state.
        negative: the largest reward of a negative state.
        low_log_pi, high_log_pi: the smallest and the largest log pi; 0 where log pi is 0 everywhere.
        lightest: the smallest weight of a row.
    """

    low: float
    high: float
    expert: float
    negative: float
    low_log_pi: float
    high_log_pi: float
    lightest: float

    @classmethod
    def of(cls, objective: Objective) -> Edges:
        """The edges of these rewards."""
        groups = objective.groups
        log_pi = [g.log_pi for g in groups if g.log_pi is not None]
        return cls(
            low=min(float(g.x.min()) for g in groups),
            high=max(float(g.x.max()) for g in groups),
            expert=min(float(g.x.min()) for g in groups if g.sign > 0),
            negative=max(float(g.x.max()) for g in groups if g.sign < 0),
            low_log_pi=min((float(pi.min()) for pi in log_pi), default=0.0),
            high_log_pi=max((float(pi.max()) for pi in log_pi), default=0.0),
            lightest=min(float(np.min(g.weight)) for g in groups),
        )

    @property
    def constant(self) -> bool:
        """Whether all rewards are equal."""
        return self.low == self.high

    @property
    def middle(self) -> float:
        """Halfway between the smallest expert and the largest negative reward."""
        return self.expert / 2 + self.negative / 2

    @property
    def spread_log_pi(self) -> float:
        """The largest log pi less the smallest."""
        return self.high_log_pi - self.low_log_pi

    @property
    def middle_log_pi(self) -> float:
        """Halfway between the two."""
        return (self.low_log_pi + self.high_log_pi) / 2


def nearest(objective: Objective, value: float) -> float:
    """The distance from `value` to the reward next to it that is another one; there must be one."""
    found = float("inf")
    for group in objective.groups:
        away = np.abs(group.x - value)
        found = min(found, float(np.min(away, where=away > 0, initial=np.inf)))
    return found
