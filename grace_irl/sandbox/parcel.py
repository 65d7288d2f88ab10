"""The states of one run in sealed memory: nothing but what the run is shown, in the order in which it is shown.

A program that walks the memory of its own process finds no more than the order that it sees anyway: neither
the place of a trajectory in its file or set, nor a trajectory that is not part of the run.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from grace_irl.programs.contract import ACTION_DTYPE, state_dtype
from grace_irl.sandbox import memory
from grace_irl.sandbox.uniform import convert

_HEAD = struct.Struct("<8sq")  # the type in which states are stored, and how many trajectories there are
_ROW = struct.Struct("<5q3i4x")
"""A trajectory: states; offsets of states, actions, shapes and text; bytes of text; dimensions of a state and of an
action (-1: none)."""

_ALIGNMENT = 64

PORTION_BYTES = 16 << 20
"""States and actions of one child. A longer run takes several children, one after the other, so that a copy of
the whole set never lies in memory."""


class Content(NamedTuple):
    """One trajectory on its way: states `(T+1, …)`, actions `(T, …)` or None, the instruction in UTF-8."""

    states: NDArray[Any]
    actions: NDArray[Any] | None
    text: bytes


class TrajectoryView(NamedTuple):
    """One trajectory as it is read: stored states `(T+1, …)`, the type to hand them over in, actions or None."""

    states: NDArray[Any]
    dtype: np.dtype[Any]
    actions: NDArray[Any] | None
    extra_info: str

    @property
    def length(self) -> int:
        """T+1, the number of states."""
        return len(self.states)

    @property
    def layout(self) -> tuple[str, tuple[int, ...]]:
        """The form of a state on the wire: the stored type and the shape."""
        return self.states.dtype.str, self.states.shape[1:]

    def wire(self, step: int) -> bytes:
        """The state as it is handed to another process."""
        data: bytes = self.states[step].tobytes()
        return data

    def state(self, step: int) -> NDArray[Any]:
        """The state as a program is handed it: a copy of its own."""
        state: NDArray[Any] = self.states[step].astype(self.dtype)
        return state


def seal_parcel(contents: Sequence[Content], stored: np.dtype[Any]) -> int:
    """Lay trajectories out one after the other; the descriptor of the memory, which nobody can write to any more.

    Args:
        contents: the trajectories, in the order of the run.
        stored: the type in which all states are stored.
    """
    table = bytearray(_HEAD.pack(stored.str.encode(), len(contents)))
    small = _Small(_HEAD.size + len(contents) * _ROW.size)
    states = [_bytes(content.states, stored) for content in contents]
    actions = [memoryview(b"") if c.actions is None else _bytes(c.actions, ACTION_DTYPE) for c in contents]
    labels = [(small.shapes(content), *small.text(content.text)) for content in contents]
    state_at = states_at = _aligned(small.end)
    action_at = actions_at = _aligned(states_at + sum(map(len, states)))
    for content, state, action, (shape, text, text_length) in zip(contents, states, actions, labels, strict=True):
        ndim, action_ndim = content.states.ndim - 1, -1 if content.actions is None else content.actions.ndim - 1
        table += _ROW.pack(len(content.states), state_at, action_at, shape, text, text_length, ndim, action_ndim)
        state_at, action_at = state_at + len(state), action_at + len(action)
    fd = memory.create(action_at)
    try:
        memory.write_many(fd, [table, small.data], 0)
        memory.write_many(fd, states, states_at)
        memory.write_many(fd, actions, actions_at)
        memory.seal(fd, memory.WRITE_SEALED)
    except BaseException:
        memory.close(fd)
        raise
    return fd


class Views:
    """Random access to the trajectories of a parcel; maps it on construction.

    Attributes:
        mapped: bytes of address space that the map takes.
    """

    def __init__(self, fd: int) -> None:
        # Private and read-only: a child that makes it writable writes on copies of its own.
        self._map = mmap.mmap(fd, 0, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ)
        self.mapped = len(self._map)
        name, self._count = _HEAD.unpack_from(self._map)
        self._stored = np.dtype(name.rstrip(b"\0").decode())

    def __len__(self) -> int:
        return int(self._count)

    def __getitem__(self, index: int) -> TrajectoryView:
        if not 0 <= index < self._count:
            raise IndexError(index)
        row = _ROW.unpack_from(self._map, _HEAD.size + index * _ROW.size)
        length, states_at, actions_at, shape_at, text_at, text_length, ndim, action_ndim = row
        shape = struct.unpack_from(f"<{ndim}q", self._map, shape_at)
        states = np.ndarray((length, *shape), self._stored, self._map, states_at)
        actions = None
        if action_ndim >= 0:
            shape = struct.unpack_from(f"<{action_ndim}q", self._map, shape_at + 8 * ndim)
            actions = np.ndarray((length - 1, *shape), ACTION_DTYPE, self._map, actions_at)
        text = self._map[text_at : text_at + text_length].decode("utf-8", "surrogatepass")
        return TrajectoryView(states, state_dtype(ndim), actions, text)

    def __iter__(self) -> Iterator[TrajectoryView]:
        return (self[index] for index in range(self._count))


class _Small:
    """Shapes and texts, each once, as they lie behind the table.

    Args:
        start: where they begin.
    """

    def __init__(self, start: int) -> None:
        self._start = start
        self.data = bytearray()
        self._places: dict[bytes, int] = {}
        self._shapes: dict[tuple[int, ...], int] = {}

    @property
    def end(self) -> int:
        """The offset behind them."""
        return self._start + len(self.data)

    def shapes(self, content: Content) -> int:
        """The offset of the shape of one state, which the shape of one action follows."""
        actions = () if content.actions is None else content.actions.shape[1:]
        numbers = (*content.states.shape[1:], *actions)
        if numbers not in self._shapes:
            self._shapes[numbers] = self._place(struct.pack(f"<{len(numbers)}q", *numbers))
        return self._shapes[numbers]

    def text(self, text: bytes) -> tuple[int, int]:
        """Offset and length of a text."""
        return self._place(text), len(text)

    def _place(self, data: bytes) -> int:
        if data not in self._places:
            self._places[data] = self.end
            self.data += data
        return self._places[data]


def _bytes(array: NDArray[Any], dtype: np.dtype[Any]) -> memoryview:
    """An array in this type, row by row; not a copy where it lies so already."""
    return np.ascontiguousarray(convert(array, dtype)).reshape(-1).view(np.uint8).data


def _aligned(offset: int) -> int:
    return -(-offset // _ALIGNMENT) * _ALIGNMENT
