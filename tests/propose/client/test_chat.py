"""The client: answers, event loops, limits."""

from __future__ import annotations

import asyncio
import gc

import pytest

from grace_irl.propose.client import ChatClient, ChatSettings
from tests.propose.client import server as says
from tests.propose.client.server import Behaviour, ChatServer
from tests.propose.client.talk import PROMPT, Talk


def test_answers_with_their_tokens(server: ChatServer) -> None:
    talk = Talk(server, temperature=0.3, max_tokens=77)
    got = talk.run(lambda client: client.complete(PROMPT, 3))
    assert [one.text for one in got] == server.served
    assert sum(one.tokens_in for one in got) == server.tokens_in
    assert sum(one.tokens_out for one in got) == server.tokens_out
    assert got[0].seconds > 0
    assert [one.seconds for one in got[1:]] == [0, 0]
    (payload,) = server.payloads
    assert (payload["model"], payload["n"]) == ("model", 3)
    assert (payload["temperature"], payload["max_tokens"]) == (0.3, 77)
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


def test_a_server_that_reports_no_tokens_is_said_once(server: ChatServer) -> None:
    server.rule = lambda payload: Behaviour(edit=lambda found: {**found, "usage": None})
    talk = Talk(server)
    talk.run(lambda client: client.complete(PROMPT))
    talk.run(lambda client: client.complete(PROMPT))
    assert [note for note in talk.notes if "reports no tokens" in note] == talk.notes[:1]
    assert len(talk.notes) == 1


def test_an_answer_that_a_filter_declines_says_nothing_of_tokens(server: ChatServer) -> None:
    server.rule = lambda payload: says.error(400, "flagged", code="content_filter")
    talk = Talk(server)
    (declined,) = talk.run(lambda client: client.complete(PROMPT))
    assert declined.finish == "refusal"
    assert not talk.notes


@pytest.mark.parametrize(("length", "room"), [(32_768, 28_672), (8_192, 4_096), (4_096, 2_048), (1_000, 500)])
def test_a_small_context_leaves_half_of_it_for_prompts(server: ChatServer, length: int, room: int) -> None:
    server.models = [{"id": "model", "max_model_len": length}]
    assert Talk(server, max_tokens=4_096).run(lambda client: client.room()) == room
