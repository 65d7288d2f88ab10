"""Rewards of one program for several concurrent episodes.

Each running episode has its own `Reward` object and its own random numbers. Episodes share nothing. The child of a
sandbox session uses this module. For trusted programs, `rewards/runner.py` uses this module without a sandbox.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grace_irl.programs.contract import as_action
from grace_irl.sandbox.candidate import Candidate, Reward, number
from grace_irl.sandbox.protocol import Status
from grace_irl.states import as_state
from grace_irl.states.kind import StateKind

_AS_IT_IS = nullcontext()


class Generators:
    """The random numbers of one episode: a saved state of the global generators (`random`, `numpy.random`).

    Args:
        used: whether the program draws random numbers. If not, `lent` does nothing, which saves time.
    """

    def __init__(self, *, used: bool) -> None:
        self._used = used
        self._state: tuple[Any, Any] | None = None

    def lent(self, *, kept: bool = True) -> AbstractContextManager[None]:
        """Context in which the global generators continue the random numbers of this episode.

        Args:
            kept: whether the numbers that this block draws are used up. If not, the next block draws the same numbers
                again.
        """
        return self._lent(kept) if self._used else _AS_IT_IS

    @contextmanager
    def _lent(self, kept: bool) -> Iterator[None]:
        before = _standing()
        if self._state is not None:
            _put(self._state)
        try:
            yield
        finally:
            if kept:
                self._state = _standing()
            _put(before)


def _standing() -> tuple[Any, Any]:
    return random.getstate(), np.random.get_state()


def _put(state: tuple[Any, Any]) -> None:
    random.setstate(state[0])
    np.random.set_state(state[1])


@dataclass
class RunningEpisode:
    """One running episode: its `Reward` object, its last state and its random generators.

    Later steps replace `last` only if the program takes actions, because no other program needs it.
    """

    reward: Reward
    last: Any
    generators: Generators


class Slots:
    """The running episodes of one program. A slot is a number that the caller gives to an episode.

    Each episode executes the program as a new module and makes a new `Reward` object. If the program uses random
    numbers, the episode also gets its own generators, which start from seed 0. `begin` and `turn` restore the global
    generators before they return.

    Args:
        candidate: the program.
        kind: kind of the states; None to recognise the kind of each state by its type and dimensions.

    Attributes:
        takes_action: whether the program takes actions.
        phase: status to report if the program raises an exception now: "init" while a `Reward` object is made, else
            "runtime".
    """

    def __init__(self, candidate: Candidate, kind: StateKind | None = None) -> None:
        self._kind = kind
        self.takes_action = candidate.takes_action
        self._candidate = candidate
        self._running: dict[int, RunningEpisode] = {}
        self.phase: Status = "runtime"

    def begin(self, slot: int, state: Any, extra_info: str) -> float:
        """Start an episode in a slot, and end the episode that was in this slot.

        Args:
            slot: number of the episode.
            state: first state.
            extra_info: instruction of the episode.

        Returns:
            The reward of the first state; NaN for a program that takes actions, because no action led to this state.
        """
        self._running.pop(slot, None)
        generators = Generators(used=self._candidate.uses_random)
        first = math.nan
        with generators.lent():
            self.phase = "init"
            reward = self._candidate.start(extra_info)
            self.phase = "runtime"
            if not self.takes_action:  # even if the reward is not needed: a program expects all states in order
                first = number(reward.call(self._fresh(state)))
        self._running[slot] = RunningEpisode(reward, self._fresh(state), generators)
        return first

    def turn(
        self,
        numbers: Sequence[int],
        actions: Sequence[Any] | NDArray[Any] | None,
        states: Sequence[Any] | NDArray[Any],
        *,
        terms: bool,
    ) -> tuple[list[float], list[dict[str, float]]]:
        """Compute the rewards of one step in each of several episodes.

        Args:
            numbers: slots of the episodes.
            actions: one action per episode; None if the program takes no actions.
            states: one state per episode, after the step.
            terms: whether to compute the named components of the rewards, too. Random numbers that terms_fn draws do
                not change later rewards.

        Returns:
            The rewards, and one dict of components per reward. The dicts are empty for a program without terms_fn. If
            `terms` is False, the second list is empty.

        Raises:
            KeyError: a slot without an episode.
            NotANumberError: the program returned something that is not a number.
        """
        rewards, named = [], []
        for index, slot in enumerate(numbers):
            running, state = self._running[slot], states[index]
            before, action = running.last, None if actions is None else actions[index]
            with running.generators.lent():
                value = running.reward.call(*self._handed(before, action, state))
            rewards.append(value if type(value) is float else number(value))
            if self.takes_action:
                running.last = self._fresh(state)
            if terms:
                with running.generators.lent(kept=False):
                    named.append(running.reward.terms(*self._handed(before, action, state)))
        return rewards, named

    def _handed(self, before: Any, action: Any, state: Any) -> tuple[Any, ...]:
        """Fresh copies of the arguments for the program's methods."""
        if not self.takes_action:
            return (self._fresh(state),)
        return self._fresh(before), as_action(action), self._fresh(state)

    def _fresh(self, state: Any) -> Any:
        return as_state(state, self._kind)
