"""Metrics of how well rewards separate positive from negative states, over all tasks and for each task.

In this module, `experts` stands for the positive states.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from grace_irl.evaluate.calibration import Calibration
from grace_irl.evaluate.columns import LabelColumns
from grace_irl.evaluate.discriminator import fitness
from grace_irl.evaluate.episodes import EpisodeLabels
from grace_irl.evaluate.ranks import tau_against_time
from grace_irl.evaluate.separation import Metrics

CHUNK = 65_536  # values per chunk, to avoid large temporary arrays


@dataclass(frozen=True)
class Ranking:
    """Measures of how well rewards rank positive above negative states.

    Attributes:
        auc: probability that a random positive state has a higher reward than a random negative state. Ties count one
            half.
        accuracy: balanced accuracy at `threshold`.
        separated: whether every positive state has a higher reward than every negative state.
        threshold: reward above which a state is classified as positive.
    """

    auc: float
    accuracy: float
    separated: bool
    threshold: float


def ranking(values: Floats, positive: NDArray[np.bool_], threshold: float | None = None) -> Ranking:
    """Measure how well rewards rank positive above negative states.

    At least one positive and one negative state are needed.

    Args:
        values: `(n,)` rewards.
        positive: `(n,)` True for positive states.
        threshold: reward above which a state is classified as positive. None: the threshold with the best accuracy on
            these states, halfway between two neighbouring rewards.
    """
    experts, negatives = np.sort(values[positive]), np.sort(values[~positive])
    if threshold is None:
        threshold = _best(experts, negatives)
    separated = bool(experts[0] > negatives[-1])
    accuracy = float(_balanced(experts, negatives, np.array([threshold]))[0])
    return Ranking(_auc(experts, negatives), accuracy, separated, threshold)


def _best(experts: Floats, negatives: Floats) -> float:
    """The threshold with the best balanced accuracy, from sorted rewards of positive and of negative states."""
    # A state is classified as positive if its reward exceeds t. As t grows, balanced accuracy rises only when t reaches
    # the reward of a negative state, and falls only when t reaches the reward of a positive state. So a best t is the
    # reward of a negative state, or lies below all rewards. Below all rewards, the accuracy is one half. At the largest
    # reward of a negative state, it is at least one half, because all negative states are classified correctly. So the
    # rewards of negative states suffice as candidates.
    candidates = np.unique(negatives)
    best = int(_balanced(experts, negatives, candidates).argmax())
    below = float(candidates[best])
    higher = [float(candidates[best + 1])] if best + 1 < len(candidates) else []
    place = int(np.searchsorted(experts, below, side="right"))
    higher += [float(experts[place])] if place < len(experts) else []
    above = min(higher, default=below)
    halfway = below / 2 + above / 2  # halve first, because the sum may overflow. The result may round to `above`
    return halfway if below <= halfway < above else below


def _balanced(experts: Floats, negatives: Floats, thresholds: Floats) -> Floats:
    """Balanced accuracy at each threshold, from sorted rewards of positive and of negative states."""
    expert_right = 1.0 - np.searchsorted(experts, thresholds, side="right") / len(experts)
    negative_right = np.searchsorted(negatives, thresholds, side="right") / len(negatives)
    balanced: Floats = (expert_right + negative_right) / 2
    return balanced


def _auc(experts: Floats, negatives: Floats) -> float:
    """The AUC from sorted rewards: Mann-Whitney's U divided by the number of pairs. Ties count one half."""
    wins = 0
    for start in range(0, len(experts), CHUNK):
        part = experts[start : start + CHUNK]
        below = np.searchsorted(negatives, part, side="left").sum()
        wins += int(below) + int(np.searchsorted(negatives, part, side="right").sum())
    return wins / (2 * len(experts) * len(negatives))


Floats = NDArray[np.float64]


def metrics_of(values: Floats, rows: LabelColumns, fitness: float, ranked: Ranking, episodes: EpisodeLabels) -> Metrics:
    """Metrics of rewards `(n,)` whose fitness and ranking are known."""
    experts = int(rows.positive.sum())
    return Metrics(
        fitness=fitness,
        auc=ranked.auc,
        accuracy=ranked.accuracy,
        separated=ranked.separated,
        experts=experts,
        negatives=len(rows.positive) - experts,
        episodes=episodes.metrics(values, ranked.threshold),
    )


def task_metrics(
    values: Floats,
    rows: LabelColumns,
    fitted: Calibration,
    threshold: float,
    whole: Metrics,
    episodes: Mapping[str, EpisodeLabels],
) -> dict[str, Metrics]:
    """Metrics of each task that has both positive and negative states.

    Args:
        values: `(n,)` rewards.
        rows: labels, weights and log pi of these rewards.
        fitted: the calibration, one for all tasks.
        threshold: the threshold on the reward, one for all tasks.
        whole: metrics over all tasks. If there is only one task, they are also the metrics of this task.
        episodes: the episodes of each task.
    """
    if len(rows.tasks) == 1:
        return {rows.tasks[0]: whole}
    found = {}
    for number, name in enumerate(rows.tasks):
        part = rows.of_task(number)
        if part is not None:
            own = values[rows.row_mask(rows.task == number)]
            ranked = ranking(own, part.positive, threshold)
            loss = fitness(own, part, fitted.scale, fitted.offset)
            found[name] = metrics_of(own, part, loss, ranked, episodes[name])
    return found


def monotonicity(rewards: Iterable[NDArray[np.float64]]) -> float | None:
    """Kendall's tau-b of reward against time, averaged over trajectories with at least two rewards.

    A constant reward has tau 0. The result is None if no trajectory has two rewards.

    Args:
        rewards: one array per expert trajectory, `(T+1,)` for states or `(T,)` for transitions.
    """
    taus = [tau_against_time(values) for values in rewards if len(values) >= 2]
    return float(np.mean(taus)) if taus else None
