"""The progress of a run, generation by generation, as the store tells it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from grace_irl.runs.record import candidate
from grace_irl.runs.store import Store
from grace_irl.search.ranks import Scored, winner


@dataclass(frozen=True)
class Generation:
    """One generation.

    Attributes:
        number: from 0, the first population.
        calls: answers told.
        kept, dropped, invalid, duplicate, repaired: how many candidates met that fate, old members included.
        failed: answers without a program.
        new_functions: different functions and classes that no program of an earlier generation has.
        reused_functions: different ones of this generation's new programs that an earlier generation's program has.
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
    new_functions: int
    reused_functions: int
    fitness: float
    accuracy: float | None
    held_out: float | None


def history(store: Store) -> list[Generation]:
    """Every generation that was begun and has a result."""
    requests, told, records = store.requests(), store.told(), store.records()
    verdicts = Counter((row.generation, row.fate.verdict) for row in store.fates())
    numbers = sorted({requests[index][0] for index in told})
    best: Scored | None = None
    known: set[str] = set()
    rows = []
    for number in numbers:
        own = [entry for entry in told.values() if requests[entry.index][0] == number]
        # Reshaping comes after the search and seeks something else than merit.
        sought = [entry for entry in own if requests[entry.index][1] != "reshape"]
        new = [candidate(records[entry.program_id]) for entry in sought if entry.program_id]
        new = [scored for scored in new if scored.evaluation.valid and scored.evaluation.complete]
        best = winner(new if best is None else [best, *new])
        evaluation = best.evaluation if best else None
        first = [record for record in records.values() if requests[record.index][0] == number]
        functions = {each.digest for record in first for each in record.program.functions}
        new_functions, reused_functions = len(functions - known), len(functions & known)
        known |= functions
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
                new_functions=new_functions,
                reused_functions=reused_functions,
                fitness=evaluation.fitness if evaluation else float("-inf"),
                accuracy=evaluation.train.accuracy if evaluation and evaluation.train else None,
                held_out=evaluation.held_out.accuracy if evaluation and evaluation.held_out else None,
            )
        )
    return rows
