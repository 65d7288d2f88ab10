"""The scorer of the steps of running episodes; where the program runs is its own affair."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from numpy.typing import NDArray

from grace_irl.sandbox.session import Begin, TurnRewards

__all__ = ["Begin", "Scorer", "TurnRewards"]


class Scorer(Protocol):
    """Holds one `Reward` object per running episode, known by its slot number."""

    def turn(
        self,
        slots: Sequence[int],
        actions: NDArray[Any] | None,
        states: Sequence[NDArray[Any]] | NDArray[Any],
        begins: Sequence[Begin] = (),
    ) -> TurnRewards:
        """Rewards the steps of running episodes, then starts those that begin.

        Args:
            slots: of the episodes that step, `(n,)`.
            actions: `(n, ...)`; used by programs that reward transitions.
            states: the states reached, one per slot.
            begins: episodes to start once the steps are rewarded; one that ran in the same slot is over.

        Raises:
            GraceError: the program failed, or gave something that is not a finite number.
        """
        ...

    def close(self) -> None:
        """Frees what it holds; may be called twice."""
        ...
