"""Jobs in new processes: how one starts and ends is looked at."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest

from grace_irl.work import process


@pytest.fixture(autouse=True)
def _new_processes() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(process, "subprocess", subprocess)
        yield
