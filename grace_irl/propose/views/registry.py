"""The views of all state kinds, and `view_of`, which makes the view for the data of a run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from grace_irl.demos.labels import Labelled
from grace_irl.demos.trajectory import Metadata
from grace_irl.errors import InputError
from grace_irl.propose.views.grid import GridView
from grace_irl.propose.views.image import ImageView
from grace_irl.propose.views.record import RecordView
from grace_irl.propose.views.ui import UiView
from grace_irl.propose.views.vector import VectorView
from grace_irl.propose.views.view import View
from grace_irl.states.grid import GRID
from grace_irl.states.image import IMAGE
from grace_irl.states.record import RECORD
from grace_irl.states.screen import SCREEN
from grace_irl.states.vector import VECTOR


class NoStates:
    """The view for runs without demonstrations. The search methods of these runs write their own prompts."""

    modules, tokens_of, helps, recalls = "numpy", "values", False, 1
    about = "A state is what the task gives."
    coarser: View | None = None

    def legend(self, tokens: int) -> str:
        """An empty text."""
        del tokens
        return ""

    figures = words = legend

    def state(self, state: Any) -> str:
        """The state as Python prints it."""
        return repr(state)

    def events(self, states: Any) -> None:
        """Always None, because nothing is known about the states."""
        del states

    def change(self, before: Any, after: Any, *, apart: bool = False) -> str:
        """The second state as Python prints it."""
        del before, apart
        return repr(after)


VIEWS: dict[str, Callable[[Sequence[Labelled], Metadata], View]] = {
    GRID.name: GridView,
    IMAGE.name: ImageView,
    SCREEN.name: UiView,
    RECORD.name: RecordView,
    VECTOR.name: VectorView,
}
"""View classes by state kind. A new state kind needs an entry here before prompts can show its states."""


def view_of(items: Sequence[Labelled], metadata: Metadata) -> View:
    """Make the view for the states of a set of demonstrations.

    Args:
        items: training data, for statistics such as the background of grids. Without data, `NoStates` is returned.
        metadata: metadata of the set.

    Raises:
        InputError: the state kind has no view.
    """
    if metadata.kind not in VIEWS:
        known = ", ".join(sorted(VIEWS))
        raise InputError(f"states of kind {metadata.kind!r} cannot be shown to a model; expected one of {known}")
    if not items:
        return NoStates()
    return VIEWS[metadata.kind](items, metadata)
