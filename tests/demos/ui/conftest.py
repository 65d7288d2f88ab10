"""The calendar's screens, unpacked once."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

from tests.demos.ui.data import CALENDAR


@pytest.fixture(scope="session")
def calendar(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with 83 screens of a calendar as JSON, and descriptions of them in YAML."""
    if not CALENDAR.is_file():
        pytest.skip("../shared/data/android is not there")
    folder = tmp_path_factory.mktemp("calendar")
    with tarfile.open(CALENDAR) as archive:
        archive.extractall(folder, filter="data")
    return next(folder.rglob("*.json")).parent
