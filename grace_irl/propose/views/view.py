"""The interface of views, which write states as text for prompts."""

from __future__ import annotations

from collections.abc import Set
from typing import Any, Protocol


class View(Protocol):
    """A writer of states of one kind. It depends only on training data, and it stays the same during a run.

    The arguments `state`, `before` and `after` are elements of `Trajectory.states`. Prompts write the result of
    `state()` or `change()` after the number of a state. All lines of a result but the first are indented by at least
    two spaces.

    Attributes:
        modules: names of the modules that programs need to read these states, as prompts list them.
        tokens_of: word for the elements of a state, such as "codes" or "texts". Prompts warn that other trajectories
            may have new elements.
        helps: whether prompts include the helper function of `vector.HELPER`, which compares two sets of vectors.
        recalls: number of earlier states to which the text of a change may refer. They are the trajectory's states that
            were written last.
    """

    @property
    def modules(self) -> str: ...

    @property
    def tokens_of(self) -> str: ...

    @property
    def helps(self) -> bool: ...

    @property
    def recalls(self) -> int: ...

    @property
    def about(self) -> str:
        """Description of the states that programs get: type, shape, axes. It is in the system part of prompts."""
        ...

    @property
    def coarser(self) -> View | None:
        """A view that writes each state in about half the tokens; None if states have no shorter form."""
        ...

    def legend(self, tokens: int) -> str:
        """Explanation of the notation, and statistics of the training states, in about `tokens` tokens."""
        ...

    def figures(self, tokens: int) -> str:
        """Statistics of the states alone, for prompts that show no states, in about `tokens` tokens.

        They compare experts with negatives, whatever states are positive. Where there is one role alone, statistics of
        vectors compare all states with the last ones of episodes.
        """
        ...

    def words(self, tokens: int) -> str:
        """Table that lists, for words of instructions, the elements of states that often occur with the word.

        The result is "" if no word has such elements.
        """
        ...

    def state(self, state: Any) -> str:
        """Write one state in full."""
        ...

    def change(self, before: Any, after: Any, *, apart: bool = False) -> str:
        """Write the changes from one state to another, or the second state in full if that is shorter.

        Args:
            before, after: the states.
            apart: whether the prompt leaves out states between these two. Then the text must not read like one step.
        """
        ...

    def events(self, states: Any) -> Set[int] | None:
        """Find the steps of a trajectory in which something besides the actor changes.

        The actor is the one thing of a state that moves or turns in most steps. The result is None if the view knows no
        actor. Then every step may be as important as any other.
        """
        ...
