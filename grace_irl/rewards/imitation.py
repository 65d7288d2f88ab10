"""A recovered reward for the `imitation` library, as a function (state, action, next_state, done) -> (batch,)."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grace_irl.rewards.runner import RewardRunner
from grace_irl.rewards.scale import Payment, Scale
from grace_irl.rewards.view import Tops, states_of
from grace_irl.sandbox.session import Begin


class ImitationReward:
    """A reward function (`RewardFn`) for the `imitation` library, for example for `RewardVecEnvWrapper`.

    The protocol `RewardFn` has no episodes, but a program needs them. So row i of a batch continues the episode in row
    i of the previous batch, as in batches from a vector environment. A row starts a new episode if its `state` differs
    from the previous `next_state` in this row, or if the previous step in this row was `done`. A new `Reward` object
    then receives `state` and rewards the step.

    If rows do not continue in this way, for example in batches from a replay buffer, each step becomes a separate
    episode. The rewards are then correct only for programs that use no earlier states, and only in forms that use none
    (`Scale.remembers`).

    An observation of a `Dict` space is the state itself (a record), or has the state under the key "state". In
    `imitation`, `RewardVecEnvWrapper` and BC accept such observations; GAIL and AIRL do not.

    Args:
        runner: the runner of the program.
        scale: conversion of the program's reward to the returned reward.
        extra_info: instruction for all episodes, such as "go to the red ball". `RewardFn` has no argument for it.
        tops: names of the parts that the reward reads (`rewards.view.Tops`). An observation with all of them is the
            state itself, even if it has an entry "state".
    """

    def __init__(
        self, runner: RewardRunner, scale: Scale = Scale(), extra_info: str = "", tops: Tops = frozenset()
    ) -> None:
        self._payment, self._extra_info, self._tops = Payment(runner, scale), extra_info, tops
        self._last: dict[int, Any] = {}

    def __call__(
        self,
        state: Any,
        action: NDArray[Any],
        next_state: Any,
        done: NDArray[np.bool_],
        *,
        update_stats: bool = False,  # noqa: ARG002
    ) -> NDArray[np.float32]:
        """Rewards of a batch.

        Args:
            state: states `(batch, ...)` as the environment returns them, without normalisation; a dict of such arrays
                for a `Dict` space.
            action: actions `(batch, ...)`.
            next_state: next states, in the form of `state`. At the end of an episode, this is the final observation.
            done: whether each step ends its episode, `(batch,)`.
            update_stats: ignored, because this function keeps no statistics. The protocol requires the argument.

        Returns:
            Rewards `(batch,)`, float32.
        """
        rows = range(len(done))
        before, reached = (states_of(each, len(done), self._tops) for each in (state, next_state))
        begins = [
            Begin(row, before[row], self._extra_info)
            for row in rows
            if row not in self._last or not _same(self._last[row], before[row])
        ]
        if begins:
            self._payment.turn((), None, (), begins)
        answer = self._payment.turn(rows, action, reached)
        self._last = {row: deepcopy(reached[row]) for row in rows if not done[row]}
        return answer.rewards.astype(np.float32)

    def close(self) -> None:
        """Close the program."""
        self._payment.close()


def _same(one: Any, other: Any) -> bool:
    """Whether two states are equal. All records (dicts of arrays) have the same keys."""
    if isinstance(one, dict):
        return all(_same(part, other[name]) for name, part in one.items())
    return bool(np.array_equal(one, other))
