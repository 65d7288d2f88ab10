"""The answer format that the client finds."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from grace_irl.propose.client import ChatClient
from grace_irl.propose.client.recovery import PROGRAM
from grace_irl.propose.json_answer import ANSWER_SCHEMA
from tests.propose.client import server as says
from tests.propose.client.server import Behaviour, ChatServer
from tests.propose.client.talk import PROMPT, Talk


def copying(share: Callable[[], bool]) -> Callable[[str], str]:
    def answer(prompt: str) -> str:
        program = PROGRAM if share() else PROGRAM.replace("\\", "")
        return json.dumps({"reasoning": "copied", "reward_class_code": program})

    return answer


def test_json_is_chosen_where_every_copy_is_whole(server: ChatServer) -> None:
    server.answer = copying(lambda: True)
    talk = Talk(server, answer_format="auto")

    async def both(client: ChatClient) -> tuple[str, ...]:
        found = await asyncio.gather(*(client.answer_format() for _ in range(3)))
        await client.complete(PROMPT)
        return tuple(found)

    assert talk.run(both) == ("json",) * 3
    assert len(server.payloads) == 2  # one probe for all
    assert all(sent["response_format"]["json_schema"]["schema"] == ANSWER_SCHEMA for sent in server.payloads)


def test_code_is_chosen_where_one_copy_breaks(server: ChatServer) -> None:
    copies = iter([True, True, False, True])
    server.answer = copying(lambda: next(copies, True))
    talk = Talk(server, answer_format="auto")
    assert talk.run(lambda client: client.answer_format()) == "code"
    assert "response_format" in server.payloads[0]
    talk.texts()
    assert "response_format" not in server.payloads[-1]


def test_code_is_chosen_where_no_schema_is_taken(server: ChatServer) -> None:
    server.rule = lambda sent: says.error(400, "response_format: no") if "response_format" in sent else None
    assert Talk(server, answer_format="auto").run(lambda client: client.answer_format()) == "code"
    kinds = [sent.get("response_format", {}).get("type") for sent in server.payloads]
    assert kinds == ["json_schema", "json_object", None]  # OpenAI's form, llama.cpp's, and the prompt's words alone


def test_llama_cpps_form_is_found(server: ChatServer) -> None:
    """It answers 500 to OpenAI's form, and one choice whatever `n` says."""
    server.answer = copying(lambda: True)

    def rule(sent: dict[str, Any]) -> Behaviour:
        unknown = sent.get("response_format", {}).get("type") == "json_schema"
        return says.BROKEN if unknown else Behaviour(choices=1)

    server.rule = rule
    talk = Talk(server, answer_format="auto")
    assert talk.run(lambda client: client.answer_format()) == "json"
    assert talk.notes[0].startswith("the server does not accept a schema in OpenAI's form")


def test_a_mute_server_is_tried_once_and_not_for_long(server: ChatServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before a run exists, nobody waits for three time-outs of ten minutes without a word."""
    monkeypatch.setattr("grace_irl.propose.client.recovery.WITHIN", 0.3)
    server.rule = lambda sent: Behaviour(wait=30.0)
    talk = Talk(server, answer_format="auto")
    assert talk.run(lambda client: client.check()) == ("model", "code")
    assert len(server.payloads) == 1
    assert talk.notes == [
        "the server is tried with a short prompt first, for its answer format, up to 0.3 s",
        "the model writes code outside JSON: the test of JSON failed (no answer within 0.3 s)",
    ]


def test_a_forced_format_asks_nobody(server: ChatServer) -> None:
    talk = Talk(server, answer_format="json")
    assert talk.run(lambda client: client.answer_format()) == "json"
    assert server.payloads == []
