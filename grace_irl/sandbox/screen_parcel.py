"""The screens of one run in sealed memory, each once, however many states it is.

As `grace_irl.sandbox.parcel`: nothing but what the run is shown, in the order in which it is shown. A text lies
there as long as it is, whatever stands beside it in its trajectory.
"""

from __future__ import annotations

import hashlib
import mmap
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from grace_irl.demos.trajectory import Trajectory
from grace_irl.errors import InputError
from grace_irl.sandbox import memory
from grace_irl.sandbox.parcel import PORTION_BYTES

NAME = b"screens\0"
"""In the place of a dtype's name: what tells this layout from the other."""

_HEAD = struct.Struct("<8s2q")  # the name, how many trajectories and how many screens there are
_ROW = struct.Struct("<4q")
"""A trajectory: states, offset of their codes, offset and bytes of its instruction."""

_PLACE = struct.Struct("<2q")
"""A screen: offset and bytes."""

LENGTH = struct.Struct("<I")

_CODE = np.dtype("<i4")


class ScreenContent(NamedTuple):
    """One trajectory on its way: `(T+1,)` numbers of screens, the instruction in UTF-8."""

    codes: NDArray[np.int32]
    text: bytes


def seal_screens(contents: Sequence[ScreenContent], screens: Sequence[memoryview]) -> int:
    """Lay trajectories and the screens that they are made of out; the descriptor of the sealed memory.

    Args:
        contents: the trajectories, in the order of the run, with codes that count from 0 as they first appear.
        screens: UTF-8, in the order of their codes.
    """
    texts = list(dict.fromkeys(content.text for content in contents))
    rows_at = _HEAD.size
    places_at = rows_at + len(contents) * _ROW.size
    codes_at = places_at + len(screens) * _PLACE.size
    texts_at = codes_at + sum(len(content.codes) for content in contents) * _CODE.itemsize
    text_at: dict[bytes, int] = {}
    at = texts_at
    for text in texts:
        text_at[text], at = at, at + len(text)
    screens_at = at
    head = bytearray(_HEAD.pack(NAME, len(contents), len(screens)))
    for content in contents:
        head += _ROW.pack(len(content.codes), codes_at, text_at[content.text], len(content.text))
        codes_at += len(content.codes) * _CODE.itemsize
    at = screens_at
    for screen in screens:
        head += _PLACE.pack(at, len(screen))
        at += len(screen)
    fd = memory.create(at)
    try:
        codes = [content.codes.astype(_CODE).tobytes() for content in contents]
        memory.write_many(fd, [head, *codes, *texts], 0)
        memory.write_many(fd, screens, screens_at)
        memory.seal(fd, memory.WRITE_SEALED)
    except BaseException:
        memory.close(fd)
        raise
    return fd


class ScreenView:
    """One trajectory as it is read.

    Attributes:
        codes: `(T+1,)` numbers of its screens: equal screens have equal numbers.
        extra_info: the instruction.
        actions: None: a program that rewards screens is shown no actions.
    """

    actions: None = None
    layout: None = None
    """A text is as long as it says itself."""

    def __init__(self, data: mmap.mmap, places_at: int, codes: list[int], extra_info: str) -> None:
        self._data, self._places_at = data, places_at
        self.codes, self.extra_info = codes, extra_info

    @property
    def length(self) -> int:
        """T+1, the number of states."""
        return len(self.codes)

    def state(self, step: int) -> str:
        """The state as a program is handed it."""
        at, size = self._place(step)
        with memoryview(self._data) as data:
            return str(data[at : at + size], "utf-8")

    def wire(self, step: int) -> bytes:
        """The state as it is handed to another process: its bytes, and before them how many there are."""
        at, size = self._place(step)
        return LENGTH.pack(size) + self._data[at : at + size]

    def _place(self, step: int) -> tuple[int, int]:
        at, size = _PLACE.unpack_from(self._data, self._places_at + self.codes[step] * _PLACE.size)
        return at, size


class ScreenViews:
    """Random access to the trajectories of such a parcel; maps it on construction.

    Attributes:
        mapped: bytes of address space that the map takes.
    """

    def __init__(self, fd: int) -> None:
        self._map = mmap.mmap(fd, 0, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ)
        self.mapped = len(self._map)
        _, self._count, _ = _HEAD.unpack_from(self._map)
        self._places_at = _HEAD.size + self._count * _ROW.size

    def __len__(self) -> int:
        return int(self._count)

    def __getitem__(self, index: int) -> ScreenView:
        if not 0 <= index < self._count:
            raise IndexError(index)
        length, codes_at, text_at, size = _ROW.unpack_from(self._map, _HEAD.size + index * _ROW.size)
        codes = self._map[codes_at : codes_at + length * _CODE.itemsize]
        text = self._map[text_at : text_at + size].decode("utf-8", "surrogatepass")
        return ScreenView(self._map, self._places_at, list(memoryview(codes).cast("i")), text)

    def __iter__(self) -> Iterator[ScreenView]:
        return (self[index] for index in range(self._count))


_STATE_BYTES = 8
"""Rough size of a state besides its screen: so that a run of one screen over and over has an end, too."""


@dataclass(frozen=True)
class ScreenPackage:
    """The trajectories of one `put`, their screens referred to, not copied.

    A program finds nothing of how wide a file stores its screens, nor in which order: a run's memory holds the
    texts themselves, numbered as the run comes to them.

    Attributes:
        contents: the trajectories, in the order of the `put`; codes are indices of `screens`.
        screens: the different ones, UTF-8, without padding.
        lengths: states of each trajectory, `(n,)`.
    """

    contents: tuple[ScreenContent, ...]
    screens: tuple[memoryview, ...]
    lengths: NDArray[np.int64]

    def portions(self, positions: NDArray[np.int64], most: int = PORTION_BYTES) -> Iterator[slice]:
        """Cut a run into slices of `positions`, one for each child: at most `most` bytes, or one trajectory."""
        start, taken = 0, 0
        shown: set[int] = set()
        for at, index in enumerate(positions.tolist()):
            codes = self.contents[index].codes
            new = set(codes.tolist()) - shown
            size = sum(len(self.screens[code]) for code in new) + _STATE_BYTES * len(codes)
            if at > start and taken + size > most:
                yield slice(start, at)
                new = set(codes.tolist())
                size = sum(len(self.screens[code]) for code in new) + _STATE_BYTES * len(codes)
                start, taken, shown = at, 0, set()
            taken += size
            shown |= new
        yield slice(start, len(positions))

    def parcel(self, positions: NDArray[np.int64]) -> int:
        """The descriptor of sealed memory that holds these trajectories, in this order."""
        return self._sealed([self.contents[index] for index in positions.tolist()])

    def single_states(self, places: Sequence[tuple[int, int]]) -> int:
        """The same for single states: pairs of trajectory and step, each a trajectory of one state.

        Raises:
            ValueError: a pair that the set does not hold.
        """
        contents = []
        for position, step in places:
            if not 0 <= position < len(self.contents) or not 0 <= step < self.lengths[position]:
                raise ValueError(
                    f"no state {step} of trajectory {position}; expected a position and a step of what `put` was given"
                )
            contents.append(ScreenContent(self.contents[position].codes[step : step + 1], b""))
        return self._sealed(contents)

    def _sealed(self, contents: Sequence[ScreenContent]) -> int:
        """A parcel in which screens are numbered in the order in which these trajectories come to them."""
        numbers: dict[int, int] = {}
        renumbered = []
        for content in contents:
            codes = [numbers.setdefault(code, len(numbers)) for code in content.codes.tolist()]
            renumbered.append(ScreenContent(np.array(codes, np.int32), content.text))
        return seal_screens(renumbered, [self.screens[code] for code in numbers])


def pack_screens(trajectories: Sequence[Trajectory]) -> ScreenPackage:
    """Find the different screens of a set.

    Raises:
        InputError: a screen that is not UTF-8.
    """
    known: dict[bytes, int] = {}
    screens: list[memoryview] = []
    contents = []
    for trajectory in trajectories:
        states = trajectory.states
        width = states.dtype.itemsize
        rows = np.ascontiguousarray(states).view(np.uint8).data
        codes = np.empty(len(states), np.int32)
        for step, state in enumerate(states.tolist()):
            name = hashlib.blake2b(state, digest_size=16).digest()
            if name not in known:
                _require_utf8(state, trajectory.source)
                known[name] = len(screens)
                screens.append(rows[step * width : step * width + len(state)])
            codes[step] = known[name]
        contents.append(ScreenContent(codes, trajectory.extra_info.encode("utf-8", "surrogatepass")))
    lengths = np.array([len(content.codes) for content in contents], dtype=np.int64)
    return ScreenPackage(tuple(contents), tuple(screens), lengths)


def _require_utf8(state: bytes, where: str) -> None:
    try:
        state.decode()
    except UnicodeDecodeError as error:
        found = f"{where or 'trajectory'}: a screen that is not UTF-8 ({error.reason})"
        raise InputError(f"{found}; expected XML in UTF-8: read it anew") from None
