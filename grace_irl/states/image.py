"""Images: states of h x w pixels with one, three or four channels of bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from grace_irl.errors import InputError
from grace_irl.states.grid import BRIGHT, LIKELY_CODES, GridScrambler
from grace_irl.states.kind import Census, PartLayout, Scrambler, StateKind, States
from grace_irl.states.tally import VALUES, ValueTally
from grace_irl.states.vector import require_numbers

if TYPE_CHECKING:
    from rich.console import RenderableType

CHANNELS = {1: ("grey",), 3: ("red", "green", "blue"), 4: ("red", "green", "blue", "alpha")}
"""Names of an image's channels, by the number of channels."""


class ImageKind(StateKind):
    """Images: `(T+1, h, w, c)` bytes with c = 1, 3 or 4 channels. Programs receive `(h, w, c)` int64.

    Bytes become int64 because differences of bytes wrap around. Grids become int64, too, so programs receive the same
    type whether the bytes of a file are read as grids or as images.

    All images of a set have the same number of channels. Their sides may differ between trajectories.
    """

    name = "image"
    plural = "images"
    expected = "bytes (T+1, h, w, 1, 3 or 4)"
    sides = ("height", "width")
    heavy = True
    stored_as = "a list of bytes"

    def recognises(self, states: States) -> bool:
        """See `StateKind`."""
        return getattr(states, "ndim", 0) == 4 and _is_image(states.dtype, states.shape[1:])

    def recognises_state(self, state: Any) -> bool:
        """See `StateKind`."""
        array = np.asarray(state)
        return _is_image(array.dtype, array.shape)

    def seen_in(self, values: ValueTally) -> str:
        """See `StateKind`."""
        if values.most <= LIKELY_CODES and values.channels in (0, 3):
            return (
                f"the value {values.highest} in states of {values.side} or more rows and columns, and codes of large "
                f"grids stay below {BRIGHT}"
            )
        return f"at least {values.most} different values in a channel, and grids have up to {LIKELY_CODES}"

    def misfit(self, shape: tuple[int, ...], fitted: tuple[int, ...]) -> str:
        """See `StateKind`."""
        return "" if shape[-1] == fitted[-1] else f"{shape[-1]} channels; expected {fitted[-1]}"

    def check(self, states: States, where: str) -> None:
        """See `StateKind`."""
        if not _is_image(states.dtype, states.shape[1:]):
            raise InputError(f"{where}: images are {self.describe(states)}; expected {self.expected}")
        require_numbers(states, where)

    def signature(self, states: States) -> int:
        """The number of channels."""
        return int(states.shape[3])

    def unlike(self, states: States, others: States, beside: str) -> str:
        """See `StateKind`."""
        found = f"images of {states.shape[3]} channels, but of {others.shape[3]} in {beside or 'the first trajectory'}"
        return f"{found}; expected one number of channels"

    def numbers(self, states: States) -> NDArray[np.float64]:
        """See `StateKind`."""
        return np.asarray(states.reshape(len(states), self.size(states)), np.float64)

    def recognises_parts(self, parts: Sequence[PartLayout]) -> bool:
        """See `StateKind`."""
        return [(part.name, part.is_text) for part in parts] == [("", False)] and _is_image(
            parts[0].dtype, parts[0].shape
        )

    def stores(self, part: PartLayout) -> bool:
        """See `StateKind`."""
        return not part.name and bool(part.shape) and part.dtype == np.dtype(np.uint8).str

    def stored_shape(self, size: int, sides: Sequence[int]) -> tuple[int, ...]:
        """See `StateKind`. The number of channels is `size` divided by the number of pixels.

        If images cannot have this number of channels, the result has 4, which does not fit the list.
        """
        height, width = sides
        pixels = height * width
        found = size // pixels if pixels > 0 else 0
        return height, width, found if found in CHANNELS else max(CHANNELS)

    def handed(self, part: PartLayout) -> np.dtype[Any]:
        """See `StateKind`."""
        return np.dtype(np.int64)

    def as_state(self, state: Any) -> NDArray[np.int64]:
        """See `StateKind`."""
        return np.array(state, np.int64, order="C")

    def recognises_space(self, space: Any) -> bool:
        """See `StateKind`."""
        return _is_image(getattr(space, "dtype", None), getattr(space, "shape", None) or ())

    def census(self, states: States) -> Census:
        """See `StateKind`."""
        return ImageCensus(self.signature(states))

    def draw_scrambler(self, states: States, seed: int) -> Scrambler:
        """See `StateKind`. The scrambler always flips or transposes the axes."""
        return GridScrambler.draw(seed, self.signature(states))

    def read_scrambler(self, about: Mapping[str, Any], seed: int) -> Scrambler:
        """See `StateKind`."""
        return GridScrambler.read(about, seed, tuple(CHANNELS))


class ImageCensus:
    """Range, mean and number of different values of each channel. Implements `Census`.

    Args:
        channels: number of channels of the images.
    """

    def __init__(self, channels: int) -> None:
        self._channels = channels
        self._counts = np.zeros((channels, VALUES), np.int64)

    def add(self, states: NDArray[Any], where: str = "trajectory") -> None:
        """Add images `(T+1, h, w, c)`."""
        if states.shape[3] != self._channels:
            raise InputError(
                f"{where}: images of {states.shape[3]} channels in a set of images of {self._channels} channels; "
                "expected one number of channels"
            )
        self._counts += ValueTally.counted(states)

    def rows(self) -> list[dict[str, Any]]:
        """A dict for each channel: its name, smallest, mean and largest value, and number of different values."""
        found = []
        for name, counts in zip(CHANNELS[self._channels], self._counts, strict=True):
            values = np.flatnonzero(counts)
            mean = float(counts @ np.arange(VALUES)) / max(int(counts.sum()), 1)
            about = {"min": int(values.min(initial=VALUES)), "mean": mean, "max": int(values.max(initial=0))}
            found.append({"name": name, **about, "distinct": len(values)})
        return found

    def to_json(self, fields: Sequence[str], most: int) -> dict[str, Any]:
        """See `Census`."""
        return {"channels": self.rows()}

    def table(self, fields: Sequence[str], most: int) -> RenderableType:
        """See `Census`."""
        from rich.table import Table

        table = Table(title="Channels", title_justify="left")
        table.add_column("name")
        for name in ("min", "mean", "max", "different values"):
            table.add_column(name, justify="right")
        for row in self.rows():
            table.add_row(row["name"], str(row["min"]), f"{row['mean']:.1f}", str(row["max"]), str(row["distinct"]))
        return table


def _is_image(dtype: Any, shape: Sequence[int]) -> bool:
    return len(shape) == 3 and shape[2] in CHANNELS and bool(dtype) and np.dtype(dtype) == np.uint8


IMAGE = ImageKind()
