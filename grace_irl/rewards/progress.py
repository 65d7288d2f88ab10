"""Pays how far a reward has risen since the state before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grace_irl.rewards.scorer import Answer, Begin, Scorer


class Progress:
    """The rewards of another scorer as potentials: pays `gamma * r(s') - r(s)` (Ng, Harada and Russell 1999).

    Over an episode the payments add up to what its last state is worth, discounted, whatever lies between: states on
    the way can be valued, so that a policy feels where the goal is, and still it earns nothing by lingering in them.
    The first state counts as 0 instead of its own reward, which no action changes.

    Args:
        scorer: gives r; closed with this one.
        gamma: the learner's discount.
    """

    def __init__(self, scorer: Scorer, gamma: float) -> None:
        self._scorer, self._gamma = scorer, gamma
        self._before: dict[int, float] = {}

    def turn(
        self,
        slots: Sequence[int],
        actions: NDArray[Any] | None,
        states: Sequence[NDArray[Any]] | NDArray[Any],
        begins: Sequence[Begin] = (),
    ) -> Answer:
        """See `Scorer`; components stay those of r."""
        answer = self._scorer.turn(slots, actions, states, begins)
        before = np.array([self._before.get(slot, 0.0) for slot in slots])
        self._before.update(zip(slots, answer.rewards.tolist(), strict=True))
        self._before.update((begin.slot, 0.0) for begin in begins)
        return Answer(self._gamma * answer.rewards - before, answer.terms)

    def close(self) -> None:
        """See `Scorer`."""
        self._scorer.close()
