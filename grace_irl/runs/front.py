"""The front of a run: the best programs of each size, and the figures by which a size is chosen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from grace_irl.evaluate.evaluation import EQUAL, shown
from grace_irl.methods.account import Figures
from grace_irl.propose.protocol import SizeFigures, SizesPrograms
from grace_irl.runs.record import Record
from grace_irl.runs.store import Store

KEY = "sizes"
"""Key of the figures of all sizes (`keep_sizes`) in the table `meta` of run.db."""
MOST_ROWS = 12
TOO_FEW = (
    "fewer than six training episodes of a side: too few to choose a size by folds; the smallest program that "
    "separates the training data is preferred, or else the largest one"
)
UNJUDGED = (
    "too few training episodes to set six of each role aside (--validation {share:g}): training data alone choose the "
    "program, the smallest one of those that separate them"
)


@dataclass(frozen=True)
class FrontRow:
    """A program on the front.

    The figures `auc`, `worse` and `error` come from nested folds (cross-validation on the training episodes) or from
    validation episodes.

    Attributes:
        program: id of the program.
        size: description length in bits (`Program.size`).
        words: the size in words, such as "3 terms"; "" without nested folds.
        score: score on training data.
        auc: mean AUC of programs of this size in nested folds, or of the program on validation episodes; None if the
            program has no such figures.
        worse, error: highest `auc` of all sizes or judged programs minus this `auc`, and the standard error of the
            difference; None without `auc`.
        best: whether this is the best program of the run.
    """

    program: str
    size: int
    words: str
    score: float
    auc: float | None
    worse: float | None
    error: float | None
    best: bool


def keep_sizes(store: Store, *choosers: object) -> None:
    """Store the figures of all sizes (`SizesPrograms.sizes`) from the last of the `choosers` that has such figures."""
    known = [each.sizes for each in choosers if isinstance(each, SizesPrograms)]
    sizes = next((each for each in reversed(known) if each is not None), None)
    if sizes is not None:
        store.keep(KEY, sizes)


def front_of(store: Store, records: Mapping[str, Record] | None = None) -> tuple[FrontRow, ...]:
    """The front of a run, smallest program first.

    The rows depend on the choice of the best program:

    - by nested folds: a row per size, with the best program of this size from the search on all training episodes. If
      the run's best program has no such row, it gets an additional row without figures.
    - by validation episodes: a row per judged program.
    - otherwise: a row per program that scores higher than all smaller programs.

    Raises:
        InputError: damaged figures.
    """
    known = store.records() if records is None else records
    best, sizes = store.meta("best"), stored_sizes(store)
    valid = {name: record for name, record in known.items() if record.evaluation.valid and record.evaluation.complete}
    if not sizes:
        return tuple(_row(record, None, best) for record in pareto(list(valid.values()), best))
    rows = [_row(valid[each.program], each, best) for each in sizes if each.program in valid]
    if best in valid and not any(row.best for row in rows):
        rows.append(_row(valid[best], None, best))
    return tuple(sorted(rows, key=lambda row: row.size))


def stored_sizes(store: Store) -> tuple[SizeFigures, ...] | None:
    """The figures that `keep_sizes` stored; () if there were too few episodes; None if the run does not choose sizes.

    Raises:
        InputError: damaged figures.
    """
    return store.kept(KEY, tuple[SizeFigures, ...])


def front_figures(rows: Sequence[FrontRow]) -> Figures:
    """The front as a table."""
    judges, folds = any(row.auc is not None for row in rows), any(row.words for row in rows)
    where = "auc in folds" if folds else "auc, validation"
    head = ("", "bits", *(("size",) if folds else ()), "score", *((where, "below the best") if judges else ()))
    cells = []
    for row in rows:
        named = (row.words,) if folds else ()
        judged: tuple[str, ...] = ()
        if judges:
            known = row.auc is not None and row.worse is not None and row.error is not None
            judged = (f"{row.auc:.4f}", f"{row.worse:.4f} ± {row.error:.4f}") if known else ("-", "-")
        mark = f"{row.program} *" if row.best else row.program
        cells.append((mark, f"{row.size:,}", *named, shown(row.score), *judged))
    title = "front: the best (*), and those that score higher than all smaller ones"
    if judges:
        how = "sizes in nested folds" if folds else "programs on validation episodes"
        title = f"front: {how} (* best; ± standard error)"
    return Figures(head, tuple(cells), title)


def _row(record: Record, figures: SizeFigures | None, best: str) -> FrontRow:
    return FrontRow(
        record.program.id,
        record.program.size,
        figures.words if figures else "",
        record.evaluation.score,
        figures.auc if figures else None,
        figures.worse if figures else None,
        figures.error if figures else None,
        record.program.id == best,
    )


def pareto(records: Sequence[Record], best: str = "") -> list[Record]:
    """Records of programs that score higher than all smaller programs, and the record of the program with id `best`.

    If there are more than `MOST_ROWS` such records, only `MOST_ROWS` evenly spaced records are returned, and always the
    record of the program with id `best`.
    """
    found: list[Record] = []
    for record in sorted(records, key=lambda each: (each.program.size, -each.evaluation.score, each.index)):
        higher = not found or record.evaluation.score > max(each.evaluation.score for each in found) + EQUAL
        if higher or record.program.id == best:
            found.append(record)
    if len(found) <= MOST_ROWS:
        return found
    places = {round(i * (len(found) - 1) / (MOST_ROWS - 1)) for i in range(MOST_ROWS)}
    return [each for place, each in enumerate(found) if place in places or each.program.id == best]
