"""A warning about negatives that are far from all goals in one number of their states.

Such negatives do not test whether a goal has further conditions.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from grace_irl.audit.asked import spoken
from grace_irl.audit.warning import RewardWarning
from grace_irl.demos.fields import NAMES, Numbers, columns
from grace_irl.demos.labels import Problem

LEAST = 8
"""Minimum number of different episodes on each side."""
AWAY = 0.3
"""A negative is far in a number if its distance from all goals exceeds this share of the number's range."""
NEAR = 0.1
"""Maximum share of negatives that are not far (`AWAY`)."""
TRAVELLED = 0.5
"""Minimum share of experts with a state between far negatives and goals in one number of the states. With a smaller
share, the number is a switch, and there is no warning about the number."""
PASSED = 0.5
"""Maximum share of experts with a state that is not a goal, although the number is in the range that it has at goals.

With a larger share, there is no warning about the number, because such states test other conditions."""
WRONG_GOALS = "bring episodes that nearly reach a goal or reach a wrong one, or expand the run"


def of_nearness(problem: Problem) -> Iterator[RewardWarning]:
    """A warning if hardly any negative episode comes near a goal in one number of the states.

    A threshold on this number separates experts from negatives, so other conditions of a goal are not tested. A state
    of an expert before the goal tests other conditions only if this number is already in the range that it has at
    goals. If only one number varies, there are no other conditions. `grace_irl.audit.instructions` examines
    demonstrations with several instructions.
    """
    items = list({item.trajectory.digest: item for item in problem.items}.values())
    kind = items[0].trajectory.kind if items else ""
    texts = {spoken(item.trajectory.extra_info) for item in items if item.positive.any()}
    if problem.rule == "all" or kind not in NAMES or len(texts) > 1:
        return
    sides = [[item for item in items if item.positive.any() == side] for side in (True, False)]
    if min(map(len, sides)) < LEAST or not Numbers.of(items):
        return
    experts, negatives = map(Numbers, sides)
    marks = [item.positive for item in sides[0]]
    ends = np.concatenate([each[goals] for each, goals in zip(experts, marks, strict=True)])
    low, high = ends.min(axis=0), ends.max(axis=0)
    span = np.ptp(np.concatenate([(each.min(axis=0), each.max(axis=0)) for each in Numbers(items)]), axis=0)
    if np.count_nonzero(span) < 2:
        return
    away = np.stack([np.maximum(np.maximum(low - each, each - high), 0.0).min(axis=0) for each in negatives])
    passed = np.stack(
        [((low <= each) & (each <= high))[~goals].any(axis=0) for each, goals in zip(experts, marks, strict=True)]
    )
    names = NAMES[kind](items[0].trajectory.states, problem.metadata.fields)
    distant = away > AWAY * span
    order = np.argsort(-np.median(away / np.where(span > 0, span, 1.0), axis=0), kind="stable")
    order = order[(distant.sum(axis=0) >= (1 - NEAR) * len(negatives))[order] & (passed.mean(axis=0) <= PASSED)[order]]
    for (number, beside), (_, own) in zip(columns(negatives, order), columns(experts, order), strict=True):
        far = list(itertools.compress(beside, distant[:, number]))
        value = _nearest(far, low[number], high[number])
        between = (min(value, low[number]), max(value, high[number]))
        travelled = [
            bool(((between[0] < each) & (each < between[1]) & ~goals).any())
            for each, goals in zip(own, marks, strict=True)
        ]
        if np.mean(travelled) < TRAVELLED:
            continue
        reached = f"{low[number]:.4g}" + (f" to {high[number]:.4g}" if high[number] > low[number] else "")
        yield RewardWarning(
            "negatives-far",
            f"{len(far)} of {len(negatives)} negatives stay far from all goals in {names[number]!r} ({reached} at "
            f"goals; the nearest of them has {value:.4g}), so they do not show what else a goal needs",
            WRONG_GOALS,
        )
        return


def _nearest(columns: Sequence[NDArray[np.float64]], low: float, high: float) -> float:
    """The value that is nearest to the range from `low` to `high`."""
    values = np.concatenate(columns)
    return float(values[int(np.argmin(np.maximum(low - values, values - high)))])
