"""The form of the states that a program reads, as two facts of its exported file name it.

The fact `states` names the kind, such as `grid`. The fact `parts` holds the names and shapes of the parts of a record,
such as `{'goal': (3,), 'said': 'text'}`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from grace_irl.errors import InputError
from grace_irl.states import KINDS, kind_of_state
from grace_irl.states.kind import PartLayout, StateKind, States
from grace_irl.states.layout import StateLayout

Shape = tuple[int, ...] | None
"""The shape of a part's numbers in one state, () for a single number; None for a text."""

TEXT = "text"


def written(layout: Sequence[PartLayout]) -> str:
    """The parts of a layout as a line, a dict in Python."""
    return ascii({part.name: TEXT if part.is_text else part.shape for part in layout})


def parts_in(text: str) -> dict[str, Shape]:
    """The parts in a text of `written`; {} for an empty text.

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
    """The first part that is missing or has another shape, in words; "" for none. More parts than expected are fine."""
    for name, shape in expected.items():
        if name not in found:
            return f"no part {name!r}; expected it ({_said(shape)}), as the reward reads it"
        if found[name] != shape:
            return f"part {name!r} ({_said(found[name])}); expected {_said(shape)}, as the reward reads it"
    return ""


@dataclass(frozen=True)
class Reads:
    """The form of the states that a program reads.

    Attributes:
        kind: name of their kind; "" if unknown.
        parts: the shape of each part of a record; {} for states without parts, or if unknown.
    """

    kind: str = ""
    parts: dict[str, Shape] = field(default_factory=dict)

    def require(self, kind: StateKind, states: States, name: str) -> None:
        """Check that the states of a trajectory have this form. A kind that fits the states is enough.

        Raises:
            InputError: another kind, or a part that is missing or has another shape. `name` names the demonstrations.
        """
        own = KINDS.get(self.kind)
        if own is not None and not own.recognises(states):
            wrong = f"{kind.plural}; expected {own.plural}, as the reward reads them"
        else:
            wrong = difference(self.parts, _shapes(kind.layout(states))) if self.parts else ""
        if wrong:
            raise InputError(
                f"{name}: {wrong}: choose demonstrations with states as those that the reward was fitted to"
            )

    def require_state(self, state: Any, name: str) -> None:
        """Check that a state of an environment has this form.

        Raises:
            InputError: as for `require`, or the state has no kind. `name` names the reward.
        """
        if self == Reads():
            return
        found, own = kind_of_state(state, name), KINDS.get(self.kind)
        if own is not None and not own.recognises_state(state):
            wrong = f"{found.plural}; expected {own.plural}, as the reward reads them"
        else:
            wrong = difference(self.parts, _shapes(StateLayout.of(found, state).parts))
        if wrong:
            raise InputError(unfit(name, wrong))


def unfit(name: str, wrong: str) -> str:
    """The message that observations do not fit a reward. `wrong` says how, and `name` names the reward."""
    return (
        f"{name}: observations with {wrong}: choose the environment of the demonstrations, or give it a wrapper that "
        "shows them"
    )


def _shapes(layout: Iterable[PartLayout]) -> dict[str, Shape]:
    return {part.name: None if part.is_text else part.shape for part in layout}


def _said(shape: Shape) -> str:
    return "a text" if shape is None else f"shape {shape}" if shape else "a single number"
