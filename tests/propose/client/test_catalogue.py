"""The model that is asked, and the length of its context."""

from __future__ import annotations

from typing import Any

import pytest

from grace_irl.errors import InputError
from grace_irl.propose.client.recovery import Catalogue

TWO = Catalogue([{"id": "a"}, {"id": "b:latest"}])


@pytest.mark.parametrize(
    ("catalogue", "wanted", "expected"),
    [
        (Catalogue([{"id": "only"}]), "", "only"),
        (TWO, "a", "a"),
        (TWO, "b", "b"),
        (TWO, "b:latest", "b:latest"),
        (Catalogue(), "any", "any"),
        (TWO, "c", "c"),  # a server may have what it does not list
    ],
)
def test_the_model(catalogue: Catalogue, wanted: str, expected: str) -> None:
    assert catalogue.chosen(wanted) == expected


@pytest.mark.parametrize(
    ("catalogue", "wanted", "message"),
    [
        (TWO, "", r"the server has 2 models \(a, b:latest\); expected one: name it with --model"),
        (Catalogue(), "", r"the server has 0 models"),
        (Catalogue([{"id": f"m{i}"} for i in range(500)]), "", r"m19, ….; expected one"),
    ],
)
def test_a_model_that_is_not_to_be_had(catalogue: Catalogue, wanted: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        catalogue.chosen(wanted)


def test_names_that_a_server_lists() -> None:
    gemini = Catalogue([{"id": "models/gemini-2.5-flash", "context_length": 9}])
    assert gemini.lists("gemini-2.5-flash")
    assert gemini.lists("models/gemini-2.5-flash")
    assert not gemini.lists("gemini")
    assert gemini.context_length("gemini-2.5-flash") == 9


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({"max_model_len": 8192}, 8192),  # vLLM
        ({"meta": {"n_ctx": 4096, "n_ctx_train": 32768}}, 4096),  # llama.cpp
        ({"context_length": 128000}, 128000),
        ({}, None),
        ({"max_model_len": None, "meta": None}, None),
        ({"max_model_len": "long"}, None),
    ],
)
def test_the_context(entry: dict[str, Any], expected: int | None) -> None:
    catalogue = Catalogue([{"id": "m", **entry}, {"id": "other", "max_model_len": 1}])
    assert catalogue.context_length("m") == expected
    assert catalogue.context_length("absent") is None
