"""Separation of expert from negative states: the evidence of the discriminator's evaluations."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from grace_irl.errors import InputError
from grace_irl.evaluate.evaluation import Evaluation
from grace_irl.toml import from_json

BEST_HERE = "best threshold on these data"
"""The words for an accuracy at no threshold that was known before."""

KEY = "separation"
"""The entry of an evaluation's evidence that holds it."""


@dataclass(frozen=True)
class Metrics:
    """Separation of expert from negative states by rewards, on one split (docs/fitness.md, "Metrics").

    Attributes:
        fitness: E_{s in S_e}[log D(s)] + E_{s in S_n}[log(1 - D(s))], nats, at most 0 (GRACE eq. 4.1).
        auc: probability that a random expert state outranks a random negative one, ties one half.
        accuracy: balanced accuracy at a threshold on the reward: the one that is best on the training data, on
            held-out data and for each task, too (`Separation.threshold`).
        separated: the smallest expert value exceeds the largest negative one.
        experts: number of positive states.
        negatives: number of negative states.

    Over several tasks `fitness` is the mean over tasks, so that a task with many states does not drown the
    others, while `auc`, `accuracy` and `separated` look at all states together: one threshold must serve
    every task.
    """

    fitness: float
    auc: float
    accuracy: float
    separated: bool
    experts: int
    negatives: int


@dataclass(frozen=True)
class Separation:
    """The discriminator's account of a valid program.

    Attributes:
        train, held_out: metrics over all tasks; held_out is None without held-out data.
        scale, offset: the calibration `D = sigmoid(scale * r + offset - log pi)`; 1 and 0 without calibration.
        threshold: of the best accuracy on training data, over all tasks: a state counts as an expert's if its reward,
            as the program gives it, is above. None in a run that an older version made: its accuracies are each at the
            best threshold on their own data.
        tasks: per task, its metrics on training and on held-out data.
        monotonicity: mean Kendall tau of reward against time along expert trajectories, or None.
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
        """The separation that an evaluation holds; None if it holds none (invalid, stopped, of another evaluator).

        Raises:
            InputError: evidence that no discriminator wrote.
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
        """The evaluation of a valid program: its score is the fitness on training data (GRACE eq. 4.1)."""
        return Evaluation("ok", score=self.train.fitness, metrics=self._named(), evidence=self._kept(), seconds=seconds)

    def _kept(self) -> Mapping[str, Any]:
        """JSON values, as a run gives them back: no tuples."""
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
