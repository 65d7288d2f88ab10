"""What every view of states offers to prompts."""

from __future__ import annotations

from typing import Any, Protocol

from numpy.typing import NDArray


class View(Protocol):
    """States of one kind as text. Built from training data only, and the same over all calls of a run.

    `T` below is text of one line, without a line break.
    """

    @property
    def about(self) -> str:
        """What a program is handed as a state: type, shape, axes. Goes into the system part."""
        ...

    def legend(self, tokens: int) -> str:
        """How states are written, and what holds for all of them; cut to about so many tokens."""
        ...

    def words(self, tokens: int) -> str:
        """What the words of instructions go with in the states, several lines; "" where there is nothing to say."""
        ...

    def state(self, state: NDArray[Any]) -> str:
        """One state in full (T)."""
        ...

    def change(self, before: NDArray[Any], after: NDArray[Any]) -> str:
        """What differs between two states (T); the full state where that is shorter."""
        ...
