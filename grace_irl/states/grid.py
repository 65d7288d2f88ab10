"""Grids: states of h x w cells with three integer codes each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from grace_irl.errors import InputError
from grace_irl.states.kind import Census, PartLayout, Scrambler, StateKind, States
from grace_irl.states.tally import VALUES, ValueTally
from grace_irl.states.vector import require_int64, require_numbers

if TYPE_CHECKING:
    from rich.console import RenderableType

CHANNELS = 3

LIKELY_CODES = 16
"""Maximum number of different values per channel at which byte states are recognised as grids."""

PICTURE_SIDE, BRIGHT = 32, 128
"""Bounds that distinguish images with few colours from grids.

Byte states are images if one state has a shorter side of at least `PICTURE_SIDE` pixels, and one value is at least
`BRIGHT`. The number of different values alone cannot decide this, because a drawing may have few colours. Minari also
uses the bound 32 for the side of images."""

COLOURS = (1, 3, 4)
"""Numbers of channels that images have."""

MOST_CODES = 128
"""Maximum number of different values per channel in byte states for which the user chooses the kind grid. Images
usually have all 256 values."""


class GridKind(StateKind):
    """Grids: `(T+1, h, w, 3)` integers. Programs receive `(h, w, 3)` int64.

    Codes become int64 because differences of `uint8` numbers wrap around: `np.uint8(1) - np.uint8(2)` is 255.
    """

    name = "grid"
    plural = "grids"
    expected = "(T+1, h, w, 3)"
    sides = ("height", "width")
    prompts_actions = False
    label = "last"
    stored_as = "a list of integers"

    def recognises(self, states: States) -> bool:
        """See `StateKind`."""
        return getattr(states, "ndim", 0) == 4 and _may_be_grid(states.dtype, states.shape[3])

    def recognises_state(self, state: Any) -> bool:
        """See `StateKind`."""
        array = np.asarray(state)
        return array.ndim == 3 and array.shape[2] == CHANNELS and array.dtype.kind in "iu"

    def likely(self, values: ValueTally) -> bool:
        """See `StateKind`. A grid has few codes per channel, and only small codes if it has many cells."""
        return values.channels in (0, CHANNELS) and values.most <= LIKELY_CODES and not _drawn(values)

    def seen_in(self, values: ValueTally) -> str:
        """See `StateKind`."""
        return f"{values.most} different values in a channel over the whole set, and up to {LIKELY_CODES} are codes"

    def objection(self, values: ValueTally) -> str:
        """See `StateKind`."""
        if values.channels not in (0, CHANNELS):
            return f"states of {values.channels} channels, and grids have {CHANNELS},"
        if values.most > MOST_CODES:
            return f"at least {values.most} different values in a channel, and grids have at most {MOST_CODES} codes,"
        return ""

    def denies(self, values: ValueTally) -> bool:
        """See `StateKind`."""
        return bool(self.objection(values)) or _drawn(values)

    def check(self, states: States, where: str) -> None:
        """See `StateKind`."""
        if not (states.shape[3] == CHANNELS and states.dtype.kind in "iu"):
            raise InputError(f"{where}: grid states are {self.describe(states)}; {_advice(states)}")
        require_numbers(states, where)
        require_int64(states, where)

    def numbers(self, states: States) -> NDArray[np.float64]:
        """See `StateKind`."""
        return np.asarray(states.reshape(len(states), self.size(states)), np.float64)

    def recognises_parts(self, parts: Sequence[PartLayout]) -> bool:
        """See `StateKind`."""
        form = [(part.name, len(part.shape), part.is_text) for part in parts]
        return form == [("", 3, False)] and _may_be_grid(parts[0].dtype, parts[0].shape[2])

    def stores(self, part: PartLayout) -> bool:
        """See `StateKind`."""
        return not part.name and bool(part.shape) and np.dtype(part.dtype or "S").kind in "iu"

    def stored_shape(self, size: int, sides: Sequence[int]) -> tuple[int, ...]:
        """See `StateKind`."""
        return (*sides, CHANNELS)

    def handed(self, part: PartLayout) -> np.dtype[Any]:
        """See `StateKind`."""
        return np.dtype(np.int64)

    def as_state(self, state: Any) -> NDArray[np.int64]:
        """See `StateKind`."""
        require_int64(np.asarray(state), "a state")
        return np.array(state, np.int64, order="C")

    def recognises_space(self, space: Any) -> bool:
        """See `StateKind`."""
        shape: tuple[int, ...] = getattr(space, "shape", None) or ()
        dtype = getattr(space, "dtype", None)
        return len(shape) == 3 and shape[2] == CHANNELS and dtype is not None and dtype.kind in "iu"

    def census(self, states: States) -> Census:
        """See `StateKind`."""
        return GridCodes()

    def draw_scrambler(self, states: States, seed: int) -> Scrambler:
        """See `StateKind`. The scrambler always flips or transposes the axes."""
        return GridScrambler.draw(seed, CHANNELS)

    def read_scrambler(self, about: Mapping[str, Any], seed: int) -> Scrambler:
        """See `StateKind`."""
        return GridScrambler.read(about, seed, (CHANNELS,))


def _drawn(values: ValueTally) -> bool:
    """Whether byte states with these values are pictures, by their size and their highest value."""
    return values.side >= PICTURE_SIDE and values.highest >= BRIGHT


def _advice(states: States) -> str:
    """The end of an error message about a four-dimensional array `(T+1, ...)` that does not hold grids."""
    if states.shape[1] in COLOURS and states.shape[3] not in COLOURS:
        return "expected the channels last, (T+1, h, w, channels): np.moveaxis(states, 1, -1) moves those of pictures"
    if states.dtype.kind == "f" and states.shape[3] in COLOURS:
        return (
            "expected integers: the codes of a grid, or the bytes of pictures: numbers from 0 to 1 become bytes by "
            "np.uint8(np.round(255 * states))"
        )
    return "expected integers of shape (T+1, h, w, 3), or pictures: bytes (T+1, h, w, 1, 3 or 4)"


def _may_be_grid(dtype: DTypeLike, channels: int) -> bool:
    """Whether states may be grids, by type and number of channels. Byte states with 1 or 4 channels are images.

    The result is also True for states that are neither grids nor images, such as bytes with two channels, so that
    `GridKind.check` refuses these states with a message.
    """
    return channels == CHANNELS or np.dtype(dtype) != np.uint8 or channels not in (1, 4)


class GridCodes:
    """Counts of each code in each of the three channels, as statistics of a data set. Implements `Census`."""

    def __init__(self) -> None:
        self.counts: tuple[Counter[int], ...] = (Counter(), Counter(), Counter())

    def add(self, states: NDArray[Any], where: str = "") -> None:
        """Add states `(T+1, h, w, 3)`."""
        for channel, counter in enumerate(self.counts):
            codes, counts = np.unique(states[..., channel], return_counts=True)
            for code, count in zip(codes.tolist(), counts.tolist(), strict=True):
                counter[code] += count

    def to_json(self, fields: Sequence[str], most: int) -> dict[str, Any]:
        """See `Census`."""
        return {"codes": [{str(code): counter[code] for code in sorted(counter)} for counter in self.counts]}

    def table(self, fields: Sequence[str], most: int) -> RenderableType:
        """See `Census`."""
        from rich.table import Table

        table = Table(title="Codes that occur", title_justify="left")
        table.add_column("channel", justify="right")
        table.add_column("code: share of cells")
        for channel, counter in enumerate(self.counts):
            total = counter.total()
            table.add_row(str(channel), ", ".join(f"{code}: {counter[code] / total:.2%}" for code in sorted(counter)))
        return table


@dataclass
class GridScrambler(Scrambler):
    """A scrambler that permutes the codes of each channel, and flips or transposes the axes.

    The seed fixes the new value of every code, so a scrambler can also map codes that are not yet in `codes`.

    Attributes:
        seed: seed of the permutations of codes.
        transpose: whether to swap the first two axes of a state, before the flips.
        flip: whether to reverse the first axis, and whether to reverse the second axis.
        codes: for each channel, the new value of each code that has occurred so far.
    """

    seed: int
    transpose: bool = False
    flip: tuple[bool, bool] = (False, False)
    codes: tuple[dict[int, int], ...] = field(default_factory=lambda: ({}, {}, {}))

    @classmethod
    def draw(cls, seed: int, channels: int) -> GridScrambler:
        """A new random scrambler, which always flips or transposes the axes."""
        choice = int(np.random.default_rng([seed, 0]).integers(1, 8))  # 0 would leave the axes unchanged
        flip = (bool(choice & 2), bool(choice & 4))
        return cls(seed, bool(choice & 1), flip, tuple({} for _ in range(channels)))

    @classmethod
    def read(cls, about: Mapping[str, Any], seed: int, channels: Sequence[int]) -> GridScrambler:
        """Make a scrambler from the result of `to_json`, for states with one of these numbers of channels.

        Raises:
            ValueError, LookupError, TypeError, AttributeError: the description is invalid, or for another number of
                channels.
        """
        codes = tuple({int(old): int(new) for old, new in table.items()} for table in about["codes"])
        if (
            len(codes) not in channels
            or any(not 0 <= value < VALUES for table in codes for value in (*table, *table.values()))
            or any(len(set(table.values())) < len(table) for table in codes)
        ):
            raise ValueError(f"not a map for states of {' or '.join(map(str, channels))} channels")
        flip = (bool(about["flip"][0]), bool(about["flip"][1]))
        return cls(seed, bool(about["transpose"]), flip, codes)

    def states(self, states: NDArray[Any], word: Callable[[str], str], where: str) -> NDArray[np.uint8]:
        """See `Scrambler`."""
        if states.shape[3] != len(self.codes):
            raise InputError(
                f"{where}: states of {states.shape[3]} channels; expected {len(self.codes)}, for which the map was "
                "made: use another map"
            )
        low, high = int(states.min()), int(states.max())
        if low < 0 or high >= VALUES:
            raise InputError(f"{where}: codes from {low} to {high}; expected 0 to {VALUES - 1} for scrambling")
        table = np.zeros((len(self.codes), VALUES), np.uint8)
        for channel, known in enumerate(self.codes):
            permutation = np.random.default_rng([self.seed, 1, channel]).permutation(VALUES)
            for code in np.unique(states[..., channel]).tolist():
                known.setdefault(code, int(permutation[code]))
            table[channel, list(known)] = list(known.values())
        mapped = np.stack([table[channel][states[..., channel]] for channel in range(len(self.codes))], axis=-1)
        if self.transpose:
            mapped = mapped.swapaxes(1, 2)
        rows, columns = (slice(None, None, -1 if reverse else 1) for reverse in self.flip)
        return np.ascontiguousarray(mapped[:, rows, columns])

    def to_json(self) -> dict[str, Any]:
        """See `Scrambler`."""
        return {"transpose": self.transpose, "flip": self.flip, "codes": self.codes}


GRID = GridKind()
