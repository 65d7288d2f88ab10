"""A program that rewards several episodes at once.

Each running episode has its own object and its own random numbers; nothing is shared between them.
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
from grace_irl.states import as_state
from grace_irl.states.kind import StateKind

_AS_IT_IS = nullcontext()


class Generators:
    """`random` and `numpy.random` as one episode finds them.

    Args:
        used: the program draws; otherwise nothing is put anywhere, which saves its time.
    """

    def __init__(self, *, used: bool) -> None:
        self._used = used
        self._state: tuple[Any, Any] | None = None

    def lent(self, *, kept: bool = True) -> AbstractContextManager[None]:
        """Put them in the place of the process's for a while.

        Args:
            kept: the episode goes on from the numbers that were drawn; otherwise it draws them again.
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
class Running:
    """One episode: its object, the state that it saw last, and its random generators."""

    reward: Reward
    last: Any
    generators: Generators


class Slots:
    """The episodes that one program is rewarding, by slot number.

    An episode gets a fresh module and a fresh `Reward`, as offline; if the program uses `random`, it also gets
    generators of its own that start from seed 0, and those of the process are put back after every call.

    Args:
        candidate: the program.
        kind: of the states; None judges each by its type and dimensions.
    """

    def __init__(self, candidate: Candidate, kind: StateKind | None = None) -> None:
        self._kind = kind
        self.takes_action = candidate.takes_action
        self._candidate = candidate
        self._running: dict[int, Running] = {}

    def begin(self, slot: int, state: Any, extra_info: str) -> float:
        """Start an episode; one that ran in this slot is over.

        A program that rewards states is shown the first one, because it expects every state in order.

        Returns:
            The reward of the first state; NaN for a program that rewards transitions.
        """
        self._running.pop(slot, None)
        generators = Generators(used=self._candidate.uses_random)
        first = math.nan
        with generators.lent():
            reward = self._candidate.start(extra_info)
            if not self.takes_action:
                first = number(reward.call(self._fresh(state)))
        self._running[slot] = Running(reward, self._fresh(state), generators)
        return first

    def turn(
        self,
        numbers: Sequence[int],
        actions: Sequence[Any] | NDArray[Any] | None,
        states: Sequence[Any] | NDArray[Any],
        *,
        terms: bool,
    ) -> tuple[list[float], list[dict[str, float]]]:
        """One step of several episodes.

        Args:
            numbers: their slots.
            actions: one each, or None if the program takes none.
            states: the states reached.
            terms: ask for the named components of the rewards, too. What they draw changes no reward: nobody asks for
                them offline.

        Returns:
            Rewards, and the components of each ({} for a program without `terms_fn`), or [].

        Raises:
            KeyError: no episode has begun in a slot.
            NotANumberError: the program gave something else.
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
        """The arguments of the program's methods, each a copy of its own."""
        if not self.takes_action:
            return (self._fresh(state),)
        return self._fresh(before), as_action(action), self._fresh(state)

    def _fresh(self, state: Any) -> Any:
        return as_state(state, self._kind)
