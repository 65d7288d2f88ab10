"""The folder of a comparison of methods, and the results of its jobs. A job runs one method with one seed."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from grace_irl.atomic import write_atomically
from grace_irl.rewards.scale import Form
from grace_irl.toml import from_json

if TYPE_CHECKING:
    from grace_irl.rl.curve import Point


class ComparisonFolder:
    """Paths inside a comparison's folder (docs/compare.md).

    Attributes:
        csv: CSV file with one row for each job and environment.
        table: Markdown file with the tables and their notes.
        lock: lock file of the process that works on the comparison.
        goals: folder with the goal states of the demonstrations, which all jobs use. Only the label rule "goal" needs
            this folder.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.csv = path / "results.csv"
        self.table = path / "table.md"
        self.lock = path / "lock"
        self.goals = path / "goals"

    def job(self, method: str, seed: int) -> JobFolder:
        """The folder of one job."""
        return JobFolder(self.path / "jobs" / f"{method}-{seed}")

    def jobs(self, method: str) -> list[JobFolder]:
        """The folders of the method's jobs that have begun."""
        found = self.path.glob(f"jobs/{method}-*")
        return [JobFolder(each) for each in found if each.name.removeprefix(f"{method}-").isdecimal()]

    def curves(self, environment: str) -> Path:
        """The file with the plot of learning curves in one environment."""
        return self.path / f"curves-{slug(environment)}.svg"


class JobFolder:
    """Files of one job.

    Attributes:
        result: result of the job so far.
        log: output of the job's process.
        fit: folder of the search, for a method of `grace-irl fit`. It holds a run, or an expansion, which alternates
            runs with trainings of a policy.
        program: file of the recovered reward if it is a program.
        net: file of the recovered reward if it is a neural network.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.result = path / "result.json"
        self.log = path / "log.txt"
        self.fit = path / "fit"
        self.program = path / "reward.py"
        self.net = path / "reward.pt"

    def curve(self, environment: str) -> Path:
        """The file with the learning curve in one environment."""
        return self.path / f"curve-{slug(environment)}.json"

    def policy(self, environment: str) -> Path:
        """The file with the last policy of the training in one environment."""
        return self.path / f"policy-{slug(environment)}.pt"

    def favourite(self, environment: str) -> Path:
        """The file with the favourite of the training in one environment (`Favourite`).

        If the last policy is the favourite, the file is missing.
        """
        return self.path / f"favourite-{slug(environment)}.pt"


def slug(environment: str) -> str:
    """An environment's name in a form for file names, such as `file.py-make` for `file.py:make`."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", environment).strip("-.")


def read_curve(path: Path) -> list[dict[str, Any]]:
    """The points of a learning curve so far; [] if the file is missing or invalid."""
    try:
        text = path.read_bytes()
        looks = from_json(list[_Look], text)
        numbers = [number for each in looks for number in (each.steps, each.mean, each.success) if number is not None]
        return from_json(list[dict[str, Any]], text) if all(map(math.isfinite, numbers)) else []
    except (OSError, ValueError):
        return []


@dataclass(frozen=True)
class _Look:
    """The fields of one point of a learning curve that the plot needs."""

    steps: float
    mean: float
    success: float | None = None


PLAYED = ("mean", "deviation", "success", "length", "components", "score")
"""Results of an evaluation: fields that `TrainingOutcome`, `Favourite` and `grace_irl.rl.curve.Point` share."""


def not_finite(found: TrainingOutcome | Favourite | Point) -> str:
    """The first result of an evaluation that is not a finite number, such as "mean = -inf"; "" if there is none."""
    numbers = {name: getattr(found, name) for name in PLAYED if name != "components"} | found.components
    wrong = (name for name, value in numbers.items() if value is not None and not math.isfinite(value))
    return next((f"{name} = {numbers[name]}" for name in wrong), "")


@dataclass(frozen=True)
class Favourite:
    """The favourite of a training: the candidate with the highest mean return under the reward of the training.

    The candidates are the copies of the policy kept during training, and the last policy (`grace_irl.rl.choice`).

    Attributes:
        trained: number of environment steps for which the favourite was trained.
        paid: mean return of each candidate under the reward of the training, in order of training; () if no copies were
            kept, or if the training has no reward, as in behaviour cloning.
        choosing: number of environment steps in the episodes that compare the candidates. These are not training steps.
        mean, deviation, success, length, components, score: results of the favourite, as in `TrainingOutcome`. The
            favourite and the last policy are evaluated with equal seeds.
    """

    trained: int
    paid: tuple[float, ...]
    choosing: int
    mean: float
    deviation: float
    success: float | None
    length: float
    components: dict[str, float] = field(default_factory=dict)
    score: float | None = None


@dataclass(frozen=True)
class TrainingOutcome:
    """The final evaluation of a training's last policy, under the environment's own reward.

    `favourite` holds the final evaluation of the training's favourite.

    Attributes:
        environment: environment of training and evaluation.
        transfer: whether the reward was recovered in another environment.
        episodes: number of episodes of the evaluation.
        mean, deviation: mean and standard deviation of the episodes' returns.
        success: share of episodes that reached the goal; None if the environment has no goal.
        length: mean steps of an episode.
        components: sum of each reward component over an episode, averaged over the episodes, by component name.
        steps: environment steps of training.
        seconds: wall seconds of training, without evaluations and without the search for a reward; None if unknown.
        epic: EPIC distance between the recovered reward and the true one; None if either is missing.
        favourite: the favourite, which may be the last policy. None if the choice failed, or if an earlier version of
            grace-irl ran the job.
        score: mean score of the episodes in the comparison's task; None without a task, and in transfer environments.
        learner: settings of PPO in this environment, in one line; "" if the method trains without environment steps, or
            if an earlier version of grace-irl ran the job.
        versions: versions of the packages that ran the training, in one line; "" if an earlier version of grace-irl ran
            the job.
    """

    environment: str
    transfer: bool
    episodes: int
    mean: float
    deviation: float
    success: float | None
    length: float
    components: dict[str, float] = field(default_factory=dict)
    steps: int = 0
    seconds: float | None = None
    epic: float | None = None
    favourite: Favourite | None = None
    score: float | None = None
    learner: str = ""
    versions: str = ""

    @property
    def rate(self) -> float | None:
        """Environment steps of training per second; None if unknown."""
        return self.steps / self.seconds if self.seconds and self.steps else None


@dataclass(frozen=True)
class Milestone:
    """A new highest score of a search, and what the search had used by then.

    The numbers are those of `Used` for the requests with a result: this one, and those before it.

    Attributes:
        asked: answers to the search's requests for programs.
        tokens: input and output tokens.
        steps: environment steps of the search.
        score: the score of the program.
    """

    asked: int
    tokens: int
    steps: int
    score: float


@dataclass(frozen=True)
class Used:
    """Resources that a method used to find its reward, before the training of its policy.

    All numbers are 0 for methods without a search.

    Attributes:
        asked: number of answers to the search's requests for programs.
        trained: number of different programs on which the search trained policies. Earlier versions of a program, and
            programs whose training failed, count, too.
        calls: number of prompts that a model or a person answered.
        tokens_in, tokens_out: input and output tokens of these prompts and answers, as the model's server counted them.
        steps: environment steps of the search. If the search trains policies, these are the steps of its trainings. A
            training counts up to its last evaluation. In an expansion, these are the steps of the policies' episodes
            that become negative demonstrations.
        seconds: wall seconds of the search; None if search and training alternate.
        writer: names of the proposers that wrote the programs, with the names of models; "" if unknown.
        measure: quantity that the scores of the search measure: "score" of the task, or "fitness" on demonstrations; ""
            if unknown, so that they are compared with no others.
        milestones: the new highest scores of the search, in the order of the requests; () for an expansion, whose runs
            have different data, and if an earlier version of grace-irl ran the job.
    """

    asked: int = 0
    trained: int = 0
    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    steps: int = 0
    seconds: float | None = 0.0
    writer: str = ""
    measure: str = ""
    milestones: tuple[Milestone, ...] = ()


@dataclass(frozen=True)
class JobResult:
    """The result of a job so far.

    Attributes:
        method, seed: method and seed of the job.
        outcomes: outcome in the comparison's environment, then those in the transfer environments.
        notes: remarks for readers of the results.
        failure: reason of a failure, in one line; "" if the job did not fail.
        carried: names of the finished transfer environments, as in the settings. In a transfer environment, policies
            are trained on a reward recovered in another environment. If this reward cannot be used there, the
            environment also counts as finished.
        form: conversion of a recovered program's reward to the learner's reward, for example "logit"
            (`grace_irl.rewards.scale`); "" if no program was recovered.
        data: digest of the job's demonstrations (`grace_irl.compare.settings.digest_of`); "" without any. All jobs
            with the same seed have the same digest.
        used: resources that the search used; None if the job failed before its first outcome, or if an earlier version
            of grace-irl ran the job.
    """

    method: str
    seed: int
    outcomes: tuple[TrainingOutcome, ...] = ()
    notes: tuple[str, ...] = ()
    failure: str = ""
    carried: tuple[str, ...] = ()
    form: Form | Literal[""] = ""
    data: str = ""
    used: Used | None = None

    def ended(self, transfer: Iterable[str]) -> bool:
        """Whether the job is complete, including training in these transfer environments."""
        return not self.failure and bool(self.outcomes) and set(transfer) <= set(self.carried)


def write_result(path: Path, result: JobResult) -> None:
    """Write a result atomically.

    Raises:
        InputError: the file cannot be written.
    """
    write_atomically(path, json.dumps(asdict(result), indent=1) + "\n")


def read_result(path: Path) -> JobResult | None:
    """Read a result. Return None if the file is missing, invalid or from another job: the job is then repeated.

    Numbers that are not finite make a result invalid.
    """
    try:
        found = from_json(JobResult, path.read_bytes())
    except (OSError, ValueError):
        return None
    evaluated = [each for outcome in found.outcomes for each in (outcome, outcome.favourite) if each is not None]
    own = path.parent.name == f"{found.method}-{found.seed}"
    reached = [each.score for each in found.used.milestones] if found.used is not None else []
    return found if own and not any(map(not_finite, evaluated)) and all(map(math.isfinite, reached)) else None
