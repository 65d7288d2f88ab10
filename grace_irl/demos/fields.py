"""Fields whose values do not depend on behaviour: goals and contexts, clocks, and constants of a simulator.

A reward can separate its training states by such a field alone and know nothing about behaviour. A goal that is
constant within episodes tells the training episodes apart, a clock tells the steps apart, and a constant in which two
simulators differ tells where the states come from.

An episode here is an array `(T+1, n)`: a row per state, a column per field.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from grace_irl.demos.labels import Labelled
from grace_irl.states.kind import States
from grace_irl.states.record import RECORD, places, spelled
from grace_irl.states.vector import VECTOR

Episodes = Sequence[NDArray[np.float64]]

ROUNDING = 8 * float(np.finfo(np.float32).eps)
"""Maximum relative difference between values that differ only by rounding to float32, about 1e-6. One rounding errs by
half of float32's eps at most. The factor 8 leaves room for the rounding of a few operations."""
EVEN = 1e-3
"""Maximum relative difference between the steps of a clock."""


@dataclass(frozen=True)
class FieldCues:
    """Names of fields whose values do not depend on behaviour.

    A name is in one tuple only. The exception is a field that rises or falls evenly, but by no more than `ROUNDING`: it
    may be in `fixed` and in `clocks`.

    Attributes:
        fixed: constant within every episode, but not equal in all episodes: a goal, a task, the size of an object.
        clocks: rises by equal steps in every episode, or falls by equal steps in every episode: a step counter, the
            time, or the time that is left.
        sources: one constant in all experts, another one in all negatives: a setting in which two simulators differ.
    """

    fixed: tuple[str, ...] = ()
    clocks: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()


def find_cues(items: Sequence[Labelled], fields: Sequence[str] = ()) -> FieldCues:
    """Find the fields of vectors and records whose values do not depend on behaviour.

    Args:
        items: labelled demonstrations of one kind of state.
        fields: names of a vector's components (`Metadata.fields`). Unless there is one name for each component,
            components are called `[i]`, with their 0-based index. Numbers of a record are called `part[i]`.

    Returns:
        The names, in the order of the fields. States of other kinds have none.
    """
    if not items or items[0].trajectory.kind not in NAMES:
        return FieldCues()
    trajectories = [item.trajectory for item in items]
    found = [trajectory.state_kind.numbers(trajectory.states) for trajectory in trajectories]
    episodes = [numbers for numbers in found if numbers is not None]
    if not episodes:  # records of texts alone
        return FieldCues()
    names = NAMES[trajectories[0].kind](trajectories[0].states, fields)
    expert = [item.demonstration.role == "expert" for item in items]
    sources = source_fields(episodes, expert)
    everything = np.concatenate([[episode.min(axis=0), episode.max(axis=0)] for episode in episodes])
    fixed = fixed_fields(episodes, expert) & ~_constant(everything) & ~sources

    def named(chosen: NDArray[np.bool_]) -> tuple[str, ...]:
        return tuple(name for name, one in zip(names, chosen, strict=True) if one)

    return FieldCues(named(fixed), named(clock_fields(episodes)), named(sources))


def fixed_fields(episodes: Episodes, expert: Sequence[bool]) -> NDArray[np.bool_]:
    """Whether each field is constant within every episode, up to rounding to float32.

    Episodes of one state say nothing about this. If all episodes of the experts, or all of the negatives, have one
    state, nobody knows whether behaviour changes a field, and the answer is False for every field.

    Args:
        episodes: the episodes.
        expert: whether each episode is an expert's.
    """
    told = [episode for episode in episodes if len(episode) > 1]
    if {*expert} != {one for one, episode in zip(expert, episodes, strict=True) if len(episode) > 1}:
        return np.zeros(episodes[0].shape[1], dtype=np.bool_)
    sizes = np.stack([np.abs(episode).max(axis=0) for episode in told])
    spans = np.stack([np.ptp(episode, axis=0) for episode in told])
    # The median helps if a value happens to be near 0 in one episode: the rounding errors there may be as large as in
    # the other episodes. The maximum over episodes would not do: beside one outlier, all other episodes look constant.
    return np.asarray((spans <= ROUNDING * np.maximum(sizes, np.median(sizes, axis=0))).all(axis=0))


def clock_fields(episodes: Episodes) -> NDArray[np.bool_]:
    """Whether each field changes by equal steps within every episode, all up or all down.

    A counter has steps of the same size in all episodes. An elapsed share begins at the same value in all episodes, and
    also ends at the same value. Both are clocks. A thing that moves evenly is no clock: it begins or moves differently
    in different episodes. Episodes of one state say nothing about this. If no episode has three states, no field is a
    clock.
    """
    width = episodes[0].shape[1]
    told = [episode for episode in episodes if len(episode) > 1]
    if max(map(len, told), default=0) < 3:
        return np.zeros(width, dtype=np.bool_)
    clock, signs = np.ones(width, dtype=np.bool_), []
    for episode in told:
        steps = np.diff(episode, axis=0)
        mean = np.abs(steps.mean(axis=0))
        # Rounding may change the steps of a long count noticeably, but not by half of a step.
        noise = np.clip(ROUNDING * np.abs(episode).max(axis=0), EVEN * mean, mean / 2)
        clock &= np.ptp(steps, axis=0) <= noise
        signs.append(np.sign(steps.mean(axis=0)))
    sizes, starts, ends = (
        np.stack(each)
        for each in zip(*((np.diff(one, axis=0).mean(axis=0), one[0], one[-1]) for one in told), strict=True)
    )
    width_of = np.abs(ends - starts).max(axis=0)
    counts = np.ptp(sizes, axis=0) <= np.maximum(EVEN, ROUNDING * np.abs(ends).max(axis=0)) * np.abs(sizes).max(axis=0)
    shares = (np.ptp(starts, axis=0) <= EVEN * width_of) & (np.ptp(ends, axis=0) <= EVEN * width_of)
    return np.asarray(clock & (np.abs(np.sum(signs, axis=0)) == len(told)) & (counts | shares))


def source_fields(episodes: Episodes, expert: Sequence[bool]) -> NDArray[np.bool_]:
    """Whether each field is one constant in all experts and another one in all negatives, up to rounding to float32.

    Such fields are among `fixed_fields`. With one expert and one negative nobody knows whether a constant belongs to
    the episode or to the side, and the answer is False for every field.

    Args:
        episodes: the episodes.
        expert: whether each episode is an expert's.
    """
    ends = [np.stack([episode.min(axis=0), episode.max(axis=0)]) for episode in episodes]
    sides = [[one for one, is_expert in zip(ends, expert, strict=True) if is_expert == side] for side in (True, False)]
    if not all(sides) or len(episodes) < 3:
        return np.zeros(episodes[0].shape[1], dtype=np.bool_)
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
"""For each kind with named fields: the function that lists the names, from some states and `Metadata.fields`."""


def moments(rows: Episodes) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean and standard deviation of each number over the states of several trajectories.

    Deviations from the mean are computed for one trajectory at a time, which saves memory.

    Args:
        rows: the numbers `(T+1, n)` of each trajectory. There is at least one state.
    """
    count = sum(map(len, rows))
    mean = np.sum([each.sum(axis=0) for each in rows], axis=0) / count
    return mean, np.sqrt(np.sum([((each - mean) ** 2).sum(axis=0) for each in rows], axis=0) / count)
