"""Warnings about properties that alone tell experts from negatives, although they do not come from behaviour.

Such a property is a fault of the data. It occurs together with all other differences between the two sides (experts and
negatives), so the data cannot show whether a reward should use the property or another difference. A reward that
ignores the property does not remove the fault. So these warnings do not depend on the reward.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from grace_irl.audit.suspects import JUMPY, NARROW, STILL, succession, ticking
from grace_irl.audit.warning import RewardWarning
from grace_irl.demos.fields import NAMES, ROUNDING, Numbers, clock_fields, columns
from grace_irl.demos.labels import Labelled, Problem

Floats = NDArray[np.float64]
Marks = NDArray[np.bool_]
Rows = Sequence[Floats]

LEAST = 8
"""Minimum number of different episodes on each side. With fewer, chance may separate the sides in some field."""
PARTED = 0.95
"""Minimum balanced accuracy, over episodes, of a field that tells the sides apart by a threshold."""
TIGHT = 0.05
"""The ranges of a field on the two sides are tight if the sum of their widths is at most this share of their gap."""
SMOOTH = 0.7
"""Minimum correlation of successive values, in a field that changes smoothly."""
TREND = 0.7
"""A field rises on the whole if its correlation with the step is at least this value in every episode. It falls on the
whole if the correlation is at most the negative of this value in every episode."""
REPEATED = 3
"""Values count as names if at least this many episodes of a side share a value, on average."""
WRONG = 0.1
"""Maximum share of experts, and of negatives, on which a threshold on the step or on a clock may be wrong."""
NAMED = 8
"""Maximum number of fields that a warning names."""

SAME = "collect both sides in the same simulator with the same settings, or leave these numbers out"
ALIKE = "bring negative episodes with the same values, such as the same goals and starts, or leave these numbers out"


def of_sides(problem: Problem) -> Iterator[RewardWarning]:
    """Warnings about properties that tell the sides apart, at most one for each code.

    Swaps are left out: they have the states of experts.
    """
    given = [item for item in problem.items if not item.demonstration.swapped]
    items = list({item.trajectory.digest: item for item in given}.values())
    expert = np.array([item.positive.any() for item in items])
    if min(expert.sum(), (~expert).sum()) < LEAST:
        return
    fields = _fields(items, expert, problem)
    length = problem.rule != "all" and _pays(items, [np.arange(len(item.positive), dtype=np.float64) for item in items])
    if length:
        yield RewardWarning(
            "time",
            "the step alone tells goals from all else: at one step nearly all experts are at their goals, hardly any "
            "expert was there before, and nearly all negatives have ended",
            "bring negative episodes that last as long as experts, and experts of several lengths",
        )
    elif fields.clocks:
        yield RewardWarning(
            "time",
            f"{_listed(fields.clocks)}, which rises or falls all the time, alone tells experts or their goals from all "
            "else: the sides may have been recorded at different times or stages",
            "record experts and negatives alternately, or leave the clock out of the states",
        )
    if fields.sources:
        yield RewardWarning(
            "constants",
            f"{_listed(fields.sources)} differs between all experts and all negatives, as a setting of two simulators "
            "does",
            SAME,
        )
    if fields.fixed:
        yield RewardWarning(
            "constant-field",
            f"{_listed(fields.fixed)} hardly changes within an episode and alone tells experts from negatives",
            ALIKE,
        )
    elif fields.starts:
        yield RewardWarning(
            "constant-field",
            f"{_listed(fields.starts)} in the first state, before anybody acts, alone tells experts from negatives",
            ALIKE,
        )


@dataclass(frozen=True)
class _Fields:
    """Names of fields that tell the sides apart.

    Attributes:
        clocks: clocks, and other fields that rise or fall all the time.
        sources: fields with one value on each side, up to noise. For grids: their size, or cells with one code on each
            side.
        fixed: fields that hardly change within an episode.
        starts: fields that tell the sides apart in the first state, and change later.
    """

    clocks: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    fixed: tuple[str, ...] = ()
    starts: tuple[str, ...] = ()


def _fields(items: Sequence[Labelled], expert: Marks, problem: Problem) -> _Fields:
    first = items[0].trajectory
    if first.kind in CELLS:
        return _Fields(sources=tuple(CELLS[first.kind](items, expert)))
    if first.kind not in NAMES:
        return _Fields()
    names = NAMES[first.kind](first.states, problem.metadata.fields)
    sources, fixed = _texts(items, expert) if first.state_kind.has_parts else ([], [])
    long = [place for place, item in enumerate(items) if len(item.trajectory.states) > 1]
    items, expert = [items[place] for place in long], expert[long]
    if expert.all() or not expert.any() or not (rows := Numbers.of(items)):
        return _Fields(sources=tuple(sources), fixed=tuple(fixed))
    parted = _parted(rows, expert)
    ticks = _monotone(rows) | _trending(rows)
    apart = _settings(rows, expert) & ~ticks
    still = _still(rows, expert) & (parted | _separate(rows, expert)) & ~apart
    moved = _started(rows, expert) & ~apart & ~ticks & ~still if problem.rule != "all" else np.zeros_like(ticks)
    clocks = ticks & parted
    if problem.rule != "all":
        clocks |= _told_by_clock(items, rows)

    def named(chosen: Marks) -> tuple[str, ...]:
        return tuple(name for name, one in zip(names, chosen, strict=True) if one)

    return _Fields(named(clocks), (*named(apart), *sources), (*named(still), *fixed), named(moved))


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:NAMED]) + (", …" if len(names) > NAMED else "")


def _threshold(low: Floats, high: Floats) -> Floats:
    """For each column, the best balanced accuracy of a threshold that separates low from high episodes.

    Args:
        low: `(m, n)` largest values of m episodes. These values should not exceed the threshold.
        high: `(k, n)` smallest values of k episodes. These values should exceed the threshold.
    """
    best = np.zeros(low.shape[1])
    for column in range(low.shape[1]):
        below, above = np.sort(low[:, column]), np.sort(high[:, column])
        left = np.searchsorted(below, below, "right") / len(below)
        right = 1 - np.searchsorted(above, below, "right") / len(above)
        best[column] = ((left + right) / 2).max()
    return best


def _parted(rows: Rows, expert: Marks) -> Marks:
    """Whether nearly all experts are above a threshold in all states, and nearly all negatives below, or vice versa."""
    least, most = _ranges(rows)
    forth, back = _threshold(most[expert], least[~expert]), _threshold(most[~expert], least[expert])
    noise = ROUNDING * np.abs(most).max(axis=0)
    return np.asarray((np.maximum(forth, back) >= PARTED) & (most.max(axis=0) - least.min(axis=0) > noise))


def _ranges(rows: Rows) -> tuple[Floats, Floats]:
    """The smallest and the largest value of each field in each episode."""
    least, most = zip(*((one.min(axis=0), one.max(axis=0)) for one in rows), strict=True)
    return np.stack(least), np.stack(most)


def _deviations(rows: Rows, expert: Marks) -> tuple[Floats, Floats]:
    """For each field, the standard deviation within an episode, and that of the episodes' means within a side."""
    variances, found = zip(*((one.var(axis=0), one.mean(axis=0)) for one in rows), strict=True)
    within, means = np.sqrt(np.mean(variances, axis=0)), np.stack(found)
    return within, np.sqrt((means[expert].var(axis=0) + means[~expert].var(axis=0)) / 2)


def _settings(rows: Rows, expert: Marks) -> Marks:
    """Whether a field is a setting of two simulators: one value on each side, up to noise.

    The ranges of the two sides must not overlap. In addition, one of two conditions must hold. Either both ranges are
    tight in comparison with the gap between them. Or both sides vary little in comparison with their means, and vary by
    noise alone: the means of a side's episodes hardly differ, and successive values hardly correlate.
    """
    least, most = _ranges(rows)
    low = [least[side].min(axis=0) for side in (expert, ~expert)]
    high = [most[side].max(axis=0) for side in (expert, ~expert)]
    gap = np.maximum(low[0] - high[1], low[1] - high[0])
    apart = np.asarray(gap > ROUNDING * np.max(np.abs([*low, *high]), axis=0))
    if not apart.any():
        return apart
    rows = [one[:, apart] for one in rows]
    sides = [np.concatenate([one for one, own in zip(rows, expert, strict=True) if own == side]) for side in (1, 0)]
    tight = np.ptp(sides[0], axis=0) + np.ptp(sides[1], axis=0) <= TIGHT * gap[apart]
    narrow = np.all([side.std(axis=0) <= NARROW * np.abs(side.mean(axis=0)) for side in sides], axis=0)
    within, between = _deviations(rows, expert)
    noise = (between <= within) & (np.abs(succession(rows)) <= JUMPY)
    apart[apart] = tight | (narrow & noise)
    return apart


def _still(rows: Rows, expert: Marks) -> Marks:
    """Whether a field hardly changes within an episode, compared with differences between episodes of a side."""
    within, between = _deviations(rows, expert)
    fixed = np.stack([np.ptp(one, axis=0) <= ROUNDING * np.abs(one).max(axis=0) for one in rows]).all(axis=0)
    return np.asarray(fixed | ((within <= STILL * between) & (between > 0)))


def _separate(rows: Rows, expert: Marks) -> Marks:
    """Whether a field has few different first values on each side, and no first value occurs on both sides."""
    values = np.stack([one[0].copy() for one in rows])
    return np.array([_apart(column[expert].tolist(), column[~expert].tolist()) for column in values.T])


def _apart(own: Sequence[object], other: Sequence[object]) -> bool:
    """Whether the values of both sides count as names (`REPEATED`), and the sides have no name in common."""
    few = all(len({*side}) * REPEATED <= len(side) for side in (own, other))
    return few and not {*own} & {*other}


def _started(rows: Rows, expert: Marks) -> Marks:
    """Whether a threshold on the first value tells all experts from all negatives, in a field that changes smoothly."""
    values = np.stack([one[0].copy() for one in rows])
    apart = np.maximum(_threshold(values[expert], values[~expert]), _threshold(values[~expert], values[expert])) == 1
    return np.asarray(apart & (succession(rows) >= SMOOTH))


def _monotone(rows: Rows) -> Marks:
    """Whether a field never falls, or never rises, and changes in most steps of each episode."""
    up = down = changes = np.ones(rows[0].shape[1], dtype=np.bool_)
    for one in rows:
        steps = np.diff(one, axis=0)
        up, down = up & (steps >= 0).all(axis=0), down & (steps <= 0).all(axis=0)
        changes = changes & ((steps != 0).mean(axis=0) > 0.5)
    return np.asarray((up | down) & changes)


def _trending(rows: Rows) -> Marks:
    """Whether a field rises on the whole in all episodes, or falls on the whole in all episodes (`TREND`)."""
    if min(map(len, rows)) < 3:
        return np.zeros(rows[0].shape[1], dtype=np.bool_)
    found = []
    for one in rows:
        time = np.linspace(-1, 1, len(one))[:, None]
        spread = one.std(axis=0)
        found.append((time * (one - one.mean(axis=0))).mean(axis=0) / (time.std() * np.where(spread > 0, spread, 1)))
    return np.asarray((np.stack(found) >= TREND).all(axis=0) | (np.stack(found) <= -TREND).all(axis=0))


def _told_by_clock(items: Sequence[Labelled], rows: Rows) -> Marks:
    """Whether a field is a clock, and a threshold on the clock tells goals from all other states."""
    longer = Numbers.of([item for item in items if len(item.trajectory.states) > 2])
    if not longer:
        return np.zeros(rows[0].shape[1], dtype=np.bool_)
    ticks = clock_fields(rows) | ticking(longer)
    for number, values in columns(rows, np.flatnonzero(ticks)):
        ticks[number] = _pays(items, values) or _pays(items, [-each for each in values])
    return ticks


def _pays(items: Sequence[Labelled], values: Sequence[Floats]) -> bool:
    """Whether a threshold on one number per state tells goals from all other states.

    Nearly all experts must reach the threshold at a goal. Hardly any expert may reach it before the first goal, and
    hardly any negative may reach it at all.

    Args:
        items: labelled demonstrations.
        values: the number of each state, for each demonstration.
    """
    goals = [(each[item.positive], each[: item.positive.argmax()]) for item, each in zip(items, values, strict=True)
             if item.positive.any()]  # fmt: skip
    best = np.array([goal.max() for goal, _ in goals])
    before = np.array([early.max(initial=-np.inf) for _, early in goals])
    others = np.array([each.max() for item, each in zip(items, values, strict=True) if not item.positive.any()])
    return any(
        (best >= least).mean() >= 1 - WRONG and (before >= least).mean() <= WRONG and (others >= least).mean() <= WRONG
        for least in np.unique(best)
    )


def _texts(items: Sequence[Labelled], expert: Marks) -> tuple[list[str], list[str]]:
    """Text parts that tell the sides apart and never change within an episode.

    The first list holds parts with one text on each side. The second list holds all others.
    """
    parts = [item.trajectory.state_kind.parts(item.trajectory.states) for item in items]
    settings: list[str] = []
    others: list[str] = []
    for name, array in parts[0].items():
        if array.dtype.kind != "S" or any(len({*each[name].tolist()}) > 1 for each in parts):
            continue
        own, other = (
            [each[name][0] for each, one in zip(parts, expert, strict=True) if one == side] for side in (True, False)
        )
        if _apart(own, other):
            (settings if len({*own}) == len({*other}) == 1 else others).append(name)
    return settings, others


def _cells(items: Sequence[Labelled], expert: Marks) -> list[str]:
    """Names of properties that tell the sides' grids apart: their size, or cells with one code on each side.

    A cell must keep its code while an episode goes on, so episodes of one state count for the size alone.
    """
    stacks = [item.trajectory.state_kind.parts(item.trajectory.states)[""] for item in items]
    shapes = [stack.shape[1:] for stack in stacks]
    sides = [{shape for shape, one in zip(shapes, expert, strict=True) if one == side} for side in (True, False)]
    if not sides[0] & sides[1]:
        return ["the size of the grid"]
    if len(sides[0] | sides[1]) > 1:
        return []
    long = [place for place, stack in enumerate(stacks) if len(stack) > 1]
    stacks, expert = [stacks[place] for place in long], expert[long]
    if expert.all() or not expert.any():
        return []
    ends = [(stack.min(axis=0), stack.max(axis=0)) for stack in stacks]
    ranges = []
    for side in (True, False):
        own = [each for each, one in zip(ends, expert, strict=True) if one == side]
        ranges.append((np.min([low for low, _ in own], axis=0), np.max([high for _, high in own], axis=0)))
    (low, high), (least, most) = ranges
    apart = (low == high) & (least == most) & (low != least)
    return [f"cell [{', '.join(map(str, place))}]" for place in np.argwhere(apart).tolist()]


CELLS = {"grid": _cells}
"""Functions for kinds of states that are compared cell by cell. They return names of properties that tell experts from
negatives."""
