"""Bodies of responses, whole and broken."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grace_irl.propose.client.dialect import answers, shared_out
from grace_irl.propose.client.errors import CallFailure
from grace_irl.propose.protocol import Completion


def body(*choices: dict[str, Any], **more: Any) -> bytes:
    return json.dumps({"choices": choices, **more}).encode()


def choice(content: Any = "text", finish: str | None = "stop", **message: Any) -> dict[str, Any]:
    return {"message": {"content": content, **message}, "finish_reason": finish}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (choice(), Completion("text")),
        (choice("", "stop"), Completion("")),
        (choice(None, "stop"), Completion("")),
        (choice("cut", "length"), Completion("cut", "length")),
        (choice("", "content_filter"), Completion("", "refusal")),
        (choice(None, "stop", refusal="I will not"), Completion("I will not", "refusal")),
        (choice("text", "stop", refusal=None), Completion("text")),
        (choice("text", None), Completion("text")),
        (choice("text", "eos"), Completion("text")),
        (choice([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]), Completion("ab")),
        (choice("half \ud800 a pair"), Completion("half ? a pair")),
    ],
)
def test_choices(given: dict[str, Any], expected: Completion) -> None:
    assert answers(body(given), 1, 0.0) == (expected,)


def test_prompt_tokens_and_seconds_count_once_and_the_rest_is_shared_out() -> None:
    usage = {"prompt_tokens": 100, "completion_tokens": 13}
    first, second = answers(body(choice("aaaa"), choice("aaaaaaa"), usage=usage), 2, 2.5)
    assert (first.tokens_in, first.tokens_out, first.seconds) == (100, 5, 2.5)
    assert (second.tokens_in, second.tokens_out, second.seconds) == (0, 8, 0.0)


@pytest.mark.parametrize(
    "usage", [None, [], {}, {"prompt_tokens": "7"}, {"prompt_tokens": -7}, {"prompt_tokens": True}]
)
def test_tokens_that_a_server_does_not_count_are_none(usage: Any) -> None:
    (one,) = answers(body(choice(), usage=usage), 1, 0.0)
    assert (one.tokens_in, one.tokens_out) == (0, 0)


def test_tokens_that_are_sent_as_floats_count() -> None:
    usage = {"prompt_tokens": 1e3, "completion_tokens": 12.0}
    (one,) = answers(body(choice(), usage=usage), 1, 0.0)
    assert (one.tokens_in, one.tokens_out) == (1000, 12)


def test_an_answer_in_which_the_model_failed_is_none() -> None:
    failed = {**choice("class Rew", "error"), "error": {"code": 502, "message": "Provider disconnected"}}
    assert [one.text for one in answers(body(failed, choice("whole")), 2, 0.0)] == ["whole"]
    with pytest.raises(CallFailure) as raised:
        answers(body(failed), 1, 0.0)
    assert (raised.value.kind, raised.value.busy, raised.value.said) == ("server error", False, "Provider disconnected")


def test_choices_are_in_the_order_of_their_indices_and_never_more_than_asked_for() -> None:
    shuffled = [{**choice(text), "index": index} for index, text in ((2, "c"), (0, "a"), (1, "b"))]
    assert [one.text for one in answers(body(*shuffled), 2, 0.0)] == ["a", "b"]


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        (b"", "empty body"),
        (b" \n", "empty body"),
        (b'{"choices": [{"mess', "malformed body"),
        (b"<html>", "malformed body"),
        (b"\xff\xfe\x00", "malformed body"),
        (b"[" * 100_000, "malformed body"),
        (b"[]", "malformed body"),
        (b"null", "malformed body"),
        (b"{}", "malformed body"),
        (b'{"choices": {}}', "malformed body"),
        (b'{"choices": [1]}', "malformed body"),
        (b'{"choices": [{}]}', "malformed body"),
        (b'{"choices": [{"message": {"content": 5}}]}', "malformed body"),
        (b'{"choices": []}', "no answer"),
        (b'{"error": {"message": "over capacity", "code": 503}}', "server error"),
        (b'{"error": {"message": "slow down", "code": 429}}', "busy"),
        (b'{"error": {"message": "no", "code": 400}}', "rejected"),
        (b'{"error": "over capacity"}', "server error"),
        (b'{"choices": [{"message": {"content": "class Rew"}, "finish_reason": "error"}]}', "server error"),
    ],
)
def test_broken_bodies(given: bytes, kind: str) -> None:
    with pytest.raises(CallFailure) as raised:
        answers(given, 1, 0.0)
    assert raised.value.kind == kind


KEYS = st.sampled_from(["choices", "message", "content", "usage", "error", "code", "finish_reason", "index", "refusal"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 600) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)


@given(st.binary(max_size=200) | JSON.map(lambda value: json.dumps(value).encode()))
def test_bytes_of_any_kind_are_answers_or_a_failure(given: bytes) -> None:
    with contextlib.suppress(CallFailure):
        assert answers(given, 1, 0.0)


@given(st.integers(0, 10**6), st.lists(st.integers(0, 10**5), min_size=1, max_size=40))
def test_shares_add_up(total: int, weights: list[int]) -> None:
    parts = shared_out(total, weights)
    assert sum(parts) == total
    assert min(parts) >= 0
    whole = sum(weights) + len(weights)
    assert all(abs(part - total * (weight + 1) / whole) <= 1 for part, weight in zip(parts, weights, strict=True))
