"""The states of a run, as the process that reads them sees them: read-only maps of what `put` handed over."""

from __future__ import annotations

import json
import mmap
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grace_irl.programs.contract import state_dtype
from grace_irl.sandbox.wire import TRAJECTORY


@dataclass(frozen=True)
class Shelf:
    """One `put`, as a zygote keeps it: descriptors and the description, unread (it never maps a state).

    Attributes:
        fds: segments; 0 holds the table, actions, texts, and the states that had to be copied.
        description: JSON: `count`, `table` (offset), `layouts`.
    """

    fds: tuple[int, ...]
    description: bytes


@dataclass(frozen=True)
class View:
    """One trajectory: stored states `(T+1, …)`, the type handed over, actions `(T, …)` or None."""

    states: NDArray[Any]
    dtype: np.dtype[Any]
    actions: NDArray[Any] | None
    extra_info: str


class Views:
    """Random access to the trajectories of a `Shelf`; maps it on construction.

    Attributes:
        mapped: bytes of address space that the maps take.
    """

    def __init__(self, shelf: Shelf) -> None:
        description = json.loads(shelf.description)
        # Private and read-only: a child that makes them writable writes on copies of its own.
        self._maps = [
            mmap.mmap(fd, os.fstat(fd).st_size, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ) for fd in shelf.fds
        ]
        self.mapped = sum(len(segment) for segment in self._maps)
        self._layouts = [(np.dtype(dtype), tuple(shape)) for dtype, shape in description["layouts"]]
        self._table = np.frombuffer(self._maps[0], TRAJECTORY, description["count"], description["table"])

    def __getitem__(self, index: int) -> View:
        row = self._table[index].item()
        length, segment, layout, offset, action_layout, text_length, action_offset, text_offset = row
        dtype, shape = self._layouts[layout]
        states = self._array(segment, dtype, (length, *shape), offset)
        actions = None
        if action_layout >= 0:
            action_dtype, action_shape = self._layouts[action_layout]
            actions = self._array(0, action_dtype, (length - 1, *action_shape), action_offset)
        text = self._maps[0][text_offset : text_offset + text_length].decode("utf-8", "surrogatepass")
        return View(states, state_dtype(dtype, len(shape)), actions, text)

    def of(self, order: NDArray[np.int64]) -> Iterator[View]:
        """The trajectories of `order`, one after the other."""
        return (self[int(index)] for index in order)

    def _array(self, segment: int, dtype: np.dtype[Any], shape: tuple[int, ...], offset: int) -> NDArray[Any]:
        return np.ndarray(shape, dtype, self._maps[segment], offset)
