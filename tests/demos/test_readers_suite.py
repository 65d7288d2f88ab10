"""Every format's reader, by the suite of readers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

import pytest

from grace_irl.demos import save
from grace_irl.demos.files import Format, open_source
from grace_irl.demos.source import Source
from grace_irl.demos.trajectory import Demonstrations
from grace_irl.testing.readers import ReaderSuite


class Saved(ReaderSuite):
    """A format that we write, too."""

    name: ClassVar[Format]
    file: ClassVar[str]

    def make(self, demonstrations: Demonstrations, folder: Path) -> Callable[[], Source]:
        save(demonstrations, folder / self.file, self.name)
        return lambda: open_source(folder / self.file)


class TestParquet(Saved):
    name = "parquet"
    file = "set.parquet"


class TestNpz(Saved):
    name = "npz"
    file = "set.npz"


class TestMinari(Saved):
    name = "minari"
    file = "set-v0"


class TestMinariArrow(Saved):
    name = "minari-arrow"
    file = "set-v0"


class TestScreens(Saved):
    name = "parquet"
    file = "set.parquet"

    @pytest.fixture(autouse=True)
    def _screens(self, screens: Demonstrations) -> None:
        self.screens = screens

    def demonstrations(self) -> Demonstrations:
        return self.screens
