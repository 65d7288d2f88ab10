"""The database of a run: one SQLite file (in WAL mode) with the whole state of the run."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, field, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar, cast, get_args

import numpy as np
from numpy.typing import NDArray

from grace_irl.demos.labels import Problem
from grace_irl.errors import GraceError, InputError
from grace_irl.evaluate.evaluation import Evaluation
from grace_irl.evaluate.rewards import pack, unpack
from grace_irl.programs.library import Known
from grace_irl.propose.goals import GoalAnswer, Origin
from grace_irl.propose.protocol import Proposal
from grace_irl.runs.database import Database
from grace_irl.runs.record import Record, TrajectoryRow, record_of, record_row, to_text, trajectory_rows
from grace_irl.runs.schema import (
    DEFINITION_COLUMNS,
    definition_rows,
    definitions,
    function_rows,
)
from grace_irl.search.protocol import Fate, Request, Result
from grace_irl.toml import from_json

T = TypeVar("T")

MOST_STATES = 100_000_000
"""Maximum number of states in all trajectories of a run; a database with a larger number is damaged."""


@dataclass(frozen=True)
class Told:
    """A result that the search has received.

    Attributes:
        index: index of the request.
        program_id: the program's id; None if there is no program.
        failure: the reason why there is no program; "" otherwise.
        seconds: search time in seconds until this result, including the time before a resume.
        drafts: ids of earlier versions of the program, oldest first. Follow-up calls replaced them.
        notes: answers of follow-up calls about the program, by name of the call's operator.
        exhausted: whether the proposer had nothing new to propose.
    """

    index: int
    program_id: str | None
    failure: str
    seconds: float
    drafts: tuple[str, ...] = ()
    notes: Mapping[str, str] = field(default_factory=dict)
    exhausted: bool = False


@dataclass(frozen=True)
class FateRow:
    """A decision of the search on a program, with its request and generation.

    Attributes:
        index: index of the request whose result led to the decision.
        generation: index of the generation in which the search decided, from 0.
        fate: the decision.
    """

    index: int
    generation: int
    fate: Fate


class Store:
    """The database of a run. Methods may be called from several threads. Each write is one transaction."""

    def __init__(self, path: Path, *, create: bool = False) -> None:
        """Open or create a database.

        Raises:
            InputError: a file that is not the database of a run, a database of a newer version, or a link.
            GraceError: the machine is at fault, such as a full disk.
        """
        self._file = Database(path, create=create)
        self._states: dict[str, int] | None = None  # number of states by trajectory digest, loaded at the first use

    @property
    def folder(self) -> Path:
        """The folder of the run."""
        return self._file.path.parent

    @property
    def format(self) -> int:
        """Version number of the database's schema."""
        return self._file.format

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def meta(self, key: str) -> str:
        """The value of a key in the table `meta`, or ""."""
        rows = self._file.rows("SELECT value FROM meta WHERE key = ?", (key,))
        return str(rows[0][0]) if rows else ""

    def set_meta(self, key: str, value: str) -> None:
        """Store the value of a key in the table `meta`."""
        self._file.write([("INSERT OR REPLACE INTO meta VALUES (?, ?)", [(key, value)])])

    def keep(self, key: str, value: object) -> None:
        """Store a dataclass object, or a sequence of such objects, as JSON in the table `meta`."""
        plain = [asdict(each) for each in value] if isinstance(value, Sequence) else asdict(cast(Any, value))
        self.set_meta(key, json.dumps(plain))

    def kept(self, key: str, kind: type[T]) -> T | None:
        """The value of this type that is stored as JSON under a key; None if there is none.

        Raises:
            InputError: the value is damaged.
        """
        text = self.meta(key)
        try:
            return from_json(kind, text) if text else None
        except ValueError as error:
            said = " ".join(str(error).split())[:160]
            raise InputError(
                f"{self._file.path.name}: {key!r} in its table meta is damaged ({said}); expected it as grace-irl "
                "wrote it: put a copy of the file back, or fit into a new folder"
            ) from None

    def set_problem(self, problem: Problem) -> None:
        """Store the trajectories of a run. A later call with the same trajectories replaces their labels."""
        rows = [(place, *astuple(row)) for place, row in enumerate(trajectory_rows(problem))]
        self._states = None
        self._file.write([("INSERT OR REPLACE INTO trajectories VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)])

    def trajectories(self) -> list[TrajectoryRow]:
        """The trajectories of the run, in order."""
        columns = "digest, role, task, split, states, positives, source"
        rows = [TrajectoryRow(*row) for row in self._file.rows(f"SELECT {columns} FROM trajectories ORDER BY place")]
        with self._file.reading("trajectories"):
            if (
                any(not 0 <= row.positives <= row.states for row in rows)
                or sum(row.states for row in rows) > MOST_STATES
            ):
                raise ValueError(f"states or positives are out of range; all states together are at most {MOST_STATES}")
        return rows

    def add_goals(self, answers: Sequence[GoalAnswer]) -> None:
        """Store answers about goal states."""
        rows = [tuple(getattr(answer, each.name) for each in fields(GoalAnswer)) for answer in answers]
        rows = [(*row[:3], json.dumps(row[3]), *row[4:]) for row in rows]
        self._file.write([("INSERT INTO goals VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)])

    def goals(self) -> list[GoalAnswer]:
        """Answers about goal states, in order."""
        rows = self._file.rows("SELECT * FROM goals ORDER BY rowid")
        with self._file.reading("goals"):
            return [GoalAnswer(row[0], row[1], _one_of(row[2], Origin), _indices(row[3]), *row[4:]) for row in rows]

    def add_request(self, request: Request, generation: int) -> None:
        """Store a request and its generation. If the store has this index already, both must equal the stored values.

        Raises:
            GraceError: the store has a different request with this index, so the run cannot be resumed.
        """
        row = (
            request.index,
            generation,
            request.operator,
            json.dumps(request.parents),
            str(request.seed),
            json.dumps(request.context),
            request.sample,
            request.samples,
            json.dumps(request.ancestors),
        )
        kept = self._file.rows("SELECT * FROM requests WHERE idx = ?", (request.index,))
        if not kept:
            self._file.write([(f"INSERT INTO requests VALUES ({_marks(row)})", [row])])
        elif tuple(kept[0]) != row:
            raise GraceError(
                f"{self._file.path.parent}: request {request.index} differs from the recorded one; "
                "expected the same settings and version as when the run began: start a new run"
            )

    def requests(self) -> dict[int, tuple[int, str]]:
        """Generation and operator of each request, by index."""
        return {row[0]: (row[1], row[2]) for row in self._file.rows("SELECT idx, generation, operator FROM requests")}

    def add_proposals(self, proposals: Mapping[int, Proposal], attempt: int = 0, step: str = "") -> None:
        """Store the answers of one call, in one transaction.

        Args:
            proposals: answers by index of the request.
            attempt: 0 for the first answer; 1, 2, … for the answers to follow-up calls.
            step: operator of the follow-up call, such as "repair"; "" for the first answer.
        """
        names = [each.name for each in fields(Proposal)]
        rows = [(index, attempt, step, *(getattr(one, name) for name in names)) for index, one in proposals.items()]
        self._file.write([(f"INSERT OR REPLACE INTO proposals VALUES (?, ?, ?, {_marks(names)})", rows)])

    def answered(self) -> set[int]:
        """Indices of the requests with a first answer."""
        return {row[0] for row in self._file.rows("SELECT idx FROM proposals WHERE attempt = 0")}

    def proposal(self, index: int, attempt: int = 0) -> Proposal | None:
        """The first answer to a request (attempt 0), or the answer to a follow-up call; None if there is none."""
        rows = self._file.rows(f"SELECT {_PROPOSAL} FROM proposals WHERE idx = ? AND attempt = ?", (index, attempt))
        return _proposal(rows[0]) if rows else None

    def proposals(self) -> Iterator[tuple[int, int, Proposal]]:
        """All answers as (request's index, attempt, answer), sorted by index and attempt."""
        for row in self._file.rows(f"SELECT idx, attempt, {_PROPOSAL} FROM proposals ORDER BY idx, attempt"):
            yield row[0], row[1], _proposal(row[2:])

    def add_told(self, result: Result, fates: Sequence[Fate], generation: int, seconds: float) -> None:
        """Store a result that the search has received, and the resulting fates, in one transaction."""
        index = result.request.index
        name = result.program.id if result.program else None
        drafts = json.dumps([draft.program.id for draft in result.drafts])
        told = (index, name, result.failure, seconds, drafts, json.dumps(dict(result.notes)))
        programs = [(draft.program, draft.evaluation) for draft in result.drafts]
        if result.program is not None and result.evaluation is not None:
            programs.append((result.program, result.evaluation))
        rows = [record_row(program, evaluation, index) for program, evaluation in programs]
        definitions = [row for program, _ in programs for row in definition_rows(program)]
        functions = [row for program, _ in programs for row in function_rows(program)]
        self._file.write(
            [
                (f"INSERT INTO results VALUES ({_marks(told)})", [told]),
                ("INSERT OR IGNORE INTO programs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", rows),
                ("INSERT OR IGNORE INTO definitions VALUES (?, ?, ?, ?, ?, ?, ?, ?)", definitions),
                ("INSERT OR IGNORE INTO functions VALUES (?, ?, ?, ?)", functions),
                (_ADD_FATE, _fate_rows(fates, index, generation, final=False)),
            ]
        )

    def set_evaluation(self, program_id: str, evaluation: Evaluation) -> None:
        """Replace the evaluation of a stored program."""
        self._file.write([("UPDATE programs SET evaluation = ? WHERE id = ?", [(to_text(evaluation), program_id)])])

    def told(self) -> dict[int, Told]:
        """All results that the search has received, by index."""
        rows = self._file.rows("SELECT idx, program, failure, seconds, drafts, notes FROM results")
        known = {row[0] for row in self._file.rows("SELECT id FROM programs")}
        exhausted = {row[0] for row in self._file.rows("SELECT idx FROM proposals WHERE attempt = 0 AND exhausted")}
        with self._file.reading("results"):
            found = [
                Told(index, name, failure, s, from_json(_NAMES, drafts), from_json(_NOTES, notes), index in exhausted)
                for index, name, failure, s, drafts, notes in rows
            ]
            if any(name not in known for each in found for name in each.drafts):
                raise ValueError("a draft that is not in 'programs'")
        return {each.index: each for each in found}

    def set_seconds(self, seconds: float) -> None:
        """Store the search time of the run in seconds.

        A sitting is the time from the start of the run, or from a resume, to the next interruption or the end. This
        method is called when a sitting ends. The search time is the sum over all sittings.
        """
        self.set_meta("seconds", repr(seconds))

    def seconds(self) -> float:
        """The search time in seconds so far. If a sitting was killed, its time after its last result is not counted."""
        told: list[float] = [row[0] for row in self._file.rows("SELECT seconds FROM results")]
        return max([*told, self.kept("seconds", float) or 0.0])

    def set_final_fates(self, fates: Sequence[Fate], index: int, generation: int) -> None:
        """Store the fates that are decided at the end of a run.

        If a resumed run ends again, the new fates replace the fates of the earlier end.
        """
        rows = _fate_rows(fates, index, generation, final=True)
        self._file.write([("DELETE FROM fates WHERE final = ?", [(1,)]), (_ADD_FATE, rows)])

    def fates(self) -> list[FateRow]:
        """All fates, in the order of their decision."""
        rows = self._file.rows("SELECT idx, generation, program, verdict, reason FROM fates ORDER BY id")
        return [FateRow(row[0], row[1], Fate(*row[2:])) for row in rows]

    def records(self) -> dict[str, Record]:
        """All scored programs by id, in the order of their requests."""
        defined = self._file.rows(f"SELECT {DEFINITION_COLUMNS} FROM definitions ORDER BY program, place")
        with self._file.reading("definitions"):
            found = definitions(defined)
        rows = self._file.rows("SELECT * FROM programs ORDER BY idx")
        with self._file.reading("programs"):
            return {row[0]: record_of(row, found.get(row[0], ()), self._file.format) for row in rows}

    def functions(self) -> list[Known]:
        """All distinct functions and classes of the scored programs."""
        rows = self._file.rows("SELECT digest, name, program, source FROM functions ORDER BY digest")
        return [Known(*row) for row in rows]

    def get(self, program_id: str, digests: Iterable[str]) -> dict[str, NDArray[np.float64]]:
        """Rewards of a program by trajectory digest, `(T+1,)` for T steps. Digests without rewards are left out."""
        if self._states is None:
            self._states = {row.digest: row.states for row in self.trajectories()}
        states, wanted = self._states, self._states.keys() & set(digests)
        rows = self._file.rows("SELECT trajectory, blob FROM rewards WHERE program = ?", (program_id,))
        with self._file.reading("rewards"):
            return {row[0]: unpack(row[1], states[row[0]]) for row in rows if row[0] in wanted}

    def put(self, program_id: str, rewards: Mapping[str, NDArray[np.float64]]) -> None:
        """Store rewards of a program by trajectory digest, `(T+1,)` for T steps."""
        rows = [(program_id, digest, pack(values)) for digest, values in rewards.items()]
        self._file.write([("INSERT OR REPLACE INTO rewards VALUES (?, ?, ?)", rows)])

    def add_event(self, kind: str, detail: str) -> None:
        """Store an event of the run with the current time. `kind` is, for example, "started" or "note"."""
        row = (datetime.now(UTC).isoformat(timespec="seconds"), kind, detail)
        self._file.write([("INSERT INTO events (time, kind, detail) VALUES (?, ?, ?)", [row])])

    def events(self) -> list[tuple[str, str, str]]:
        """All events of the run as (time in UTC, kind, detail)."""
        return [
            (row[0], row[1], row[2]) for row in self._file.rows("SELECT time, kind, detail FROM events ORDER BY id")
        ]

    def tokens(self, index: int) -> tuple[int, int]:
        """Input and output tokens of all answers to a request."""
        rows = self._file.rows("SELECT tokens_in, tokens_out FROM proposals WHERE idx = ?", (index,))
        return sum(row[0] for row in rows), sum(row[1] for row in rows)

    def spent(self) -> list[tuple[int, int, float]]:
        """Input tokens, output tokens and seconds of each answer, including answers to follow-up calls."""
        rows = self._file.rows("SELECT tokens_in, tokens_out, seconds FROM proposals ORDER BY idx, attempt")
        return [(row[0], row[1], row[2]) for row in rows]


_PROPOSAL = ", ".join(each.name for each in fields(Proposal))
_INDICES: Any = tuple[int, ...] | None
_NAMES: Any = tuple[str, ...]
_NOTES: Any = dict[str, str]
_ADD_FATE = "INSERT INTO fates (idx, generation, program, verdict, reason, final) VALUES (?, ?, ?, ?, ?, ?)"


def _indices(text: str) -> tuple[int, ...] | None:
    found: tuple[int, ...] | None = from_json(_INDICES, text)
    if found is not None and min(found, default=1) < 1:
        raise ValueError("an index of a goal state is below 1")
    return found


def _one_of(value: Any, allowed: Any) -> Any:
    """Check that a value is one of the values of a `Literal` type, and return it.

    Raises:
        ValueError: a value that is not allowed.
    """
    if value not in get_args(allowed):
        raise ValueError(f"{value!r} is none of {', '.join(get_args(allowed))}")
    return value


def _proposal(row: tuple[Any, ...]) -> Proposal:
    return replace(Proposal(*row), exhausted=bool(row[-1]))


def _marks(row: Sequence[object]) -> str:
    return ", ".join("?" * len(row))


def _fate_rows(fates: Sequence[Fate], index: int, generation: int, *, final: bool) -> list[tuple[object, ...]]:
    return [(index, generation, fate.program_id, fate.verdict, fate.reason, int(final)) for fate in fates]
