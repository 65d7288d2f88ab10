"""Episodes of the point robot, an empty folder to work in, and a run that attempts only read."""

from pathlib import Path

import numpy as np
import pytest

import grace_irl

from .robot import GOAL, drives, write_states


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's own folder, which is empty."""
    for name in ("OPENAI_BASE_URL", "GRACE_IRL_LLM_URL", "GRACE_IRL_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def experts() -> list[np.ndarray]:
    """Episodes that reach the goal."""
    return drives(0, GOAL)


@pytest.fixture
def negatives() -> list[np.ndarray]:
    """Episodes that end anywhere else."""
    return drives(1, None)


@pytest.fixture(scope="session")
def recovered(tmp_path_factory: pytest.TempPathFactory) -> grace_irl.Run:
    """A run in Python on the README's two Parquet files."""
    folder = tmp_path_factory.mktemp("recovered")
    expert = write_states(folder / "expert.parquet", drives(0, GOAL))
    negative = write_states(folder / "negative.parquet", drives(1, None))
    return grace_irl.fit([str(expert), str(negative)], out=folder / "run")
