"""A recovered reward as the `imitation` library takes rewards: (state, action, next_state, done) -> (batch,)."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grace_irl.rewards.runner import RewardRunner
from grace_irl.rewards.scale import Payment, Scale
from grace_irl.rewards.view import states_of
from grace_irl.sandbox.session import Begin


class ImitationReward:
    """A reward function of `imitation` (its `RewardFn`), for example of its `RewardVecEnvWrapper`.

    That protocol has no notion of an episode, and a program has: row i is taken as the next step of the episode that
    row i was in at the call before, as a vector environment gives them. A row whose `state` is not the one reached
    last, or that follows `done`, starts an episode: its `state` is shown to a new `Reward`, and the step is rewarded.
    So batches in any other order (a replay buffer, say) are rewarded step by step, each step as an episode of its own:
    right for programs that look at no more than a transition, and short of history for the rest.

    Observations of a `Dict` space are records, or hold the state under "state", as for the wrappers. Of imitation
    itself, `RewardVecEnvWrapper` and BC take such observations, GAIL and AIRL do not.

    Args:
        runner: runs the program.
        scale: the form of the reward.
        extra_info: the instruction of every episode; the protocol carries none.
    """

    def __init__(self, runner: RewardRunner, scale: Scale = Scale(), extra_info: str = "") -> None:
        self._payment, self._extra_info = Payment(runner, scale), extra_info
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
            state: `(batch, ...)`, as the environment gives them, without normalisation; of a `Dict` space a dict of
                such arrays.
            action: `(batch, ...)`.
            next_state: likewise; the final observation if an episode ended.
            done: `(batch,)`.
            update_stats: part of the protocol's relabelling; nothing here keeps statistics.

        Returns:
            `(batch,)` float32.
        """
        rows = range(len(done))
        before, reached = states_of(state, len(done)), states_of(next_state, len(done))
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
        """Ends the program."""
        self._payment.close()


def _same(one: Any, other: Any) -> bool:
    """Whether two states are equal; records are dicts of arrays, of one form in all rows."""
    if isinstance(one, dict):
        return all(_same(part, other[name]) for name, part in one.items())
    return bool(np.array_equal(one, other))
