"""The client against a server that answers, and against one that misbehaves."""

from __future__ import annotations

import asyncio
import gc
import itertools
import json
import logging
import socket
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, TypeVar

import pytest

from grace_irl.errors import GraceError, InputError
from grace_irl.propose.answer import ANSWER_SCHEMA
from grace_irl.propose.client import CallFailed, ChatClient, ChatSettings, ContextOverflow, ServerGone
from grace_irl.propose.client.backoff import Backoff
from grace_irl.propose.client.probe import PROGRAM
from grace_irl.propose.prompt import Prompt
from tests.propose.client import server as says
from tests.propose.client.server import Behaviour, ChatServer

T = TypeVar("T")
PROMPT = Prompt("who you are", "what to do")
SOON = Backoff(first=0.002, longest=0.02)


@pytest.fixture(autouse=True)
def no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GRACE_IRL_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with ChatServer() as running:
        yield running


class Talk:
    """A client with its notes, used in one event loop."""

    def __init__(self, server: ChatServer, **settings: Any) -> None:
        self.notes: list[str] = []
        usual = {"answer_format": "code", "patience": 10.0, "timeout": 20.0}
        self.client = ChatClient(ChatSettings(server.url, **usual | settings), self.notes.append, backoff=SOON)

    def run(self, action: Callable[[ChatClient], Awaitable[T]]) -> T:
        async def inside() -> T:
            async with self.client as client:
                return await action(client)

        return asyncio.run(inside())

    def texts(self, n: int = 1, **more: Any) -> list[str]:
        """Of one call."""
        return [one.text for one in self.run(lambda client: client.complete(PROMPT, n, **more))]


def test_answers_with_their_tokens(server: ChatServer) -> None:
    talk = Talk(server, temperature=0.3, max_tokens=77)
    got = talk.run(lambda client: client.complete(PROMPT, 3, seed=5))
    assert [one.text for one in got] == server.served
    assert sum(one.tokens_in for one in got) == server.tokens_in
    assert sum(one.tokens_out for one in got) == server.tokens_out
    assert got[0].seconds > 0
    assert [one.seconds for one in got[1:]] == [0, 0]
    (payload,) = server.payloads
    assert (payload["model"], payload["n"], payload["seed"]) == ("model", 3, 5)
    assert (payload["temperature"], payload["max_tokens"]) == (0.3, 77)
    counters = talk.client.counters
    assert (counters.calls, counters.answers, counters.retries, counters.in_flight) == (1, 3, 0, 0)
    assert not talk.notes


@pytest.mark.parametrize("finish", ["length", "content_filter"])
def test_answers_that_ended_otherwise(server: ChatServer, finish: str) -> None:
    server.script = [Behaviour(finish=finish)]
    (one,) = Talk(server).run(lambda client: client.complete(PROMPT))
    assert one.finish == {"length": "length", "content_filter": "refusal"}[finish]


def test_a_prompt_that_a_filter_declines_is_a_refusal(server: ChatServer) -> None:
    server.rule = lambda payload: says.error(400, "the prompt was filtered", code="content_filter")
    got = Talk(server).run(lambda client: client.complete(PROMPT, 2))
    assert [(one.text, one.finish) for one in got] == [("", "refusal")] * 2


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


@pytest.mark.parametrize("name", FAULTS)
def test_after_a_fault_the_answers_are_whole_and_counted_once(server: ChatServer, name: str) -> None:
    fault, kind = FAULTS[name]
    server.script = [fault]
    talk = Talk(server, timeout=0.3 if name == "late" else 20.0)
    got = talk.texts(2)
    assert got == server.served
    assert len(got) == 2
    counters = talk.client.counters
    assert dict(counters.failures) == {kind: 1}
    assert (counters.calls, counters.answers, counters.retries) == (1, 2, 1)
    assert (counters.tokens_in, counters.tokens_out) == (server.tokens_in, server.tokens_out)
    assert not talk.notes


@pytest.mark.parametrize(
    ("name", "requests"),
    [
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
    server.rule = lambda payload: fault
    talk = Talk(server, attempts=4, timeout=0.2 if name == "late" else 20.0)

    async def twice(client: ChatClient) -> list[str]:
        with pytest.raises(CallFailed, match=f"no answer after {requests} tries") as raised:
            await client.complete(PROMPT)
        assert (raised.value.kind, raised.value.answers) == (kind, ())
        server.rule = lambda payload: None
        return [one.text for one in await client.complete(PROMPT)]

    assert talk.run(twice) == server.served
    assert len(server.payloads) == requests + 1


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
        while not client.counters.in_flight:
            await asyncio.sleep(0.01)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert client.counters.in_flight == 0
        return (await client.complete(PROMPT))[0].text

    assert [Talk(server, concurrency=1).run(given_up)] == server.served


def test_a_storm_of_faults_loses_and_doubles_nothing(server: ChatServer) -> None:
    kinds = [fault for name, (fault, _) in FAULTS.items() if name not in ("late", "10 MB")]
    server.script = [kinds[place % len(kinds)] if place % 2 else says.OK for place in range(65)]
    server.script.append(FAULTS["10 MB"][0])  # one: two for the same call would fail it
    talk = Talk(server, concurrency=8, attempts=60)

    async def many(client: ChatClient) -> list[str]:
        parts = await asyncio.gather(*(client.complete(PROMPT, 1 + place % 3, seed=place) for place in range(40)))
        assert [len(part) for part in parts] == [1 + place % 3 for place in range(40)]
        return [one.text for part in parts for one in part]

    got = talk.run(many)
    assert sorted(got) == sorted(server.served)
    assert len(set(got)) == len(got) == sum(1 + place % 3 for place in range(40))
    counters = talk.client.counters
    assert (counters.tokens_in, counters.tokens_out) == (server.tokens_in, server.tokens_out)
    assert (counters.calls, sum(counters.failures.values())) == (40, 33)
    assert server.most_in_flight <= 8


def test_fewer_choices_than_asked_for_are_made_up_and_remembered(server: ChatServer) -> None:
    """As llama.cpp's server, which gives one whatever `n` says."""
    server.rule = lambda payload: Behaviour(choices=1)
    talk = Talk(server)

    async def twice(client: ChatClient) -> list[int]:
        got = [one.text for _ in range(2) for one in await client.complete(PROMPT, 4, seed=10)]
        assert len(set(got)) == 8
        return [payload.get("n", 1) for payload in server.payloads]

    assert talk.run(twice) == [4, 3, 1, 1, 1, 1, 1, 1]
    # every answer has its own seed, or the same one would come again
    assert [payload["seed"] for payload in server.payloads] == [10, 11, 12, 13, 10, 11, 12, 13]
    assert sorted(server.served) == sorted(f"answer {place} choice 0 of {PROMPT.text}" for place in range(8))


def test_what_came_before_a_failure_is_handed_over(server: ChatServer) -> None:
    server.rule = lambda payload: says.BROKEN if payload.get("seed") == 2 else Behaviour(choices=1)
    with pytest.raises(CallFailed) as raised:
        Talk(server, attempts=2).texts(4, seed=0)
    assert sorted(one.text for one in raised.value.answers) == sorted(server.served)
    assert len(server.served) == 3


REFUSALS: dict[str, Callable[[dict[str, Any]], Behaviour | None]] = {
    "temperature": lambda sent: (
        says.error(400, "Unsupported value: 'temperature'", param="temperature") if "temperature" in sent else None
    ),
    "seed": lambda sent: says.error(422, "seed: Extra inputs are not permitted") if "seed" in sent else None,
    "max_tokens": lambda sent: (
        says.error(400, "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.")
        if "max_tokens" in sent
        else None
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
        first = await asyncio.gather(*(client.complete(PROMPT, 2, seed=place) for place in range(4)))
        assert [len(part) for part in first] == [2] * 4
        refused = sum(talk.client.counters.failures.values())
        assert 1 <= refused <= 4
        assert len(await client.complete(PROMPT, 2, seed=9)) == 2
        assert sum(talk.client.counters.failures.values()) == refused  # remembered

    talk.run(many)
    assert len(talk.notes) == 1
    assert "\n" not in talk.notes[0]


def test_another_refusal_fails_the_call_in_the_servers_words(server: ChatServer) -> None:
    server.rule = lambda payload: says.error(400, "messages: at most 3 of them", param="messages")
    with pytest.raises(CallFailed, match=r"refuses the request .HTTP 400: messages: at most 3 of them."):
        Talk(server).texts()
    assert len(server.payloads) == 1


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


def test_an_account_with_nothing_left_stops_the_run(server: ChatServer) -> None:
    server.rule = lambda payload: says.error(429, "You exceeded your current quota", code="insufficient_quota")
    with pytest.raises(ServerGone, match="nothing left"):
        Talk(server).texts()
    assert len(server.payloads) == 1


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

    async def many(client: ChatClient) -> list[str]:
        parts = await asyncio.gather(*(client.complete(PROMPT, 2) for _ in range(8)))
        return [one.text for part in parts for one in part]

    outage = threading.Thread(target=out_and_back)
    outage.start()
    got = talk.run(many)
    outage.join()
    assert sorted(got) == sorted(server.served)
    assert len(got) == 16
    assert [note.partition(" (")[0].partition(" after")[0] for note in talk.notes] == [
        "the server is away",
        "the server is back",
    ]
    counters = talk.client.counters
    assert (counters.calls, counters.answers, counters.waits) == (8, 16, 1)
    assert (counters.tokens_in, counters.tokens_out) == (server.tokens_in, server.tokens_out)


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
    with pytest.raises(InputError, match=message):
        Talk(server, model=wanted).texts()


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


def test_the_context_bounds_what_is_asked_for(server: ChatServer) -> None:
    server.models = [{"id": "model", "max_model_len": 2048}]
    talk = Talk(server, max_tokens=4096)
    assert talk.run(lambda client: client.context_length()) == 2048
    talk.texts()
    assert server.payloads[0]["max_tokens"] == 2047


KEY = "sk-a-secret-that-nobody-may-see"


@pytest.mark.parametrize("name", ["GRACE_IRL_API_KEY", "OPENAI_API_KEY"])
@pytest.mark.parametrize("status", [401, 403])
def test_a_key_that_is_refused_is_not_shown(
    server: ChatServer,
    name: str,
    status: int,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv(name, KEY)
    caplog.set_level(logging.DEBUG)
    server.rule = lambda payload: says.error(status, f"Incorrect API key provided: {KEY}.\nSee …")
    talk = Talk(server)
    with pytest.raises(InputError, match="refuses the key") as raised:
        talk.texts()
    assert server.authorizations[-1] == f"Bearer {KEY}"
    chain: list[BaseException] = [raised.value]
    while chain[-1].__cause__ or (chain[-1].__context__ and not chain[-1].__suppress_context__):
        chain.append(chain[-1].__cause__ or chain[-1].__context__ or raised.value)
    out, err = capfd.readouterr()
    shown = [repr(error) + str(vars(error)) for error in chain]
    shown += [out, err, caplog.text, repr(talk.client), repr(talk.client.settings), repr(talk.client.counters)]
    assert not [text for text in shown if KEY in text]
    assert "\n" not in str(raised.value)


def test_a_key_that_is_wanted(server: ChatServer) -> None:
    server.rule = lambda payload: says.error(401, "Unauthorized")
    with pytest.raises(InputError, match=r"wants a key, and none is set .*GRACE_IRL_API_KEY"):
        Talk(server).texts()


@pytest.mark.parametrize("behaviour", [says.error(400, f"bad {KEY}"), says.error(500, f"bad {KEY}"), says.BUSY])
def test_no_other_error_shows_the_key(
    server: ChatServer, behaviour: Behaviour, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRACE_IRL_API_KEY", KEY)
    server.rule = lambda payload: behaviour
    with pytest.raises(GraceError) as raised:
        Talk(server, attempts=2, patience=0.05).texts()
    assert KEY not in f"{raised.value!r} {vars(raised.value)}"


def test_our_key_goes_before_the_general_one(server: ChatServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRACE_IRL_API_KEY", "ours")
    monkeypatch.setenv("OPENAI_API_KEY", "general")
    Talk(server).texts()
    assert set(server.authorizations) == {"Bearer ours"}


@pytest.mark.parametrize("key", ["two words", "line\nbreak", "schlüssel"])
def test_what_no_header_can_carry_is_no_key(server: ChatServer, key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRACE_IRL_API_KEY", key)
    with pytest.raises(InputError, match="GRACE_IRL_API_KEY is no key") as raised:
        Talk(server)
    assert key not in str(raised.value)


def copying(share: Callable[[], bool]) -> Callable[[str], str]:
    def answer(prompt: str) -> str:
        program = PROGRAM if share() else PROGRAM.replace("\\", "")
        return json.dumps({"reasoning": "copied", "reward_class_code": program})

    return answer


def test_json_is_chosen_where_every_copy_is_whole(server: ChatServer) -> None:
    server.answer = copying(lambda: True)
    talk = Talk(server, answer_format="auto")

    async def both(client: ChatClient) -> tuple[str, ...]:
        found = await asyncio.gather(*(client.detect_format() for _ in range(3)))
        await client.complete(PROMPT)
        return tuple(found)

    assert talk.run(both) == ("json",) * 3
    assert len(server.payloads) == 2  # one probe for all
    assert all(sent["response_format"]["json_schema"]["schema"] == ANSWER_SCHEMA for sent in server.payloads)


def test_code_is_chosen_where_one_copy_breaks(server: ChatServer) -> None:
    copies = iter([True, True, False, True])
    server.answer = copying(lambda: next(copies, True))
    talk = Talk(server, answer_format="auto")
    assert talk.run(lambda client: client.detect_format()) == "code"
    assert "response_format" in server.payloads[0]
    talk.texts()
    assert "response_format" not in server.payloads[-1]


def test_code_is_chosen_where_no_schema_is_taken(server: ChatServer) -> None:
    server.rule = lambda sent: says.error(400, "response_format: no") if "response_format" in sent else None
    assert Talk(server, answer_format="auto").run(lambda client: client.detect_format()) == "code"
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
    assert talk.run(lambda client: client.detect_format()) == "json"
    assert talk.notes[0].startswith("the server does not take a schema in OpenAI's form")


def test_a_forced_format_asks_nobody(server: ChatServer) -> None:
    talk = Talk(server, answer_format="json")
    assert talk.run(lambda client: client.detect_format()) == "json"
    assert server.payloads == []


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_one_client_serves_one_loop_after_another(server: ChatServer) -> None:
    """Even where nobody closed it in between."""
    client = ChatClient(ChatSettings(server.url, answer_format="code"))
    got = [asyncio.run(client.complete(PROMPT))[0].text for _ in range(3)]
    assert got == server.served
    del client
    gc.collect()  # what is left open is warned of here, and not in the test that comes next


def test_requests_in_flight_keep_to_the_limit_and_fill_it(server: ChatServer) -> None:
    server.latency = lambda count: 0.1
    talk = Talk(server, concurrency=16)
    talk.run(lambda client: asyncio.gather(*(client.complete(PROMPT) for _ in range(64))))
    assert server.most_in_flight == 16
    assert talk.client.counters.mean_in_flight <= 16


def test_no_answers_are_not_asked_for(server: ChatServer) -> None:
    with pytest.raises(ValueError, match="expected at least 1"):
        Talk(server).texts(0)
