"""A set of open sources of demonstrations. The set is read into memory as a whole, or one trajectory at a time."""

from __future__ import annotations

import math
import sys
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from grace_irl.demos.components import source_in_order
from grace_irl.demos.header import merge, read_notes, role_of
from grace_irl.demos.kind_rule import choose_kind, with_kind
from grace_irl.demos.memory import (
    EPISODE_BYTES,
    SCREENSHOT_BYTES,
    BeyondLimitError,
    Memory,
    Region,
    enough_memory,
    padded,
)
from grace_irl.demos.sample import Sample, size_of_sample
from grace_irl.demos.source import Source
from grace_irl.demos.trajectory import Demonstration, Demonstrations, Role, Sampled
from grace_irl.states.kind import Allocate, States


class OpenSet:
    """A set of open sources, with one kind of states, one order of components, and a role for each source.

    Args:
        wanted: pairs of a source and the role of all its trajectories. The role None uses the roles in the source.
        kind: name of the states' kind, such as "grid", if the sources state none; "" chooses by the values of
            the states.
        memory: memory limit of the set.
        notes: further lines for the user about how the data were found.

    Attributes:
        memory: memory limit of the set.
        metadata, origins, choice, notes: attributes of the set, as in `Demonstrations`.

    Raises:
        InputError: data that cannot be used; see `role_of`, `choose_kind` and `merge`.
    """

    def __init__(
        self, wanted: Sequence[tuple[Source, Role | None]], kind: str, memory: Memory, notes: Sequence[str] = ()
    ) -> None:
        self.memory = memory
        self._reading = ""
        self._sources = [source for source, _ in wanted]
        names = [str(source.path) for source in self._sources]

        def states(place: int) -> Iterator[States]:
            return (item.trajectory.states for item in self._sources[place].demonstrations("expert", memory.empty))

        self.choice = choose_kind([source.header for source in self._sources], names, states, kind)
        for source in self._sources:
            source.header = with_kind(source.header, self.choice)
        order = next((fields for source in self._sources if (fields := source.header.metadata.fields)), ())
        self._sources = [source_in_order(source, order) for source in self._sources]
        headers = [source.header for source in self._sources]
        self.metadata = merge(headers, names)
        self._roles = [forced or role_of(source.header, source.path) for source, forced in wanted]
        self.origins = tuple(
            (name, source.header.metadata)
            for name, source, role in zip(names, self._sources, self._roles, strict=True)
            if role != "negative"
        )
        silent = (not forced and not source.header.role for source, forced in wanted)
        by_name = [name for name, each in zip(names, silent, strict=True) if each]
        self.notes = (*notes, *read_notes(headers, by_name))

    def all(self) -> Demonstrations:
        """The whole set in memory.

        Raises:
            BeyondLimitError: the set needs more memory than its limit.
        """
        region = Region()

        def allocate(shape: Sequence[int], dtype: DTypeLike) -> NDArray[Any]:
            self.memory.take(padded(math.prod(map(int, shape)) * np.dtype(dtype).itemsize), self._reading)
            return region.allocate(shape, dtype)

        texts: set[int] = set()
        items = []
        for item in self.each(allocate):
            self.memory.take(_beside(item, texts), self._reading)
            items.append(item)
        return self.of(items)

    def held(self) -> Demonstrations | None:
        """The whole set in memory; None if the set needs more memory than its limit."""
        known = sum(getattr(source, "nbytes", 0) for source in self._sources)
        before = self.memory.taken
        try:
            self.memory.require(known, self.name)
            return self.all()
        except BeyondLimitError:
            self.memory.taken = before  # the trajectories that were read are dropped
            return None

    def sampled(self, size: str) -> Demonstrations:
        """A sample of the set in memory.

        Args:
            size: maximum size of the sample, such as "400M". "" loads the whole set if it is within the memory limit;
                otherwise, the maximum size follows from the memory limit (`size_of_sample`).

        Raises:
            InputError: an invalid size, or a size that is too small for the set or above the memory limit.
        """
        if not size and (whole := self.held()) is not None:
            return whole
        drawn = Sample(size_of_sample(size, self.memory), self.memory, self.name)
        for item in self.each(self.empty):
            drawn.add(item, _size(item))
        items = drawn.drawn()
        return self.of(items, drawn.about(items))

    def only(self, digests: Collection[str]) -> Demonstrations:
        """Load only the trajectories with these digests into memory.

        Raises:
            BeyondLimitError: these trajectories need more memory than the limit of the set.
        """
        items = []
        for item in self.each(self.empty):
            if item.trajectory.digest in digests:
                self.memory.take(_size(item), self._reading)
                items.append(item)
        return self.of(items)

    def each(self, allocate: Allocate) -> Iterator[Demonstration]:
        """Yield the demonstrations in order, with read-only arrays from `allocate`.

        Raises:
            InputError: data that cannot be used.
        """
        for source, role in zip(self._sources, self._roles, strict=True):
            self._reading = str(source.path)
            with enough_memory(source.path):
                for item in source.demonstrations(role, allocate):
                    parts = item.trajectory.state_kind.parts(item.trajectory.states).values()
                    for array in (*parts, item.trajectory.actions):
                        if array is not None:
                            array.flags.writeable = False
                    yield item
        if "pyarrow" in sys.modules:  # pyarrow keeps freed memory for later batches
            sys.modules["pyarrow"].default_memory_pool().release_unused()

    def of(self, items: Sequence[Demonstration], sampled: Sampled | None = None) -> Demonstrations:
        """A set of only these demonstrations, with the metadata and notes of this set."""
        notes = (*self.notes, sampled.line) if sampled else self.notes
        return Demonstrations(self.metadata, tuple(items), self.origins, self.choice, notes, sampled)

    def empty(self, shape: Sequence[int], dtype: DTypeLike) -> NDArray[Any]:
        """A new array whose size is not reserved. Pass this method to `each` if few trajectories are kept at a time.

        Raises:
            BeyondLimitError: the array does not fit.
        """
        self.memory.require(math.prod(map(int, shape)) * np.dtype(dtype).itemsize, f"{self._reading}: one trajectory")
        return np.empty(shape, dtype)

    @property
    def name(self) -> str:
        """The first file of the set and the number of other files, for messages."""
        more = len(self._sources) - 1
        return f"{self._sources[0].path}" + (f" and {more} more" if more else "")


def _size(item: Demonstration) -> int:
    """Size of a demonstration in bytes."""
    trajectory = item.trajectory
    parts = trajectory.state_kind.parts(trajectory.states).values()
    actions = 0 if trajectory.actions is None else trajectory.actions.nbytes
    return sum(part.nbytes for part in parts) + actions + _beside(item, set())


def _beside(item: Demonstration, known: set[int]) -> int:
    """Size of a demonstration in bytes, without states and actions. A text that demonstrations share counts once.

    Args:
        item: the demonstration.
        known: identities (`id`) of all texts counted so far. This function adds the texts of this demonstration.
    """
    trajectory = item.trajectory
    nbytes = EPISODE_BYTES + SCREENSHOT_BYTES * len(trajectory.screenshots)
    nbytes += sum(a.nbytes for a in (trajectory.rewards, trajectory.log_probs) if a is not None)
    words = (trajectory.extra_info, item.task, *trajectory.action_texts, *trajectory.step_instructions)
    new = {id(text): text for text in words if id(text) not in known}
    known.update(new)
    return nbytes + sum(map(sys.getsizeof, new.values()))
