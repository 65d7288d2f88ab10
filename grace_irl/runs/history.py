"""The progress of a run, generation by generation, as the store tells it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from grace_irl.runs.store import Record, Store


@dataclass(frozen=True)
class Generation:
    """One generation.

    Attributes:
        number: from 0, the first population.
        calls: answers told.
        kept, dropped, invalid, duplicate: how many candidates met that fate, old members included.
        failed: answers without a program.
        fitness: train fitness of the best program so far; -inf while there is none.
        accuracy, held_out: its accuracies, or None.
    """

    number: int
    calls: int
    kept: int
    dropped: int
    invalid: int
    duplicate: int
    failed: int
    fitness: float
    accuracy: float | None
    held_out: float | None


def history(store: Store) -> list[Generation]:
    """Every generation that was begun and has a result."""
    requests, told, records = store.requests(), store.told(), store.records()
    verdicts = Counter((row.generation, row.fate.verdict) for row in store.fates())
    numbers = sorted({requests[index][0] for index in told})
    best: Record | None = None
    rows = []
    for number in numbers:
        own = [entry for entry in told.values() if requests[entry.index][0] == number]
        for entry in own:
            record = records.get(entry.program_id or "")
            scored = record is not None and record.evaluation.valid and record.evaluation.complete
            if scored and record and (best is None or record.evaluation.fitness > best.evaluation.fitness):
                best = record
        evaluation = best.evaluation if best else None
        rows.append(
            Generation(
                number=number,
                calls=len(own),
                kept=verdicts[number, "kept"],
                dropped=verdicts[number, "dropped"],
                invalid=verdicts[number, "invalid"],
                duplicate=verdicts[number, "duplicate"],
                failed=sum(bool(entry.failure) for entry in own),
                fitness=evaluation.fitness if evaluation else float("-inf"),
                accuracy=evaluation.train.accuracy if evaluation and evaluation.train else None,
                held_out=evaluation.held_out.accuracy if evaluation and evaluation.held_out else None,
            )
        )
    return rows
