"""A check that PPO on the true reward has learnt, so that a fraction of it says something."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from grace_irl.demos.trajectory import Demonstrations
from grace_irl.rl.matching import split_id

RETURNS = {"Hopper": 2_000.0, "Walker2d": 2_000.0, "HalfCheetah": 1_000.0}
"""Mean returns that the oracle must pass. A Hopper or Walker2d that stands still earns about 1,000 in 1,000 steps for
being alive; a HalfCheetah that does not move earns 0."""
SUCCESS = 0.5
"""Success rate that the oracle must reach if there is a goal."""
OF_EXPERTS = 0.5
"""Share of the experts' mean return that it must reach elsewhere."""


@dataclass(frozen=True)
class Oracle:
    """Rule by which PPO on the true reward counts as having learnt.

    Attributes:
        experts: mean return of the experts whose rewards were recorded; None if none were.
    """

    experts: float | None = None

    @classmethod
    def of(cls, demonstrations: Demonstrations) -> Oracle:
        """From demonstrations."""
        experts = [item.trajectory for item in demonstrations.select(role="expert")]
        totals = [float(each.rewards.sum()) for each in experts if each.rewards is not None]
        return cls(float(np.mean(totals)) if totals else None)

    def doubt(self, environment: str, score: float, *, success: bool) -> str:
        """The reason why no fraction of an oracle's mean score is quoted, in one line; "" if one is.

        Args:
            environment: the one of its training.
            score: its mean over runs.
            success: whether that is a success rate and no return.
        """
        if success:
            least, why = SUCCESS, "success"
        elif (name := split_id(environment)[0]) in RETURNS:
            least, why = RETURNS[name], "return"
        elif self.experts is not None and self.experts > 0:
            least, why = OF_EXPERTS * self.experts, f"return, half of the experts' {self.experts:.4g}"
        else:
            return (
                f"{environment}: no fraction of ppo-true is quoted: nothing says when it has learnt there; expected "
                "experts with recorded rewards and a positive return"
            )
        if score >= least:
            return ""
        return (
            f"{environment}: ppo-true has not learnt ({score:.4g}; expected at least {least:.4g} {why}): no fraction "
            "of it is quoted"
        )
