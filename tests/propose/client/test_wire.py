"""Connections, and the wait that a server asks for."""

from __future__ import annotations

import asyncio
import email.utils
import socket
import time

import pytest

from grace_irl.propose.client import ChatSettings, wire
from grace_irl.propose.client.errors import CallFailure
from grace_irl.propose.client.wire import Wire, retry_after


@pytest.mark.parametrize(("connect", "timeout"), [(0.2, 600.0), (10.0, 0.4)])
def test_a_host_that_takes_no_connection_is_away(
    connect: float, timeout: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wire, "CONNECT", connect)
    with socket.socket() as host:
        host.bind(("127.0.0.1", 0))
        host.listen(0)
        with socket.create_connection(host.getsockname()):  # the queue of connections is full
            client = Wire(ChatSettings(f"http://127.0.0.1:{host.getsockname()[1]}", timeout=timeout), "")
            with pytest.raises(CallFailure) as failed:
                asyncio.run(client.chat({"model": "m", "messages": []}))
    assert failed.value.away
    assert failed.value.message == "no connection within 0.2 s"


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, 0.0),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.25"}, 0.25),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after": "soon"}, 0.0),
        ({"retry-after": "nan"}, 0.0),
        ({"retry-after": "inf"}, 0.0),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
        ({"retry-after": "7", "retry-after-ms": "1500"}, 1.5),
    ],
)
def test_retry_after(headers: dict[str, str], expected: float) -> None:
    assert retry_after(headers) == expected


def test_retry_after_a_date() -> None:
    date = email.utils.formatdate(time.time() + 100, usegmt=True)
    assert 90 < retry_after({"retry-after": date}) <= 100
