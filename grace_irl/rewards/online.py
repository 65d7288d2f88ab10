"""A program's own `Reward` object in this process, with the rewards that the sandbox gives."""

from __future__ import annotations

import hashlib
from typing import Any

from grace_irl.programs.contract import FILENAME, as_action
from grace_irl.sandbox.candidate import Candidate
from grace_irl.sandbox.slots import Generators
from grace_irl.states import as_state


def trusted_candidate(source: str, *, takes_action: bool = False, filename: str = FILENAME) -> Candidate:
    """A program that somebody trusts, under a module's name that is no other's in this process.

    Args:
        source: its text.
        takes_action: reward_fn takes (state, action, next_state).
        filename: what its lines are called in a traceback.

    Raises:
        SyntaxError, ValueError: it does not compile.
    """
    name = f"grace_irl_reward_{hashlib.sha256(source.encode()).hexdigest()[:16]}"
    return Candidate(source, source, takes_action=takes_action, name=name, filename=filename)


class OnlineReward:
    """A program's own `Reward` object for one trajectory.

    The module is a fresh one, states and actions are handed over as in the sandbox, and random numbers are the
    episode's own, from seed 0: nothing reaches another object, nor the generators of the process. Methods beside
    those below are the object's own.

    Args:
        candidate: the program.
        extra_info: the instruction.
    """

    def __init__(self, candidate: Candidate, extra_info: str) -> None:
        self._generators = Generators(used=candidate.uses_random)
        with self._generators.lent():
            self._reward = candidate.start(extra_info).instance

    def reward_fn(self, state: Any, *transition: Any) -> Any:
        """`reward_fn(state)`, or `reward_fn(state, action, next_state)`, of the program."""
        with self._generators.lent():
            return self._reward.reward_fn(*_handed(state, *transition))

    def debug_fn(self, state: Any, *transition: Any) -> Any:
        """`debug_fn` of the program, with the same arguments; what it draws is drawn again by the next reward."""
        with self._generators.lent(kept=False):
            return self._reward.debug_fn(*_handed(state, *transition))

    def terms_fn(self, state: Any, *transition: Any) -> Any:
        """`terms_fn` of the program, likewise."""
        with self._generators.lent(kept=False):
            return self._reward.terms_fn(*_handed(state, *transition))

    def __getattr__(self, name: str) -> Any:
        if name in ("_reward", "_generators"):  # before `__init__`, where a copy is made
            raise AttributeError(name)
        return getattr(self._reward, name)


def _handed(state: Any, *transition: Any) -> tuple[Any, ...]:
    if not transition:
        return (as_state(state),)
    action, *after = transition
    return (as_state(state), as_action(action), *map(as_state, after))
