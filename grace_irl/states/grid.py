"""Grids: states of h x w cells with three codes each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from grace_irl.errors import InputError
from grace_irl.states.kind import VALUES, Census, PartLayout, Scrambler, StateKind, States, ValueTally
from grace_irl.states.vector import require_numbers

if TYPE_CHECKING:
    from rich.console import RenderableType

CHANNELS = 3

LIKELY_CODES = 16
"""Different codes of a channel over a whole set, at most, if bytes are to count as a grid without being called one."""

PICTURE_SIDE, BRIGHT = 32, 128
"""Flat drawings have few colours, too. So bytes of this many rows and columns (Minari's bound for pictures) are no grid
if some value is as high as this."""

MOST_CODES = 128
"""The same if somebody calls them a grid. Pictures have more, as a rule all 256."""


class GridKind(StateKind):
    """`(T+1, h, w, 3)` integers; programs are handed `(h, w, 3)` int64.

    Codes are widened because differences of `uint8` cells wrap around (`np.uint8(1) - np.uint8(2)` is 255), which no
    author of a reward expects.
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
        """See `StateKind`: the codes of a channel are few, and small if there are many cells."""
        drawn = values.side >= PICTURE_SIDE and values.highest >= BRIGHT
        return values.channels in (0, CHANNELS) and values.most <= LIKELY_CODES and not drawn

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

    def check(self, states: States, where: str) -> None:
        """See `StateKind`."""
        if not (states.shape[3] == CHANNELS and states.dtype.kind in "iu"):
            raise InputError(
                f"{where}: grid states are {states.dtype} of shape {states.shape}; "
                "expected integers of shape (T+1, h, w, 3)"
            )
        require_numbers(states, where)

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
        """See `StateKind`; the axes always change."""
        return GridScrambler.draw(seed, CHANNELS)

    def read_scrambler(self, about: Mapping[str, Any], seed: int) -> Scrambler:
        """See `StateKind`."""
        return GridScrambler.read(about, seed, (CHANNELS,))


def _may_be_grid(dtype: DTypeLike, channels: int) -> bool:
    """Whether it is no picture for its form; what is neither is refused by `GridKind.check`."""
    return channels == CHANNELS or np.dtype(dtype) != np.uint8 or channels not in (1, 4)


class GridCodes:
    """The count of each code in each of the three channels. Implements `Census`."""

    def __init__(self) -> None:
        self.counts: tuple[Counter[int], ...] = (Counter(), Counter(), Counter())

    def add(self, states: NDArray[Any], where: str = "") -> None:
        """Takes `(T+1, h, w, 3)` states."""
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
    """Permutes the values of each channel, flips and transposes axes.

    Axes are drawn at the start; codes when they are first met, by the seed, so that a map may be used again for data
    with codes that it has not seen.

    Attributes:
        seed: of the codes.
        transpose: swap the two axes, before flipping.
        flip: reverse the first axis, the second axis.
        codes: for each channel, new value by old one.
    """

    seed: int
    transpose: bool = False
    flip: tuple[bool, bool] = (False, False)
    codes: tuple[dict[int, int], ...] = field(default_factory=lambda: ({}, {}, {}))

    @classmethod
    def draw(cls, seed: int, channels: int) -> GridScrambler:
        """A new one; the axes always change."""
        choice = int(np.random.default_rng([seed, 0]).integers(1, 8))  # every way but the one that leaves them alone
        flip = (bool(choice & 2), bool(choice & 4))
        return cls(seed, bool(choice & 1), flip, tuple({} for _ in range(channels)))

    @classmethod
    def read(cls, about: Mapping[str, Any], seed: int, channels: Sequence[int]) -> GridScrambler:
        """The inverse of `to_json`.

        Raises:
            ValueError, LookupError, TypeError, AttributeError: no such object, or for other numbers of channels.
        """
        codes = tuple({int(old): int(new) for old, new in table.items()} for table in about["codes"])
        if len(codes) not in channels or any(not 0 <= value < VALUES for table in codes for value in table.values()):
            raise ValueError(f"not a map for states of {' or '.join(map(str, channels))} channels")
        flip = (bool(about["flip"][0]), bool(about["flip"][1]))
        return cls(seed, bool(about["transpose"]), flip, codes)

    def states(self, states: NDArray[Any], word: Callable[[str], str], where: str) -> NDArray[np.uint8]:
        """See `Scrambler`."""
        if states.shape[3] != len(self.codes):
            raise InputError(
                f"{where}: states of {states.shape[3]} channels; expected {len(self.codes)}, as the map was made for: "
                "scramble it with a map of its own"
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
