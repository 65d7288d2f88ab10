"""Demonstrations of vectors, and a run on them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from grace_irl.demos import save
from tests.cli.commands import command, last_object
from tests.fakes.data import vector_set


@pytest.fixture(scope="session")
def demos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("demos") / "set.parquet"
    save(vector_set(10, 10, 20), path)
    return path


@pytest.fixture(scope="session")
def fitted(demos: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("runs") / "run"
    done = command("fit", "--demos", str(demos), "--out", str(folder), "--generations", "3", "--json")
    assert done.returncode == 0, done.stderr
    return folder, last_object(done.stdout)
