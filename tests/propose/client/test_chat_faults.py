"""The client when a server misbehaves: nothing lost, nothing counted twice."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Sequence
from typing import Any

import pytest

from grace_irl.propose.client import CallFailed, ChatClient, ServerGone
from grace_irl.propose.protocol import Completion, Prompt
from tests.propose.client import server as says
from tests.propose.client.server import Behaviour, ChatServer, prompt_text
from tests.propose.client.talk import PROMPT, Talk

FAULTS = {
    "reset": (says.RESET, "connection"),
    "closed": (says.CLOSED, "connection"),
    "reset midway": (says.RESET_MIDWAY, "connection"),
    "closed midway": (says.CLOSED_MIDWAY, "connection"),
    "empty body": (says.EMPTY, "empty body"),
    "malformed": (says.MALFORMED, "malformed body"),
    "no choice": (says.NO_CHOICE, "no answer"),
    "busy": (says.BUSY, "busy"),
    "broken": (says.BROKEN, "server error"),
    "not ready": (says.NOT_READY, "server error"),
    "10 MB": (says.huge(10_000_000), "too long"),
    "late": (Behaviour(wait=30.0), "time-out"),
}


def of_prompt(payload: dict[str, Any]) -> bool:
    """Whether a request asks for answers to `PROMPT`. Else it only tests whether the server answers at all."""
    return prompt_text(payload) == PROMPT.text


def counted(answers: Sequence[Completion]) -> tuple[int, int]:
    """Tokens in and out."""
    return sum(one.tokens_in for one in answers), sum(one.tokens_out for one in answers)


@pytest.mark.parametrize("name", FAULTS)
def test_after_a_fault_the_answers_are_whole_and_counted_once(server: ChatServer, name: str) -> None:
    fault, _ = FAULTS[name]
    server.script = [fault]
    talk = Talk(server, timeout=0.3 if name == "late" else 20.0)
    got = talk.run(lambda client: client.complete(PROMPT, 2))
    assert [one.text for one in got] == server.served
    assert len(got) == 2
    assert len(server.payloads) == 2
    assert counted(got) == (server.tokens_in, server.tokens_out)
    assert not talk.notes


@pytest.mark.parametrize(
    ("name", "requests"),
    [
        ("reset", 4),
        ("reset midway", 4),
        ("empty body", 4),
        ("malformed", 4),
        ("no choice", 4),
        ("broken", 4),
        ("10 MB", 2),
        ("late", 3),
    ],
)
def test_a_fault_that_stays_fails_this_call_only(server: ChatServer, name: str, requests: int) -> None:
    fault, kind = FAULTS[name]
    server.rule = lambda payload: fault if of_prompt(payload) else None
    talk = Talk(server, attempts=4, timeout=0.2 if name == "late" else 20.0)

    async def twice(client: ChatClient) -> list[str]:
        with pytest.raises(CallFailed, match=rf"no answer after {requests} tries .{kind}") as raised:
            await client.complete(PROMPT)
        assert raised.value.answers == ()
        server.rule = lambda payload: None
        return [one.text for one in await client.complete(PROMPT)]

    assert talk.run(twice) == server.served[-1:]
    assert len([sent for sent in server.payloads if of_prompt(sent)]) == requests + 1


@pytest.mark.parametrize("name", ["broken", "gateway time-out", "overloaded", "cloudflare", "empty body"])
def test_a_server_that_fails_at_all_requests_is_waited_for(server: ChatServer, name: str) -> None:
    more = {
        "overloaded": says.error(529, "Overloaded", type="overloaded_error"),
        "gateway time-out": says.error(504),
        "cloudflare": Behaviour(status=522, body=b"<html>"),
    }
    fault = more.get(name) or FAULTS[name][0]
    server.rule = lambda payload: fault
    talk = Talk(server, attempts=2, concurrency=4)

    def mend() -> None:
        while len(server.payloads) < 40:
            time.sleep(0.01)
        server.rule = lambda payload: None

    async def many(client: ChatClient) -> int:
        return sum(len(got) for got in await asyncio.gather(*(client.complete(PROMPT) for _ in range(8))))

    mending = threading.Thread(target=mend)
    mending.start()
    assert talk.run(many) == 8
    mending.join()


@pytest.mark.parametrize("status", [500, 504, 520, 529])
def test_a_server_that_goes_on_failing_at_all_requests_stops_the_run(server: ChatServer, status: int) -> None:
    server.rule = lambda payload: says.error(status, "Overloaded")
    with pytest.raises(ServerGone, match=rf"0\.3 s of --llm-patience .HTTP {status}: Overloaded"):
        Talk(server, patience=0.3, attempts=2).texts()


def test_a_request_that_brings_the_server_down_is_given_up(server: ChatServer) -> None:
    """The server comes back each time. Requests that were in flight beside that one get their answers."""
    down: list[int] = []
    talk = Talk(server)

    def restart(times: int) -> None:
        while sum("is away" in note for note in talk.notes) < times:
            time.sleep(0.01)
        server.models_status = 200

    def rule(payload: dict[str, Any]) -> Behaviour | None:
        if "killer" in payload["messages"][-1]["content"]:
            down.append(len(down) + 1)
            server.models_status = 503
            threading.Thread(target=restart, args=(down[-1],)).start()
        return says.RESET if server.models_status == 503 else None

    server.rule = rule

    async def both(client: ChatClient) -> list[object]:
        calls = [client.complete(Prompt("", text)) for text in ("a", "killer", "b", "c")]
        return list(await asyncio.gather(*calls, return_exceptions=True))

    found = talk.run(both)
    assert isinstance(found[1], CallFailed)
    assert "the server went away 3 times" in str(found[1])
    assert len(down) == 3
    assert [len(each) for each in (found[0], found[2], found[3]) if isinstance(each, tuple)] == [1, 1, 1]


def test_ten_megabytes_are_not_read_to_their_end(server: ChatServer) -> None:
    """The client leaves after `max_bytes`: a server that sends for ever is left, too."""
    server.script = [says.huge(50_000_000)]
    talk = Talk(server, max_bytes=5000, attempts=1)
    with pytest.raises(CallFailed, match="an answer of more than 5000 bytes"):
        talk.texts()


def test_ten_megabytes_of_error_are_one_line(server: ChatServer) -> None:
    server.rule = lambda payload: says.error(400, "no\n" * 3_000_000)
    with pytest.raises(CallFailed, match="refuses the request") as raised:
        Talk(server).texts()
    assert len(str(raised.value)) < 400
    assert "\n" not in str(raised.value)


def test_a_call_that_is_given_up_leaves_the_client_usable(server: ChatServer) -> None:
    server.script = [Behaviour(wait=30.0)]

    async def given_up(client: ChatClient) -> str:
        call = asyncio.create_task(client.complete(PROMPT))
        while not server.in_flight:
            await asyncio.sleep(0.01)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        return (await client.complete(PROMPT))[0].text

    assert [Talk(server, concurrency=1).run(given_up)] == server.served


def test_a_storm_of_faults_loses_and_doubles_nothing(server: ChatServer) -> None:
    kinds = [fault for name, (fault, _) in FAULTS.items() if name not in ("late", "10 MB")]
    server.script = [kinds[place % len(kinds)] if place % 2 else says.OK for place in range(65)]
    server.script.append(FAULTS["10 MB"][0])  # one: two for the same call would fail it
    talk = Talk(server, concurrency=8, attempts=60)

    async def many(client: ChatClient) -> list[Completion]:
        parts = await asyncio.gather(*(client.complete(PROMPT, 1 + place % 3) for place in range(40)))
        assert [len(part) for part in parts] == [1 + place % 3 for place in range(40)]
        return [one for part in parts for one in part]

    found = talk.run(many)
    got = [one.text for one in found]
    assert sorted(got) == sorted(server.served)
    assert len(set(got)) == len(got) == sum(1 + place % 3 for place in range(40))
    assert counted(found) == (server.tokens_in, server.tokens_out)
    assert len(server.payloads) == 40 + 33
    assert server.most_in_flight <= 8


def test_fewer_choices_than_asked_for_are_made_up_and_remembered(server: ChatServer) -> None:
    """As llama.cpp's server, which gives one whatever `n` says."""
    server.rule = lambda payload: Behaviour(choices=1)
    talk = Talk(server)

    async def twice(client: ChatClient) -> list[int]:
        got = [one.text for _ in range(2) for one in await client.complete(PROMPT, 4)]
        assert len(set(got)) == 8
        return [payload.get("n", 1) for payload in server.payloads]

    assert talk.run(twice) == [4, 3, 1, 1, 1, 1, 1, 1]
    assert sorted(server.served) == sorted(f"answer {place} choice 0 of {PROMPT.text}" for place in range(8))


def test_what_came_before_a_failure_is_handed_over(server: ChatServer) -> None:
    server.rule = lambda payload: (
        Behaviour(choices=1) if len(server.payloads) <= 3 or not of_prompt(payload) else says.BROKEN
    )
    with pytest.raises(CallFailed) as raised:
        Talk(server, attempts=2).texts(4)
    assert sorted(one.text for one in raised.value.answers) == sorted(server.served[:3])
    assert len(raised.value.answers) == 3
