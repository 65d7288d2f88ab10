"""Exported files of a run: a reward with its provenance, and a library of functions that the run's programs share."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from grace_irl.config import Config
from grace_irl.demos.trajectory import Split
from grace_irl.errors import GraceError
from grace_irl.evaluate.evaluation import shown
from grace_irl.methods.registry import method_of
from grace_irl.programs.export import export_source, sound
from grace_irl.programs.library import SHARED, Usage, library_source, reusable, usages
from grace_irl.runs.config import flat
from grace_irl.runs.folder import JUDGED
from grace_irl.runs.record import Record, TrajectoryRow, candidate
from grace_irl.runs.store import Store
from grace_irl.search.ranks import ranked
from grace_irl.version import __version__

MAX_LINEAGE = 12  # maximum number of programs in the result of `lineage`


def export_record(record: Record, store: Store, config: Config) -> str:
    """The source of a self-contained module with the program and its provenance.

    Raises:
        InputError: the program contains invisible characters, or does not compile.
    """
    method = method_of(config)
    account = method.account
    numbers = account.calibrated(record.evaluation)
    known = {name: store.meta(name) for name in ("label", "states", "fields", "parts")}
    # With a task, programs get the actions of its environment, whatever shape those of demonstrations have. A run of an
    # earlier version has the shape of the demonstrations' actions.
    known_actions = method.needs.demonstrations or store.meta(JUDGED) == "True"
    actions = store.meta("actions") if known_actions else ""
    text = export_source(
        record.program.source,
        title=f"A reward {account.made} by grace-irl {__version__}.",
        facts=facts(record, store.records(), store.trajectories(), config, **known, actions=actions),
        **(vars(numbers) if numbers else {}),
    )
    return sound(text, f"program {record.program.id}")


def facts(
    record: Record,
    records: Mapping[str, Record],
    trajectories: Sequence[TrajectoryRow],
    config: Config,
    label: str,
    states: str = "",
    fields: str = "",
    parts: str = "",
    actions: str = "",
) -> list[tuple[str, str]]:
    """Facts about a program as pairs (name, text): its scores, its data and its origin.

    Args:
        record: the program.
        records: all programs of the run, by id.
        trajectories: the demonstrations of the run.
        config: the configuration of the run.
        label: the rule for positive expert states.
        states: kind and shape of the states (`grace_irl.programs.parts`); "" if unknown.
        fields: names of the components of a state vector by their places, such as "x0 z_torso, x1 angle_torso"; ""
            without names.
        parts: names and shapes of the parts of a state (`grace_irl.programs.parts`); "" for states without parts.
        actions: shape of an action; "" if unknown.
    """
    account = method_of(config).account
    lines = [
        *account.facts(record.evaluation, flat(config)),
        *([("label", f"{label} (which expert states are positive)")] if trajectories else []),
    ]
    for split in get_args(Split):
        rows = [row for row in trajectories if row.split == split]
        if rows:
            lines.append((f"{split.replace('_', ' ')} data", _data(rows)))
    if states:
        lines.append(("states", states))
    if fields:
        lines.append(("fields", fields))
    if parts:
        lines.append(("parts", parts))
    if actions and record.program.takes_action:
        lines.append(("actions", actions))
    if config.data.files:
        lines.append(("demos", ", ".join(map(short, (*config.data.files, *config.data.negatives)))))
    lines += [
        ("method", f"{config.method}, seed {config.seed}, proposer {config.proposer.name}"),
        ("program", f"{record.program.id} (candidate {record.index})"),
        ("lineage", " <- ".join(lineage(record, records))),
        *account.carried(record.evaluation),
    ]
    return lines


def lineage(record: Record, records: Mapping[str, Record]) -> list[str]:
    """The chain of first parents from a program back to its origin, as texts `id (operator)`.

    If a program has further parents, the text is `id (operator with id, …)`.

    A chain of more than `MAX_LINEAGE` programs is cut, and ends with "…".
    """
    names: list[str] = []
    current: Record | None = record
    while current is not None and len(names) < MAX_LINEAGE:
        parents = current.program.parents
        beside = f" with {', '.join(parents[1:])}" if parents[1:] else ""
        names.append(f"{current.program.id} ({current.program.operator}{beside})")
        current = records.get(parents[0]) if parents else None
    return names if current is None else [*names, "…"]


def data_digest(digests: Iterable[str]) -> str:
    """One digest (16 hex digits) of a set of trajectories, from their digests in any order."""
    return hashlib.sha256("\n".join(sorted(digests)).encode()).hexdigest()[:16]


def short(name: str) -> str:
    """The last two parts of a path. They identify a set of demonstrations but reveal little about the machine."""
    return "/".join(Path(name).parts[-2:])


def _data(rows: Sequence[TrajectoryRow]) -> str:
    experts = sum(row.role == "expert" for row in rows)
    swaps = sum(row.swap for row in rows)
    states = sum(row.states for row in rows)
    digest = data_digest(row.digest for row in rows)
    counts = f"{experts} expert + {len(rows) - experts - swaps} negative trajectories"
    swapped = f" + {swaps} swaps (experts with another expert's instruction)" if swaps else ""
    return f"{counts}{swapped}, {states} states, digest {digest}"


@dataclass(frozen=True)
class Reuse:
    """The use of functions and classes by the programs of a run.

    Attributes:
        functions: usage of each different function and class, sorted by the best program that contains it.
        shared: usage of functions and classes in at least two valid programs. Two kinds are omitted: methods of a
            shared class, and functions within functions.
    """

    functions: tuple[Usage, ...]
    shared: tuple[Usage, ...]


def reuse(store: Store) -> Reuse:
    """Collect the use of functions and classes by the scored programs of a run."""
    records = store.records()
    programs = {name: record.program for name, record in records.items()}
    order = _order(list(records.values()))
    found = usages(store.functions(), programs, order)
    return Reuse(tuple(found), tuple(reusable(found, programs, order)))


def library(store: Store, config: Config) -> tuple[str, int]:
    """The text of the library file, and the number of functions in it.

    Raises:
        GraceError: no function is in two valid programs.
        InputError: a function contains invisible characters, or does not compile.
    """
    records = store.records()
    shared = reuse(store).shared
    if not shared:
        valid = sum(record.evaluation.valid for record in records.values())
        raise GraceError(
            f"no function is in {SHARED} valid programs ({valid} valid programs, {len(records)} in all); "
            "there is nothing to write: let the run go on"
        )
    account = method_of(config).account
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
