"""Forms in which a recovered reward reaches a learner."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from grace_irl.errors import InputError
from grace_irl.rewards.runner import RewardRunner
from grace_irl.sandbox.session import Begin, TurnRewards

Form = Literal["raw", "logit", "probability", "soft", "progress"]

SOFTNESS = 3.0
"""Divisor of the logit in the form "soft"."""


@dataclass(frozen=True)
class Scale:
    """Turns a program's reward r into what the learner gets.

    `raw` gives r. `logit` gives `scale * r + offset`, the logit of the discriminator D that was fitted: what AIRL
    trains on (`log D - log (1 - D)`, Fu et al. 2018, with log pi = 0). `probability` gives D itself, in [0, 1].
    `soft` is `probability` with a third of the logit: a discriminator that tells experts from others well is next to 0
    wherever a policy is at first, and says of no two such places which is better; this one still does.
    `progress` gives `gamma * r(s') - r(s)`: a reward that rises towards a goal then pays for coming nearer, not for
    being near (`Payment`).

    If episodes may end early, the sign of the reward is a bonus or a fine on every step survived: see
    docs/training.md.

    Attributes:
        form: which of these.
        scale, offset: the calibration of the reward file.
        gamma: the learner's discount, which `progress` needs.
    """

    form: Form = "raw"
    scale: float = 1.0
    offset: float = 0.0
    gamma: float = 0.99

    def __post_init__(self) -> None:
        if self.form not in get_args(Form):
            raise InputError(f"reward scale {self.form!r}; expected one of {', '.join(get_args(Form))}")

    def __call__(self, rewards: NDArray[np.float64]) -> NDArray[np.float64]:
        """The same shape, in the form chosen; as they are for "progress", which needs the state before (`Payment`)."""
        if self.form in ("raw", "progress"):
            return rewards
        logit = self.scale * rewards + self.offset
        if self.form == "logit":
            return logit
        return np.asarray(expit(logit / SOFTNESS if self.form == "soft" else logit))


class Payment:
    """The rewards of running episodes, in the form that a learner gets.

    The form `progress` takes rewards as potentials (Ng, Harada and Russell 1999). Over an episode the payments add up
    to what its last state is worth, discounted, whatever lies between: states on the way can be valued, so that a
    policy feels where the goal is, and still it earns nothing by lingering in them. The first state counts as 0
    instead of its own reward, which no action changes.

    Args:
        runner: gives the program's rewards; closed with this.
        scale: the form.
    """

    def __init__(self, runner: RewardRunner, scale: Scale = Scale()) -> None:
        self._runner, self._scale = runner, scale
        self._before: dict[int, float] = {}

    def turn(
        self,
        slots: Sequence[int],
        actions: NDArray[Any] | None,
        states: Sequence[NDArray[Any]] | NDArray[Any],
        begins: Sequence[Begin] = (),
    ) -> TurnRewards:
        """As `RewardRunner.turn`; components stay those of the program's own reward."""
        answer = self._runner.turn(slots, actions, states, begins)
        if self._scale.form != "progress":
            return TurnRewards(self._scale(answer.rewards), answer.terms)
        before = np.array([self._before.get(slot, 0.0) for slot in slots])
        self._before.update(zip(slots, answer.rewards.tolist(), strict=True))
        self._before.update((begin.slot, 0.0) for begin in begins)
        return TurnRewards(self._scale.gamma * answer.rewards - before, answer.terms)

    def close(self) -> None:
        """Closes the runner."""
        self._runner.close()
