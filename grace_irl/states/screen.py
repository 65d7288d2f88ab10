"""Screens as states: the XML of one user interface each, in one array."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray


def pack(
    screens: Sequence[str], allocate: Callable[[Sequence[int], DTypeLike], NDArray[Any]] = np.empty
) -> NDArray[np.bytes_]:
    """Screens as the states of a trajectory: `(T+1,)` of dtype `S`, as wide as the longest.

    Args:
        screens: XML, one text per state. XML cannot hold a null character, so the padding is no part of any.
        allocate: where they go (`grace_irl.demos.source.Allocate`).
    """
    width = max((len(screen.encode()) for screen in {id(screen): screen for screen in screens}.values()), default=1)
    states = allocate((len(screens),), f"S{max(1, width)}")
    last, encoded = "", b""
    for step, screen in enumerate(screens):  # one copy at a time: screens are large
        if screen is not last:
            last, encoded = screen, screen.encode()
        states[step] = encoded
    return states


def text(state: bytes) -> str:
    """One state of such an array as the text that a program is handed."""
    return state.decode()
