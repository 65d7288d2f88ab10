"""The folder of a comparison, and the outcome of each job in it: a method with one seed, wherever it was measured."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from grace_irl.atomic import write_atomically
from grace_irl.rewards.scale import Form
from grace_irl.toml import from_json


class ComparisonFolder:
    """Paths inside a comparison's folder (docs/compare.md).

    Attributes:
        csv: one row for each job and environment.
        table: the table, with its notes, in Markdown.
        lock: held by the process that works on the comparison.
        goals: the run that knows the goal states of all jobs, for the label "goal".
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

    def curves(self, environment: str) -> Path:
        """The plot of learning curves in one environment."""
        return self.path / f"curves-{slug(environment)}.svg"


class JobFolder:
    """Files of one job.

    Attributes:
        result: written last: the job has ended.
        log: the output of its process.
        fit: the run, or the expansion, that recovers `grace`'s reward.
        program, net: a recovered reward that is a program, or a network.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.result = path / "result.json"
        self.log = path / "log.txt"
        self.fit = path / "fit"
        self.program = path / "reward.py"
        self.net = path / "reward.pt"

    def curve(self, environment: str) -> Path:
        """The learning curve in one environment."""
        return self.path / f"curve-{slug(environment)}.json"

    def policy(self, environment: str) -> Path:
        """The last policy of the training in one environment."""
        return self.path / f"policy-{slug(environment)}.pt"

    def favourite(self, environment: str) -> Path:
        """The policy that the training's own signal pays most, if that is not the last one."""
        return self.path / f"favourite-{slug(environment)}.pt"


def slug(environment: str) -> str:
    """An environment's name as part of a file's name."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", environment).strip("-.")


def read_curve(path: Path) -> list[dict[str, Any]]:
    """The points of a learning curve so far; none if there is no file."""
    try:
        text = path.read_bytes()
        looks = from_json(list[_Look], text)
        numbers = [number for each in looks for number in (each.steps, each.mean, each.success) if number is not None]
        return from_json(list[dict[str, Any]], text) if all(map(math.isfinite, numbers)) else []
    except (OSError, ValueError):
        return []


@dataclass(frozen=True)
class _Look:
    """Fields that a drawn point must have."""

    steps: float
    mean: float
    success: float | None = None


PLAYED = ("mean", "deviation", "success", "length", "components")
"""Names of what the episodes of an evaluation say, in `TrainingOutcome`, `Favourite` and `grace_irl.rl.curve.Point`."""


@dataclass(frozen=True)
class Favourite:
    """The policy, of those kept along a training, that the training's own signal pays most (`choice`).

    Attributes:
        trained: environment steps of training that it has had.
        paid: what the signal pays an episode of each policy that was kept, in order, the last policy's at the end; ()
            if there was one policy only.
        choosing: environment steps that were played to choose, which are none of training.
        mean, deviation, success, length, components: as in `TrainingOutcome`, of the same episodes.
    """

    trained: int
    paid: tuple[float, ...]
    choosing: int
    mean: float
    deviation: float
    success: float | None
    length: float
    components: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class TrainingOutcome:
    """A training's last policy as it was evaluated at the end, on the environment's own reward, and its favourite.

    Attributes:
        environment: the one of training and evaluation.
        transfer: whether its reward was recovered elsewhere.
        episodes: that were played.
        mean, deviation: of their returns.
        success: share that reached the goal; None if there is none.
        length: mean steps of an episode.
        components: mean sums of the components of the reward that the environment names.
        steps: environment steps of training.
        seconds: wall seconds of training, without evaluations and without the search for a reward; None: not known.
        epic: EPIC distance of the recovered reward from the true one; None if there is not both.
        favourite: the policy that the training's own signal pays most, maybe the last one; None if the signal failed,
            or if an earlier version did the job.
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

    @property
    def rate(self) -> float | None:
        """Environment steps a second."""
        return self.steps / self.seconds if self.seconds and self.steps else None


@dataclass(frozen=True)
class JobResult:
    """Progress of a job.

    Attributes:
        method, seed: which job.
        outcomes: in the environment first, then in those that its reward was carried to.
        notes: what a reader should know of it.
        failure: why it failed, in one line; "" if it did not.
        carried: the environments, as the settings name them, in which its reward was tried, or found not to be for.
        form: in which policies are paid a recovered program (`grace_irl.rewards.scale`); "" if there is none.
        data: digest of the demonstrations that it learnt from (`grace_irl.compare.settings.digest_of`), the same for
            all methods of a seed.
    """

    method: str
    seed: int
    outcomes: tuple[TrainingOutcome, ...] = ()
    notes: tuple[str, ...] = ()
    failure: str = ""
    carried: tuple[str, ...] = ()
    form: Form | Literal[""] = ""
    data: str = ""

    def ended(self, transfer: Iterable[str]) -> bool:
        """Whether nothing is left to do, the environments being these that the reward is carried to."""
        return not self.failure and bool(self.outcomes) and set(transfer) <= set(self.carried)


def write_result(path: Path, result: JobResult) -> None:
    """Keeps a result, whole or not at all.

    Raises:
        InputError: it cannot be written.
    """
    write_atomically(path, json.dumps(asdict(result), indent=1) + "\n")


def read_result(path: Path) -> JobResult | None:
    """A result that was kept; None if there is none of this version: the job is then done again."""
    try:
        found = from_json(JobResult, path.read_bytes())
        return found if path.parent.name == f"{found.method}-{found.seed}" else None
    except (OSError, ValueError):
        return None
