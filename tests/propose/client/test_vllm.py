"""A real vLLM server with random weights: the client, and a whole fit. The protocol is real, the answers are noise."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest

from grace_irl.errors import InputError
from grace_irl.propose.client import CallFailed, ChatClient, ChatSettings, ContextOverflow
from grace_irl.propose.protocol import Completion, Prompt
from grace_irl.runs.caller import Parts
from grace_irl.runs.config import resolve
from grace_irl.runs.fit import start
from grace_irl.runs.run import opened
from tests.fakes.data import vector_set
from tests.fakes.in_process_sandbox import InProcessSandbox
from tests.propose.vllm import metric

pytestmark = [pytest.mark.vllm, pytest.mark.slow]
T = TypeVar("T")
PROMPT = Prompt("You write reward functions.", "class Reward:")


def talk(url: str, action: Callable[[ChatClient], Awaitable[T]], **settings: Any) -> tuple[T, ChatClient]:
    usual = {"answer_format": "code", "max_tokens": 40, "temperature": 1.0}
    client = ChatClient(ChatSettings(url, **usual | settings))

    async def inside() -> T:
        async with client:
            return await action(client)

    return asyncio.run(inside()), client


def test_several_answers_come_in_one_request(vllm_url: str) -> None:
    got, _ = talk(vllm_url, lambda client: client.complete(PROMPT, 4))
    assert len(got) == 4
    assert len({one.text for one in got}) > 1
    assert got[0].tokens_in > 10
    assert 4 <= sum(one.tokens_out for one in got) <= 4 * 40


def test_an_answer_that_the_limit_cuts_says_so(vllm_url: str) -> None:
    got, _ = talk(vllm_url, lambda client: client.complete(PROMPT, 8), max_tokens=2)
    assert "length" in {one.finish for one in got}
    assert all(one.tokens_out <= 16 for one in got)


def test_answers_by_schema_parse(vllm_url: str) -> None:
    got, _ = talk(vllm_url, lambda client: client.complete(PROMPT, 8, answer="json"), max_tokens=2500)
    whole = [json.loads(one.text) for one in got if one.finish == "stop"]
    assert whole
    assert all(set(one) == {"reasoning", "reward_class_code"} for one in whole)
    assert all(isinstance(text, str) for one in whole for text in one.values())


def test_eight_calls_at_once(vllm_url: str) -> None:
    async def eight(client: ChatClient) -> list[tuple[Completion, ...]]:
        prompts = [Prompt(PROMPT.system, f"{PROMPT.user} {place}") for place in range(8)]
        return await asyncio.gather(*(client.complete(prompt, 2) for prompt in prompts))

    got, _ = talk(vllm_url, eight, concurrency=8)
    assert [len(one) for one in got] == [2] * 8


def test_a_prompt_that_begins_as_one_before_hits_the_prefix_cache(vllm_url: str) -> None:
    """What stays the same in a run comes first (`Prompt.system`): the server's own counter says that it is kept."""
    system = "Rules of a reward program: " + " ".join(f"rule {place}." for place in range(300))

    async def one_by_one(client: ChatClient) -> list[tuple[float, int]]:
        found = []
        for place in range(3):
            before = metric(vllm_url, "vllm:prefix_cache_hits_total")
            (answer,) = await client.complete(Prompt(system, f"question {place}"))
            found.append((metric(vllm_url, "vllm:prefix_cache_hits_total") - before, answer.tokens_in))
        return found

    got, _ = talk(vllm_url, one_by_one, max_tokens=4)
    assert all(hits > 0.8 * tokens for hits, tokens in got[1:])


def test_random_weights_get_to_write_code(vllm_url: str) -> None:
    found, _ = talk(vllm_url, lambda client: client.answer_format(), answer_format="auto", max_tokens=300)
    assert found == "code"


def test_greedy_answers_are_asked_for_one_by_one(vllm_url: str) -> None:
    """vLLM refuses n > 1 at temperature 0."""
    got, _ = talk(vllm_url, lambda client: client.complete(PROMPT, 3), temperature=0.0)
    assert len(got) == 3


def test_the_context_is_told(vllm_url: str) -> None:
    found, client = talk(vllm_url, lambda client: client.context_length())
    assert found is not None
    assert found >= 1024
    assert client.model


def test_a_prompt_that_is_too_long(vllm_url: str) -> None:
    async def too_long(client: ChatClient) -> ContextOverflow:
        limit = await client.context_length()
        with pytest.raises(ContextOverflow) as raised:
            await client.complete(Prompt("", "state " * (2 * (limit or 8192))))
        assert raised.value.limit == limit
        return raised.value

    found, _ = talk(vllm_url, too_long)
    assert found.prompt_tokens is None or found.prompt_tokens > (found.limit or 0)


def test_a_limit_beyond_the_context_is_brought_down(vllm_url: str) -> None:
    got, _ = talk(vllm_url, lambda client: client.complete(PROMPT, 1), max_tokens=10**6)
    assert len(got) == 1


def test_a_model_that_is_not_served(vllm_url: str) -> None:
    with pytest.raises(InputError, match=r"the server has no model 'another'; it has: \S+; correct --model"):
        talk(vllm_url, lambda client: client.complete(PROMPT), model="another")


def test_what_is_no_image_is_refused_in_the_servers_words(vllm_url: str) -> None:
    """A text model says so; the call fails, and no other."""
    with pytest.raises(CallFailed, match="refuses the request"):
        talk(vllm_url, lambda client: client.complete(Prompt("", "look", (b"no image",))))


@pytest.mark.parametrize("answer_format", ["code", "json"])
def test_a_fit_with_noise_for_answers(tmp_path: Path, vllm_url: str, answer_format: str) -> None:
    hits = metric(vllm_url, "vllm:prefix_cache_hits_total")
    config = resolve(
        flags={
            "model.url": vllm_url,
            "model.answer_format": answer_format,
            "model.answer_tokens": 64,
            "model.concurrency": 4,
            "model.patience": 20.0,
            "search.population": 6,
            "search.generations": 1,
            "search.samples": 3,
            "proposer.seed_synthesis": 3,
            "stop.target_accuracy": None,
        },
        sets=["stop.target_accuracy=none"],
    )
    run = start(config, tmp_path / "run", Parts(vector_set(noise=0.05), sandbox=InProcessSandbox()))
    with opened(run.folder) as (store, used):
        told = store.told()
        asked = {index: proposal for index, _, proposal in store.proposals() if proposal.tokens_out}
    assert used.model.name
    assert len(asked) >= 9
    # Noise holds no program: each answer is a named failure, cut by the limit or not; none is lost.
    kinds = {told[index].failure.partition(":")[0] for index in asked if told[index].failure}
    assert kinds <= {"length", "no_class", "unparsable", "empty"}
    assert kinds
    assert run.best.train.accuracy > 0.9
    assert run.tokens == sum(sum(store_tokens) for store_tokens in _tokens(run.folder)) > 0
    # Prompts of a run begin alike, and several samples share a prompt: the server's own counter sees it.
    assert metric(vllm_url, "vllm:prefix_cache_hits_total") > hits


def _tokens(folder: Path) -> list[tuple[int, int]]:
    with opened(folder) as (store, _):
        return [store.tokens(index) for index in store.told()]
