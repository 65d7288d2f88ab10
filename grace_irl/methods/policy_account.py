"""Texts and tables about programs that trained policies judge, and the part of an evaluation that they read.

The evaluation may come from somebody else's run. If its evidence has another form than that of `PolicyEvaluator`, the
texts leave it out.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from grace_irl.evaluate.evaluation import Evaluation, shown
from grace_irl.methods.account import Account, Column, Curves, Figures
from grace_irl.methods.method import Panel
from grace_irl.methods.search_panels import number
from grace_irl.toml import from_json

if TYPE_CHECKING:
    from grace_irl.search.ranks import Scored

LIMIT = 1e300
"""Bound on scores. Somebody else's run may state any number."""
OFTEN_LESS = "Fresh trainings often score less."
RECORDED = "The scores were taken from a recording, and not trained here."

T = TypeVar("T")


@dataclass(frozen=True)
class TrainedPoint:
    """An evaluation of a policy.

    Attributes:
        steps: environment steps of training before the evaluation.
        score: score of the policy.
        length: mean steps of an episode.
    """

    steps: int
    score: float
    length: float


@dataclass(frozen=True)
class TrainedRun:
    """The learning curve of a training with a seed."""

    seed: int
    curve: list[TrainedPoint]


@dataclass(frozen=True)
class Trained:
    """The trainings on a program.

    Attributes:
        task: name of the task.
        checkpoint: the evaluation that gives the score, "best" or "last".
        random: mean score of random actions; None in runs of earlier versions.
        recorded: whether the curves come from a recording.
        short: the learning curve of the short training.
        runs: the full trainings.
    """

    task: str = ""
    checkpoint: str = ""
    random: float | None = None
    recorded: bool = False
    short: list[TrainedPoint] = field(default_factory=list)
    runs: list[TrainedRun] = field(default_factory=list)

    @classmethod
    def of(cls, evaluation: Evaluation) -> Trained:
        """The trainings in the evidence of an evaluation."""
        return _read(cls, evaluation.evidence.get("policy", {})) or cls()

    @property
    def chance(self) -> float | None:
        """The mean score of random actions; None if it is unknown."""
        return self.random if self.random is not None and abs(self.random) < LIMIT else None


@dataclass(frozen=True)
class Component:
    """The course of a component of the reward along trainings. None stands for a missing number."""

    values: list[float | None]
    max: float | None = None
    mean: float | None = None
    min: float | None = None


def _read(kind: type[T], found: object) -> T | None:
    """Evidence as a dataclass; None if it has another form, or a number that is not finite."""
    try:
        return from_json(kind, json.dumps(found, allow_nan=False))
    except (TypeError, ValueError, RecursionError):
        return None


class PolicyAccount(Account):
    """Texts and tables about scores of trained policies."""

    score = "score"
    columns = (
        Column("best", "best evaluation"),
        Column("last", "last evaluation"),
        Column("success", "success"),
        Column("length", "length", digits=1),
    )
    progress = columns[:2]
    drawn = "score"
    made = "designed for a task"
    note = f"The score of a policy that was trained on the reward during the search. {OFTEN_LESS}"

    def verdict(self, evaluation: Evaluation) -> str:
        """See `Account`."""
        known = Trained.of(evaluation)
        remarks = "".join(f" {remark}" for remark in self.remarks(evaluation))
        if evaluation.evidence.get("policy") and known == Trained():
            return f"The evidence of its trainings cannot be read.{remarks}"
        if not known.runs:
            why = f": {evaluation.message}" if evaluation.message else ""
            return f"No policy was trained in full{why}.{remarks}"
        which = "best evaluation" if known.checkpoint == "best" else "last evaluation"
        count, chance = len(known.runs), known.chance
        better = chance is not None and evaluation.score > chance
        beside = f"; random actions: {shown(chance)}" if chance is not None and better else ""
        return (
            f"A policy that was trained on the reward scores {shown(evaluation.score)} on task {known.task} "
            f"({which}, {'one training' if count == 1 else f'mean of {count} trainings'} in the search{beside}). "
            f"{OFTEN_LESS}{remarks}"
        )

    def remarks(self, evaluation: Evaluation) -> list[str]:
        """See `Account`."""
        known = Trained.of(evaluation)
        found, chance = [RECORDED] if known.recorded else [], known.chance
        if chance is not None and evaluation.valid and evaluation.score <= chance:
            found.append(f"That is no better than random actions, which score {shown(chance)}.")
        return found

    def cautions(self, evaluation: Evaluation) -> list[str]:
        """See `Account`."""
        return self.remarks(evaluation)

    def facts(self, evaluation: Evaluation, settings: Mapping[str, object]) -> list[tuple[str, str]]:
        """See `Account`."""
        known = Trained.of(evaluation)
        steps = max((run.curve[-1].steps for run in known.runs if run.curve), default=0)
        trained = f"training of {steps:,} steps" if steps else "training"
        several = f"each of {len(known.runs)} trainings of {steps:,} steps; their mean"
        which, chance = f"{settings.get('policy.checkpoint')} evaluation of ", known.chance
        which += several if len(known.runs) > 1 else f"its {trained}"
        if not known.runs and evaluation.message:
            which = f"no full training: {evaluation.message}"
        return [
            ("task", "/".join(Path(str(settings.get("policy.task", ""))).parts[-2:])),  # as paths of demonstrations
            ("score", f"{shown(evaluation.score)} ({which})"),
            *([] if chance is None else [("random", f"random actions score {shown(chance)}")]),
            *([("trained", f"not here: scores of recording {_recording(settings)}")] if known.recorded else []),
        ]


def _recording(settings: Mapping[str, object]) -> str:
    """The name of the recording, without its folder."""
    return Path(str(settings.get("proposer.recording", ""))).name


def panels(best: Scored | None, others: Sequence[Scored]) -> Sequence[Panel]:
    """Sections of the report: the learning curve of the best program, and the components of its reward."""
    del others
    if best is None:
        return ()
    found, known = [], Trained.of(best.evaluation)
    runs = [(str(run.seed), run.curve) for run in known.runs]
    if not runs and known.short:  # the score is below the floor
        runs = [("short training", known.short)]
    if runs:
        rows = [
            (seed, f"{point.steps:,}", number(point.score), f"{point.length:.1f}")
            for seed, curve in runs
            for point in curve
        ]
        beside = "" if known.chance is None else f" Random actions score {shown(known.chance)}."
        text = (
            "Score of the policy along its training. If it falls after a rise, the reward pays for something else than "
            f"the task.{beside}{f' {RECORDED}' if known.recorded else ''}"
        )
        lines = tuple((seed, tuple((float(point.steps), point.score) for point in curve)) for seed, curve in runs)
        curves = Curves("Score along the training, by seed", "environment steps", "score", lines)
        found.append(Panel("Training", (text, curves, Figures(("seed", "steps", "score", "length"), tuple(rows)))))
    if parts := _read(dict[str, Component], best.evaluation.evidence.get("components", {})):
        courses = [
            (
                name,
                " ".join("-" if value is None else f"{value:.3g}" for value in each.values),
                *("-" if value is None else number(value) for value in (each.max, each.mean, each.min)),
            )
            for name, each in parts.items()
        ]
        head = ("component", "values along training", "max", "mean", "min")
        found.append(Panel("Components", ("Mean of each component of the reward.", Figures(head, tuple(courses)))))
    return tuple(found)
