"""Conversions of a recovered reward to the form of reward that a learner trains on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from grace_irl.errors import InputError
from grace_irl.rewards.runner import RewardRunner
from grace_irl.sandbox.session import Begin, TurnRewards
from grace_irl.states import require_finite

Form = Literal["raw", "guided", "logit", "probability", "soft", "progress"]
FormChoice = Literal["auto", "raw", "guided", "logit", "probability", "soft", "progress"]
"""A form, or "auto" for the default of a reward file (`grace_irl.rewards.file.RewardFile.form`)."""

GAMMA = 0.99
"""Default discount factor, for a learner whose own is unknown."""
SOFTNESS = 3.0
"""Divisor of the logit in the form "soft" of `Scale`."""


@dataclass(frozen=True)
class Scale:
    """The conversion of a program's reward r to the learner's reward.

    - `raw`: r.
    - `guided`: r if r is above the threshold or below 0. Other rewards are potentials, as with `progress`: the step
      that leaves them loses what the step that reached them earned. If no reward lies between 0 and the threshold, this
      is `raw`.
    - `logit`: `scale * r + offset`, the logit of the fitted discriminator D without the policy's log-probability. This
      is `log D - log (1 - D)`, the reward that AIRL trains on (Fu et al. 2018).
    - `probability`: D, in [0, 1].
    - `soft`: the sigmoid of a third of the logit. In all states of an untrained policy, a good discriminator has D near
      0. So `probability` hardly ranks these states, but `soft` does.
    - `progress`: `gamma * r(s') - r(s)` for a step from state s to s' (`Payment`). If r rises towards a goal, the
      policy earns reward for approaching the goal, but not for staying near it.

    `guided` and `progress` depend on earlier states, so `Payment` computes them.

    If episodes can end early, a positive reward is a bonus for every further step, and a negative reward is a penalty
    (docs/training.md).

    Attributes:
        form: the name of the form.
        scale, offset: the calibration of the reward file.
        gamma: the learner's discount factor, for `guided` and `progress`.
        threshold: the threshold of the reward file, for `guided`.

    Raises:
        InputError: the form is unknown, or is `guided` without a threshold.
    """

    form: Form = "raw"
    scale: float = 1.0
    offset: float = 0.0
    gamma: float = GAMMA
    threshold: float | None = field(default=None, repr=False)  # checkpoints are named by the text of a `Scale`

    def __post_init__(self) -> None:
        if self.form not in get_args(Form):
            raise InputError(f"reward scale {self.form!r}; expected one of {', '.join(get_args(FormChoice))}")
        if self.form == "guided" and self.threshold is None:
            raise InputError(
                "reward scale 'guided' for a reward without THRESHOLD; expected a file with a THRESHOLD, or another "
                "scale"
            )

    @property
    def remembers(self) -> bool:
        """Whether the reward of a step depends on earlier states of the episode."""
        return self.form in ("guided", "progress")

    def __call__(self, rewards: NDArray[np.float64]) -> NDArray[np.float64]:
        """Convert rewards of any shape. If the form depends on earlier states, return the part that does not."""
        if self.form == "raw":
            return rewards
        if self.remembers:
            return rewards - self.potential(rewards)
        logit = self.scale * rewards + self.offset
        if self.form == "logit":
            return logit
        return np.asarray(expit(logit / SOFTNESS if self.form == "soft" else logit))

    def potential(self, rewards: NDArray[np.float64]) -> NDArray[np.float64]:
        """The potentials of states with these rewards, of any shape; 0 if the form depends on no earlier state."""
        if self.form == "progress":
            return rewards
        if self.form != "guided":
            return np.zeros_like(rewards)
        assert self.threshold is not None
        return np.where((rewards > 0) & (rewards <= self.threshold), rewards, 0.0)

    def worth(self, rewards: NDArray[np.float64]) -> float:
        """The return of a whole episode in this form, from the rewards `(T+1,)` of its states.

        The return is the sum over all states but the first. Of the potentials, only that of the last state counts: the
        learner is paid for reaching this state, and not for staying in earlier ones.
        """
        earned = rewards[1:]
        return float(self(earned).sum() + self.potential(earned[-1:]).sum())


class Payment:
    """The rewards of running episodes, in the form that the learner trains on.

    The form `progress` treats the program's rewards as potentials (Ng, Harada and Russell 1999), and `guided` those of
    some states. The potential of the first state is set to 0, because no action affects the first state. Then the
    discounted sum of an episode's potential differences is the discounted potential of its last state. The potentials
    of earlier states can guide the policy to the goal, but the policy gains nothing by staying in these states.

    Args:
        runner: the runner of the program; `close` closes it.
        scale: conversion of the program's reward to the returned reward.
    """

    def __init__(self, runner: RewardRunner, scale: Scale = Scale()) -> None:
        self._runner, self._scale = runner, scale
        self._before: dict[int, float] = {}
        self._posted: list[tuple[Sequence[int], Sequence[Begin]]] = []

    def turn(
        self,
        slots: Sequence[int],
        actions: NDArray[Any] | None,
        states: Sequence[NDArray[Any]] | NDArray[Any],
        begins: Sequence[Begin] = (),
    ) -> TurnRewards:
        """Call `RewardRunner.turn` and convert the rewards. The components of the rewards stay unchanged.

        Raises:
            InputError: a state holds NaN or infinity. Programs may pay such states any reward.
        """
        _require_finite(states, begins)
        return self._converted(slots, begins, self._runner.turn(slots, actions, states, begins))

    def post(
        self,
        slots: Sequence[int],
        actions: NDArray[Any] | None,
        states: Sequence[NDArray[Any]] | NDArray[Any],
        begins: Sequence[Begin] = (),
    ) -> None:
        """Call `RewardRunner.post`. The method `settle` converts the rewards. Errors are those of `turn`."""
        _require_finite(states, begins)
        self._runner.post(slots, actions, states, begins)
        self._posted.append((slots, begins))

    def settle(self) -> list[tuple[Sequence[int], TurnRewards]]:
        """The slots and the converted rewards of all turns that were posted since the last call, in order."""
        posted, self._posted = self._posted, []
        answers = self._runner.settle()
        return [
            (slots, self._converted(slots, begins, answer))
            for (slots, begins), answer in zip(posted, answers, strict=True)
        ]

    def _converted(self, slots: Sequence[int], begins: Sequence[Begin], answer: TurnRewards) -> TurnRewards:
        paid = self._scale(answer.rewards)
        if not self._scale.remembers:
            return TurnRewards(paid, answer.terms)
        potential = self._scale.potential(answer.rewards)
        before = np.array([self._before.get(slot, 0.0) for slot in slots])
        self._before.update(zip(slots, potential.tolist(), strict=True))
        self._before.update((begin.slot, 0.0) for begin in begins)
        return TurnRewards(paid + (self._scale.gamma * potential - before), answer.terms)

    def close(self) -> None:
        """Close the runner."""
        self._runner.close()


def _require_finite(states: Any, begins: Sequence[Begin]) -> None:
    require_finite(states)
    for begin in begins:
        require_finite(begin.state)
