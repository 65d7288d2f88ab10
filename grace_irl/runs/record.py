"""A program of a run, as its database keeps it."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass

from grace_irl.evaluate.evaluation import Evaluation
from grace_irl.programs.definition import Definition
from grace_irl.programs.program import Program
from grace_irl.runs.codec import from_text, to_text
from grace_irl.search.ranks import Scored
from grace_irl.typed import from_json


@dataclass(frozen=True)
class Record:
    """A program that was told, with its score and the request that it first answered."""

    program: Program
    evaluation: Evaluation
    index: int


def candidate(record: Record) -> Scored:
    """A record as what is ranked."""
    return Scored(record.program, record.evaluation, record.index)


def record_row(program: Program, evaluation: Evaluation, index: int) -> tuple[object, ...]:
    """A row of the table of programs."""
    parents = json.dumps(program.parents)
    told = (index, program.source, program.nodes, program.operator, parents, program.prior)
    return (program.id, *told, to_text(evaluation))


def record_of(row: Sequence[object], functions: tuple[Definition, ...]) -> Record:
    """The record of a row, which ends with the index.

    Args:
        row: id, source, nodes, operator, parents, prior, evaluation, index.
        functions: that the program defines.

    Raises:
        ValueError: a row that is not as it was written.
    """
    name, source, nodes, operator, parents, prior, evaluation, index = row
    lineage, worth = from_json(tuple[str, ...], str(parents)), float(str(prior))
    if not math.isfinite(worth):
        raise ValueError("prior: expected a finite number")
    program = Program(str(name), str(source), int(str(nodes)), str(operator), lineage, worth, functions)
    return Record(program, from_text(str(evaluation)), int(str(index)))
