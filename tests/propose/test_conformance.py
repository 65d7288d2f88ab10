"""Proposers by their suite: without a model, and with one that a scripted server plays."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterator, Sequence
from functools import cache

import pytest

from grace_irl.demos.labels import Problem, label
from grace_irl.methods.grace_operators import OPERATORS
from grace_irl.propose.client import ChatClient, ChatSettings
from grace_irl.propose.given import Given, GivenProgram, InThread, Replay, Seeded
from grace_irl.propose.llm import LlmProposer
from grace_irl.propose.material import Workbench
from grace_irl.propose.prompter import PromptSettings
from grace_irl.propose.protocol import AnswerFormat, Proposal, Proposer, Step
from grace_irl.search.protocol import Request
from grace_irl.synthesis import Synthesiser
from grace_irl.testing.proposers import SOURCE, Asked, ProposerSuite, parent
from tests.fakes.data import vector_set
from tests.fakes.in_process_sandbox import InProcessSandbox
from tests.propose import asked
from tests.propose.client.server import ChatServer


@cache
def problem() -> Problem:
    return label(vector_set(4, 4), "all")


@cache
def sketched() -> Proposal:
    return asyncio.run(Synthesiser(problem()).propose(Request(0, "initialise"), ()))


class TestSynthesiser(ProposerSuite):
    def setup_method(self) -> None:
        sketched()  # it runs an event loop, which cannot start inside that of a test

    def make(self) -> Proposer:
        return Synthesiser(problem(), 3)

    def asked(self) -> Sequence[Asked]:
        known = parent(sketched().source, sketched().sketch)
        children = [(Request(9 + seed, "mutate", ("0" * 16,), seed), [known]) for seed in range(3)]
        return [*super().asked(), *children]


class TestSynthesiserInThread(TestSynthesiser):
    def make(self) -> Proposer:
        return InThread(Synthesiser(problem(), 3))


GIVEN = [GivenProgram(SOURCE.replace("1.0", f"{number}.0"), "a file", -0.5 * number) for number in range(3)]


class TestGiven(ProposerSuite):
    def make(self) -> Proposer:
        return Given(GIVEN)

    def unanswered(self) -> Sequence[Asked]:
        return [(Request(3, "initialise"), ()), (Request(10**6, "mutate", ("0" * 16,)), [parent()])]


class TestSeeded(TestGiven):
    def make(self) -> Proposer:
        return Seeded(Given(GIVEN[:2]), Replay(Recorded(), "run"), 2)


class Recorded:
    """A recording of three answers, the second of which was repaired."""

    def proposal(self, index: int, attempt: int = 0) -> Proposal | None:
        if index >= 3 or attempt > (index == 1):
            return None
        return Proposal(GIVEN[index].source, raw=f"answer {index}.{attempt}", tokens_in=9, tokens_out=7)


class TestReplay(ProposerSuite):
    def make(self) -> Proposer:
        return Replay(Recorded(), "run")

    def unanswered(self) -> Sequence[Asked]:
        return [(Request(3, "initialise"), ())]

    def steps(self) -> Sequence[Step]:
        return [Step("repair"), Step("opinion", writes=False)]


WEATHER = SOURCE.replace("1.0", "0.5")
"""A program that the model below would rather not talk about."""


def answered(prompt: str) -> str:
    """A model's answer, which depends on the prompt alone."""
    if WEATHER in prompt:
        return "I would rather talk about the weather."
    number = int(hashlib.sha256(prompt.encode()).hexdigest()[:4], 16)
    return f"A constant.\n\n```python\n{SOURCE.replace('1.0', f'{number}.0')}```\n"


class TestLlm(ProposerSuite):
    answer_format: AnswerFormat = "code"

    @pytest.fixture(autouse=True)
    def served(self) -> Iterator[None]:
        with ChatServer(answer=answered) as self.server:
            yield

    def make(self) -> Proposer:
        client = ChatClient(ChatSettings(self.server.url, answer_format=self.answer_format))
        operators = {**OPERATORS, "opinion": OPERATORS["reshape"]}
        return LlmProposer(client, Workbench(problem(), InProcessSandbox()), PromptSettings(operators=operators))

    def asked(self) -> Sequence[Asked]:
        known = parent(SOURCE, evaluation=asked.evaluation(problem()))
        children = [(Request(9 + seed, "mutate", ("0" * 16,), seed), [known]) for seed in range(2)]
        return [*super().asked(), *children]

    def unanswered(self) -> Sequence[Asked]:
        return [(Request(20, "mutate", ("0" * 16,)), [parent(WEATHER, evaluation=asked.evaluation(problem()))])]

    def steps(self) -> Sequence[Step]:
        return [Step("repair"), Step("repair"), Step("opinion", writes=False)]

    def test_answers_to_one_prompt_are_one_call(self) -> None:
        samples = [(Request(3 + n, "initialise", seed=5, sample=n, samples=3), ()) for n in range(3)]
        found = [each for each in asyncio.run(self.answers(samples)) if each is not None]
        assert [payload["n"] for payload in self.server.payloads] == [3]
        assert [bool(each.prompt) for each in found] == [True, False, False]
        assert all(each.source and each.tokens_out for each in found)


class TestLlmByJson(TestLlm):
    """The same answers, although the prompts want JSON: models do not always obey."""

    answer_format = "json"
