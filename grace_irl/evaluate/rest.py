"""Metrics of a reward on the demonstrations outside a run's sample, computed from a few trajectories at a time.

If the demonstrations exceed the memory limit, a run searches on a sample of them (`grace_irl.demos.sample`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_expit

from grace_irl.demos.labels import Labelled
from grace_irl.demos.trajectory import LabelRule
from grace_irl.evaluate.columns import flatten
from grace_irl.evaluate.episodes import EpisodeLabels, EpisodePayments
from grace_irl.evaluate.separation import EpisodeMetrics, Separation

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Rest:
    """Metrics of a reward on the trajectories outside a run's sample. All states of all tested trajectories count.

    Attributes:
        trajectories, states: number of tested trajectories, and of their states.
        copies: number of trajectories outside the sample that equal one of the sample, and so are not tested; 0 if the
            test ended early.
        unlabelled: number of untested expert trajectories whose goal states are not marked.
        experts, negatives: number of positive and of negative states.
        fitness: `Metrics.fitness` with the calibration of the training data; None if no task has both positive and
            negative states, or if log pi is not 0.
        accuracy: balanced accuracy at the threshold of the training data; None without positive or without negative
            states.
        separated: whether the smallest reward of a positive state exceeds the largest reward of a negative state; False
            without positive or without negative states.
        episodes: metrics over episodes.
        failure: the reason why the test ended early, such as an error of the program; "" for a complete test.
        program: id of the program.
        seen: number of tested trajectories that were training data of an earlier run whose programs the run began with.
            If there are several such earlier runs, this is the largest of their numbers.
        origin: folder of the earlier run that `seen` counts; "" for none.
    """

    trajectories: int
    states: int
    copies: int
    unlabelled: int
    experts: int
    negatives: int
    fitness: float | None
    accuracy: float | None
    separated: bool
    episodes: EpisodeMetrics
    failure: str = ""
    program: str = ""
    seen: int = 0
    origin: str = ""

    @property
    def line(self) -> str:
        """One line for the user."""
        said = [f"accuracy {self.accuracy:.4f}"] if self.accuracy is not None else []
        said += [f"fitness {self.fitness:.4g}"] if self.fitness is not None else []
        figures = ((name, getattr(self.episodes, name)) for name in ("hit", "early", "false", "outranks"))
        said += [f"{name} {each}" for name, each in figures if each is not None]
        number = f"{self.trajectories:,} trajectories ({self.states:,} states)"
        number += f", {self.seen:,} of which an earlier run was trained on" if self.seen else ""
        return f"outside the sample, on {number}: {', '.join(said) or 'nothing to measure'}"


@dataclass
class _Side:
    """Totals over the positive or the negative states of one task.

    Attributes:
        states: number of states.
        right: number of states on the right side of the threshold.
        loss: sum of log D over positive states, or of log(1 - D) over negative states.
        least, most: the smallest and the largest reward.
    """

    states: int = 0
    right: int = 0
    loss: float = 0.0
    least: float = np.inf
    most: float = -np.inf


@dataclass
class RestTotals:
    """Sums over the trajectories outside a sample, for the computation of `Rest`.

    Args:
        rule: the label rule.
        separation: calibration and threshold of the training data.
        takes_action: whether the program gives rewards for transitions.
        constant: whether log pi, the log-probability of the recorded actions, is 0 everywhere; otherwise the fitness is
            not computed.
        trained: digests of the training data of earlier runs whose programs the run began with, by the runs' folders.
    """

    rule: LabelRule
    separation: Separation
    takes_action: bool
    constant: bool
    trajectories: int = 0
    states: int = 0
    copies: int = 0
    unlabelled: int = 0
    trained: Mapping[str, Collection[str]] = field(default_factory=dict)
    _seen: Counter[str] = field(default_factory=Counter)
    _sides: dict[tuple[str, bool], _Side] = field(default_factory=dict)
    _payments: list[EpisodePayments] = field(default_factory=list)

    def add(self, items: Sequence[Labelled], rewards: Mapping[str, Floats]) -> None:
        """Add trajectories.

        Args:
            items: the labelled trajectories.
            rewards: map from a trajectory's digest to the trajectory's rewards `(T+1,)`.
        """
        first, threshold = int(self.takes_action), self.separation.threshold
        assert threshold is not None  # runs of older versions may have none, and are not tested
        for item in items:
            values, marks = rewards[item.trajectory.digest][first:], item.positive[first:]
            self.trajectories += 1
            self._seen.update(origin for origin, known in self.trained.items() if item.trajectory.digest in known)
            self.states += len(item.positive)
            for positive in (True, False):
                part = values[marks == positive]
                if not len(part):
                    continue
                side = self._sides.setdefault((item.task, positive), _Side())
                sign = 1.0 if positive else -1.0
                side.states += len(part)
                side.right += int(((part > threshold) == positive).sum())
                side.loss += float(log_expit(sign * (self.separation.scale * part + self.separation.offset)).sum())
                side.least, side.most = min(side.least, float(part.min())), max(side.most, float(part.max()))
        labels = EpisodeLabels.of(items, self.rule, takes_action=self.takes_action)
        values = flatten(items, rewards, takes_action=self.takes_action)
        self._payments.append(labels.payments(values, threshold))

    def rest(self, failure: str = "") -> Rest:
        """The metrics of all added trajectories, without the program's id. For `failure`, see `Rest`."""
        positive, negative = (
            [side for (_, sign), side in self._sides.items() if sign == wanted] for wanted in (True, False)
        )
        right = [
            sum(each.right for each in side) / sum(each.states for each in side)
            for side in (positive, negative)
            if side
        ]
        both = len(right) == 2
        tasks = dict.fromkeys(task for task, _ in self._sides)
        means = [
            sum(self._sides[task, positive].loss / self._sides[task, positive].states for positive in (True, False))
            for task in tasks
            if (task, True) in self._sides and (task, False) in self._sides
        ]
        origin, seen = next(iter(self._seen.most_common(1)), ("", 0))
        return Rest(
            trajectories=self.trajectories,
            states=self.states,
            copies=0 if failure else self.copies,
            unlabelled=self.unlabelled,
            experts=sum(each.states for each in positive),
            negatives=sum(each.states for each in negative),
            fitness=float(np.mean(means)) if means and self.constant else None,
            accuracy=sum(right) / 2 if both else None,
            separated=both and min(each.least for each in positive) > max(each.most for each in negative),
            episodes=EpisodePayments.of(self._payments, self.rule).metrics(),
            failure=failure,
            seen=seen,
            origin=origin,
        )
