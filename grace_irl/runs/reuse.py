"""Functions that the programs of a run share: its reward library."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from grace_irl.errors import GraceError
from grace_irl.evaluate.evaluation import shown
from grace_irl.methods.registry import method
from grace_irl.programs.export import sound
from grace_irl.programs.library import SHARED, Usage, library_source, reusable, usages
from grace_irl.runs.config import Config
from grace_irl.runs.record import Record, candidate
from grace_irl.runs.store import Store
from grace_irl.search.ranks import ranked
from grace_irl.version import __version__


@dataclass(frozen=True)
class Reuse:
    """The functions and classes of a run.

    Attributes:
        functions: different ones, how each is used, those of the best programs first.
        shared: those that at least two valid programs contain, parts of shared wholes left out.
    """

    functions: tuple[Usage, ...]
    shared: tuple[Usage, ...]


def reuse(store: Store) -> Reuse:
    """What the programs that were told share."""
    records = store.records()
    programs = {name: record.program for name, record in records.items()}
    order = _order(list(records.values()))
    found = usages(store.functions(), programs, order)
    return Reuse(tuple(found), tuple(reusable(found, programs, order)))


def library(store: Store, config: Config) -> tuple[str, int]:
    """The library as a file's text, and how many functions it holds.

    Raises:
        GraceError: no function is in two valid programs.
        InputError: one of them hides something, or does not compile.
    """
    records = store.records()
    shared = reuse(store).shared
    if not shared:
        valid = sum(record.evaluation.valid for record in records.values())
        raise GraceError(
            f"no function is in {SHARED} valid programs ({valid} valid programs, {len(records)} in all); "
            "there is nothing to write: let the run go on"
        )
    account = method(config.method).account
    text = library_source(
        shared,
        {name: record.program for name, record in records.items()},
        {name: f"{account.score} {shown(record.evaluation.score)}" for name, record in records.items()},
        title="Functions and classes that several reward programs of one run share, best first.",
        facts=(
            f"Written by grace-irl {__version__} from {len(records)} programs; method {config.method}, "
            f"seed {config.seed}, proposer {config.proposer.name}.",
        ),
    )
    return sound(text, "the library"), len(shared)


def _order(records: Sequence[Record]) -> list[str]:
    """Ids of the valid programs, best first."""
    valid = [candidate(record) for record in records if record.evaluation.valid]
    return [scored.program.id for scored in ranked(valid)]
