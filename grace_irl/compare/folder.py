"""The folder of a comparison."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grace_irl.toml import from_json


@dataclass(frozen=True)
class ComparisonFolder:
    """Paths inside a comparison's folder (docs/compare.md)."""

    path: Path

    def job(self, method: str, seed: int) -> JobFolder:
        """The folder of one job."""
        return JobFolder(self.path / "jobs" / f"{method}-{seed}")

    @property
    def csv(self) -> Path:
        """One row for each job and environment."""
        return self.path / "results.csv"

    @property
    def table(self) -> Path:
        """The table, with its notes, in Markdown."""
        return self.path / "table.md"

    @property
    def lock(self) -> Path:
        """Held by the process that works on the comparison."""
        return self.path / "lock"

    @property
    def goals(self) -> Path:
        """The run that knows the goal states of all jobs, for the label "goal"."""
        return self.path / "goals"

    def curves(self, environment: str) -> Path:
        """The plot of learning curves in one environment."""
        return self.path / f"curves-{slug(environment)}.svg"


@dataclass(frozen=True)
class JobFolder:
    """Files of one job."""

    path: Path

    @property
    def result(self) -> Path:
        """Written last: the job has ended."""
        return self.path / "result.json"

    @property
    def log(self) -> Path:
        """The output of its process."""
        return self.path / "log.txt"

    @property
    def fit(self) -> Path:
        """The run, or the expansion, that recovers `grace`'s reward."""
        return self.path / "fit"

    @property
    def program(self) -> Path:
        """A recovered reward that is a program."""
        return self.path / "reward.py"

    @property
    def net(self) -> Path:
        """A recovered reward that is a network."""
        return self.path / "reward.pt"

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
