"""Fixtures of the tests of the client."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.propose.client.server import ChatServer


@pytest.fixture(autouse=True)
def no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GRACE_IRL_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with ChatServer() as running:
        yield running
