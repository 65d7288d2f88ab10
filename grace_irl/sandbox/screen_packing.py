"""The contents of one `put` of screens: each different screen once, and which of them every state is."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from grace_irl.demos.trajectory import Trajectory
from grace_irl.errors import InputError
from grace_irl.sandbox.parcel import PORTION_BYTES
from grace_irl.sandbox.screen_parcel import ScreenContent, seal_screens

_STATE_BYTES = 8
"""What a state takes besides its screen, roughly: so that a run of one screen over and over has an end, too."""


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
        """Cut a run into what one child is shown: slices of `positions` of at most so many bytes, or one trajectory."""
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
