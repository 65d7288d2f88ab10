"""Addresses and numbers that a user gives."""

from __future__ import annotations

from typing import Any

import pytest

from grace_irl.errors import InputError
from grace_irl.propose.client.settings import ChatSettings, normalised


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("http://127.0.0.1:8000", "http://127.0.0.1:8000/v1"),
        (" http://127.0.0.1:8000/ ", "http://127.0.0.1:8000/v1"),
        ("http://127.0.0.1:8000/v1/", "http://127.0.0.1:8000/v1"),
        ("http://127.0.0.1:8000/v1/chat/completions", "http://127.0.0.1:8000/v1"),
        ("http://127.0.0.1:8000/v1/models", "http://127.0.0.1:8000/v1"),
        ("https://host/api/v3", "https://host/api/v3"),
        ("https://[::1]:8000", "https://[::1]:8000/v1"),
    ],
)
def test_an_address_gets_its_path(given: str, expected: str) -> None:
    assert normalised(given) == expected
    assert ChatSettings(given).url == expected
    assert normalised(expected) == expected


@pytest.mark.parametrize("url", ["", "localhost:8000", "ftp://host", "http://", "http://host:99999", "http://host:0"])
def test_what_is_no_address(url: str) -> None:
    with pytest.raises(InputError, match=r"such as http://127\.0\.0\.1:8000"):
        normalised(url)


@pytest.mark.parametrize("url", ["http://me:secret@host", "http://host/v1?key=secret", "http://host/#secret"])
def test_a_key_in_the_address_is_refused_and_not_shown(url: str) -> None:
    with pytest.raises(InputError, match="GRACE_IRL_API_KEY") as raised:
        normalised(url)
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"temperature": -0.1}, "temperature -0.1; expected 0 to 10"),
        ({"temperature": float("nan")}, "temperature nan; expected 0 to 10"),
        ({"max_tokens": 0}, "max-tokens 0; expected 1 or more"),
        ({"concurrency": 0}, "concurrency 0; expected 1 to 1000"),
        ({"concurrency": 1001}, "concurrency 1001; expected 1 to 1000"),
        ({"patience": -1.0}, "patience -1.0; expected 0 or more"),
        ({"timeout": 0.0}, "timeout 0.0; expected 0.001 or more"),
        ({"attempts": 0}, "attempts 0; expected 1 to 100"),
        ({"max_bytes": 1}, "max-bytes 1; expected 1000 or more"),
        ({"answer_format": "yaml"}, "answer format 'yaml'; expected auto, code or json"),
    ],
)
def test_numbers_out_of_range(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        ChatSettings("http://host", **change)
