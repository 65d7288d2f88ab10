"""Conversion of a run's programs and trajectories to and from rows of its database."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from grace_irl.demos.labels import Problem
from grace_irl.demos.trajectory import SWAPPED, Split
from grace_irl.evaluate.evaluation import Evaluation
from grace_irl.evaluate.separation import Metrics, Separation
from grace_irl.programs.program import Definition, Program
from grace_irl.runs.schema import FORMAT
from grace_irl.search.ranks import Scored
from grace_irl.toml import from_json


def to_text(evaluation: Evaluation) -> str:
    """Write an evaluation as JSON without loss. Floats are exact, and infinities have Python's spelling `Infinity`."""
    return json.dumps(asdict(evaluation), separators=(",", ":"))


def from_text(text: str, version: int = FORMAT) -> Evaluation:
    """Read an evaluation from the text of `to_text`, or from the text in a database of an older format.

    Raises:
        ValueError: invalid text, or a valid program whose score is not finite.
    """
    found = from_json(Evaluation, text) if version > 2 else from_json(_Format2, text).evaluation()
    if found.valid and found.complete and not math.isfinite(found.score):
        raise ValueError("score: expected a finite number of a valid program")
    return found


@dataclass(frozen=True)
class _Format2:
    """An evaluation as database formats 1 and 2 store it, with fields of the discriminator, such as `scale`."""

    status: str
    message: str
    traceback: str
    fitness: float
    scale: float
    offset: float
    train: Metrics | None
    held_out: Metrics | None
    tasks: dict[str, tuple[Metrics, Metrics | None]]
    monotonicity: float | None
    seconds: float
    complete: bool
    threshold: float | None = None

    def evaluation(self) -> Evaluation:
        """Convert to the current form of evaluations."""
        told = Evaluation(self.status, self.message, self.traceback, seconds=self.seconds)
        if told.valid and not self.complete:
            return replace(told, bound=self.fitness)
        if self.train is None:
            return told
        found = Separation(
            self.train, self.held_out, self.scale, self.offset, self.threshold, self.tasks, self.monotonicity
        )
        return replace(found.evaluation(self.seconds), message=self.message, score=self.fitness)


@dataclass(frozen=True)
class Record:
    """A program that the search has received, with its score and the index of the first request that brought it."""

    program: Program
    evaluation: Evaluation
    index: int


def candidate(record: Record) -> Scored:
    """Convert a record to the form that `grace_irl.search.ranks` compares."""
    return Scored(record.program, record.evaluation, record.index)


def record_row(program: Program, evaluation: Evaluation, index: int) -> tuple[object, ...]:
    """The row of the table `programs` for a scored program."""
    parents = json.dumps(program.parents)
    told = (index, program.source, program.size, program.operator, parents, program.prior)
    return (program.id, *told, to_text(evaluation), program.takes_action)


def record_of(row: Sequence[Any], functions: tuple[Definition, ...], version: int = FORMAT) -> Record:
    """Convert a row of the table `programs` to a record.

    Args:
        row: a row of the table `programs`.
        functions: functions and classes that the program defines.
        version: format of the database.

    Raises:
        ValueError: a damaged row.
    """
    name, index, source, size, operator, parents, prior, evaluation, takes_action = row
    if not math.isfinite(prior):
        raise ValueError("prior: expected a finite number")
    lineage = from_json(tuple[str, ...], parents)
    program = Program(name, source, size, operator, lineage, float(prior), functions, bool(takes_action))
    return Record(program, from_text(evaluation, version), index)


@dataclass(frozen=True)
class TrajectoryRow:
    """A row of the table `trajectories`.

    Attributes:
        digest: digest of the trajectory's content.
        role: "expert" or "negative".
        task: name of the task.
        split: "train", "validation" or "held_out".
        states: number of states.
        positives: number of positive states.
        source: file and episode of origin, for messages.
    """

    digest: str
    role: str
    task: str
    split: Split
    states: int
    positives: int
    source: str

    @property
    def swap(self) -> bool:
        """Whether this is an expert's episode with the instruction of another expert (`--swaps`)."""
        return self.source.endswith(SWAPPED)


def trajectory_rows(problem: Problem) -> list[TrajectoryRow]:
    """The rows of the table `trajectories` for a problem."""
    rows = []
    for item in problem:
        demonstration, trajectory = item.demonstration, item.trajectory
        states, positives = len(item.positive), int(item.positive.sum())
        role, task, split = demonstration.role, demonstration.task, demonstration.side
        rows.append(TrajectoryRow(trajectory.digest, role, task, split, states, positives, trajectory.source))
    return rows
