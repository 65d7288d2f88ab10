"""The contents of one `put`: trajectories that wait in the host until a run is shown some of them.

Experts and negatives often come from different files, and whatever differs by file tells a program which is
which, without a look at the state: the type, how many bits of it are in use, whether actions were recorded. So a
package gives its trajectories one type, one precision and one form of action.
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
"""States and actions of one child. A longer run takes several children, one after the other, so that a copy of
the whole set never lies in memory."""

_CODE_BYTES = 8
"""Size of a state's text besides the text itself, roughly: so that a run of one text over and over has an end, too."""

_GLANCE = 64  # states that tell a recording in double precision apart from one that was widened later
_BLOCK = 1 << 16  # states looked at in one go: what is compared takes memory too
_PLACES = 1024.0  # numbers with at most 10 binary places, such as counts and flags, have no precision to speak of


@dataclass(frozen=True)
class Package:
    """The trajectories of one `put`, referred to, not copied.

    A program finds nothing of how wide a file stores its texts, nor in which order: a run's memory holds the texts
    themselves, numbered as the run comes to them.

    Attributes:
        kind: of the states.
        stored: name and type of each part of a run's states, one type for all trajectories.
        contents: the trajectories, in the order of the `put`; the numbers of texts are indices of `texts`.
        texts: the different texts that states are made of, UTF-8, without padding.
        precision: the type whose precision all actions have; float64 where there are none.
        lengths: states of each trajectory, `(n,)`.
    """

    kind: StateKind
    stored: tuple[PartLayout, ...]
    contents: tuple[Content, ...]
    texts: tuple[memoryview, ...]
    precision: np.dtype[Any]
    lengths: NDArray[np.int64]

    def portions(self, positions: NDArray[np.int64], most: int = PORTION_BYTES) -> Iterator[slice]:
        """Cut a run into slices of `positions`, one for each child: at most `most` bytes, or one trajectory."""
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
            parts = tuple(part[step : step + 1] for part in self.contents[position].parts)
            contents.append(Content(parts, None, ""))
        return self._sealed(contents)

    def _sealed(self, contents: Sequence[Content]) -> int:
        """A parcel of one type, in which texts are numbered in the order in which these trajectories come to them."""
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
        """Bytes of a trajectory beside texts that are there already."""
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
    """Make a set uniform: one type for each part of the states, actions for all or for none.

    Raises:
        InputError: states of several kinds or parts, texts that are not UTF-8, actions that are not numbers.
    """
    kinds = {trajectory.kind: trajectory.state_kind for trajectory in trajectories}
    kind = next(iter(kinds.values()), next(iter(KINDS.values())))
    if len(kinds) > 1:
        raise InputError(f"states of kinds {', '.join(sorted(kinds))}; expected one kind: score them apart")
    acted = kind.shows_actions and all(trajectory.actions is not None for trajectory in trajectories)
    actions = [_actions(trajectory) if acted else None for trajectory in trajectories]
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
    """Each part of the states: its name and type, and its numbers in every trajectory."""
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


def _actions(trajectory: Trajectory) -> NDArray[Any] | None:
    if trajectory.actions is None:
        return None
    actions = np.asarray(trajectory.actions)
    if actions.dtype.kind not in "fiub":
        found = f"{trajectory.source or 'trajectory'}: actions are {actions.dtype}"
        raise InputError(f"{found}; expected numbers: convert them, or leave the actions out")
    return actions


def common_dtype(arrays: Sequence[NDArray[Any]]) -> np.dtype[Any]:
    """The type in which all of these are stored, in this machine's byte order.

    The type that they share, if they share one. Otherwise integers take the smallest type that holds them
    all, and floats the coarsest type among them: a program could read the precision of a finer one off the bits.
    Arrays of float64 that hold nothing but float32 numbers count as float32.
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
    """The array in this type, unchanged if it has it already. Numbers beyond a float type become its largest."""
    if array.dtype == dtype:
        return array
    if dtype.kind == "f" and not np.can_cast(array.dtype, dtype, "safe"):
        limits = np.finfo(dtype)
        array = np.clip(array, float(limits.min), float(limits.max))
    return array.astype(dtype)


def action_shape(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...] | None:
    """The shape that one action of each trajectory is given; None if they keep their own.

    The same numbers in another shape (`(T,)` and `(T, 1)`) say nothing but which recorder was used. Actions of
    different sizes are different actions, as grids of different sizes are different states.
    """
    if len(set(shapes)) <= 1:
        return None
    sizes = {int(np.prod(shape, dtype=np.int64)) for shape in shapes}
    if len(sizes) > 1:
        return None
    size = sizes.pop()
    return () if size == 1 else (size,)


def _precision(array: NDArray[Any]) -> np.dtype[Any] | None:
    """The float type that an array's numbers need; None if they say nothing about it."""
    if array.dtype.itemsize <= np.dtype(np.float32).itemsize:
        return array.dtype.newbyteorder("=")
    if not _fits(array[:_GLANCE]):
        return np.dtype(np.float64)
    blocks = [array[start : start + _BLOCK] for start in range(0, len(array), _BLOCK)]
    if not all(map(_fits, blocks)):
        return np.dtype(np.float64)
    return None if all(map(_short, blocks)) else np.dtype(np.float32)


def _fits(block: NDArray[Any]) -> bool:
    """Whether every number is one of float32."""
    with np.errstate(over="ignore"):
        return bool((block.astype(np.float32) == block).all())


def _short(block: NDArray[Any]) -> bool:
    with np.errstate(over="ignore"):
        scaled = block * _PLACES
    return bool((np.rint(scaled) == scaled).all())
