"""The protocol of all views of states for prompts."""

from __future__ import annotations

from typing import Any, Protocol

FULL_GOAL = 120
"""Maximum tokens of a goal state that is written in full beside its changes, for kinds with short states."""


class View(Protocol):
    """Text for states of one kind. A view depends only on training data, and it stays the same during a run.

    A `state` below is one element of `Trajectory.states`. A method marked (T) returns a text that prompts put
    behind the state's number: one line, or several of which all but the first are indented by two spaces or more.

    Attributes:
        modules: modules that programs mostly import to read such states.
        tokens_of: name of those elements of a state that may be new in other trajectories: "codes", "texts", "numbers".
        helps: whether prompts include the helper that compares numbers, for `debug(expert_states, negative_states)`.
        restated: maximum tokens of a goal state that is written in full beside its changes.
        recalls: number of previously written states from which a change may be described; 1 for the last one only.
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
        """Form of a state for programs: type, shape, axes. It belongs to the system part."""
        ...

    @property
    def coarser(self) -> View | None:
        """The same view with about half the tokens for each state; None if a state has no shorter form."""
        ...

    def legend(self, tokens: int) -> str:
        """Explanation of the notation of states, and facts about all states; cut to about `tokens` tokens."""
        ...

    def words(self, tokens: int) -> str:
        """Elements of states that go with words of instructions, several lines; "" if there is nothing to say."""
        ...

    def state(self, state: Any) -> str:
        """Write one state in full (T)."""
        ...

    def change(self, before: Any, after: Any) -> str:
        """Write the differences of two states, or the full state if that is shorter (T)."""
        ...
