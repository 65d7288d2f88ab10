"""A program that rewards several episodes at once: one object per running episode, nothing shared between them."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grace_irl.programs.contract import as_action, as_state
from grace_irl.sandbox.candidate import Candidate, Reward, number


@dataclass
class Running:
    """One episode: its object, the state that it saw last, and where its random generators stand."""

    reward: Reward
    last: NDArray[Any]
    generators: tuple[Any, Any] | None = None


class Slots:
    """The episodes that one program is rewarding, by slot number.

    An episode gets a fresh module and a fresh `Reward`, as offline; where the program uses `random`, it also gets
    generators of its own that start from seed 0, and those of the process are put back after every call.

    Args:
        candidate: the program.
        uses_random: its source mentions `random`.
    """

    def __init__(self, candidate: Candidate, *, uses_random: bool) -> None:
        self.takes_action = candidate.takes_action
        self._candidate = candidate
        self._uses_random = uses_random
        self._running: dict[int, Running] = {}

    def begin(self, slot: int, state: NDArray[Any], extra_info: str) -> None:
        """Start an episode; one that ran in this slot is over.

        A program that rewards states is shown the first one, because it expects every state in order.
        """
        self._running.pop(slot, None)
        with self._generators(None):
            running = Running(self._candidate.start(extra_info), np.array(state))
            if not self.takes_action:
                number(running.reward.call(as_state(state)))
            running.generators = self._drawn()
        self._running[slot] = running

    def step(self, slot: int, action: Any, state: NDArray[Any]) -> float:
        """The reward for arriving in `state`, by `action` from the state before.

        Raises:
            KeyError: no episode has begun in this slot.
            NotANumberError: the program gave something else.
        """
        running = self._running[slot]
        if not self._uses_random:
            return self._call(running, action, state)
        with self._generators(running.generators):
            value = self._call(running, action, state)
            running.generators = self._drawn()
        return value

    def terms(self, slot: int, action: Any, before: NDArray[Any], state: NDArray[Any]) -> dict[str, float]:
        """The named components of the reward just given; {} for a program without `terms_fn`."""
        running = self._running[slot]
        with self._generators(running.generators):
            if self.takes_action:
                found = running.reward.terms(as_state(before), as_action(action), as_state(state))
            else:
                found = running.reward.terms(as_state(state))
            running.generators = self._drawn()
        return found

    def last(self, slot: int) -> NDArray[Any]:
        """The state that an episode saw last."""
        return self._running[slot].last

    def _call(self, running: Running, action: Any, state: NDArray[Any]) -> float:
        if self.takes_action:
            value = running.reward.call(as_state(running.last), as_action(action), as_state(state))
            running.last = np.array(state)
        else:
            value = running.reward.call(as_state(state))
        return value if type(value) is float else number(value)

    @contextmanager
    def _generators(self, state: tuple[Any, Any] | None) -> Iterator[None]:
        """Put an episode's generators in the place of the process's, where the program uses any."""
        if not self._uses_random:
            yield
            return
        before = random.getstate(), np.random.get_state()
        if state is not None:
            random.setstate(state[0])
            np.random.set_state(state[1])
        try:
            yield
        finally:
            random.setstate(before[0])
            np.random.set_state(before[1])

    def _drawn(self) -> tuple[Any, Any] | None:
        return (random.getstate(), np.random.get_state()) if self._uses_random else None


def rewards_of(
    slots: Slots,
    numbers: Sequence[int],
    actions: Sequence[Any] | NDArray[Any] | None,
    states: Sequence[NDArray[Any]] | NDArray[Any],
    *,
    terms: bool,
) -> tuple[list[float], list[dict[str, float]]]:
    """One step of several episodes.

    Args:
        numbers: their slots.
        actions: one each, or None where the program takes none.
        states: the states reached.
        terms: ask for the components, too.

    Returns:
        Rewards, and the components of each, or [].
    """
    rewards, named = [], []
    for index, slot in enumerate(numbers):
        action = None if actions is None else actions[index]
        before = slots.last(slot) if terms else states[index]
        rewards.append(slots.step(slot, action, states[index]))
        if terms:
            named.append(slots.terms(slot, action, before, states[index]))
    return rewards, named
