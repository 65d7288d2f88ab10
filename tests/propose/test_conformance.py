"""Proposers without a model, by the suite of proposers."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import cache

from grace_irl.demos.labels import Problem, label
from grace_irl.propose.given import Given, GivenProgram, InThread, Replay, Seeded
from grace_irl.propose.protocol import Proposal, Proposer, Step
from grace_irl.search.protocol import Request
from grace_irl.synthesis import Synthesiser
from grace_irl.testing.proposers import SOURCE, Asked, ProposerSuite, parent
from tests.fakes.data import vector_set


@cache
def problem() -> Problem:
    return label(vector_set(4, 4), "all")


@cache
def sketched() -> Proposal:
    return asyncio.run(Synthesiser(problem()).propose(Request(0, "initialise"), ()))


class TestSynthesiser(ProposerSuite):
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
