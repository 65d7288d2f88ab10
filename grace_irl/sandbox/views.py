"""The states of a run, as the process that reads them sees them: read-only maps of what `put` handed over."""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from grace_irl.programs.contract import state_dtype
from grace_irl.sandbox.wire import ROW


class Layout(NamedTuple):
    """One state or action: the type in which it is stored, the type in which a state is handed over, its shape."""

    stored: np.dtype[Any]
    handed: np.dtype[Any]
    shape: tuple[int, ...]


class Shelf(NamedTuple):
    """One `put`, as a zygote keeps it: no state, no row of the table, nothing that tells one from another.

    Attributes:
        fds: segments; 0 holds the table, actions, texts, and the states that had to be copied.
        sizes: their bytes.
        table: offset of the table in segment 0.
        layouts: what rows point to.
    """

    fds: tuple[int, ...]
    sizes: tuple[int, ...]
    table: int
    layouts: tuple[Layout, ...]

    @classmethod
    def of(cls, fds: Sequence[int], description: Mapping[str, Any]) -> Shelf:
        """From what `put` sends: descriptors, `table` and `layouts`."""
        layouts = []
        for name, shape in description["layouts"]:
            stored = np.dtype(name)
            layouts.append(Layout(stored, state_dtype(stored, len(shape)), tuple(shape)))
        return cls(tuple(fds), tuple(os.fstat(fd).st_size for fd in fds), description["table"], tuple(layouts))


class View(NamedTuple):
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
        # Private and read-only: a child that makes them writable writes on copies of its own.
        self._maps = [
            mmap.mmap(fd, size, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ)
            for fd, size in zip(shelf.fds, shelf.sizes, strict=True)
        ]
        self.mapped = sum(shelf.sizes)
        self._layouts, self._table = shelf.layouts, shelf.table

    def __getitem__(self, index: int) -> View:
        own = self._maps[0]
        row = ROW.unpack_from(own, self._table + index * ROW.size)
        length, segment, layout, offset, action_layout, text_length, action_offset, text_offset = row
        stored, handed, shape = self._layouts[layout]
        states = np.ndarray((length, *shape), stored, self._maps[segment], offset)
        actions = None
        if action_layout >= 0:
            stored, _, shape = self._layouts[action_layout]
            actions = np.ndarray((length - 1, *shape), stored, own, action_offset)
        text = own[text_offset : text_offset + text_length].decode("utf-8", "surrogatepass")
        return View(states, handed, actions, text)

    def of(self, order: Iterable[int]) -> Iterator[View]:
        """The trajectories of `order`, one after the other."""
        return (self[index] for index in order)
