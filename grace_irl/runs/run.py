"""The result of a run (`Run`), and its history by generation, read from the run's folder."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING

from grace_irl.audit.warning import Audit, RewardWarning
from grace_irl.config import Config
from grace_irl.contents import require_no_links, require_own_file
from grace_irl.demos.label_rule import RuleChoice
from grace_irl.errors import GraceError, InputError
from grace_irl.evaluate.evaluation import Evaluation
from grace_irl.evaluate.evaluation import shown as shown_score
from grace_irl.evaluate.rest import Rest
from grace_irl.evaluate.separation import Metrics, Separation
from grace_irl.methods.registry import judged_by
from grace_irl.notebook import frame, near, shown
from grace_irl.programs.program import Program
from grace_irl.runs import acting
from grace_irl.runs.acting import DATA, plain_acting
from grace_irl.runs.config import resolve
from grace_irl.runs.expand.round import Round
from grace_irl.runs.folder import RunPaths, require_folder
from grace_irl.runs.front import FrontRow
from grace_irl.runs.record import Record, candidate
from grace_irl.runs.store import Store
from grace_irl.search.ranks import Scored, ranked, winner

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True)
class Best:
    """The best program of a run.

    Attributes:
        program: the program, with its source, its id and the ids of its parents.
        evaluation: the program's score and metrics.
    """

    program: Program
    evaluation: Evaluation

    @property
    def source(self) -> str:
        """The program's source code. The file `Run.reward_path` adds provenance and calibration."""
        return self.program.source

    @property
    def score(self) -> float:
        """The score by which the search compares programs."""
        return self.evaluation.score

    @property
    def metrics(self) -> Mapping[str, float]:
        """The program's metrics by name. The names depend on the method."""
        return self.evaluation.metrics

    @property
    def fitness(self) -> float:
        """The value of `score`. It is a fitness only if the method separates expert from negative states."""
        return self.evaluation.score

    @property
    def separation(self) -> Separation:
        """The separation of expert from negative states by the reward: metrics and calibration.

        Raises:
            GraceError: the method does not score programs by this separation.
        """
        found = Separation.of(self.evaluation)
        if found is None:
            raise GraceError("the method of this run does not separate states; expected one that does: see metrics")
        return found

    @property
    def train(self) -> Metrics:
        """Metrics on training data; see `separation`."""
        return self.separation.train

    @property
    def held_out(self) -> Metrics | None:
        """Metrics on held-out data; None if there is none. See `separation`."""
        return self.separation.held_out


@dataclass(frozen=True)
class Run:
    """The result of `grace_irl.fit`.

    Attributes:
        folder: the run's folder; absolute, if `grace_irl.fit` returned the run.
        best: the best program.
        reward_path: the file with the best program, in `folder`.
        reason: the reason for the end of the run, in a few words.
        seconds: wall time of the search in seconds, including the time before a resume.
        programs: number of different programs.
        calls: number of results that the search received.
        generations: number of complete generations.
        proposer: the proposer's name.
        method: the method's name.
        task: name or TOML file of the task (`--task`); "" for a run without a task. With a task, the score of a
            program comes from policies that were trained on its reward.
        tokens: number of input and output tokens of all answers.
        cost: cost of these tokens, by the configured prices.
        rounds: the rounds of an expansion, if this run is the last one of an expansion; otherwise (). An expansion
            alternates between fitting a reward and training a policy.
        favourite: the round of the expansion with the best policy, judged without the environment's own reward; None
            without trained policies.
        label: the label rule, which selects the positive expert states, and the reason for its choice.
        notes: messages shown to the user during the run.
        audit: the audit of the best program; None if the method does not separate expert from negative states.
        rest: metrics on the trajectories that the run's sample left out; None without a sample.
        front_rows: the best programs of each size, smallest first.
    """

    folder: Path
    best: Best
    reward_path: Path
    reason: str
    seconds: float
    programs: int
    calls: int
    generations: int
    proposer: str
    method: str = "grace"
    task: str = ""
    tokens: int = 0
    cost: float = 0.0
    rounds: tuple[Round, ...] = ()
    favourite: Round | None = None
    label: RuleChoice | None = None
    notes: tuple[str, ...] = ()
    audit: Audit | None = None
    rest: Rest | None = None
    front_rows: tuple[FrontRow, ...] = ()

    @property
    def warnings(self) -> tuple[RewardWarning, ...]:
        """Signs that the best program may be wrong, most important first (docs/warnings.md)."""
        return self.audit.warnings if self.audit is not None else ()

    @property
    def report_path(self) -> Path:
        """The path of the HTML report. The file is missing if it could not be written."""
        return RunPaths(self.folder).report

    @property
    def front(self) -> DataFrame:
        """The best programs of each size as a pandas table, smallest first; its columns are those of `FrontRow`.

        Raises:
            InputError: pandas is not installed.
        """
        return frame([asdict(row) for row in self.front_rows], [each.name for each in fields(FrontRow)])

    @property
    def candidates(self) -> DataFrame:
        """All programs of the run as a pandas table, in the order of their requests, with the program's id as index.

        The columns are `score`, `size` (bits), `generation`, `operator`, `status`, `message`, `parents`, `source`, and
        the metrics of the method. If an evaluation stopped early, `score` is an upper bound of the score.

        Raises:
            InputError: pandas is not installed, or the run's folder is gone.
        """
        with opened(self.folder) as (store, _):
            requests, records = store.requests(), store.records()
        rows = [
            {
                "program": record.program.id,
                "score": record.evaluation.score if record.evaluation.complete else record.evaluation.bound,
                "size": record.program.size,
                "generation": requests[record.index][0],
                "operator": record.program.operator,
                "status": record.evaluation.status,
                "message": record.evaluation.message,
                "parents": record.program.parents,
                "source": record.program.source,
                **record.evaluation.metrics,
            }
            for record in records.values()
        ]
        return frame(rows, ["program", "score"]).set_index("program")

    def __repr__(self) -> str:
        return f"Run({near(self.folder)!r}, program={self.best.program.id!r}, score={shown_score(self.best.score)})"

    def _repr_html_(self) -> str:
        """The run as a notebook displays it: the result, the warnings, and the program."""
        account = judged_by(self.method, self.task).account
        said = [
            account.headline(self.best.evaluation),
            account.verdict(self.best.evaluation),
            *(warning.line for warning in self.warnings),
        ]
        # Without seconds, so that a notebook that is executed again shows no difference.
        said += [f"{self.programs} programs; ended by {self.reason}", near(self.reward_path)]
        return shown(f"Run {near(self.folder)}", said, self.best.source)


class Interrupted(KeyboardInterrupt):
    """Interruption of a fit by Ctrl-C. All results so far are saved in `folder`, from which the run can be resumed."""

    def __init__(self, folder: Path, best: Best | None) -> None:
        super().__init__(f"interrupted; {folder} can be resumed")
        self.folder = folder
        self.best = best

    def __reduce__(self) -> tuple[type[Interrupted], tuple[Path, Best | None]]:
        """Pickle the arguments of `__init__`. By default, exceptions are pickled with their message only."""
        return type(self), (self.folder, self.best)


def last_run(folder: Path) -> Path:
    """The folder of the last run with a reward in an expansion; the folder of the first run if no run has a reward."""
    found = [int(each.parts[-3]) for each in folder.glob("rounds/*/run/reward.py") if each.parts[-3].isdecimal()]
    return folder / "rounds" / str(max(found, default=0)) / "run"


def require_single(folder: Path) -> None:
    """Check that a folder is not the folder of an expansion, which has several runs.

    Raises:
        InputError: an expansion.
    """
    if (folder / "rounds").is_dir():
        raise InputError(f"{folder}: an expansion; expected one of its runs, such as {last_run(folder)}")


@contextmanager
def opened(folder: Path) -> Iterator[tuple[Store, Config]]:
    """Open the store and the configuration of a run for reading. Another process may still work on the run.

    Raises:
        InputError: the folder is no single run, is a run of a newer version, or contains links.
    """
    paths = RunPaths(folder)
    require_folder(folder)
    require_no_links(folder)
    require_single(folder)
    require_own_file(paths.config)
    store = Store(paths.database)
    try:
        yield store, resolve(paths.config)
    finally:
        store.close()


def is_own(store: Store, config: Config, folder: Path) -> bool:
    """Whether this user chose the run's demonstrations on this machine.

    If not, somebody else may have written the file names in the configuration, so the caller must not open these files.
    """
    kept, asked = acting.kept(store.meta("token"), RunPaths(folder).database), plain_acting(config)
    return kept is not None and all(asked.get(key) == kept.get(key) for key in DATA)


def best_record(store: Store, folder: Path) -> Record:
    """The record of the best program of a run so far.

    Raises:
        GraceError: the run has no valid program yet.
    """
    record = store.records().get(store.meta("best"))
    if record is None:
        raise GraceError(f"{folder}: no valid program yet; see why with: grace-irl show {RunPaths(folder).quoted}")
    return record


def best_records(store: Store) -> list[Record]:
    """The records of all valid programs: first the best program of the run, then the others by merit (`ranks.ranked`).

    The best program need not have the highest merit, because validation data may choose it. Programs that fail in
    strict mode are left out.
    """
    best, records = store.meta("best"), store.records()
    refused = {row.fate.program_id for row in store.fates() if row.fate.verdict == "invalid"}
    valid = [
        candidate(record)
        for name, record in records.items()
        if name not in refused and record.evaluation.valid and record.evaluation.complete
    ]
    return sorted((records[each.program.id] for each in ranked(valid)), key=lambda each: each.program.id != best)


@dataclass(frozen=True)
class Generation:
    """Counts and the best score of one generation.

    Attributes:
        number: number of the generation; 0 is the initial population.
        calls: number of results.
        kept, dropped, invalid, duplicate, repaired: number of decisions of each kind that the search made in this
            generation. A decision may be about a program of an earlier generation.
        failed: number of answers without a program.
        new_functions: number of different functions and classes that occur for the first time in this generation.
        reused_functions: number of different functions and classes that this and an earlier generation contain.
        score: score of the best program so far (`ranks.winner`); -inf if there is none.
        metrics: metrics of this best program.
        highest, mean: highest and mean score of the valid programs that this generation tried; None if there is none. A
            program that an earlier generation tried, and a reshaped program, does not count.
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
    score: float = float("-inf")
    metrics: Mapping[str, float] = field(default_factory=dict)
    highest: float | None = None
    mean: float | None = None


def history(store: Store) -> list[Generation]:
    """All generations of a run that have a result or a decision, in order."""
    requests, told, records = store.requests(), store.told(), store.records()
    verdicts = Counter((row.generation, row.fate.verdict) for row in store.fates())
    # A search that asks ahead may decide on a program after the generation of the program's request, perhaps in a
    # generation without requests.
    numbers = sorted({requests[index][0] for index in told} | {number for number, _ in verdicts})
    best: Scored | None = None
    known: set[str] = set()
    rows = []
    for number in numbers:
        own = [entry for entry in told.values() if requests[entry.index][0] == number]
        # Reshaping does not optimise the score, so the best score so far ignores reshaped programs.
        sought = [entry for entry in own if requests[entry.index][1] != "reshape"]
        new = [candidate(records[entry.program_id]) for entry in sought if entry.program_id]
        new = [scored for scored in new if scored.evaluation.valid and scored.evaluation.complete]
        best = winner(new if best is None else [best, *new])
        evaluation = best.evaluation if best else None
        first = [record for record in records.values() if requests[record.index][0] == number]
        tried = {each.program.id: each.evaluation.score for each in new if requests[each.index][0] == number}
        scores = [*filter(math.isfinite, tried.values())]
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
                score=evaluation.score if evaluation else float("-inf"),
                metrics=evaluation.metrics if evaluation else {},
                highest=max(scores, default=None),
                mean=sum(score / len(scores) for score in scores) if scores else None,
            )
        )
    return rows
