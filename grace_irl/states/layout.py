"""The byte encoding of states that one process sends to another, for example to a sandbox worker.

The bytes of a state are the bytes of its parts, one after another.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grace_irl.errors import InputError
from grace_irl.states import kind_named
from grace_irl.states.kind import PartLayout, StateKind

LENGTH = struct.Struct("<I")
"""Format of the number before each text: the length of the text in bytes."""

Receive = Callable[[int], bytes]
"""A function that takes a number n, and returns the next n bytes that another process has sent."""


class StateLayout:
    """Byte layout of states of one kind, type and shape.

    Args:
        kind: kind of the states.
        parts: layout of each part, in the order of the bytes.
    """

    def __init__(self, kind: StateKind, parts: Sequence[PartLayout]) -> None:
        self.kind, self.parts = kind, tuple(parts)
        self._numbers = [_Numbers(kind, part) if part.dtype else None for part in self.parts]
        sizes = [numbers.size for numbers in self._numbers if numbers is not None]
        self._size = sum(sizes) if len(sizes) == len(self.parts) else None
        self._only = self._numbers[0] if len(self.parts) == 1 and not self.parts[0].name else None

    @classmethod
    def of(cls, kind: StateKind, state: Any) -> StateLayout:
        """The layout of all states that have the same parts, types and shapes as `state`.

        Args:
            kind: kind of the states.
            state: a state of an environment.

        Raises:
            InputError: the state is not of this kind.
        """
        return cls(kind, [_layout(name, value) for name, value in kind.separated(state).items()])

    def to_json(self) -> list[Any]:
        """The layout as a list for JSON."""
        return [self.kind.name, [list(part) for part in self.parts]]

    @classmethod
    def from_json(cls, about: Sequence[Any]) -> StateLayout:
        """The inverse of `to_json`."""
        name, parts = about
        return cls(kind_named(name), [PartLayout(part, dtype, tuple(shape)) for part, dtype, shape in parts])

    def encoded(self, state: Any) -> bytes:
        """The bytes of a state, to send to another process.

        Raises:
            InputError: the state does not fit the layout.
        """
        return b"".join(map(_encoded, self.parts, self.required(state)))

    def required(self, state: Any) -> list[NDArray[Any] | str]:
        """The values of a state's parts, in the order of the bytes. The types of numbers are not checked.

        Raises:
            InputError: the state has other parts, or a part is no text or has another shape.
        """
        values = self.kind.separated(state)
        if len(values) != len(self.parts) or any(part.name not in values for part in self.parts):
            raise InputError(f"a state of {_names(values)}; expected {_names([part.name for part in self.parts])}")
        return [_required(part, values[part.name]) for part in self.parts]

    def received(self, receive: Receive) -> bytes:
        """The bytes of the next state that another process has sent, not yet decoded."""
        if self._size is not None:
            return receive(self._size)
        data = b""
        for numbers in self._numbers:
            if numbers is not None:
                data += receive(numbers.size)
                continue
            length = receive(LENGTH.size)
            data += length + receive(LENGTH.unpack(length)[0])
        return data

    def state(self, data: bytes, at: int = 0) -> Any:
        """The state in these bytes, as a fresh copy in the form that programs receive.

        Args:
            data: bytes of one or several states.
            at: offset of the state's first byte.
        """
        if self._only is not None:
            return self._only.read(data, at)
        values: dict[str, Any] = {}
        for part, numbers in zip(self.parts, self._numbers, strict=True):
            if numbers is not None:
                values[part.name] = numbers.read(data, at)
                at += numbers.size
                continue
            (length,) = LENGTH.unpack_from(data, at)
            values[part.name] = data[at + LENGTH.size : at + LENGTH.size + length].decode()
            at += LENGTH.size + length
        return self.kind.joined(values)

    def states(self, count: int, receive: Receive) -> list[Any]:
        """The next `count` states that another process has sent, in the form that programs receive."""
        if self._size is None:
            return [self.state(self.received(receive)) for _ in range(count)]
        data = receive(count * self._size)
        return [self.state(data, number * self._size) for number in range(count)]


class _Numbers:
    """Decoder of a numeric part."""

    def __init__(self, kind: StateKind, part: PartLayout) -> None:
        self._stored, self._handed, self._shape = np.dtype(part.dtype), kind.handed(part), part.shape
        self._count = int(np.prod(part.shape, dtype=np.int64))
        self.size = self._count * self._stored.itemsize

    def read(self, data: bytes, at: int) -> Any:
        """The numbers of the part, as a fresh copy in the type that programs receive."""
        array = np.frombuffer(data, self._stored, self._count, at).reshape(self._shape).astype(self._handed)
        return array if self._shape else array[()]


def _layout(name: str, value: Any) -> PartLayout:
    if isinstance(value, str):
        return PartLayout(name, "", ())
    array = np.asarray(value)
    return PartLayout(name, array.dtype.str, array.shape)


def _required(part: PartLayout, value: Any) -> NDArray[Any] | str:
    if part.is_text:
        if not isinstance(value, str):
            raise InputError(f"part {part.name!r} of a state is {type(value).__name__}; expected a text")
        return value
    found = np.asarray(value)
    if found.shape != part.shape:
        raise InputError(f"{_which(part)} of shape {found.shape}; expected {part.shape}, as the first one")
    return found


def _which(part: PartLayout) -> str:
    return f"part {part.name!r} of a state" if part.name else "a state"


def _encoded(part: PartLayout, found: NDArray[Any] | str) -> bytes:
    if isinstance(found, str):
        data = found.encode()
        return LENGTH.pack(len(data)) + data
    dtype = np.dtype(part.dtype)
    if found.dtype == dtype:
        return found.tobytes()
    numbers = found.dtype.kind in "biuf"
    with np.errstate(invalid="ignore"):  # for NaN, which is no whole number
        array = found.astype(dtype) if numbers else np.zeros(part.shape, dtype)
    rounded = found.dtype.kind == dtype.kind == "f"
    if not numbers or not (rounded or (array == found).all()):
        raise InputError(
            f"{_which(part)}: {found.dtype}; expected {dtype}, as in the first one: give all states one type"
        )
    return array.tobytes()


def _names(names: Mapping[str, Any] | Sequence[str]) -> str:
    listed = sorted(names)
    return f"parts {', '.join(map(repr, listed[:5]))}{', …' if len(listed) > 5 else ''}" if listed else "no parts"
