"""The programs that a run begins with (`--start-from`), and the data on which earlier runs found these programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from grace_irl.config import Config
from grace_irl.demos.components import require_same
from grace_irl.demos.labels import Problem
from grace_irl.errors import InputError
from grace_irl.methods.registry import method_of, task_named
from grace_irl.programs.components import names_of
from grace_irl.programs.export import fields_of, program_of, reads_of
from grace_irl.programs.parts import Reads
from grace_irl.propose.given import GivenProgram
from grace_irl.rewards.file import read_reward
from grace_irl.runs.record import TrajectoryRow
from grace_irl.runs.run import best_records, opened
from grace_irl.runs.store import Store

SEEN = "seen"
"""Key of `Seen` in the table `meta` of run.db."""
TRAINED = "trained"
"""Key of the result of `trained_before` in the table `meta` of run.db."""
GIVEN = "given"
"""Key of the programs of `--start-from` in the table `meta` of run.db."""


@dataclass(frozen=True)
class Seen:
    """The overlap of a run's held-out trajectories with the training data of an earlier run.

    The run began with programs of the earlier run, directly or through runs in between.

    Attributes:
        trajectories: number of held-out trajectories of the run that were training data of the earlier run.
        held_out: number of all held-out trajectories of the run.
        origin: folder of the earlier run.
    """

    trajectories: int
    held_out: int
    origin: str


@dataclass(frozen=True)
class EarlierTraining:
    """The training data of an earlier run.

    The run in progress began with programs of the earlier run, directly or through runs in between.

    Attributes:
        origin: folder of the earlier run.
        digests: digests of all trajectories of the earlier run that were not held out.
    """

    origin: str
    digests: tuple[str, ...]


def programs_of(paths: Sequence[str], most: int) -> tuple[GivenProgram, ...]:
    """The programs of `--start-from`, in order.

    Args:
        paths: reward files and folders of runs. A folder gives the best programs of its run, best first.
        most: maximum number of programs in total: the size of the first population.

    Raises:
        InputError: a path that is neither a reward file nor the folder of a run, a run without a valid program, or too
            many paths.
    """
    found: list[GivenProgram] = []
    for place, path in enumerate(paths):
        left = most - len(found) - (len(paths) - place - 1)  # reserve one program for each remaining path
        if left < 1:
            raise InputError(
                f"--start-from: {len(paths)} paths, and the first population has {most} programs; expected at most one "
                "path for each: name fewer, or raise this number (fit --method NAME --help)"
            )
        if Path(path).is_dir():
            found += _best_of(Path(path), left)
        else:
            source = read_reward(Path(path))
            found.append(GivenProgram(program_of(source), path, fields=fields_of(source), reads=reads_of(source)))
    return tuple(found)


def store_given(
    store: Store, programs: Sequence[GivenProgram], trained: Sequence[EarlierTraining], seen: Seen | None
) -> None:
    """Store the programs of `--start-from` in a new run, and the data on which they were found.

    The run then no longer needs the files of the programs.
    """
    if programs:
        store.keep(GIVEN, programs)
    if trained:
        store.keep(TRAINED, trained)
    if seen is not None:
        store.keep(SEEN, seen)


def given_of(store: Store, config: Config) -> tuple[GivenProgram, ...]:
    """The programs of `--start-from` with which a run began.

    Runs of older versions did not store the programs, so the files of `--start-from` are read again.

    Raises:
        InputError: as for `programs_of`, or the stored programs are damaged.
    """
    kept = store.kept(GIVEN, tuple[GivenProgram, ...])
    return programs_of(config.proposer.start_from, method_of(config).width(config)) if kept is None else kept


def failed_of(store: Store, given: Sequence[GivenProgram]) -> list[str]:
    """A line for each given program that fails in this run, with the reason. `Given` answers the first requests."""
    if not given:
        return []
    told, records = store.told(), store.records()
    lines = []
    for index, each in enumerate(given):
        result = told.get(index)
        record = records.get(result.program_id) if result and result.program_id else None
        if record is not None and not record.evaluation.valid:
            why = f"{record.evaluation.status}: {' '.join(record.evaluation.message.split())[:200]}"
            lines.append(f"--start-from {each.origin}: its program fails here, so nothing began with it ({why})")
    return lines


def seen_of(store: Store) -> Seen | None:
    """The stored `Seen` of a run; None if there is none.

    Raises:
        InputError: it is damaged.
    """
    return store.kept(SEEN, Seen)


def trained_of(store: Store) -> tuple[EarlierTraining, ...]:
    """The stored result of `trained_before`; () if there is none.

    Raises:
        InputError: it is damaged.
    """
    return store.kept(TRAINED, tuple[EarlierTraining, ...]) or ()


def require_readable(given: Sequence[GivenProgram], config: Config, problem: Problem) -> None:
    """Check that the given programs can read the states by which they are judged.

    With a task, these are states of its environment. Otherwise, they are states of the demonstrations.

    Raises:
        InputError: another kind of states, other parts, or components with other names or in another order.
    """
    if not given:
        return
    fields, shown, where = problem.metadata.fields, [item.trajectory for item in problem.items[:1]], "demonstrations"
    name = "the demonstrations"
    if task := task_named(config):
        chosen = method_of(config)
        fields, shown = chosen.states(config).fields, list(chosen.examples(config)[:1])
        name = where = f"the states of task {task}"
    for each in given:
        order = "begin with a program of this task" if task else "choose it with --state-columns"
        require_same(fields, each.fields, name, f"--start-from {each.origin}", order)
        for trajectory in shown:
            each.reads.require(trajectory.state_kind, trajectory.states, f"--start-from {each.origin}: {where}")


def trained_before(paths: Sequence[str]) -> tuple[EarlierTraining, ...]:
    """The training data of the runs in `--start-from`, and of the earlier runs with whose programs these began.

    Reward files are skipped, because they do not list their training data.

    Args:
        paths: the paths of `--start-from`.
    """
    found: dict[str, EarlierTraining] = {}
    for path in paths:
        if Path(path).is_dir():
            with opened(Path(path)) as (store, _):
                searched = tuple(row.digest for row in store.trajectories() if row.split != "held_out")
                for each in (EarlierTraining(path, searched), *trained_of(store)):
                    found.setdefault(each.origin, each)
    return tuple(found.values())


def seen_before(trained: Sequence[EarlierTraining], rows: Sequence[TrajectoryRow]) -> Seen | None:
    """Find the earlier run whose training data contain the largest number of this run's held-out trajectories.

    The result is None if no earlier run was trained on any of them.

    Args:
        trained: the training data of the earlier runs.
        rows: the trajectories of this run.
    """
    held_out = {row.digest for row in rows if row.split == "held_out"}
    found = [Seen(len(held_out.intersection(each.digests)), len(held_out), each.origin) for each in trained]
    most = max(found, key=lambda each: each.trajectories, default=None)
    return most if most is not None and most.trajectories else None


def _best_of(folder: Path, most: int) -> list[GivenProgram]:
    """At most `most` programs of a run, best first (`best_records`)."""
    with opened(folder) as (store, _):
        order, fields = [record.program for record in best_records(store)], names_of(store.meta("fields"))
        reads = Reads.of(store.meta("states"), store.meta("parts"), store.meta("actions"))
    if not order:
        raise InputError(f"{folder}: no valid program; expected a run with at least one for --start-from")
    return [GivenProgram(each.source, f"{folder}: {each.id}", each.prior, fields, reads) for each in order[:most]]
