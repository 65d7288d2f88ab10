"""The form of the states and actions that a program reads, from facts in the docstring of its exported file.

The fact `states` names the kind and, if all states have one shape, this shape, such as `vector (4,)`. The fact `parts`
holds the names and shapes of the parts of a record, such as `{'goal': (3,), 'said': 'text'}`. The fact `actions` is the
shape of an action, `()` for a single number. Only programs that read actions have it.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grace_irl.errors import InputError
from grace_irl.pages import page
from grace_irl.states import KINDS, kind_of_state
from grace_irl.states.kind import PartLayout, StateKind, States
from grace_irl.states.layout import StateLayout
from grace_irl.states.tally import ValueTally

Shape = tuple[int, ...] | None
"""The shape of a part's numbers in one state, () for a single number; None for a text."""

TEXT = "text"


def states_fact(kind: StateKind, every: Iterable[States]) -> str:
    """The fact `states` of a run. `every` holds the states of each trajectory."""
    shapes = {kind.shape(states) for states in every}
    shape = shapes.pop() if len(shapes) == 1 else ()
    return f"{kind.name} {shape}" if shape else kind.name


def shape_of_actions(every: Iterable[NDArray[Any] | None]) -> Shape:
    """The shape of an action, if all have one; else None. `every` holds the actions of each trajectory."""
    shapes = {None if actions is None else actions.shape[1:] for actions in every}
    return shapes.pop() if len(shapes) == 1 else None


def shaped(actions: NDArray[Any], shape: Shape) -> NDArray[Any]:
    """Actions `(n, ...)` in this shape, if each has as many numbers; else as they are.

    A table with one column of actions has a single number for each step, where an environment may have a vector.
    """
    if shape is None or actions.shape[1:] == shape or math.prod(actions.shape[1:]) != math.prod(shape):
        return actions
    return actions.reshape(len(actions), *shape)


def written(layout: Sequence[PartLayout]) -> str:
    """The fact `parts`: the parts of a layout as the text of a Python dict, on one line."""
    return ascii({part.name: TEXT if part.is_text else part.shape for part in layout})


def parts_in(text: str) -> dict[str, Shape]:
    """The parts in a text that `written` wrote; {} for an empty text.

    Raises:
        InputError: any other text.
    """
    try:
        found = ast.literal_eval(text or "{}")
        return {str(name): None if shape == TEXT else tuple(map(int, shape)) for name, shape in found.items()}
    except (ValueError, TypeError, SyntaxError, AttributeError, RecursionError, MemoryError):
        raise InputError(
            f"the parts of a reward's states, {text[:80]!r}, cannot be read; expected names with shapes, such as "
            "{'goal': (3,), 'said': 'text'}: fit again, or correct the line `parts:` of its file"
        ) from None


def difference(expected: Mapping[str, Shape], found: Mapping[str, Shape]) -> str:
    """The first part that is missing or has another shape, in words; "" if there is none.

    Parts that are only in `found` are ignored.
    """
    for name, shape in expected.items():
        if name not in found:
            return f"no part {name!r}; expected it ({_said(shape)}), as the reward reads it"
        if found[name] != shape:
            return f"part {name!r} ({_said(found[name])}); expected {_said(shape)}, as the reward reads it"
    return ""


@dataclass(frozen=True)
class Reads:
    """The form of the states and actions that a program reads.

    Attributes:
        kind: name of the states' kind; "" if unknown.
        parts: the shape of each part of a record; {} for states without parts, or if unknown.
        shape: the one shape of all states of the demonstrations, or of a task's environment; None if they have several
            shapes or none, or if unknown. Vectors must have this shape, and images its number of channels, because
            programs may read grids and images of any size.
        actions: the one shape of all actions there; None if unknown, or if the program reads none.
    """

    kind: str = ""
    parts: dict[str, Shape] = field(default_factory=dict)
    shape: Shape = None
    actions: Shape = None

    @classmethod
    def of(cls, states: str, parts: str, actions: str = "") -> Reads:
        """The form that the facts `states`, `parts` and `actions` name. A missing fact is the text "".

        Raises:
            InputError: `parts` cannot be read.
        """
        kind, _, shape = states.partition(" ")
        return cls(kind, parts_in(parts), _shape_in(shape), () if actions == "()" else _shape_in(actions))

    def taken(self, actions: NDArray[Any], name: str) -> NDArray[Any]:
        """Actions `(n, ...)` in the shape that the program reads (`shaped`).

        Args:
            actions: the actions.
            name: name of the reward, for messages.

        Raises:
            InputError: an action has another number of components.
        """
        found = shaped(actions, self.actions)
        if self.actions is not None and found.shape[1:] != self.actions:
            raise InputError(
                f"{name}: actions of shape {found.shape[1:]}; expected {self.actions}, as the reward reads them"
            )
        return found

    def require(self, kind: StateKind, states: States, name: str, *, stated: bool = True) -> None:
        """Check that the states of a trajectory have this form.

        Args:
            kind: kind of the trajectory. It may differ from the kind of this form if both kinds fit the states, and
                the states have the shape of this form.
            states: states of the trajectory.
            name: name of the demonstrations, for messages.
            stated: whether a file or a whole set decided the kind, and not the values of this trajectory.

        Raises:
            InputError: the kind of this form does not fit the states, vectors have another number of components or
                images of channels, or a part is missing or has another shape.
        """
        own, layout = KINDS.get(self.kind), kind.layout(states)
        fits = own is None or (own.recognises(states) and self._counts_as(own, kind, layout, states, stated=stated))
        if wrong := self._unlike(kind, own, layout, fits=fits):
            raise InputError(
                f"{name}: {wrong}: choose demonstrations with states as those that the reward was fitted to"
            )

    def require_state(self, state: Any, name: str) -> None:
        """Check that a state of an environment has this form.

        Args:
            state: the state.
            name: name of the reward, for messages.

        Raises:
            InputError: as for `require`, or no kind fits the state.
        """
        if self == Reads():
            return
        found, own = kind_of_state(state, name), KINDS.get(self.kind)
        layout = StateLayout.of(found, state).parts
        fits = own is None or (own.recognises_state(state) and self._counts_as(own, found, layout, state))
        if wrong := self._unlike(found, own, layout, fits=fits):
            raise InputError(unfit(name, wrong))

    def _counts_as(
        self, own: StateKind, found: StateKind, layout: Sequence[PartLayout], states: Any, *, stated: bool = False
    ) -> bool:
        """Whether states that may be of the kind of this form, and of another kind, count as states of this form.

        For example, a grid of codes and a picture may have the same type. States of the shape of this form count. For
        other shapes, a stated kind decides. Otherwise all states count but pictures in place of grids.

        Args:
            own: kind of this form.
            found: kind of the states.
            layout: parts of the states.
            states: the states of a trajectory, or a single state.
            stated: as for `require`.
        """
        if found is own or layout[0].shape == self.shape:
            return True
        if stated and self.shape:
            return False
        values = ValueTally()
        if (array := np.asarray(states)).dtype == np.uint8:
            values.add(array)
        return not own.denies(values)

    def _unlike(self, found: StateKind, own: StateKind | None, layout: Sequence[PartLayout], *, fits: bool) -> str:
        """The difference between some states and this form, in words; "" if there is none.

        Args:
            found: kind of the states.
            own: kind of this form; None if unknown.
            layout: parts of the states.
            fits: whether the states may be of the kind `own`.
        """
        if own is not None and not fits:
            return f"{found.plural}; expected {own.plural}, as the reward reads them"
        if own is not None and self.shape and (wrong := own.misfit(layout[0].shape or (), self.shape)):
            return f"{wrong}, as the reward reads them"
        return difference(self.parts, {part.name: None if part.is_text else part.shape for part in layout})


def unfit(name: str, wrong: str) -> str:
    """The message about observations that do not fit a reward.

    Args:
        name: name of the reward.
        wrong: the difference, such as "3 numbers; expected 4".
    """
    return (
        f"{name}: observations with {wrong}: choose the environment that it was made for, or give it a wrapper or a "
        f"view that shows them ({page('training')})"
    )


def _shape_in(text: str) -> Shape:
    """A shape other than () in a text such as "(3, 4)"; None in any other text."""
    sides = re.fullmatch(r"\((\d+(?:, \d+)*),?\)", text)
    return tuple(map(int, sides[1].split(", "))) if sides else None


def _said(shape: Shape) -> str:
    return "a text" if shape is None else f"shape {shape}" if shape else "a single number"
