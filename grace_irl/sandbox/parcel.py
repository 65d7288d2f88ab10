"""The states of one run in sealed memory: nothing but what the run is shown, in the order in which it is shown.

A program that walks the memory of its own process finds no more than the order that it sees anyway: neither
the place of a trajectory in its file or set, nor a trajectory that is not part of the run. Numbers lie there as
they are stored. A text lies there once, whatever the number of states that it is part of, and without the padding
of its file.
"""

from __future__ import annotations

import json
import mmap
import struct
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from grace_irl.programs.contract import ACTION_DTYPE
from grace_irl.sandbox import memory
from grace_irl.sandbox.uniform import convert
from grace_irl.states import kind_named
from grace_irl.states.kind import PartLayout, StateKind
from grace_irl.states.layout import LENGTH, StateLayout

_HEAD = struct.Struct("<4q")
"""Trajectories, bytes of JSON (kind, and name and stored type of each part), offset of the places of texts, texts."""

_ROW = struct.Struct("<4qi4x")
"""A trajectory: states; offsets of its actions and its instruction; bytes of that; dimensions of an action (-1: no
actions), whose shape follows the table of parts."""

_PART = struct.Struct("<2qi4x")
"""A part of a trajectory's states: offsets of its numbers (of texts: their numbers) and its shape; dimensions."""

_PLACE = struct.Struct("<2q")
"""A text: offset and bytes."""

_CODE = np.dtype("<i4")
_ALIGNMENT = 64


class Content(NamedTuple):
    """One trajectory on its way.

    Attributes:
        parts: in the order of the parcel's: numbers `(T+1, …)`, or of a part of texts their numbers `(T+1,)` int32,
            which count from 0 as the run first comes to them.
        actions: `(T, …)`, or None.
        text: the instruction in UTF-8.
    """

    parts: tuple[NDArray[Any], ...]
    actions: NDArray[Any] | None
    text: bytes


def seal_parcel(
    kind: StateKind, stored: Sequence[PartLayout], contents: Sequence[Content], texts: Sequence[memoryview] = ()
) -> int:
    """Lay trajectories out one after the other; the descriptor of the memory, which nobody can write to any more.

    Args:
        kind: of the states.
        stored: name and type of each part; shapes are those of the contents.
        contents: the trajectories, in the order of the run.
        texts: those that states are made of, UTF-8, in the order of their numbers.
    """
    about = json.dumps([kind.name, [[part.name, part.dtype] for part in stored]]).encode()
    rows_at = _HEAD.size + len(about)
    small = _Small(rows_at + len(contents) * (_ROW.size + len(stored) * _PART.size))
    labels = [(small.shapes(content), *small.text(content.text)) for content in contents]
    places_at = small.end
    at = _aligned(places_at + len(texts) * _PLACE.size)
    groups: list[tuple[int, list[memoryview]]] = []
    starts: list[list[int]] = []
    for number, part in enumerate(stored):
        dtype = _CODE if part.is_text else np.dtype(part.dtype)
        at = _gather(groups, starts, at, [_bytes(content.parts[number], dtype) for content in contents])
    acted = [memoryview(b"") if c.actions is None else _bytes(c.actions, ACTION_DTYPE) for c in contents]
    at = _gather(groups, starts, at, acted)
    table = bytearray(_HEAD.pack(len(contents), len(about), places_at, len(texts)) + about)
    for number, (content, (shapes, text_at, length)) in enumerate(zip(contents, labels, strict=True)):
        action_ndim = -1 if content.actions is None else content.actions.ndim - 1
        table += _ROW.pack(len(content.parts[0]), starts[-1][number], text_at, length, action_ndim)
        for array, start in zip(content.parts, starts, strict=False):
            table += _PART.pack(start[number], shapes, array.ndim - 1)
            shapes += 8 * (array.ndim - 1)
    places = bytearray()
    groups.append((at, list(texts)))
    for text in texts:
        places += _PLACE.pack(at, len(text))
        at += len(text)
    fd = memory.create(at)
    try:
        memory.write_many(fd, [table, small.data, places], 0)
        for offset, chunks in groups:
            memory.write_many(fd, chunks, offset)
        memory.seal(fd, memory.WRITE_SEALED)
    except BaseException:
        memory.close(fd)
        raise
    return fd


class TrajectoryView:
    """One trajectory as it is read.

    Attributes:
        layout: how its states lie on the wire.
        arrays: of each part the stored numbers `(T+1, …)`, or the numbers of its texts: equal texts, equal numbers.
        actions: `(T, …)`, or None.
        extra_info: the instruction.
        length: T+1, the number of states.
    """

    def __init__(
        self,
        views: Views,
        layout: StateLayout,
        arrays: Sequence[NDArray[Any]],
        actions: NDArray[Any] | None,
        extra_info: str,
    ) -> None:
        self._views, self.layout, self.arrays = views, layout, tuple(arrays)
        self.actions, self.extra_info = actions, extra_info
        self.length = len(self.arrays[0])
        self._types = [None if part.is_text else layout.kind.handed(part) for part in layout.parts]
        self._plain = len(self.arrays) == 1 and not layout.parts[0].name and self._types[0] is not None

    def states(self) -> Iterator[Any]:
        """The states in order, each a copy of its own, as a program is handed them."""
        if self._plain:
            dtype = self._types[0]
            return (row.astype(dtype) for row in self.arrays[0])
        return map(self.state, range(self.length))

    def state(self, step: int) -> Any:
        """One of them."""
        if self._plain:
            row = self.arrays[0][step]
            return row.astype(self._types[0])
        values = {
            part.name: self._views.text(int(array[step])) if dtype is None else array[step].astype(dtype)
            for part, array, dtype in zip(self.layout.parts, self.arrays, self._types, strict=True)
        }
        return self.layout.kind.joined(values)

    def wire(self, step: int) -> bytes:
        """The state as it is handed to another process, which reads it by `layout`."""
        if self._plain:
            data: bytes = self.arrays[0][step].tobytes()
            return data
        return b"".join(
            self._views.wire_text(int(array[step])) if dtype is None else array[step].tobytes()
            for array, dtype in zip(self.arrays, self._types, strict=True)
        )


class Views:
    """Random access to the trajectories of a parcel; maps it on construction.

    Attributes:
        mapped: bytes of address space that the map takes.
    """

    def __init__(self, fd: int) -> None:
        # Private and read-only: a child that makes it writable writes on copies of its own.
        self._map = mmap.mmap(fd, 0, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ)
        self.mapped = len(self._map)
        self._count, size, self._places_at, _ = _HEAD.unpack_from(self._map)
        name, self._parts = json.loads(self._map[_HEAD.size : _HEAD.size + size])
        self._kind = kind_named(name)
        self._rows_at = _HEAD.size + size
        self._row_size = _ROW.size + len(self._parts) * _PART.size
        self._layouts: dict[tuple[tuple[int, ...], ...], StateLayout] = {}

    def __len__(self) -> int:
        return int(self._count)

    def __getitem__(self, index: int) -> TrajectoryView:
        if not 0 <= index < self._count:
            raise IndexError(index)
        at = self._rows_at + index * self._row_size
        length, actions_at, text_at, text_length, action_ndim = _ROW.unpack_from(self._map, at)
        shapes_at = at + _ROW.size
        shapes, arrays = [], []
        shape_end = 0
        for number, (_, dtype) in enumerate(self._parts):
            start, shape_at, ndim = _PART.unpack_from(self._map, shapes_at + number * _PART.size)
            shape = struct.unpack_from(f"<{ndim}q", self._map, shape_at)
            shapes.append(shape)
            arrays.append(np.ndarray((length, *shape), dtype or _CODE, self._map, start))
            shape_end = shape_at + 8 * ndim
        actions = None
        if action_ndim >= 0:
            shape = struct.unpack_from(f"<{action_ndim}q", self._map, shape_end)
            actions = np.ndarray((length - 1, *shape), ACTION_DTYPE, self._map, actions_at)
        text = self._map[text_at : text_at + text_length].decode("utf-8", "surrogatepass")
        return TrajectoryView(self, self._layout_of(tuple(shapes)), arrays, actions, text)

    def __iter__(self) -> Iterator[TrajectoryView]:
        return (self[index] for index in range(self._count))

    def text(self, code: int) -> str:
        """The text of this number."""
        at, size = self._place(code)
        with memoryview(self._map) as data:
            return str(data[at : at + size], "utf-8")

    def wire_text(self, code: int) -> bytes:
        """The same as it is handed to another process: its bytes, and before them how many there are."""
        at, size = self._place(code)
        return LENGTH.pack(size) + self._map[at : at + size]

    def _place(self, code: int) -> tuple[int, int]:
        """Offset and bytes of a text."""
        at, size = _PLACE.unpack_from(self._map, self._places_at + code * _PLACE.size)
        return at, size

    def _layout_of(self, shapes: tuple[tuple[int, ...], ...]) -> StateLayout:
        if shapes not in self._layouts:
            pairs = zip(self._parts, shapes, strict=True)
            self._layouts[shapes] = StateLayout(
                self._kind, [PartLayout(name, dtype, shape) for (name, dtype), shape in pairs]
            )
        return self._layouts[shapes]


class _Small:
    """Shapes and instructions, each once, as they lie behind the table.

    Args:
        start: offset of the first.
    """

    def __init__(self, start: int) -> None:
        self._start = start
        self.data = bytearray()
        self._places: dict[bytes, int] = {}
        self._shapes: dict[tuple[int, ...], int] = {}

    @property
    def end(self) -> int:
        """Offset of what follows them."""
        return self._start + len(self.data)

    def shapes(self, content: Content) -> int:
        """The offset of the shapes of the parts of one state, which the shape of one action follows."""
        actions = () if content.actions is None else content.actions.shape[1:]
        numbers = (*(side for part in content.parts for side in part.shape[1:]), *actions)
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


def _gather(
    groups: list[tuple[int, list[memoryview]]], starts: list[list[int]], at: int, chunks: list[memoryview]
) -> int:
    """Notes where chunks lie, one behind the other from `at` on; the offset of what follows them."""
    groups.append((at, chunks))
    found = []
    for chunk in chunks:
        found.append(at)
        at += len(chunk)
    starts.append(found)
    return _aligned(at)


def _bytes(array: NDArray[Any], dtype: np.dtype[Any]) -> memoryview:
    """An array in this type, row by row; not a copy where it lies so already."""
    return np.ascontiguousarray(convert(array, dtype)).reshape(-1).view(np.uint8).data


def _aligned(offset: int) -> int:
    return -(-offset // _ALIGNMENT) * _ALIGNMENT
