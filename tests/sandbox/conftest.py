"""The sandbox that the tests share, and zygotes of their own: how one starts and ends is looked at."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from grace_irl.sandbox import Sandbox, host, open_sandbox


@pytest.fixture(autouse=True, scope="package")
def _new_zygotes() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(host, "MOST_SPARE", 0)
        host.end_spare()
        yield


@pytest.fixture(scope="package")
def sandbox(_new_zygotes: None) -> Iterator[Sandbox]:
    """The pool that this machine offers."""
    with open_sandbox(workers=2) as opened:
        yield opened
