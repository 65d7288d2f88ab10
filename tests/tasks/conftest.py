"""The task of the tests of whole runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tasks.poles import TASK


@pytest.fixture
def task(tmp_path: Path) -> Path:
    path = tmp_path / "pole.toml"
    path.write_text(TASK)
    return path
