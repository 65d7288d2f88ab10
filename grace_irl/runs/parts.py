"""Rewards for more trajectories than memory can hold: a few at a time are read, rewarded and released."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from grace_irl.demos.memory import EPISODE_BYTES
from grace_irl.demos.trajectory import Trajectory

PART = 8 << 20
"""Approximate size in bytes of a part: the trajectories that a worker of the sandbox gets at once."""

EVERY = 30.0
"""Minimum number of seconds between two lines to the user about progress, for callers of `rewarded`."""

Floats = NDArray[np.float64]


class _HasTrajectory(Protocol):
    @property
    def trajectory(self) -> Trajectory: ...


Item = TypeVar("Item", bound=_HasTrajectory)
"""A demonstration, with labels or without."""


def rewarded(
    items: Iterable[Item], rewards: Callable[[Sequence[Trajectory]], Sequence[Floats]], workers: int
) -> Iterator[tuple[list[Item], dict[str, Floats]]]:
    """Yield the items in parts of about `PART` bytes, in order. Each part comes with its rewards by trajectory digest.

    Each worker of the sandbox gets one part at a time, and the next part is read meanwhile. While the parts in memory
    have more than 2 * `PART` * `workers` bytes together, no further part is read. This limit is for large trajectories:
    a single one may be as large as the memory limit of the demonstrations.

    Args:
        items: demonstrations, read one at a time.
        rewards: function that returns the rewards `(T+1,)` of each trajectory. Several threads call the function.
        workers: number of parts that are rewarded in parallel.
    """

    def by_digest(part: list[Item]) -> dict[str, Floats]:
        trajectories = [item.trajectory for item in part]
        return {each.digest: values for each, values in zip(trajectories, rewards(trajectories), strict=True)}

    waiting: deque[tuple[list[Item], int, Future[dict[str, Floats]]]] = deque()
    with ThreadPoolExecutor(workers) as threads:
        for part, size in _parts(items):
            waiting.append((part, size, threads.submit(by_digest, part)))
            del part
            while len(waiting) > workers or sum(each for _, each, _ in waiting) > 2 * PART * workers:
                done, _, found = waiting.popleft()
                yield done, found.result()
                del done, found
        while waiting:
            done, _, found = waiting.popleft()
            yield done, found.result()


def _parts(items: Iterable[Item]) -> Iterator[tuple[list[Item], int]]:
    """Yield the parts, each with its size in bytes."""
    part: list[Item] = []
    size = 0
    for item in items:
        part.append(item)
        size += EPISODE_BYTES + item.trajectory.state_kind.nbytes(item.trajectory.states)
        if size >= PART:
            yield part, size
            part, size = [], 0
    if part:
        yield part, size
