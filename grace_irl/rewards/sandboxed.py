"""Rewards in the sandbox, for a program that nobody has to trust."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from grace_irl.errors import InputError
from grace_irl.rewards.scorer import Begin, TurnRewards
from grace_irl.sandbox.pool import ZygotePool
from grace_irl.sandbox.session import RewardSession, SessionLimits
from grace_irl.states import KINDS, kind_of_state
from grace_irl.states.layout import StateLayout


class SandboxedScorer:
    """Runs the program in a locked-down child of its own, one message per vector step. Implements `Scorer`.

    The child starts with the first episode, whose state says what states are like.

    Args:
        source: the program.
        name: what to call it in messages.
        terms: ask for `terms_fn`'s components, too.
        limits: what it may use.
        allow_weak: accept tier E (docs/sandbox.md).
        pool: an open sandbox whose tier is known already.
    """

    def __init__(
        self,
        source: str,
        name: str,
        *,
        terms: bool = False,
        limits: SessionLimits = SessionLimits(),
        allow_weak: bool = False,
        pool: ZygotePool | None = None,
    ) -> None:
        self._source, self._name, self._terms = source, name, terms
        self._limits, self._allow_weak, self._pool = limits, allow_weak, pool
        self._session: RewardSession | None = None

    def turn(
        self,
        slots: Sequence[int],
        actions: NDArray[Any] | None,
        states: Sequence[NDArray[Any]] | NDArray[Any],
        begins: Sequence[Begin] = (),
    ) -> TurnRewards:
        """See `Scorer`."""
        return self._opened(begins).turn(slots, actions, states, begins)

    def close(self) -> None:
        """Ends the child."""
        if self._session is not None:
            self._session.close()

    def _opened(self, begins: Sequence[Begin]) -> RewardSession:
        if self._session is None:
            if not begins:
                raise InputError(f"{self._name}: a step before any episode began; expected reset() first")
            state = begins[0].state
            kind = kind_of_state(state)
            if kind is None:
                raise InputError(f"{self._name}: a state that is {type(state).__name__}; expected {', '.join(KINDS)}")
            self._session = RewardSession(
                self._source,
                self._name,
                StateLayout.of(kind, state),
                terms=self._terms,
                limits=self._limits,
                allow_weak=self._allow_weak,
                pool=self._pool,
            )
        return self._session
