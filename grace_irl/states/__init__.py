"""Kinds of state: vectors, grids, images, screens and records.

Each kind is one object. This object recognises, checks, stores, shows and scrambles states of its kind.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from grace_irl.errors import InputError
from grace_irl.states.grid import GRID
from grace_irl.states.image import IMAGE
from grace_irl.states.kind import PartLayout, StateKind, States
from grace_irl.states.record import RECORD
from grace_irl.states.screen import SCREEN
from grace_irl.states.tally import ValueTally
from grace_irl.states.vector import VECTOR

KINDS: dict[str, StateKind] = {kind.name: kind for kind in (VECTOR, GRID, IMAGE, SCREEN, RECORD)}
"""All kinds by name. If several kinds fit some states, the first one with a true `StateKind.likely` is chosen.

Grids and images may have the same shape and type. `grace_irl.demos.kind_rule` decides between them for a whole data
set."""


def kind_named(name: str) -> StateKind:
    """The kind with this name.

    Raises:
        InputError: an unknown name.
    """
    if name not in KINDS:
        raise InputError(f"states of kind {name[:40]!r}; expected one of {', '.join(KINDS)}")
    return KINDS[name]


def kind_of(states: States, where: str) -> StateKind:
    """The kind of a trajectory's states, by their type and dimensions. If several kinds fit, the values decide.

    Raises:
        InputError: no kind recognises the states.
    """
    found = kinds_of(states)
    if not found:
        about = f"{getattr(states, 'dtype', type(states).__name__)} of shape {getattr(states, 'shape', '()')}"
        *first, last = (kind.expected for kind in KINDS.values())
        raise InputError(f"{where}: states are {about}; expected {' or '.join(first)}, or {last}")
    return likeliest(found, states)


def kinds_of(states: States) -> tuple[StateKind, ...]:
    """The kinds that fit the type and dimensions of a trajectory's states."""
    return tuple(kind for kind in KINDS.values() if kind.recognises(states))


def likeliest(kinds: Sequence[StateKind], states: States) -> StateKind:
    """The most plausible of several kinds that recognise some states.

    The values of byte states decide. For other states, the result is the first of `kinds`.

    Args:
        kinds: the kinds, in the order of `KINDS`.
        states: states of a trajectory, or a single state.
    """
    if len(kinds) == 1:
        return kinds[0]
    values = ValueTally()
    if (array := np.asarray(states)).dtype == np.uint8:
        values.add(array)
    return next(kind for kind in kinds if kind.likely(values))


def kinds_of_parts(parts: Sequence[PartLayout]) -> tuple[StateKind, ...]:
    """The kinds whose states a file may store as arrays with these layouts."""
    return tuple(kind for kind in KINDS.values() if kind.recognises_parts(parts))


def kind_of_state(state: Any, where: str) -> StateKind:
    """The kind of one state of an environment; see `kind_of`.

    Raises:
        InputError: no kind recognises the state.
    """
    found = _kinds_of_state(state)
    if not found:
        shape = getattr(state, "shape", ())
        single = isinstance(state, int | float | np.generic | np.ndarray) and np.asarray(state).dtype.kind in "iuf"
        about = f"{state.dtype} of shape {shape}" if shape else "one number" if single else type(state).__name__
        raise InputError(
            f"{where}: a state that is {about}; expected numbers (n,), integers (h, w, 3), bytes (h, w, 1, 3 or 4), a "
            "text or a dict, as in the demonstrations: give the environment a wrapper that shows them so"
        )
    return likeliest(found, state)


def _kinds_of_state(state: Any) -> tuple[StateKind, ...]:
    try:
        return tuple(kind for kind in KINDS.values() if kind.recognises_state(state))
    except ValueError:  # a tuple or list of arrays of different shapes
        return ()


def kinds_of_space(space: Any) -> tuple[StateKind, ...]:
    """The kinds that fit the observations of a Gymnasium space."""
    return tuple(kind for kind in KINDS.values() if kind.recognises_space(space))


def require_finite(states: Any, part: str = "") -> None:
    """Refuse NaN and infinity in states of running episodes: an array, a number, a record, or a sequence of these.

    Raises:
        InputError: a number that is not finite. `part` names the part of a record that holds it.
    """
    dtype = getattr(states, "dtype", None)
    if isinstance(states, float):
        finite = math.isfinite(states)
    else:
        finite = dtype is None or dtype.kind != "f" or bool(np.isfinite(states).all())
    if not finite:
        which = f"part {part!r} of an observation" if part else "an observation"
        raise InputError(f"{which}: NaN or infinity; expected finite numbers: correct the environment")
    if dtype is not None and dtype.kind != "O":
        return
    if isinstance(states, Mapping):
        for name, value in states.items():
            require_finite(value, name)
    elif isinstance(states, list | tuple) or (dtype is not None and states.ndim):
        for state in states:
            require_finite(state, part)


def as_state(state: Any, kind: StateKind | None = None) -> Any:
    """One state in the form that programs receive: a fresh, writable copy.

    Args:
        state: the state in the form of an environment or a file.
        kind: the state's kind; None: the first kind that fits. All kinds that fit a state convert it in the same way.

    Raises:
        InputError: the state fits no kind.
    """
    found = kind or next(iter(_kinds_of_state(state)), None) or kind_of_state(state, "reward")
    return found.as_state(state)
