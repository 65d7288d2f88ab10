"""The client when a server declines parameters or is busy."""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from grace_irl.errors import InputError
from grace_irl.propose.client import CallFailed, ChatClient, ServerGone
from tests.propose.client import server as says
from tests.propose.client.server import Behaviour, ChatServer
from tests.propose.client.talk import PROMPT, Talk


def in_a_list(message: str) -> Behaviour:
    """An error object as Gemini sends it."""
    inner = {"code": 400, "message": message, "status": "INVALID_ARGUMENT"}
    return Behaviour(status=400, body=json.dumps([{"error": inner}]).encode())


def detail(found: object) -> Behaviour:
    """An error as servers built with FastAPI send it."""
    return Behaviour(status=422, body=json.dumps({"detail": found}).encode())


REFUSALS: dict[str, Callable[[dict[str, Any]], Behaviour | None]] = {
    "temperature": lambda sent: (
        says.error(400, "Unsupported value: 'temperature'", param="temperature") if "temperature" in sent else None
    ),
    "temperature by its name": lambda sent: (
        says.error(422, "temperature: Extra inputs are not permitted") if "temperature" in sent else None
    ),
    "max_tokens": lambda sent: (
        says.error(400, "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.")
        if "max_tokens" in sent
        else None
    ),
    "temperature in Gemini's words": lambda sent: (
        in_a_list("temperature is not supported") if "temperature" in sent else None
    ),
    "temperature in FastAPI's words": lambda sent: (
        detail([{"loc": ["body", "temperature"], "msg": "Input should be less than 1", "type": "less_than"}])
        if "temperature" in sent
        else None
    ),
    "n in FastAPI's words": lambda sent: (
        detail([{"loc": ["body", "n"], "msg": "Input should be 1"}]) if sent.get("n", 1) > 1 else None
    ),
    "n": lambda sent: says.error(400, "n must be 1, got 2") if sent.get("n", 1) > 1 else None,
    "system": lambda sent: (
        says.error(400, "System role not supported") if sent["messages"][0]["role"] == "system" else None
    ),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_what_a_server_does_not_take_is_left_out_with_one_note(server: ChatServer, name: str) -> None:
    server.rule = REFUSALS[name]
    talk = Talk(server, concurrency=4)

    async def many(client: ChatClient) -> None:
        first = await asyncio.gather(*(client.complete(PROMPT, 2) for place in range(4)))
        assert [len(part) for part in first] == [2] * 4
        asked = len(server.payloads)
        assert 1 <= asked - len(server.served) // (1 if name[:2].strip() == "n" else 2) <= 4
        assert len(await client.complete(PROMPT, 2)) == 2
        assert len(server.payloads) == asked + (2 if name[:2].strip() == "n" else 1)  # remembered

    talk.run(many)
    assert len(talk.notes) == 1
    assert "\n" not in talk.notes[0]


def test_another_refusal_fails_the_call_in_the_servers_words(server: ChatServer) -> None:
    server.rule = lambda payload: says.error(400, "messages: at most 3 of them", param="messages")
    with pytest.raises(CallFailed, match=r"refuses the request .HTTP 400: messages: at most 3 of them."):
        Talk(server).texts()
    assert len(server.payloads) == 1


def test_a_key_that_gemini_refuses(server: ChatServer) -> None:
    server.rule = lambda payload: in_a_list("API key not valid. Please pass a valid API key.")
    with pytest.raises(InputError, match=r"wants a key, and none is set .HTTP 400: API key not valid"):
        Talk(server).texts()


def test_a_refusal_as_text_fails_the_call_in_its_words(server: ChatServer) -> None:
    server.rule = lambda payload: detail("no pictures here")
    with pytest.raises(CallFailed, match="HTTP 422: no pictures here"):
        Talk(server).texts()


def test_a_prompt_that_moderation_flags_is_a_refusal(server: ChatServer) -> None:
    server.rule = lambda payload: says.error(403, "Your chosen model requires moderation and your input was flagged")
    got = Talk(server).run(lambda client: client.complete(PROMPT))
    assert [one.finish for one in got] == ["refusal"]


def test_a_request_that_nothing_behind_the_address_answers(server: ChatServer) -> None:
    server.rule = lambda payload: says.error(404, "No endpoints found that support image input")
    with pytest.raises(InputError, match=r"No endpoints found that support image input.; correct --model or --llm-url"):
        Talk(server).texts()


def test_busy_servers_are_obeyed(server: ChatServer) -> None:
    server.script = [says.error(429, "slow down", {"retry-after": "0.4"})] * 2
    arrivals: list[float] = []
    server.rule = lambda payload: arrivals.append(time.monotonic())  # type: ignore[func-returns-value]
    assert Talk(server, attempts=1).texts() == server.served
    assert [later - earlier >= 0.39 for earlier, later in itertools.pairwise(arrivals)] == [True, True]


def test_a_server_that_stays_busy_stops_the_run(server: ChatServer) -> None:
    server.rule = lambda payload: says.BUSY
    with pytest.raises(ServerGone, match=r"too busy for the 0\.2 s of --llm-patience .HTTP 429: slow down"):
        Talk(server, patience=0.2).texts()


def test_a_server_that_wants_more_patience_than_there_is(server: ChatServer) -> None:
    server.rule = lambda payload: says.error(429, "tomorrow", {"retry-after": "86400"})
    with pytest.raises(ServerGone, match="HTTP 429: tomorrow"):
        Talk(server).texts()
    assert len(server.payloads) == 1


def test_an_account_with_no_credit_left_stops_the_run(server: ChatServer) -> None:
    server.rule = lambda payload: says.error(429, "You exceeded your current quota", code="insufficient_quota")
    with pytest.raises(ServerGone, match="no credit left"):
        Talk(server).texts()
    assert len(server.payloads) == 1
