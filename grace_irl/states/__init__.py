"""Kinds of state: one object each, which knows how its states are recognised, checked, stored, shown and scrambled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from grace_irl.errors import InputError
from grace_irl.states.grid import GRID
from grace_irl.states.image import IMAGE
from grace_irl.states.kind import PartLayout, StateKind, States, ValueTally
from grace_irl.states.record import RECORD
from grace_irl.states.screen import SCREEN
from grace_irl.states.vector import VECTOR

KINDS: dict[str, StateKind] = {kind.name: kind for kind in (VECTOR, GRID, IMAGE, SCREEN, RECORD)}
"""Every kind by its name, in the order in which they are asked whether they recognise states.

A grid and an image may have the same form: for the kind of a whole set see `grace_irl.demos.kind_rule`."""


def kind_named(name: str) -> StateKind:
    """The kind of this name.

    Raises:
        InputError: no kind has it.
    """
    if name not in KINDS:
        raise InputError(f"states of kind {name[:40]!r}; expected one of {', '.join(KINDS)}")
    return KINDS[name]


def kind_of(states: States, where: str) -> StateKind:
    """The kind of a trajectory's states, judged by their type and dimensions, and by their values if these leave two.

    Raises:
        InputError: no kind recognises them.
    """
    found = kinds_of(states)
    if not found:
        about = f"{getattr(states, 'dtype', type(states).__name__)} of shape {getattr(states, 'shape', '()')}"
        *first, last = (kind.expected for kind in KINDS.values())
        raise InputError(f"{where}: states are {about}; expected {' or '.join(first)}, or {last}")
    return likeliest(found, states)


def kinds_of(states: States) -> tuple[StateKind, ...]:
    """The kinds that a trajectory's states may be of, judged by their type and dimensions."""
    return tuple(kind for kind in KINDS.values() if kind.recognises(states))


def likeliest(kinds: Sequence[StateKind], states: States) -> StateKind:
    """The kind among several that recognise states, or one state, judged by their values if these are bytes."""
    if len(kinds) == 1:
        return kinds[0]
    values = ValueTally()
    if (array := np.asarray(states)).dtype == np.uint8:
        values.add(array)
    return next(kind for kind in kinds if kind.likely(values))


def kinds_of_parts(parts: Sequence[PartLayout]) -> tuple[StateKind, ...]:
    """The kinds of states that a file may keep as these parts."""
    return tuple(kind for kind in KINDS.values() if kind.recognises_parts(parts))


def kind_of_state(state: Any, where: str) -> StateKind:
    """The kind of one state, as an environment gives it; see `kind_of`.

    Raises:
        InputError: no kind recognises it.
    """
    found = _kinds_of_state(state)
    if not found:
        raise InputError(f"{where}: a state that is {type(state).__name__}; expected one of {', '.join(KINDS)}")
    return likeliest(found, state)


def _kinds_of_state(state: Any) -> tuple[StateKind, ...]:
    return tuple(kind for kind in KINDS.values() if kind.recognises_state(state))


def kinds_of_space(space: Any) -> tuple[StateKind, ...]:
    """The kinds that observations of a Gymnasium space may be of."""
    return tuple(kind for kind in KINDS.values() if kind.recognises_space(space))


def as_state(state: Any, kind: StateKind | None = None) -> Any:
    """One state as a program is handed it: a fresh, writable copy.

    Args:
        state: as an environment or a file has it.
        kind: of the state; None judges by its type and dimensions: kinds of one form hand states over alike.

    Raises:
        InputError: no state of any kind.
    """
    found = kind or next(iter(_kinds_of_state(state)), None) or kind_of_state(state, "reward")
    return found.as_state(state)
