"""The way of a run to its best program: the best so far, program by program, and what became of candidates."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from grace_irl.runs.record import Record, candidate
from grace_irl.runs.spending import kinds
from grace_irl.runs.store import Store
from grace_irl.search.ranks import Scored, winner

REASONS = 5  # of one verdict that are told, the most frequent ones
ANCESTORS = 30  # that are listed

VERDICTS = {
    "kept": "entered the population",
    "dropped": "left it, or never reached it",
    "duplicate": "was tried before",
    "invalid": "failed, or gave no finite number",
    "repaired": "failed and was sent back once",
}
"""What became of a candidate, and what that means."""

_NUMBER = re.compile(r"-?\d[\d.,]*(?:e[+-]?\d+)?")


@dataclass(frozen=True)
class Step:
    """The best program after some number of programs.

    Attributes:
        tried: how many programs were told until then.
        fitness: its train fitness.
        accuracy, held_out: its accuracies, or None.
    """

    tried: int
    fitness: float
    accuracy: float | None
    held_out: float | None


@dataclass(frozen=True)
class Verdict:
    """Candidates that met one fate.

    Attributes:
        name: of `VERDICTS`.
        count: how many candidates, those included that met it again when a run was resumed.
        reasons: the most frequent ones with their numbers; figures in them are left out.
    """

    name: str
    count: int
    reasons: tuple[tuple[str, int], ...]

    @property
    def meaning(self) -> str:
        """What the verdict means."""
        return VERDICTS.get(self.name, "")


def steps(store: Store) -> list[Step]:
    """Every change of the best program, and where it ended; reshaping, which seeks something else, is left out."""
    requests, records = store.requests(), store.records()
    best: Scored | None = None
    found: list[Step] = []
    seen: set[str] = set()
    tried = 0
    for index, told in sorted(store.told().items()):
        name = told.program_id
        if name is None or name in seen or requests[index][1] == "reshape":
            continue
        seen.add(name)
        tried += 1
        record = records[name]
        if record.evaluation.valid and record.evaluation.complete:
            scored = candidate(record)
            better = winner([scored] if best is None else [best, scored])
            if better is not best:
                best = better
                found.append(_step(tried, record))
    if found and found[-1].tried < tried:
        last = found[-1]
        found.append(Step(tried, last.fitness, last.accuracy, last.held_out))
    return found


def _step(tried: int, record: Record) -> Step:
    train, held_out = record.evaluation.train, record.evaluation.held_out
    accuracies = (metrics.accuracy if metrics else None for metrics in (train, held_out))
    return Step(tried, record.evaluation.fitness, *accuracies)


def verdicts(store: Store) -> list[Verdict]:
    """What became of candidates, most frequent first."""
    by_name: dict[str, Counter[str]] = {}
    for row in store.fates():
        by_name.setdefault(row.fate.verdict, Counter())[_kind(row.fate.reason)] += 1
    found = [Verdict(name, sum(all_.values()), tuple(_frequent(all_))) for name, all_ in by_name.items()]
    return sorted(found, key=lambda verdict: (-verdict.count, verdict.name))


def failures(store: Store) -> dict[str, int]:
    """Answers that held no program, by kind."""
    return kinds(entry.failure for entry in store.told().values() if entry.failure)


def _kind(reason: str) -> str:
    """A reason without its figures, so that equal ones can be counted."""
    words = _NUMBER.sub("…", " ".join(reason.split()))
    return words if len(words) <= 160 else f"{words[:159]}…"


def _frequent(reasons: Counter[str]) -> list[tuple[str, int]]:
    return sorted(reasons.items(), key=lambda item: (-item[1], item[0]))[:REASONS]


def ancestors(record: Record, records: Mapping[str, Record]) -> list[Record]:
    """The program and its ancestors along first parents, youngest first."""
    found: list[Record] = []
    current: Record | None = record
    while current is not None and len(found) < ANCESTORS:
        found.append(current)
        parents = current.program.parents
        current = records.get(parents[0]) if parents else None
    return found
