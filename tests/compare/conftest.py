"""Demonstrations of CartPole in files, and comparisons whose jobs run in this process."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from grace_irl.compare import comparison as comparisons
from grace_irl.compare.job import run_job
from grace_irl.demos import save
from grace_irl.demos.trajectory import Demonstrations
from grace_irl.runs.expand import expansion
from tests.rl.cart_pole import experts, play


@pytest.fixture(scope="session")
def cart_pole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of experts that balance and negatives that fall."""
    folder = tmp_path_factory.mktemp("cart-pole")
    known = experts(3)
    save(known, folder / "expert.parquet")
    negatives = tuple(play(100 + seed, "negative") for seed in range(4))
    save(Demonstrations(known.metadata, negatives), folder / "negative.parquet")
    return folder


@pytest.fixture
def in_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs in this process, with a scripted learner for expansion."""
    from tests.compare.corridor import Scripted

    def run_jobs(folder: Path, jobs: Sequence[tuple[str, int]], *_: object) -> None:
        for method, seed in jobs:
            run_job(folder, method, seed, 1)

    monkeypatch.setattr(comparisons, "run_jobs", run_jobs)
    monkeypatch.setattr(expansion, "PpoLearner", Scripted)


@pytest.fixture
def task(tmp_path: Path) -> Path:
    """A file of a short task in CartPole."""
    from tests.compare.short import TASK

    path = tmp_path / "pole.toml"
    path.write_text(TASK)
    return path
