"""Evidence for a reward and against it: how its values part positive from negative states, and its mistakes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from grace_irl.evaluate.metrics import ranking
from grace_irl.report.data import Valued

Floats = NDArray[np.float64]

MOST = 4
"""States of each kind of mistake, and trajectories of each role, that are shown."""
OF_ONE = 2  # mistakes of one trajectory

SIDES = {"train": "training", "held_out": "held out"}


@dataclass(frozen=True)
class RewardGroup:
    """Rewards of the positive or of the negative states of one side.

    Attributes:
        side: "training" or "held out".
        positive: which of the two.
        states: how many.
        least, low, median, high, most: the least, the 5th, 50th and 95th percentile, and the largest.
        right: share of them on the right side of the threshold, if there is one.
    """

    side: str
    positive: bool
    states: int
    least: float
    low: float
    median: float
    high: float
    most: float
    right: float | None


@dataclass(frozen=True, eq=False)
class Shot:
    """One state worth looking at.

    Attributes:
        of: its trajectory.
        step: its number, from 0.
        wrong: whether its reward is on the wrong side of the threshold.
    """

    of: Valued
    step: int
    wrong: bool

    @property
    def value(self) -> float:
        """Its reward."""
        return float(self.of.values[self.step])

    @property
    def positive(self) -> bool:
        """Whether the labels call it positive."""
        return bool(self.of.positive[self.step])


@dataclass(frozen=True, eq=False)
class Story:
    """A trajectory whose rewards are drawn, with the states of it that are shown.

    Attributes:
        of: the trajectory.
        shots: some of its states, in order.
    """

    of: Valued
    shots: tuple[Shot, ...]


@dataclass(frozen=True, eq=False)
class EvidencePanel:
    """All of it.

    Attributes:
        trajectories: all that have rewards.
        threshold: of the best accuracy on training data; None if one side is missing.
        groups: rewards of positive and negative states, training and held out.
        low: positive states that are valued lowest.
        high: negative states that are valued highest.
        mistakes: how many positive and negative states are on the wrong side, all of them counted.
        stories: some expert and negative trajectories.
    """

    trajectories: tuple[Valued, ...]
    threshold: float | None
    groups: tuple[RewardGroup, ...]
    low: tuple[Shot, ...]
    high: tuple[Shot, ...]
    mistakes: tuple[int, int]
    stories: tuple[Story, ...]


def gather(trajectories: Sequence[Valued]) -> EvidencePanel:
    """Collect the evidence of the stored rewards."""
    threshold = _threshold(trajectories)
    low, few = _extremes(trajectories, threshold, positive=True)
    high, many = _extremes(trajectories, threshold, positive=False)
    return EvidencePanel(
        tuple(trajectories),
        threshold,
        tuple(_groups(trajectories, threshold)),
        low,
        high,
        (few, many),
        tuple(_stories(trajectories, threshold, (*low, *high))),
    )


def split(trajectories: Sequence[Valued], side: str, *, positive: bool) -> Floats:
    """The rewards `(n,)` of the positive or of the negative states of a side ("train" or "held_out")."""
    parts = [each.values[each.known & (each.positive == positive)] for each in trajectories if each.row.split == side]
    return np.concatenate(parts) if parts else np.zeros(0)


def _threshold(trajectories: Sequence[Valued]) -> float | None:
    """Of the best accuracy on training data, as the evaluation has it."""
    experts, negatives = (split(trajectories, "train", positive=side) for side in (True, False))
    if not len(experts) or not len(negatives):
        return None
    marks = np.repeat([True, False], [len(experts), len(negatives)])
    return ranking(np.concatenate([experts, negatives]), marks).threshold


def _wrong(value: float, threshold: float | None, positive: bool) -> bool:
    # As in `ranking`: a positive state must lie above the threshold, a negative one may lie on it.
    return threshold is not None and (value <= threshold if positive else value > threshold)


def _groups(trajectories: Sequence[Valued], threshold: float | None) -> list[RewardGroup]:
    found = []
    for name, said in SIDES.items():
        for positive in (True, False):
            values = split(trajectories, name, positive=positive)
            if len(values):
                least, low, median, high, most = (float(v) for v in np.percentile(values, (0, 5, 50, 95, 100)))
                right = None
                if threshold is not None:
                    right = float(np.mean(values > threshold if positive else values <= threshold))
                found.append(RewardGroup(said, positive, len(values), least, low, median, high, most, right))
    return found


def _extremes(
    trajectories: Sequence[Valued], threshold: float | None, *, positive: bool
) -> tuple[tuple[Shot, ...], int]:
    """States farthest on the wrong side, or nearest to it; and how many are wrong in all."""
    sign = 1.0 if positive else -1.0
    ranked: list[tuple[float, int, int]] = []
    wrong = 0
    for place, each in enumerate(trajectories):
        steps = np.flatnonzero(each.known & (each.positive == positive))
        worth = sign * each.values[steps]
        if threshold is not None:
            wrong += int(np.sum(worth <= threshold if positive else -worth > threshold))
        best = np.lexsort((-steps, worth))[:OF_ONE]  # of equals the later ones: goals are at the end
        ranked += [(float(worth[n]), place, int(steps[n])) for n in best]
    chosen = sorted(ranked)[:MOST]
    shots = (
        Shot(trajectories[place], step, _wrong(sign * worth, threshold, positive)) for worth, place, step in chosen
    )
    return tuple(shots), wrong


def _stories(trajectories: Sequence[Valued], threshold: float | None, extremes: Sequence[Shot]) -> list[Story]:
    """Some trajectories of each role: those with the worst mistakes, then held-out ones, then any; long enough."""
    mistaken = {shot.of.row.digest for shot in extremes if shot.wrong}
    found = []
    for role in ("expert", "negative"):
        of_role = [each for each in trajectories if each.row.role == role and int(each.known.sum()) > 1]
        order = sorted(
            range(len(of_role)),
            key=lambda n: (of_role[n].row.digest not in mistaken, of_role[n].row.split != "held_out", n),
        )
        taken: list[Valued] = []
        for n in order:
            if of_role[n].row.digest not in {each.row.digest for each in taken} and len(taken) < MOST // 2:
                taken.append(of_role[n])
        found += [Story(each, _shots(each, threshold)) for each in taken]
    return found


def _shots(each: Valued, threshold: float | None) -> tuple[Shot, ...]:
    """The first state, the last, and the one at which the reward changes most, or the middle one."""
    steps = np.flatnonzero(each.known)
    first, last = int(steps[0]), int(steps[-1])
    moves = np.abs(np.diff(each.values[steps]))
    inner = moves[:-1]  # what changes at the last state is seen there
    between = int(steps[int(inner.argmax()) + 1]) if len(inner) and inner.max() > 0 else (first + last) // 2
    return tuple(
        Shot(each, step, _wrong(float(each.values[step]), threshold, bool(each.positive[step])))
        for step in sorted({first, between, last})
    )
