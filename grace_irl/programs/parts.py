"""Names and shapes of the parts of a state on one line of exports, such as `{'goal': (3,), 'said': 'text'}`."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from grace_irl.errors import InputError
from grace_irl.states.kind import PartLayout, StateKind, States

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


def require_parts(expected: Mapping[str, Shape], kind: StateKind, states: States, name: str) -> None:
    """Check that the states of a trajectory have the parts that a reward reads.

    Raises:
        InputError: a part is missing or has another shape. `name` names the demonstrations.
    """
    if not expected:
        return
    found = {part.name: None if part.is_text else part.shape for part in kind.layout(states)}
    if wrong := difference(expected, found):
        raise InputError(f"{name}: {wrong}: choose demonstrations with states as those that the reward was fitted to")


def _said(shape: Shape) -> str:
    return "a text" if shape is None else f"shape {shape}" if shape else "a single number"
