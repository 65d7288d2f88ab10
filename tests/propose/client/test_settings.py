"""Addresses that a user gives."""

from __future__ import annotations

import re
from pathlib import Path

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


PAGE = (Path(__file__).parents[3] / "docs" / "models.md").read_text()
ADDRESSES = re.findall(
    r"`grace-irl fit [^`]*--llm-url (\S+?)[ `]", PAGE.partition("## Providers")[2].partition("\n## ")[0]
)


def test_the_page_has_ten_providers() -> None:
    assert len(ADDRESSES) == len(set(ADDRESSES)) == 10


@pytest.mark.parametrize("address", ADDRESSES)
def test_an_address_of_the_page_is_used_as_it_stands(address: str) -> None:
    assert normalised(address) == normalised(f"{address}/") == address
