"""Zygotes of these tests are their own: how one starts and ends is looked at."""

from collections.abc import Iterator

import pytest

from grace_irl.sandbox import host


@pytest.fixture(autouse=True, scope="package")
def _new_zygotes() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(host, "MOST_SPARE", 0)
        host.end_spare()
        yield
