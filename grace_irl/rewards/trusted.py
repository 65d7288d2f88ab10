"""Rewards in this process, for a program that somebody has read and trusts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grace_irl.errors import GraceError, InputError
from grace_irl.programs.check import read
from grace_irl.rewards.online import trusted_candidate
from grace_irl.rewards.scorer import Begin, TurnRewards
from grace_irl.sandbox.candidate import ContractError, explain
from grace_irl.sandbox.session import SessionLimits
from grace_irl.sandbox.slots import Slots, rewards_of


class TrustedScorer:
    """Runs the program here, with everything that this process may do. Implements `Scorer`.

    Every episode gets a fresh module and object, and generators of its own where the program uses `random`: the same
    rewards as in the sandbox, and nothing left behind in the process's own generators.

    Args:
        source: the program.
        name: what to call it in messages.
        terms: ask for `terms_fn`'s components, too.
        max_abs: the largest reward or component (absolute value) that counts as finite.

    Raises:
        InputError: the source breaks the contract.
    """

    def __init__(self, source: str, name: str, *, terms: bool = False, max_abs: float = SessionLimits.max_abs) -> None:
        reading = read(source)
        problems = [problem for problem in reading.problems if problem.kind in ("syntax", "contract")]
        if problems:
            raise InputError(f"{name}: {problems[0]}; expected a program as docs/contract.md says")
        self._slots = Slots(trusted_candidate(source, takes_action=reading.takes_action))
        self._source, self._name, self._terms, self._max_abs = source, name, terms, max_abs

    def turn(
        self,
        slots: Sequence[int],
        actions: NDArray[Any] | None,
        states: Sequence[NDArray[Any]] | NDArray[Any],
        begins: Sequence[Begin] = (),
    ) -> TurnRewards:
        """See `Scorer`."""
        try:
            found, terms = rewards_of(self._slots, slots, actions, states, terms=self._terms)
            for begin in begins:
                self._slots.begin(begin.slot, begin.state, begin.instruction)
        except ContractError as error:
            raise InputError(f"{self._name}: {error}") from error
        except Exception as error:
            failure = explain(error, "runtime", self._source)
            raise GraceError(f"{self._name}: {failure.status}: {failure.message}") from error
        answer = TurnRewards(np.array(found, np.float64), tuple(terms))
        problem = answer.problem(self._max_abs)
        if problem:
            raise GraceError(f"{self._name}: nonfinite: {problem}")
        return answer

    def close(self) -> None:
        """Nothing to free."""
