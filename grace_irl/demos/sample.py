"""A sample of whole trajectories, for sets that are larger than memory (docs/demonstrations.md).

A fit searches on the sample. Then it reads the trajectories outside the sample one at a time, to test the result.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator

from grace_irl.demos.memory import Memory, size_of, spelled
from grace_irl.demos.trajectory import Demonstration, Sampled
from grace_irl.errors import InputError

SHARE = 5
"""A sample takes at most the memory limit divided by this number, unless the user states a size. A fit needs a few
times the size of its data, plus some hundred MiB (`benchmarks/larger_than_memory.py`)."""

FEWEST = 2
"""Minimum number of trajectories in a sample from each group (task, role and stated split): one to learn from, and one
to hold out. A smaller group is in the sample as a whole."""

Group = tuple[str, str, str | None]
"""The task, the role and the stated split of a trajectory."""


class Sample:
    """A sample of whole trajectories, drawn while a set is read.

    Trajectories with the same task, role and stated split form a group. While the sample is too large, a trajectory is
    dropped from the group that takes the most memory. A group of at most `FEWEST` trajectories keeps all of them.
    Within a group, all trajectories have the same chance to stay. The draw depends on the content of the trajectories
    (their digests), not on a seed or on the order in files.

    Args:
        size: maximum size of the sample in bytes.
        memory: memory limit of the set.
        what: name of the set, for messages.

    Raises:
        InputError: the memory limit is below the size.
    """

    def __init__(self, size: int, memory: Memory, what: str) -> None:
        memory.require(size, f"{what}: a sample of {spelled(size)}")
        self._size, self._memory, self._what = size, memory, what
        self._groups: dict[Group, _Members] = {}
        self._taken = self._count = self._states = self._bytes = 0

    def add(self, item: Demonstration, nbytes: int) -> None:
        """Offer the next trajectory of the set, with a size of `nbytes` bytes.

        Raises:
            InputError: the sample cannot hold `FEWEST` trajectories of each group.
        """
        members = self._groups.setdefault((item.task, item.role, item.split), _Members())
        place, self._count = self._count, self._count + 1
        self._states += len(item.trajectory.states)
        self._bytes += nbytes
        self._taken += members.add(item, nbytes, place)
        while self._taken > self._size:
            largest = max(self._groups.values(), key=lambda each: each.spare)
            if not largest.spare:
                raise InputError(
                    f"{self._what}: {FEWEST} trajectories of each task, role and split take {spelled(self._taken)} of "
                    f"memory; expected at most {spelled(self._size)}, the size of the sample: raise --sample or "
                    "--max-memory, or choose fewer tasks (grace-irl demos select)"
                )
            self._taken -= largest.drop()

    def drawn(self) -> tuple[Demonstration, ...]:
        """Reserve memory for the sample, and return its trajectories in the order of the set."""
        self._memory.take(self._taken, self._what)
        found = sorted(
            (entry for each in self._groups.values() for entry in each.entries()), key=lambda entry: entry[0]
        )
        return tuple(item for _, item in found)

    def about(self, items: tuple[Demonstration, ...]) -> Sampled | None:
        """The sizes of the sample `items` and of the whole set; None if the sample is the whole set."""
        if len(items) == self._count:
            return None
        states = sum(len(item.trajectory.states) for item in items)
        return Sampled(self._size, len(items), states, self._count, self._states, self._bytes)


class _Members:
    """The trajectories of one group that are in the sample: those with the smallest digests."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, int, Demonstration]] = []  # -digest, -place, size, trajectory
        self._taken = 0
        self._below: int | None = None

    @property
    def spare(self) -> int:
        """Size in bytes of all members if one of them may be dropped, else 0."""
        return self._taken if len(self._heap) > FEWEST else 0

    def add(self, item: Demonstration, nbytes: int, place: int) -> int:
        """Add a trajectory if its digest is below all dropped digests. Return its size in bytes, or 0 if not added."""
        digest = int(item.trajectory.digest, 16)
        if self._below is not None and digest >= self._below:
            return 0
        heapq.heappush(self._heap, (-digest, -place, nbytes, item))
        self._taken += nbytes
        return nbytes

    def drop(self) -> int:
        """Drop the trajectory with the largest digest, and return its size."""
        digest, _, nbytes, _ = heapq.heappop(self._heap)
        self._below = -digest
        self._taken -= nbytes
        return nbytes

    def entries(self) -> Iterator[tuple[int, Demonstration]]:
        """Pairs of a trajectory's index in the set and the trajectory."""
        return ((-place, item) for _, place, _, item in self._heap)


def size_of_sample(text: str, memory: Memory) -> int:
    """Maximum size of a sample in bytes: the stated size, else the memory limit divided by `SHARE`.

    Raises:
        InputError: an invalid size.
    """
    return size_of(text, "--sample") if text else memory.limit // SHARE
