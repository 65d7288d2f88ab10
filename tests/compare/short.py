"""A short comparison, and what it leaves; for the tests of comparisons."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

pytest.importorskip("imitation", reason="not installed: pip install --no-deps imitation==1.0.1")

from grace_irl.compare.folder import ComparisonFolder
from grace_irl.compare.settings import Settings, comparison_of
from grace_irl.compare.table import MEASURED
from grace_irl.runs.config import resolve
from tests.compare.rewards import UPRIGHT
from tests.tasks.poles import TASK as CART_POLE

STEPS = 2048
LIMIT = 30
TASK = CART_POLE.replace("episodes = 2", f"episodes = 2\nmax_steps = {LIMIT}")
TASK_STEPS = 128
QUICK = ["--seeds", "1", "--steps", str(TASK_STEPS), "--episodes", "3", "--looks", "1", "--look-episodes", "2"]
QUICK += ["--choice-episodes", "1"]
"""Words of a comparison in the environment of `TASK`."""
ROOT = Path(__file__).parents[2]
HEAVY = f"{Path(__file__).with_name('rewards.py')}:heavy"
BARRED = f"{Path(__file__).with_name('rewards.py')}:barred"
BREAKS = f"{Path(__file__).with_name('rewards.py')}:breaks"


def settings(demos: Path, *methods: str, fit: dict[str, object] | None = None, **changes: object) -> Settings:
    """A short comparison."""
    quick: dict[str, object] = {"steps": STEPS, "seeds": 1, "episodes": 4, "looks": 1, "look_episodes": 2}
    flags: dict[str, object] = {
        "data.demos": (str(demos),),
        "data.held_out": 0.0,
        "search.generations": 1,
        "search.population": 4,
        "search.elite": 2,
        "expand.trust": True,
    }
    return Settings(comparison_of({**quick, "methods": methods, **changes}), resolve(flags={**flags, **(fit or {})}))


def upright(folder: Path, source: str = UPRIGHT) -> str:
    path = folder / "upright.py"
    path.write_text(source)
    return str(path)


def rows(folder: Path) -> list[dict[str, str]]:
    """The results, without what the machine decides."""
    with ComparisonFolder(folder).csv.open() as file:
        return [{key: value for key, value in row.items() if key not in MEASURED} for row in csv.DictReader(file)]
