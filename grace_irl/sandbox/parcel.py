"""Parcels. A parcel is read-only memory with the trajectories of one sandbox run, in the order of that run.

A program can search the memory of its own process. There, the program finds only the trajectories of its run, in the
order of the run. So the program does not learn the order of trajectories in their file or in the whole set. Each
distinct text of the states is stored once, without the padding that a file may add.

The format resembles safetensors: the length of a header, the header in JSON, the arrays, then the texts.
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
from grace_irl.states import kind_named
from grace_irl.states.kind import PartLayout, StateKind
from grace_irl.states.layout import LENGTH, StateLayout

_SIZE = struct.Struct("<q")
"""Format of the start of a parcel: the length of the parcel's header in bytes."""

CODE = np.dtype("<i4")
"""Data type of codes. A code is the index of a text among the texts of the parcel."""

_PLACE = np.dtype("<i8")  # type of the offset in bytes at which a text of the parcel starts or ends
_ALIGNMENT = 64


class Content(NamedTuple):
    """One trajectory in the form that a parcel stores.

    A `Package` (`packing.py`) uses this class, too. There, arrays still have the types of their files, and codes are
    indices into `Package.texts`.

    Attributes:
        parts: one array for each part of the states, such as an entry of a dict. An array holds numbers `(T+1, …)`, or
            codes of texts `(T+1,)` of type `CODE`. Codes count from 0 in the order of first use in the run.
        actions: actions `(T, …)` of type `ACTION_DTYPE`, or None.
        text: instruction of the trajectory.
    """

    parts: tuple[NDArray[Any], ...]
    actions: NDArray[Any] | None
    text: str


def seal_parcel(
    kind: StateKind, stored: Sequence[PartLayout], contents: Sequence[Content], texts: Sequence[memoryview] = ()
) -> int:
    """Write trajectories to new memory, seal it against all writes, and return its file descriptor.

    Args:
        kind: kind of the states.
        stored: name and type of each part of the states. Shapes are taken from `contents` instead.
        contents: the trajectories, in the order of the run.
        texts: texts of the states in UTF-8, in the order of their codes.
    """
    arrays = _Arrays()
    instructions: dict[str, int] = {}
    shapes: dict[tuple[tuple[int, ...], ...], int] = {}
    rows = []
    for content in contents:
        held = content.parts if content.actions is None else (*content.parts, content.actions)
        number = instructions.setdefault(content.text, len(instructions))
        shape = shapes.setdefault(tuple(array.shape[1:] for array in held), len(shapes))
        rows.append((len(content.parts[0]), number, shape, *map(arrays.add, held)))
    places = arrays.add(np.cumsum([0, *map(len, texts)], dtype=_PLACE))
    header = {
        "kind": kind.name,
        "parts": [(part.name, part.dtype) for part in stored],
        "shapes": list(shapes),
        "rows": rows,
        "instructions": list(instructions),
        "places": places,
        "texts": arrays.size,
    }
    data = json.dumps(header, separators=(",", ":")).encode()
    data += b" " * (-(_SIZE.size + len(data)) % _ALIGNMENT)
    fd = memory.create(0)
    try:
        memory.write(fd, [_SIZE.pack(len(data)), data, *arrays.chunks, *texts])
        memory.seal(fd, memory.WRITE_SEALED)
    except BaseException:
        memory.close(fd)
        raise
    return fd


class _Arrays:
    """The arrays that follow a parcel's header.

    Attributes:
        chunks: bytes of the arrays, with padding between them.
        size: total size in bytes.
    """

    def __init__(self) -> None:
        self.chunks: list[bytes | memoryview] = []
        self.size = 0

    def add(self, array: NDArray[Any]) -> int:
        """Append an array, and return its offset. A C-contiguous array is not copied."""
        data = np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
        start, gap = self.size, -len(data) % _ALIGNMENT
        self.chunks += [data, bytes(gap)] if gap else [data]
        self.size = start + len(data) + gap
        return start


class TrajectoryView:
    """One trajectory of a parcel, without a copy of its arrays.

    Attributes:
        layout: byte layout of a state, by which another process decodes the bytes that the method `wire` returns.
        arrays: array of each part of the states: numbers `(T+1, …)`, or codes of texts `(T+1,)`. Equal texts have equal
            codes.
        actions: actions `(T, …)`, or None.
        extra_info: instruction of the trajectory.
        length: number of states, T+1.
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
        """The states in order, each a fresh copy in the form that programs receive."""
        if self._plain:
            dtype = self._types[0]
            return (row.astype(dtype) for row in self.arrays[0])
        return map(self.state, range(self.length))

    def state(self, step: int) -> Any:
        """The state of one step, a fresh copy in the form that programs receive."""
        if self._plain:
            row = self.arrays[0][step]
            return row.astype(self._types[0])
        values = {
            part.name: self._views.text(int(array[step])) if dtype is None else array[step].astype(dtype)
            for part, array, dtype in zip(self.layout.parts, self.arrays, self._types, strict=True)
        }
        return self.layout.kind.joined(values)

    def wire(self, step: int) -> bytes:
        """The state of one step as bytes, which another process decodes by `layout`."""
        if self._plain:
            data: bytes = self.arrays[0][step].tobytes()
            return data
        return b"".join(
            self._views.wire_text(int(array[step])) if dtype is None else array[step].tobytes()
            for array, dtype in zip(self.arrays, self._types, strict=True)
        )


class Views:
    """The trajectories of a parcel, by index. The constructor maps the parcel into memory.

    Attributes:
        mapped: size of the parcel in bytes.
    """

    def __init__(self, fd: int) -> None:
        # Private and read-only. A child that makes the pages writable changes only its own copy.
        self._map = mmap.mmap(fd, 0, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ)
        self.mapped = len(self._map)
        (size,) = _SIZE.unpack_from(self._map)
        self._start = _SIZE.size + size
        header = json.loads(self._map[_SIZE.size : self._start])
        self._kind, self._parts = kind_named(header["kind"]), header["parts"]
        self._rows, self._shapes, self._instructions = header["rows"], header["shapes"], header["instructions"]
        self._places_at, self._texts_at = self._start + header["places"], self._start + header["texts"]
        self._layouts: dict[int, StateLayout] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: int) -> TrajectoryView:
        if not 0 <= index < len(self._rows):
            raise IndexError(index)
        length, instruction, shape, *starts = self._rows[index]
        sides, actions = self._shapes[shape], None
        if len(starts) > len(self._parts):
            actions = self._array(length - 1, sides[-1], ACTION_DTYPE, starts[-1])
        arrays = [
            self._array(length, side, dtype or CODE, start)
            for (_, dtype), side, start in zip(self._parts, sides, starts, strict=False)
        ]
        return TrajectoryView(self, self._layout_of(shape), arrays, actions, self._instructions[instruction])

    def __iter__(self) -> Iterator[TrajectoryView]:
        return (self[index] for index in range(len(self._rows)))

    def text(self, code: int) -> str:
        """The text with this code."""
        at, size = self._place(code)
        with memoryview(self._map) as data:
            return str(data[at : at + size], "utf-8")

    def wire_text(self, code: int) -> bytes:
        """The text with this code, for another process: the length in bytes, then the bytes."""
        at, size = self._place(code)
        return LENGTH.pack(size) + self._map[at : at + size]

    def _array(self, length: int, shape: Sequence[int], dtype: Any, start: int) -> NDArray[Any]:
        return np.ndarray((length, *shape), dtype, self._map, self._start + start)

    def _place(self, code: int) -> tuple[int, int]:
        """Offset and size in bytes of the text with this code."""
        at, end = struct.unpack_from("<2q", self._map, self._places_at + code * _PLACE.itemsize)
        return self._texts_at + at, end - at

    def _layout_of(self, shape: int) -> StateLayout:
        if shape not in self._layouts:
            pairs = zip(self._parts, self._shapes[shape], strict=False)
            found = [PartLayout(name, dtype, tuple(side)) for (name, dtype), side in pairs]
            self._layouts[shape] = StateLayout(self._kind, found)
        return self._layouts[shape]
