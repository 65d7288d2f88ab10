"""Fields whose values do not depend on behaviour: goals and contexts, clocks, and constants of a simulator.

A reward can separate its training states by such a field alone, without looking at behaviour. A goal identifies the
episode, a clock identifies the step, and a constant of a simulator identifies the simulator.

In this module, an episode is an array `(T+1, n)` with one row per state and one column per field.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np
from numpy.typing import NDArray

from grace_irl.demos.labels import Labelled
from grace_irl.states.kind import States
from grace_irl.states.record import RECORD, places, spelled
from grace_irl.states.vector import VECTOR

Episodes = Sequence[NDArray[np.float64]]

ROUNDING = 8 * float(np.finfo(np.float32).eps)
"""Maximum relative difference (about 1e-6) between values that count as equal. Rounding to float32 has a relative error
of at most half of float32's eps. The factor 8 allows for the rounding errors of a few operations."""
TINY = 1e-15
"""Absolute tolerance of `varies` for numbers near 0. A computed sine of a multiple of pi is about 1e-16, not 0."""
BLOCK = 64
"""Number of columns that `columns` reads at a time."""
EVEN = 1e-3
"""Relative tolerance of `clock_fields`. The steps of a clock may differ by this share of its mean step, or by more if
rounding errors explain the difference. First values of episodes count as equal if they differ by at most this share of
the clock's largest change within one episode. The same holds for last values."""


@dataclass(frozen=True)
class FieldCues:
    """Names of fields whose values do not depend on behaviour.

    Each name is in one tuple, with one exception: a clock that changes by at most `ROUNDING` times its values also
    counts as constant, so it may be in `clocks` and also in `fixed` or `sources`.

    Attributes:
        fixed: fields that are constant within each episode but differ between episodes, such as a goal, a task or the
            size of an object.
        clocks: fields that rise by equal steps in all episodes, or fall by equal steps in all episodes, such as a step
            counter or the remaining time.
        sources: fields with one constant in all experts and another constant in all negatives, such as a setting that
            differs between two simulators.
    """

    fixed: tuple[str, ...] = ()
    clocks: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()


class Computed(Sequence[NDArray[np.float64]]):
    """Numbers `(T+1, n)` of each episode, computed at each access.

    Float64 numbers of pictures need eight times the memory of their bytes. So only one episode's numbers should exist
    at a time. A row or a slice of an array keeps the whole array alive: copy it before the next episode.

    Args:
        compute: function that gives the numbers of an episode, from the episode's place.
        count: number of episodes.
    """

    def __init__(self, compute: Callable[[int], NDArray[np.float64]], count: int) -> None:
        self._compute, self._count = compute, count

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> NDArray[np.float64]: ...

    @overload
    def __getitem__(self, index: slice) -> list[NDArray[np.float64]]: ...

    def __getitem__(self, index: int | slice) -> NDArray[np.float64] | list[NDArray[np.float64]]:
        places = range(self._count)[index]
        return self._compute(places) if isinstance(places, int) else [self._compute(place) for place in places]


class Numbers(Computed):
    """The numbers `(T+1, n)` of each episode of labelled demonstrations, computed at each access.

    Args:
        items: labelled demonstrations of one kind of state, which has numbers.
    """

    def __init__(self, items: Sequence[Labelled]) -> None:
        trajectories = [item.trajectory for item in items]

        def compute(place: int) -> NDArray[np.float64]:
            trajectory = trajectories[place]
            return np.asarray(trajectory.state_kind.numbers(trajectory.states))

        super().__init__(compute, len(trajectories))

    @classmethod
    def of(cls, items: Sequence[Labelled]) -> Numbers | None:
        """The numbers of these episodes; None without episodes, or if their states have no numbers."""
        first = items[0].trajectory if items else None
        return None if first is None or first.state_kind.numbers(first.states[:1]) is None else cls(items)


def columns(episodes: Episodes, numbers: NDArray[np.int64]) -> Iterator[tuple[int, list[NDArray[np.float64]]]]:
    """Yield some columns: the index of each, and its values in each episode.

    The columns are read in blocks, so that each episode is accessed once for `BLOCK` columns.
    """
    for start in range(0, len(numbers), BLOCK):
        block = numbers[start : start + BLOCK]
        found = [episode[:, block] for episode in episodes]
        for place, number in enumerate(block.tolist()):
            yield number, [values[:, place] for values in found]


def find_cues(items: Sequence[Labelled], fields: Sequence[str] = ()) -> FieldCues:
    """Find the fields of vectors and records whose values do not depend on behaviour.

    Args:
        items: labelled demonstrations of one kind of state.
        fields: names of a vector's components (`Metadata.fields`). If their number differs from the number of
            components, component i is called `[i]`, counted from 0. Numbers of a record are called `part[i]`.

    Returns:
        The names, in the order of the fields. There are no names for states of other kinds.
    """
    if not items or items[0].trajectory.kind not in NAMES or not (episodes := Numbers.of(items)):
        return FieldCues()
    first = items[0].trajectory
    names = NAMES[first.kind](first.states, fields)
    expert = [item.demonstration.role == "expert" for item in items]
    sources = source_fields(episodes, expert)
    everything = np.concatenate([[episode.min(axis=0), episode.max(axis=0)] for episode in episodes])
    fixed = fixed_fields(episodes, expert) & ~_constant(everything) & ~sources

    def named(chosen: NDArray[np.bool_]) -> tuple[str, ...]:
        return tuple(name for name, one in zip(names, chosen, strict=True) if one)

    return FieldCues(named(fixed), named(clock_fields(episodes)), named(sources))


def fixed_fields(episodes: Episodes, expert: Sequence[bool]) -> NDArray[np.bool_]:
    """Whether each field is constant within every episode, up to rounding to float32.

    Episodes with a single state are ignored. If all expert episodes or all negative episodes have a single state, the
    result is False for every field.

    Args:
        episodes: the episodes.
        expert: whether each episode is an expert's.
    """
    sides: set[bool] = set()
    found = []
    for one, episode in zip(expert, episodes, strict=True):
        width = episode.shape[1]
        if len(episode) > 1:
            sides.add(one)
            found.append((np.abs(episode).max(axis=0), np.ptp(episode, axis=0)))
    if {*expert} != sides:
        return np.zeros(width, dtype=np.bool_)
    sizes, spans = (np.stack(each) for each in zip(*found, strict=True))
    # The size of an episode is its largest absolute value. A small value may be computed from larger numbers, with
    # rounding errors as large as in the other episodes. So the tolerance is at least `ROUNDING` times the median size
    # of all episodes. With the maximum instead, one outlier episode would make all other episodes look constant.
    return np.asarray((spans <= ROUNDING * np.maximum(sizes, np.median(sizes, axis=0))).all(axis=0))


def clock_fields(episodes: Episodes) -> NDArray[np.bool_]:
    """Whether each field is a clock: it rises by equal steps in all episodes, or falls by equal steps in all episodes.

    A clock must also meet one of these conditions:

    - The step size is the same in all episodes, as for a step counter.
    - The first value is the same in all episodes, and so is the last value, as for the elapsed share of an episode.

    These conditions exclude most objects that move at constant speed. Episodes with a single state are ignored. If no
    episode has at least three states, no field is a clock.
    """
    clock, longest, signs, found = np.bool_(True), 0, [], []
    for episode in episodes:
        width, longest = episode.shape[1], max(longest, len(episode))
        if len(episode) < 2:
            continue
        steps = np.diff(episode, axis=0)
        mean = np.abs(steps.mean(axis=0))
        # The tolerance for unequal steps is the rounding error of the values, but at least `EVEN` times the mean step
        # and at most half of the mean step.
        noise = np.clip(ROUNDING * np.abs(episode).max(axis=0), EVEN * mean, mean / 2)
        clock = clock & (np.ptp(steps, axis=0) <= noise)
        signs.append(np.sign(steps.mean(axis=0)))
        found.append((steps.mean(axis=0), episode[0].copy(), episode[-1].copy()))
    if longest < 3:
        return np.zeros(width, dtype=np.bool_)
    sizes, starts, ends = (np.stack(each) for each in zip(*found, strict=True))
    width_of = np.abs(ends - starts).max(axis=0)
    counts = np.ptp(sizes, axis=0) <= np.maximum(EVEN, ROUNDING * np.abs(ends).max(axis=0)) * np.abs(sizes).max(axis=0)
    shares = (np.ptp(starts, axis=0) <= EVEN * width_of) & (np.ptp(ends, axis=0) <= EVEN * width_of)
    return np.asarray(clock & (np.abs(np.sum(signs, axis=0)) == len(signs)) & (counts | shares))


def source_fields(episodes: Episodes, expert: Sequence[bool]) -> NDArray[np.bool_]:
    """Whether each field has one constant in all experts and another in all negatives, up to rounding to float32.

    All such fields are also `fixed_fields`. With one expert and one negative, the result is False for every field: a
    constant could then belong to the episode instead of the role. Without experts or without negatives, the result is
    False too.

    Args:
        episodes: the episodes.
        expert: whether each episode is an expert's.
    """
    ends = [np.stack([episode.min(axis=0), episode.max(axis=0)]) for episode in episodes]
    sides = [[one for one, is_expert in zip(ends, expert, strict=True) if is_expert == side] for side in (True, False)]
    if not all(sides) or len(ends) < 3:
        return np.zeros(ends[0].shape[1], dtype=np.bool_)
    experts, others = (np.concatenate(side) for side in sides)
    apart = _constant(experts) & _constant(others) & ~_constant(np.concatenate([experts, others]))
    return np.asarray(apart & fixed_fields(episodes, expert))


def _constant(values: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Whether each column is constant, up to rounding to float32."""
    return np.asarray(np.ptp(values, axis=0) <= ROUNDING * np.abs(values).max(axis=0))


def _of_vectors(states: States, fields: Sequence[str]) -> list[str]:
    width = VECTOR.size(states)
    return list(fields) if len(fields) == width else [f"[{number}]" for number in range(width)]


def _of_records(states: States, fields: Sequence[str]) -> list[str]:
    del fields
    return [spelled(*place) for place in places(states)]


NAMES: dict[str, Callable[[States, Sequence[str]], list[str]]] = {VECTOR.name: _of_vectors, RECORD.name: _of_records}
"""Map from the name of a kind with named fields to a function that lists the names of the fields. The function's
arguments are states and `Metadata.fields`."""


def varies(rows: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Whether each column of rows `(m, n)` varies by more than the rounding errors of float64 plus `TINY`."""
    size = np.abs(rows).max(axis=0)
    return np.asarray(np.ptp(rows, axis=0) > 8 * np.finfo(np.float64).eps * size + TINY)


def moments(rows: Episodes) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean and standard deviation of each number over the states of several trajectories.

    Deviations from the mean are computed for one trajectory at a time, to save memory.

    Args:
        rows: the numbers of each trajectory, `(T+1, n)`. At least one state is required.
    """
    sums, count = [], 0
    for each in rows:
        sums.append(each.sum(axis=0))
        count += len(each)
    mean = np.sum(sums, axis=0) / count
    return mean, np.sqrt(np.sum([((each - mean) ** 2).sum(axis=0) for each in rows], axis=0) / count)
