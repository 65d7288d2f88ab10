"""Evidence for and against a reward: its values on positive and negative states, and its mistakes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from grace_irl.evaluate.metrics import ranking
from grace_irl.report.data import Valued

Floats = NDArray[np.float64]

MOST = 4
"""Maximum number of states in each of two lists: positive states with the lowest rewards, and negative states with the
highest rewards. Also the maximum number of trajectories with charts: one half for experts, one half for negatives."""
OF_ONE = 2  # maximum number of states from the same trajectory, in `EvidencePanel.low` or `EvidencePanel.high`

SIDES = {"train": "training", "validation": "validation", "held_out": "held out"}
"""The splits, with their names in the report."""


@dataclass(frozen=True)
class RewardGroup:
    """Rewards of the positive states, or of the negative states, of one split.

    Attributes:
        side: name of the split in the report (`SIDES`), such as "training".
        positive: whether these are the positive states.
        states: number of states.
        least, low, median, high, most: the smallest reward, the 5th, 50th and 95th percentile, and the largest reward.
        right: share of the states on the correct side of the threshold; None without a threshold.
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
    """A state that the report shows.

    Attributes:
        of: trajectory of the state.
        step: index of the state, from 0.
        wrong: whether the reward is on the wrong side of the threshold.
    """

    of: Valued
    step: int
    wrong: bool

    @property
    def value(self) -> float:
        """The reward of the state."""
        return float(self.of.values[self.step])

    @property
    def positive(self) -> bool:
        """Whether the state is positive."""
        return bool(self.of.positive[self.step])


@dataclass(frozen=True, eq=False)
class Story:
    """A trajectory that the report shows with a chart of its rewards.

    Attributes:
        of: the trajectory.
        shots: states of the trajectory to show, in order.
    """

    of: Valued
    shots: tuple[Shot, ...]


@dataclass(frozen=True, eq=False)
class EvidencePanel:
    """All evidence about a reward.

    Attributes:
        trajectories: all trajectories with rewards.
        threshold: threshold with the best accuracy on training data; None without positive or without negative states.
        groups: rewards of positive and negative states, in each split.
        low: positive states with the lowest rewards.
        high: negative states with the highest rewards.
        mistakes: number of positive states, and of negative states, on the wrong side of the threshold.
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
    """The rewards `(n,)` of the positive states, or of the negative states, in a split (a key of `SIDES`)."""
    parts = [each.values[each.known & (each.positive == positive)] for each in trajectories if each.row.split == side]
    return np.concatenate(parts) if parts else np.zeros(0)


def _threshold(trajectories: Sequence[Valued]) -> float | None:
    """The threshold with the best accuracy on training data, computed as in the evaluation of programs."""
    experts, negatives = (split(trajectories, "train", positive=side) for side in (True, False))
    if not len(experts) or not len(negatives):
        return None
    marks = np.repeat([True, False], [len(experts), len(negatives)])
    return ranking(np.concatenate([experts, negatives]), marks).threshold


def _wrong(value: float, threshold: float | None, positive: bool) -> bool:
    # As in `ranking`, a reward equal to the threshold is wrong for a positive state, and right for a negative state.
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
    """Select the positive states with the lowest rewards, or the negative states with the highest rewards.

    The second result is the number of all positive (or negative) states on the wrong side of the threshold.
    """
    sign = 1.0 if positive else -1.0
    ranked: list[tuple[float, int, int]] = []
    wrong = 0
    for place, each in enumerate(trajectories):
        steps = np.flatnonzero(each.known & (each.positive == positive))
        worth = sign * each.values[steps]
        if threshold is not None:
            wrong += int(np.sum(worth <= threshold if positive else -worth > threshold))
        best = np.lexsort((-steps, worth))[:OF_ONE]  # prefer later states among equal rewards, as goals are at the end
        ranked += [(float(worth[n]), place, int(steps[n])) for n in best]
    chosen = sorted(ranked)[:MOST]
    shots = (
        Shot(trajectories[place], step, _wrong(sign * worth, threshold, positive)) for worth, place, step in chosen
    )
    return tuple(shots), wrong


def _stories(trajectories: Sequence[Valued], threshold: float | None, extremes: Sequence[Shot]) -> list[Story]:
    """Choose trajectories to show, some of each role. A trajectory with fewer than two rewards is never chosen.

    Trajectories with the worst mistakes come first, then held-out trajectories, then all others.
    """
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
    """The first and the last state with a reward, and a state between them.

    The state between them is the state at which the reward changes most. Without any change, it is the middle state.
    """
    steps = np.flatnonzero(each.known)
    first, last = int(steps[0]), int(steps[-1])
    moves = np.abs(np.diff(each.values[steps]))
    inner = moves[:-1]  # without the change at the last state, because that state is shown anyway
    between = int(steps[int(inner.argmax()) + 1]) if len(inner) and inner.max() > 0 else (first + last) // 2
    return tuple(
        Shot(each, step, _wrong(float(each.values[step]), threshold, bool(each.positive[step])))
        for step in sorted({first, between, last})
    )
