"""Metrics and calibration of a program: how well its rewards separate positive from negative states.

`DiscriminatorEvaluator` stores both as evidence of an evaluation. Reports and tables read the evidence.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from grace_irl.errors import InputError
from grace_irl.evaluate.evaluation import Evaluation
from grace_irl.toml import from_json

BEST_HERE = "best threshold on these data"
"""Note on an accuracy whose threshold was fitted to the same data."""

KEY = "separation"
"""Key of the separation in an evaluation's evidence."""


@dataclass(frozen=True)
class Measurement:
    """A number that was measured on some episodes, with its 95 % confidence interval.

    Attributes:
        value: the number.
        low, high: ends of the interval.
    """

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"


@dataclass(frozen=True)
class EpisodeMetrics:
    """Metrics over episodes. A reward *pays* a state if the state's reward is above the threshold.

    The threshold is the best one for the training data (`Separation.threshold`).

    Attributes:
        experts: number of episodes with a positive state.
        negatives: number of episodes without a positive state.
        hit: share of the expert episodes in which a goal (a positive state) is paid.
        early: share of the expert episodes in which a state before the first goal is paid.
        false: share of the negative episodes in which any state is paid.
        outranks: probability that an expert episode has a higher mean reward than a negative episode. Ties count
            one half.
        correlation: Spearman's rank correlation of an episode's sum of rewards with its true return.

    `hit`, `early` and `false` are None with label rule "all". `outranks` and `correlation` are None with rules "last"
    and "goal". `hit` and `early` are also None without experts, `false` without negatives, and `outranks` without
    experts or without negatives. `correlation` is also None if an episode lacks true rewards, if there are fewer than
    three episodes, or if all sums or all true returns are equal.
    """

    experts: int
    negatives: int
    hit: Measurement | None = None
    early: Measurement | None = None
    false: Measurement | None = None
    outranks: Measurement | None = None
    correlation: Measurement | None = None


@dataclass(frozen=True)
class Metrics:
    """Metrics of how well rewards separate positive from negative states (docs/fitness.md, "Metrics").

    With several tasks, `fitness` is the mean over tasks, so that a task with many states does not dominate. `auc`,
    `accuracy` and `separated` are computed over the states of all tasks, because one threshold must serve every task.

    Attributes:
        fitness: E_{s in S_e}[log D(s)] + E_{s in S_n}[log(1 - D(s))], nats, at most 0 (GRACE, eq. 4.1). S_e and S_n are
            the positive and the negative states. The discriminator D(s) is the probability that s is positive.
        auc: probability that a random positive state has a higher reward than a random negative state. Ties count one
            half.
        accuracy: balanced accuracy at `Separation.threshold`, the best threshold for the training data. Held-out data
            and single tasks use the same threshold.
        separated: whether the smallest reward of a positive state exceeds the largest reward of a negative state.
        experts: number of positive states.
        negatives: number of negative states.
        episodes: metrics over whole episodes; None in runs of older versions.
    """

    fitness: float
    auc: float
    accuracy: float
    separated: bool
    experts: int
    negatives: int
    episodes: EpisodeMetrics | None = None


@dataclass(frozen=True)
class Separation:
    """Metrics and calibration of a valid program.

    Attributes:
        train, held_out: metrics over all tasks; held_out is None without held-out data.
        scale, offset: calibration `D = sigmoid(scale * r + offset - log pi)`. r is the reward, and log pi the
            log-probability of the recorded action, counted from its mean (docs/fitness.md). Without calibration the
            scale is 1 and the offset is minus this mean.
        threshold: threshold with the best accuracy on the training data of all tasks. A state is classified as positive
            if its uncalibrated reward is higher. None in runs of older versions: each of their accuracies uses the best
            threshold for its own data.
        tasks: map from a task's name to two metrics: on the task's training data, and on its held-out data (None if the
            task has no held-out data).
        monotonicity: mean Kendall tau of reward against time along expert trajectories; None if no expert trajectory
            has two rewards.
    """

    train: Metrics
    held_out: Metrics | None = None
    scale: float = 1.0
    offset: float = 0.0
    threshold: float | None = None
    tasks: dict[str, tuple[Metrics, Metrics | None]] = field(default_factory=dict)
    monotonicity: float | None = None

    @classmethod
    def of(cls, evaluation: Evaluation | None) -> Separation | None:
        """The separation in an evaluation's evidence.

        The result is None if the program is invalid, if the evaluation stopped early, or if another evaluator wrote the
        evidence.

        Raises:
            InputError: the evidence is damaged.
        """
        found = None if evaluation is None else evaluation.evidence.get(KEY)
        try:
            return None if found is None else from_json(cls, json.dumps(found))
        except ValueError as error:
            raise InputError(
                f"the evidence of an evaluation is damaged ({error}); expected it as grace-irl wrote it: put a copy of "
                "run.db back, or fit into a new folder"
            ) from None

    def evaluation(self, seconds: float = 0.0) -> Evaluation:
        """The evaluation of a valid program. Its score is the fitness on training data (GRACE, eq. 4.1)."""
        return Evaluation("ok", score=self.train.fitness, metrics=self._named(), evidence=self._kept(), seconds=seconds)

    def _kept(self) -> Mapping[str, Any]:
        """The evidence as JSON values. Lists replace tuples, as in the evidence of a stored run."""
        return {KEY: json.loads(json.dumps(asdict(self)))}

    def _named(self) -> dict[str, float]:
        named = {
            "accuracy": self.train.accuracy,
            "auc": self.train.auc,
            "separated": float(self.train.separated),
            "positives": float(self.train.experts),
        }
        if self.held_out is not None:
            named |= {
                "held_out_accuracy": self.held_out.accuracy,
                "held_out_fitness": self.held_out.fitness,
                "held_out_separated": float(self.held_out.separated),
            }
        if self.monotonicity is not None:
            named["monotonicity"] = self.monotonicity
        return named
