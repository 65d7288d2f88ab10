"""Packages. A package holds the trajectories of one call of `Sandbox.put`.

A package stays in the host, the process that uses the sandbox. Each run gets copies of the trajectories that it needs.

Expert and negative trajectories often come from different files. So a property that differs between files would reveal
the label of a state to a program. Such properties are the type and precision of numbers, and the presence of actions. A
package therefore gives all its trajectories one type and one precision, and shows actions only if all its trajectories
have actions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grace_irl.demos.trajectory import Trajectory
from grace_irl.errors import InputError
from grace_irl.programs.contract import ACTION_DTYPE
from grace_irl.sandbox.parcel import CODE, Content, seal_parcel
from grace_irl.states import KINDS
from grace_irl.states.kind import PartLayout, StateKind
from grace_irl.states.texts import TextTable

PORTION_BYTES = 16 << 20
"""Maximum bytes of states and actions for one sandbox child. A larger run is split into portions for several children,
one after the other, so that memory never holds a copy of the whole set."""

_CODE_BYTES = 8
"""Bytes that each text of a state adds to the size of a portion, even if the portion already holds this text.
Otherwise, a portion whose states share one text could grow without limit."""

_GLANCE = 64  # number of states to test first, because a few states usually reveal double precision
_BLOCK = 1 << 16  # number of states to compare at once, because a comparison makes copies
_PLACES = 1024.0  # 2 ** 10: numbers with at most 10 binary digits after the point, such as counts, reveal no precision


@dataclass(frozen=True)
class Package:
    """The trajectories of one `put`, without copies of their arrays.

    A file may pad texts to a width, and stores texts in some order. A program can see neither the width nor the order,
    because the memory of a run holds texts without padding, in the order of their first use in the run.

    Attributes:
        kind: kind of the states, such as vectors or grids.
        stored: name of each part of a state, and the part's type, which is the same in all trajectories. A part is one
            array of a state, such as one entry of a dict.
        contents: the trajectories, in the order of the `put`. Texts in states are given as codes: indices into `texts`.
        texts: the distinct texts of all states, in UTF-8 without padding.
        precision: float type to which all float actions are rounded; float64 if no actions are floats.
        lengths: number of states of each of the n trajectories, `(n,)`.
    """

    kind: StateKind
    stored: tuple[PartLayout, ...]
    contents: tuple[Content, ...]
    texts: tuple[memoryview, ...]
    precision: np.dtype[Any]
    lengths: NDArray[np.int64]

    def portions(self, positions: NDArray[np.int64], most: int = PORTION_BYTES) -> Iterator[slice]:
        """Split a run into slices of `positions`, one per child.

        A slice has at most `most` bytes, unless it is a single larger trajectory.

        Args:
            positions: indices of the run's trajectories in `contents`, in the order of the run.
            most: maximum bytes of a slice.
        """
        start, taken = 0, 0
        shown: set[int] = set()
        for at, index in enumerate(positions.tolist()):
            size = self._bytes(index, shown)
            if at > start and taken + size > most:
                yield slice(start, at)
                start, taken, shown = at, 0, set()
                size = self._bytes(index, shown)
            taken += size
            shown |= self._codes(index)
        yield slice(start, len(positions))

    def parcel(self, positions: NDArray[np.int64]) -> int:
        """Copy trajectories to sealed (read-only) shared memory, and return its file descriptor.

        Args:
            positions: indices of the trajectories in `contents`, in the order of the run.
        """
        return self._sealed([self.contents[index] for index in positions.tolist()])

    def single_states(self, places: Sequence[tuple[int, int]]) -> int:
        """Copy single states to sealed shared memory, each as a trajectory of one state. Return the file descriptor.

        Args:
            places: (trajectory, step) of each state. The trajectory is an index into `contents`.

        Raises:
            ValueError: a state that does not exist.
        """
        contents = []
        for position, step in places:
            if not 0 <= position < len(self.contents) or not 0 <= step < self.lengths[position]:
                raise ValueError(
                    f"no state {step} of trajectory {position}; expected the index of a trajectory and one of its steps"
                )
            parts = tuple(part[step : step + 1] for part in self.contents[position].parts)
            contents.append(Content(parts, None, ""))
        return self._sealed(contents)

    def _sealed(self, contents: Sequence[Content]) -> int:
        """Copy trajectories to sealed shared memory in the types of `stored`, and return its file descriptor.

        Texts get new codes, in the order of their first use.
        """
        numbers: dict[int, int] = {}

        def laid(array: NDArray[Any], about: PartLayout) -> NDArray[Any]:
            if not about.is_text:
                return convert(array, np.dtype(about.dtype))
            return np.array([numbers.setdefault(code, len(numbers)) for code in array.tolist()], CODE)

        even = []
        for parts, actions, text in contents:
            if actions is not None:
                precise = convert(actions, self.precision) if actions.dtype.kind == "f" else actions
                actions = convert(precise, ACTION_DTYPE)
            even.append(Content(tuple(map(laid, parts, self.stored)), actions, text))
        return seal_parcel(self.kind, self.stored, even, [self.texts[code] for code in numbers])

    def _bytes(self, index: int, shown: set[int]) -> int:
        """Bytes that a trajectory adds to a portion. The portion already holds the texts with codes in `shown`."""
        parts, actions, _ = self.contents[index]
        numbers = (
            part.size * (_CODE_BYTES if about.is_text else np.dtype(about.dtype).itemsize)
            for part, about in zip(parts, self.stored, strict=True)
        )
        new = sum(len(self.texts[code]) for code in self._codes(index) - shown)
        return sum(numbers) + new + (0 if actions is None else 8 * actions.size)

    def _codes(self, index: int) -> set[int]:
        texts = (part for part, about in zip(self.contents[index].parts, self.stored, strict=True) if about.is_text)
        return {code for part in texts for code in part.tolist()}


def pack(trajectories: Sequence[Trajectory]) -> Package:
    """Make a package: one type for each part of the states, and actions for all trajectories or none.

    Raises:
        InputError: states of different kinds or with different parts, or texts that are not UTF-8.
    """
    kinds = {trajectory.kind: trajectory.state_kind for trajectory in trajectories}
    kind = next(iter(kinds.values()), next(iter(KINDS.values())))
    if len(kinds) > 1:
        raise InputError(f"states of kinds {', '.join(sorted(kinds))}; expected one kind: score each kind separately")
    acted = kind.shows_actions and all(trajectory.actions is not None for trajectory in trajectories)
    actions = [trajectory.actions if acted else None for trajectory in trajectories]
    shape = action_shape([each.shape[1:] for each in actions if each is not None])
    table = TextTable()
    stored, columns = _columns(kind, trajectories, table)
    contents = []
    for number, (trajectory, taken) in enumerate(zip(trajectories, actions, strict=True)):
        if taken is not None and shape is not None:
            taken = taken.reshape(len(taken), *shape)
        contents.append(Content(tuple(column[number] for column in columns), taken, trajectory.extra_info))
    floats = [each for each in actions if each is not None and each.dtype.kind == "f"]
    lengths = np.array([len(trajectory.states) for trajectory in trajectories], dtype=np.int64)
    return Package(kind, stored, tuple(contents), tuple(table.texts), common_dtype(floats), lengths)


def _columns(
    kind: StateKind, trajectories: Sequence[Trajectory], table: TextTable
) -> tuple[tuple[PartLayout, ...], list[list[NDArray[Any]]]]:
    """Name and common type of each part of the states, and each part's arrays, one per trajectory."""
    found: dict[PartLayout, list[NDArray[Any]]] = {}
    for trajectory in trajectories:
        parts = kind.parts(trajectory.states)
        for part in kind.layout(trajectory.states):
            array = parts[part.name]
            numbers = table.codes(array, trajectory.source) if part.is_text else array
            found.setdefault(PartLayout(part.name, "" if part.is_text else "numbers", ()), []).append(numbers)
    if any(len(column) != len(trajectories) for column in found.values()):
        names = ", ".join(repr(part.name) for part in found)
        raise InputError(f"states with different parts among {names[:200]}; expected the same in all")
    stored = (part if part.is_text else part._replace(dtype=common_dtype(column).str) for part, column in found.items())
    return tuple(stored), list(found.values())


def common_dtype(arrays: Sequence[NDArray[Any]]) -> np.dtype[Any]:
    """The common type in which to store these arrays, in this machine's byte order.

    If all arrays have the same type and precision, the result is this type. Otherwise:

    - If no array holds floats, the result is the smallest integer type that holds all values of the arrays' types;
      int64 if NumPy has no such type.
    - If some arrays hold floats, the result is the coarsest of their float types. The last bits of a finer type would
      reveal which arrays had less precision. A float64 array that holds only float32 numbers counts as float32.
    """
    types = {array.dtype.newbyteorder("=") for array in arrays}
    floats = [array for array in arrays if array.dtype.kind == "f"]
    if not floats:
        widest: np.dtype[Any] = np.result_type(*types) if types else np.dtype(np.float64)
        return widest if widest.kind in "biu" or not types else np.dtype(np.int64)
    precisions = {kind for kind in map(_precision, floats) if kind is not None}
    if len(types) == 1 and len(precisions) <= 1:
        return types.pop()
    return min(precisions or {array.dtype.newbyteorder("=") for array in floats}, key=lambda kind: np.finfo(kind).nmant)


def convert(array: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Convert an array to a type. Numbers beyond a float type's range are clipped.

    An array that already has the type is returned without a copy.
    """
    if array.dtype == dtype:
        return array
    if dtype.kind == "f" and not np.can_cast(array.dtype, dtype, "safe"):
        limits = np.finfo(dtype)
        array = np.clip(array, float(limits.min), float(limits.max))
    return array.astype(dtype)


def action_shape(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...] | None:
    """The common shape to which to convert all actions; None to leave all shapes unchanged.

    Different shapes of the same numbers, such as `()` and `(1,)`, would reveal which file a trajectory is from. Actions
    of different sizes keep their shapes, because they are different actions.

    Args:
        shapes: shape of one action, for each trajectory.
    """
    if len(set(shapes)) <= 1:
        return None
    sizes = {int(np.prod(shape, dtype=np.int64)) for shape in shapes}
    if len(sizes) > 1:
        return None
    size = sizes.pop()
    return () if size == 1 else (size,)


def _precision(array: NDArray[Any]) -> np.dtype[Any] | None:
    """The float type in which an array's numbers were recorded; None if the numbers are too short to reveal the type.

    For an array of at most 4 bytes per number, the result is the array's type. An array with more bytes per number
    counts as float32 if float32 can hold all its numbers exactly, and as float64 otherwise.
    """
    if array.dtype.itemsize <= np.dtype(np.float32).itemsize:
        return array.dtype.newbyteorder("=")
    if not _fits(array[:_GLANCE]):
        return np.dtype(np.float64)
    blocks = [array[start : start + _BLOCK] for start in range(0, len(array), _BLOCK)]
    if not all(map(_fits, blocks)):
        return np.dtype(np.float64)
    return None if all(map(_short, blocks)) else np.dtype(np.float32)


def _fits(block: NDArray[Any]) -> bool:
    """Whether float32 can hold every number of the block exactly."""
    with np.errstate(over="ignore"):
        return bool((block.astype(np.float32) == block).all())


def _short(block: NDArray[Any]) -> bool:
    """Whether every number of the block has at most 10 binary digits after the point."""
    with np.errstate(over="ignore"):
        scaled = block * _PLACES
    return bool((np.rint(scaled) == scaled).all())
