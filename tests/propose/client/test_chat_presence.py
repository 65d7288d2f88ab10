"""The client when the server, its model or room for a prompt is missing."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from typing import Any

import pytest

from grace_irl.errors import InputError
from grace_irl.propose.client import ChatClient, ChatSettings, ContextOverflow, ServerGone
from grace_irl.propose.protocol import Completion
from tests.propose.client import server as says
from tests.propose.client.server import ChatServer
from tests.propose.client.talk import PROMPT, Talk


def test_a_server_that_goes_away_is_waited_for(server: ChatServer) -> None:
    """It stops with answers under way, and comes back: every call gets its answers, and each counts once."""
    server.latency = lambda count: 0.3 if count < 8 else 0.0
    talk = Talk(server, patience=60.0)

    def out_and_back() -> None:
        while server.in_flight < 8:
            time.sleep(0.01)
        server.stop()
        while not talk.notes:
            time.sleep(0.01)
        server.start()

    async def many(client: ChatClient) -> list[Completion]:
        parts = await asyncio.gather(*(client.complete(PROMPT, 2) for _ in range(8)))
        return [one for part in parts for one in part]

    outage = threading.Thread(target=out_and_back)
    outage.start()
    got = talk.run(many)
    outage.join()
    assert sorted(one.text for one in got) == sorted(server.served)
    assert len(got) == 16
    assert sum(one.tokens_out for one in got) == server.tokens_out
    assert [note.partition(" (")[0].partition(" after")[0] for note in talk.notes] == [
        "the server is away",
        "the server is back",
    ]


def test_a_server_that_does_not_come_back_stops_the_run(server: ChatServer) -> None:
    talk = Talk(server, patience=0.2, concurrency=2)

    async def then_gone(client: ChatClient) -> None:
        await client.complete(PROMPT)
        server.stop()
        calls = await asyncio.gather(*(client.complete(PROMPT) for _ in range(6)), return_exceptions=True)
        assert all(isinstance(error, ServerGone) for error in calls)
        assert "away for the 0.2 s of --llm-patience" in str(calls[0])

    talk.run(then_gone)
    assert len(talk.notes) == 1  # calls that waited for a place do not wait all over again
    server.start()


def test_no_server() -> None:
    with ChatServer() as server:
        gone = Talk(server)
    with pytest.raises(InputError, match=r"no server at http://127\.0\.0\.1:\d+/v1: .*grace-irl serve starts one"):
        gone.texts()


def test_something_else_that_listens() -> None:
    """A port of another protocol, and one that sends pages."""
    with socket.create_server(("127.0.0.1", 0)) as other:

        def greet() -> None:
            connection, _ = other.accept()
            connection.sendall(b"SSH-2.0-OpenSSH_9.6\r\n")
            connection.close()

        greeting = threading.Thread(target=greet)
        greeting.start()
        client = ChatClient(ChatSettings(f"http://127.0.0.1:{other.getsockname()[1]}"))
        with pytest.raises(InputError, match="no server at"):
            asyncio.run(client.open())
        greeting.join()
    with ChatServer(models_body=b"[]") as other_page, pytest.raises(InputError, match="does not list its models"):
        Talk(other_page).texts()


@pytest.mark.parametrize("name", ["", "model"])
def test_a_web_page_is_no_server(name: str) -> None:
    """Also where the model is named: asking it for answers would try for minutes what cannot come."""
    with (
        ChatServer(models_body=b"\n<!doctype html><html>") as pages,
        pytest.raises(InputError, match="answers with a web page; expected"),
    ):
        asyncio.run(ChatClient(ChatSettings(pages.url, model=name)).open())
    assert pages.payloads == []


def test_a_server_that_still_loads_is_waited_for(server: ChatServer) -> None:
    server.models_status = 503
    talk = Talk(server)

    def ready() -> None:
        while not talk.notes:
            time.sleep(0.01)
        server.models_status = 200

    loading = threading.Thread(target=ready)
    loading.start()
    assert talk.texts() == server.served
    loading.join()


@pytest.mark.parametrize(
    ("models", "wanted", "message"),
    [
        ([{"id": "a"}], "b", "the server has no model 'b'; it has: a; correct --model"),
        ([{"id": "a"}, {"id": "b"}], "", "2 models .a, b."),
        ([], "", "0 models .none"),
    ],
)
def test_models_that_are_not_there(server: ChatServer, models: list[dict[str, Any]], wanted: str, message: str) -> None:
    server.models = models
    server.rule = says.unlisted(server)
    with pytest.raises(InputError, match=message):
        Talk(server, model=wanted).texts()


def test_the_server_decides_about_a_model_that_it_does_not_list(server: ChatServer) -> None:
    """Azure lists base models and not deployments; other servers have aliases. One trial request goes before a run."""
    server.models = [{"id": "base"}]
    talk = Talk(server, model="mine")
    assert talk.run(lambda client: client.check()) == ("mine", "code")
    assert talk.notes == ["the server does not list the model 'mine'; requests name it all the same"]
    assert [sent["model"] for sent in server.payloads] == ["mine"]
    server.rule = says.unlisted(server)
    with pytest.raises(InputError, match="the server has no model 'mine'; it has: base; correct --model"):
        Talk(server, model="mine").run(lambda client: client.check())


def test_a_model_that_is_listed_is_not_tried(server: ChatServer) -> None:
    assert Talk(server, model="model").run(lambda client: client.check()) == ("model", "code")
    assert server.payloads == []


def test_a_model_that_goes_away(server: ChatServer) -> None:
    server.rule = lambda payload: says.error(404, "The model `model` does not exist.", code=404)
    with pytest.raises(InputError, match="the server has no model 'model'; it has: model"):
        Talk(server).texts()


def test_a_server_that_lists_nothing_is_asked_for_the_model_that_is_named(server: ChatServer) -> None:
    server.models_status = 404
    assert Talk(server, model="mine").texts() == server.served
    assert server.payloads[0]["model"] == "mine"
    with pytest.raises(InputError, match="does not list its models"):
        Talk(server).texts()


def test_no_chat_at_the_address(server: ChatServer) -> None:
    server.rule = lambda payload: says.error(404, "Not Found")
    with pytest.raises(InputError, match="no chat completions at"):
        Talk(server).texts()


def test_a_context_that_is_too_short(server: ChatServer) -> None:
    said = "maximum context length is 900 tokens. However, your prompt contains at least 901 input tokens"
    server.rule = lambda payload: says.error(400, said)
    with pytest.raises(ContextOverflow, match="901 tokens or more") as raised:
        Talk(server).texts()
    assert (raised.value.limit, raised.value.prompt_tokens) == (900, 901)
    assert len(server.payloads) == 1


@pytest.mark.parametrize(("prompt_tokens", "fits"), [(1000, True), (7680, True), (7681, False)])
def test_the_answer_is_shortened_before_the_prompt(server: ChatServer, prompt_tokens: int, fits: bool) -> None:
    """As older vLLM has it: prompt and `max_tokens` together must fit; 512 tokens are the least that is of use."""
    room = 8192 - prompt_tokens
    said = f"maximum context length is 8192 tokens and your request has {prompt_tokens} input tokens"
    server.rule = lambda payload: says.error(400, said) if payload["max_tokens"] > room else None
    talk = Talk(server, max_tokens=8000)
    if fits:
        assert talk.texts() == server.served
        assert [payload["max_tokens"] for payload in server.payloads] == [8000, room]
    else:
        with pytest.raises(ContextOverflow):
            talk.texts()


@pytest.mark.parametrize("status", [413, 429])
def test_tokens_per_minute_that_are_too_few_for_a_request_bound_it_at_once(server: ChatServer, status: int) -> None:
    """As Groq and OpenAI have it: status 429 means a wait otherwise."""

    def rule(sent: dict[str, Any]) -> Any:
        total = 3000 + sent["max_tokens"]
        said = (
            f"Request too large for model `x` on tokens per minute (TPM): Limit 6000, Requested {total}, please reduce"
        )
        return says.error(status, said, code="rate_limit_exceeded") if total > 6000 else None

    server.rule = rule
    assert Talk(server, max_tokens=8000).texts() == server.served
    assert [sent["max_tokens"] for sent in server.payloads] == [8000, 3000]


def test_a_refusal_that_names_max_tokens_shortens_the_answer_only(server: ChatServer) -> None:
    """As Anthropic has it: the parameter keeps its name, and no note says that it is refused."""

    def rule(sent: dict[str, Any]) -> says.Behaviour | None:
        most = sent["max_tokens"]
        said = f"input length and `max_tokens` exceed context limit: 5000 + {most} > 8192, decrease input length"
        return says.error(400, said) if most > 3192 else None

    server.rule = rule
    talk = Talk(server, max_tokens=8000)
    assert talk.texts() == server.served
    assert [sent["max_tokens"] for sent in server.payloads] == [8000, 3192]
    assert talk.notes == []


def test_the_longest_answer_of_a_model_is_kept_to(server: ChatServer) -> None:
    said = "max_tokens is too large: 32000. This model supports at most 16384 completion tokens, whereas you provided"
    server.rule = lambda sent: says.error(400, said, param="max_tokens") if sent["max_tokens"] > 16384 else None
    talk = Talk(server, max_tokens=32000)

    async def twice(client: ChatClient) -> None:
        for _ in range(2):
            await client.complete(PROMPT)

    talk.run(twice)
    assert [sent["max_tokens"] for sent in server.payloads] == [32000, 16384, 16384]
    assert [note.partition(" (")[0] for note in talk.notes] == ["the model writes answers of at most 16384 tokens"]


def test_the_context_bounds_what_is_asked_for(server: ChatServer) -> None:
    server.models = [{"id": "model", "max_model_len": 2048}]
    talk = Talk(server, max_tokens=4096)
    assert talk.run(lambda client: client.context_length()) == 2048
    talk.texts()
    assert server.payloads[0]["max_tokens"] == 2047
