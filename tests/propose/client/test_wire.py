"""The wait that a server asks for."""

from __future__ import annotations

import email.utils
import time

import pytest

from grace_irl.propose.client.wire import retry_after


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
