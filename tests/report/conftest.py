"""Runs to report: small ones, made in seconds."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from grace_irl.demos import save
from grace_irl.demos.trajectory import Demonstrations, Metadata
from grace_irl.propose.protocol import Proposal
from grace_irl.runs.caller import Parts
from grace_irl.runs.config import resolve
from grace_irl.runs.fit import start
from tests.demos.ui.data import ANDROID
from tests.fakes.data import vector_set
from tests.fakes.in_process_sandbox import InProcessSandbox
from tests.fakes.scripted_proposer import ScriptedProposer
from tests.report.browser import Browser
from tests.states.pictures import REACHED, balls

SHIPPED = Path(__file__).parents[2] / "datasets" / "babyai-go-to-obj"


class Given:
    """Answers with these sources in turn, again and again."""

    def __init__(self, *sources: str) -> None:
        self.sources = sources

    async def propose(self, request: Any, parents: Any) -> Proposal:
        return Proposal(self.sources[request.index % len(self.sources)])


def program(value: str, arguments: str = "state") -> str:
    """A reward that is one expression."""
    head = "class Reward:\n    def __init__(self, extra_info=None): self.told = extra_info\n"
    return f"{head}    def reward_fn(self, {arguments}): return {value}\n"


FACED = """
import numpy as np


class Reward:
    def __init__(self, extra_info=None):
        self.steps = 0

    def reward_fn(self, state):
        self.steps += 1
        rows, columns = np.nonzero(state[:, :, 0] == 10)
        things = np.argwhere(~np.isin(state[:, :, 0], (1, 2, 10)))
        near = min((abs(things - (rows[0], columns[0])).sum(axis=1)).tolist(), default=9) if len(rows) else 9
        return 1.0 / near
"""


def fitted(folder: Path, demos: Path, proposer: Any, **flags: object) -> Path:
    """A run of a few programs in this process."""
    few = {"search.population": 3, "search.elite": 1, "search.generations": 2, "stop.max_calls": 9}
    config = resolve(flags={**few, "data.demos": (str(demos),), **flags})
    start(config, folder, Parts(proposer=proposer, sandbox=InProcessSandbox()))
    return folder


def vectors(path: Path, **options: Any) -> Path:
    """A set with named fields as a file."""
    items = vector_set(noise=0.08, **options).items
    save(Demonstrations(Metadata("vector", ("x", "height", "speed"), label="all"), items), path)
    return path


@pytest.fixture(scope="session")
def grid_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of the set that ships, by a program that is nearly right."""
    return fitted(tmp_path_factory.mktemp("grid") / "run", SHIPPED, Given(FACED))


@pytest.fixture(scope="session")
def vector_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of noisy vectors, with a few generations."""
    folder = tmp_path_factory.mktemp("vector")
    return fitted(folder / "run", vectors(folder / "set.parquet"), ScriptedProposer())


@pytest.fixture(scope="session")
def image_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of small pictures."""
    folder = tmp_path_factory.mktemp("image")
    save(balls(), folder / "set.parquet")
    return fitted(folder / "run", folder / "set.parquet", Given(REACHED))


@pytest.fixture(scope="session")
def android_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of real screens: an alarm that is set on the weekend."""
    if not ANDROID.is_dir():
        pytest.skip("../shared/data/android is not there")
    from tests.demos.ui.test_real_problems import REWARDS

    benchmarks = Path(__file__).parents[2] / "benchmarks"
    sys.path.insert(0, str(benchmarks))
    try:
        from android.problems import problems  # type: ignore[import-not-found]
    finally:
        sys.path.remove(str(benchmarks))
    (problem,) = (each for each in problems(ANDROID) if each.name == "alarm")
    folder = tmp_path_factory.mktemp("android")
    save(problem.train, folder / "set.parquet")
    return fitted(folder / "run", folder / "set.parquet", Given(REWARDS["alarm"]), **{"data.held_out": 0.0})


@pytest.fixture(scope="session")
def expansion(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two rounds with learning curves."""
    from tests.runs.expansions import FakeLearner, begun

    folder = tmp_path_factory.mktemp("expansion") / "run"
    begun(folder, FakeLearner())
    for number in (1, 2):
        looks = [
            {
                "steps": 100 * look,
                "mean": 7.0 * look * number,
                "success": None,
                "paid": 3.0 * look if look > 1 else None,
            }
            for look in range(1, 4)
        ]
        (folder / "rounds" / str(number) / "training" / "curve.json").write_text(json.dumps(looks))
    return folder


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """One for all tests."""
    with Browser(tmp_path_factory.mktemp("browser")) as opened:
        yield opened
