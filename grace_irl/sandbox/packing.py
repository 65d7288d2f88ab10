"""The contents of one `put`: trajectories that wait in the host until a run is shown some of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grace_irl.demos.trajectory import Trajectory
from grace_irl.errors import InputError
from grace_irl.sandbox.parcel import Content, seal_parcel
from grace_irl.sandbox.uniform import action_shape, common_dtype, convert
from grace_irl.states import KINDS
from grace_irl.states.kind import PartLayout, StateKind
from grace_irl.states.texts import TextTable

PORTION_BYTES = 16 << 20
"""States and actions of one child. A longer run takes several children, one after the other, so that a copy of
the whole set never lies in memory."""

_CODE_BYTES = 8
"""Size of a state's text besides the text itself, roughly: so that a run of one text over and over has an end, too."""


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
        return self._sealed([self._even(self.contents[index]) for index in positions.tolist()])

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
            contents.append(Content(parts, None, b""))
        return self._sealed(contents)

    def _sealed(self, contents: Sequence[Content]) -> int:
        """A parcel in which texts are numbered in the order in which these trajectories come to them."""
        if not self.texts:
            return seal_parcel(self.kind, self.stored, contents)
        numbers: dict[int, int] = {}
        renumbered = []
        for content in contents:
            parts = list(content.parts)
            for place in self._text_parts:
                codes = [numbers.setdefault(code, len(numbers)) for code in parts[place].tolist()]
                parts[place] = np.array(codes, np.int32)
            renumbered.append(content._replace(parts=tuple(parts)))
        return seal_parcel(self.kind, self.stored, renumbered, [self.texts[code] for code in numbers])

    @property
    def _text_parts(self) -> list[int]:
        return [place for place, part in enumerate(self.stored) if part.is_text]

    def _even(self, content: Content) -> Content:
        """A trajectory whose float actions have the precision that all have."""
        actions = content.actions
        if actions is None or actions.dtype.kind != "f":
            return content
        return content._replace(actions=convert(actions, self.precision))

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
        return {code for place in self._text_parts for code in self.contents[index].parts[place].tolist()}


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
        text = trajectory.extra_info.encode("utf-8", "surrogatepass")
        contents.append(Content(tuple(column[number] for column in columns), taken, text))
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
