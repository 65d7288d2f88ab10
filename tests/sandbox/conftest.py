"""The sandbox that the tests share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from grace_irl.sandbox import Sandbox, open_sandbox


@pytest.fixture(scope="session")
def sandbox() -> Iterator[Sandbox]:
    """The pool that this machine offers."""
    with open_sandbox(workers=2) as pool:
        yield pool
