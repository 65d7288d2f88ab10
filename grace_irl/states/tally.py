"""Counts of the values of byte states, which tell grids from images."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

VALUES = 256
"""Number of values of a byte."""


class ValueTally:
    """The values that occur in each channel of byte states (uint8 arrays), collected over many trajectories."""

    def __init__(self) -> None:
        self._seen = np.zeros((0, VALUES), np.bool_)
        self.side = 0
        """Length of a state's shorter side in cells or pixels, the maximum over all states."""

    def add(self, states: NDArray[Any]) -> None:
        """Add byte states `(..., h, w, c)`: h rows, w columns, c channels."""
        self.side = max(self.side, min(states.shape[-3:-1]))
        seen = self.counted(states) > 0
        most = max(len(seen), len(self._seen))
        one, other = (np.pad(each, ((0, most - len(each)), (0, 0))) for each in (seen, self._seen))
        self._seen = one | other

    @property
    def channels(self) -> int:
        """The number of channels, the maximum over all states."""
        return len(self._seen)

    @property
    def highest(self) -> int:
        """The largest value in any channel."""
        return int(np.flatnonzero(self._seen.any(axis=0)).max(initial=0))

    @property
    def most(self) -> int:
        """The number of different values in one channel, the maximum over all channels."""
        return int(self._seen.sum(axis=1).max(initial=0))

    @staticmethod
    def counted(states: NDArray[Any]) -> NDArray[np.int64]:
        """Counts `(c, 256)` of each value in each channel of byte states `(..., c)`."""
        flat = states.reshape(-1, states.shape[-1])
        return np.stack([np.bincount(flat[:, channel], minlength=VALUES) for channel in range(flat.shape[1])])
