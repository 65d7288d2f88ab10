"""Rewards remembered per (program, trajectory), so that only what is new is ever run."""

from __future__ import annotations

import threading
import zlib
from collections.abc import Iterable, Mapping
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class RewardCache(Protocol):
    """Rewards by program id and trajectory digest. Methods may be called from several threads."""

    def get(self, program_id: str, digests: Iterable[str]) -> dict[str, Floats]:
        """What is known of these digests: `(T+1,)` each."""
        ...

    def put(self, program_id: str, rewards: Mapping[str, Floats]) -> None:
        """Remember these."""
        ...


class MemoryCache:
    """A cache that lasts as long as the process."""

    def __init__(self) -> None:
        self._blobs: dict[tuple[str, str], bytes] = {}
        self._lock = threading.Lock()

    def get(self, program_id: str, digests: Iterable[str]) -> dict[str, Floats]:
        """See `RewardCache`."""
        with self._lock:
            found = {digest: self._blobs.get((program_id, digest)) for digest in digests}
        return {digest: unpack(blob) for digest, blob in found.items() if blob is not None}

    def put(self, program_id: str, rewards: Mapping[str, Floats]) -> None:
        """See `RewardCache`."""
        blobs = {(program_id, digest): pack(values) for digest, values in rewards.items()}
        with self._lock:
            self._blobs.update(blobs)


class NoCache:
    """Remembers nothing: for programs that are scored once."""

    def get(self, program_id: str, digests: Iterable[str]) -> dict[str, Floats]:
        """See `RewardCache`."""
        del program_id, digests
        return {}

    def put(self, program_id: str, rewards: Mapping[str, Floats]) -> None:
        """See `RewardCache`."""


def pack(values: Floats) -> bytes:
    """A compact blob: rewards of real programs repeat, and deflate takes that out. Exact, NaN included."""
    return zlib.compress(np.ascontiguousarray(values, dtype="<f8").tobytes(), 1)


def unpack(blob: bytes, states: int | None = None) -> Floats:
    """The values of `pack`.

    Args:
        blob: that it gave.
        states: how many values it holds; what is longer is not inflated. None: it is our own.

    Raises:
        ValueError: another number of values.
        zlib.error: not a blob.
    """
    inflate = zlib.decompressobj()
    data = inflate.decompress(blob, 0 if states is None else 8 * states + 1)
    if states is not None and (len(data) != 8 * states or not inflate.eof):
        raise ValueError(f"a blob of rewards holds other than {states} values")
    return np.frombuffer(data, dtype="<f8").astype(np.float64)
