"""The progress of a run, generation by generation, as the store tells it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from grace_irl.runs.store import Store, candidate
from grace_irl.search.ranks import Scored, winner


@dataclass(frozen=True)
class Generation:
    """One generation.

    Attributes:
        number: from 0, the first population.
        calls: answers told.
        kept, dropped, invalid, duplicate, repaired: how many candidates met that fate, old members included.
        failed: answers without a program.
        fitness: train fitness of the best program so far, best as `winner` has it; -inf while there is none.
        accuracy, held_out: its accuracies, or None.
    """

    number: int
    calls: int
    kept: int
    dropped: int
    invalid: int
    duplicate: int
    repaired: int
    failed: int
    fitness: float
    accuracy: float | None
    held_out: float | None


def history(store: Store) -> list[Generation]:
    """Every generation that was begun and has a result."""
    requests, told, records = store.requests(), store.told(), store.records()
    verdicts = Counter((row.generation, row.fate.verdict) for row in store.fates())
    numbers = sorted({requests[index][0] for index in told})
    best: Scored | None = None
    rows = []
    for number in numbers:
        own = [entry for entry in told.values() if requests[entry.index][0] == number]
        new = [candidate(records[entry.program_id]) for entry in own if entry.program_id]
        new = [scored for scored in new if scored.evaluation.valid and scored.evaluation.complete]
        best = winner(new if best is None else [best, *new])
        evaluation = best.evaluation if best else None
        rows.append(
            Generation(
                number=number,
                calls=len(own),
                kept=verdicts[number, "kept"],
                dropped=verdicts[number, "dropped"],
                invalid=verdicts[number, "invalid"],
                duplicate=verdicts[number, "duplicate"],
                repaired=verdicts[number, "repaired"],
                failed=sum(bool(entry.failure) for entry in own),
                fitness=evaluation.fitness if evaluation else float("-inf"),
                accuracy=evaluation.train.accuracy if evaluation and evaluation.train else None,
                held_out=evaluation.held_out.accuracy if evaluation and evaluation.held_out else None,
            )
        )
    return rows
