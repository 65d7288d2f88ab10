"""The protocol of every view of states for prompts."""

from __future__ import annotations

from typing import Any, Protocol

FULL_GOAL = 120
"""Tokens of a goal state that is written in full beside its changes, if states are short."""


class View(Protocol):
    """States of one kind as text. Built from training data only, and the same over all calls of a run.

    A `state` below is one of `Trajectory.states`. `T` is text for the place after a state's number: one line, or
    more of which all but the first are indented by two spaces or more.

    Attributes:
        modules: what programs mostly import to read such states.
        tokens_of: what a state is made of that may be new on other trajectories: "codes", "texts", "numbers".
        helps: prompts offer the function `debug(expert_states, negative_states)` that compares numbers.
        restated: tokens of a goal state that is written in full beside its changes, at most.
        recalls: from how many of the states shown before a change may be told; 1: from the last one only.
    """

    @property
    def modules(self) -> str: ...

    @property
    def tokens_of(self) -> str: ...

    @property
    def helps(self) -> bool: ...

    @property
    def restated(self) -> int: ...

    @property
    def recalls(self) -> int: ...

    @property
    def about(self) -> str:
        """The form of a state for programs: type, shape, axes. Goes into the system part."""
        ...

    @property
    def coarser(self) -> View | None:
        """The same view with about half the tokens for a state; None if a state has no shorter form."""
        ...

    def legend(self, tokens: int) -> str:
        """The way states are written, and facts about all of them; cut to about `tokens` tokens."""
        ...

    def words(self, tokens: int) -> str:
        """Signs in the states that go with words of instructions, several lines; "" if there is nothing to say."""
        ...

    def state(self, state: Any) -> str:
        """One state in full (T)."""
        ...

    def change(self, before: Any, after: Any) -> str:
        """The differences of two states (T); the full state if that is shorter."""
        ...
