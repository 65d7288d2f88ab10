"""The conformance suite of proposers, which answer a search's requests. The suite is a base class for pytest:

class TestMyProposer(ProposerSuite):
    def make(self):
        return MyProposer()
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Coroutine, Sequence
from dataclasses import replace
from math import isfinite
from typing import Any, TypeVar

from grace_irl.evaluate.evaluation import Evaluation
from grace_irl.programs.program import Program
from grace_irl.propose.protocol import Follower, Parent, Proposal, Proposer, Step, Stoppable
from grace_irl.search.protocol import Request

WITHIN_S = 60.0
"""Time limit for one answer in seconds, enough even on a busy machine."""
SOURCE = """class Reward:
    def __init__(self, extra_info=None):
        pass

    def reward_fn(self, state):
        return 1.0
"""

Asked = tuple[Request, Sequence[Parent]]
"""A request, and the programs on which the answer may build."""
T = TypeVar("T")


def parent(source: str = SOURCE, sketch: str = "", evaluation: Evaluation = Evaluation("ok", score=-0.5)) -> Parent:
    """A program on which the answer to a request may build, with its evaluation."""
    return Parent(Program("0" * 16, source, 20), evaluation, sketch)


def told(proposal: Proposal | None) -> Proposal | None:
    """The proposal without its duration, which differs from run to run."""
    return None if proposal is None else replace(proposal, seconds=0.0)


async def _in_time(work: Coroutine[Any, Any, T]) -> T:
    return await asyncio.wait_for(work, WITHIN_S)


class ProposerSuite(ABC):
    """The tests of the conformance suite for proposers. Subclasses may override `asked`, `unanswered` and `steps`."""

    @abstractmethod
    def make(self) -> Proposer:
        """Return a new proposer, always for the same data. The suite stops a proposer that is `Stoppable`."""

    def asked(self) -> Sequence[Asked]:
        """Requests that the proposer answers with a program, each with its parents."""
        return [(Request(index, "initialise", seed=100 + index), ()) for index in range(3)]

    def unanswered(self) -> Sequence[Asked]:
        """Requests that the proposer answers without a program, each with its parents."""
        return []

    def steps(self) -> Sequence[Step]:
        """Follow-up calls about a program, such as a repair. The suite makes these calls only for a `Follower`."""
        return [Step("repair")]

    async def answers(self, asked: Sequence[Asked]) -> list[Proposal | None]:
        """Answers of a new proposer to these requests, one after another."""
        proposer = self.make()
        found = [await _in_time(proposer.propose(*each)) for each in asked]
        await _stop(proposer)
        return [told(each) for each in found]

    def test_it_answers_by_programs(self) -> None:
        for proposal in asyncio.run(self.answers(self.asked())):
            assert proposal is not None
            assert proposal.failure == ""
            assert proposal.source
            assert isfinite(proposal.prior)
            assert proposal.prior <= 0
            assert min(proposal.tokens_in, proposal.tokens_out) >= 0
            for text in (proposal.source, proposal.reasoning, proposal.prompt, proposal.raw, proposal.sketch):
                text.encode()  # the database of a run stores UTF-8

    def test_the_same_answer_to_the_same_request_whatever_was_asked_before(self) -> None:
        asked = list(self.asked())
        first = asyncio.run(self.answers(asked))
        assert asyncio.run(self.answers(asked)) == first
        assert asyncio.run(self.answers(asked[::-1])) == first[::-1]
        assert asyncio.run(self.answers([*asked, *asked])) == [*first, *first]

    def test_the_same_answers_to_requests_at_once(self) -> None:
        asked = list(self.asked())

        async def at_once() -> list[Proposal | None]:
            proposer = self.make()
            found = await _in_time(_gathered(proposer, asked))
            await _stop(proposer)
            return [told(each) for each in found]

        assert asyncio.run(at_once()) == asyncio.run(self.answers(asked))

    def test_what_it_has_no_program_for_is_a_failure_and_no_exception(self) -> None:
        for proposal in asyncio.run(self.answers(self.unanswered())):
            assert proposal is not None
            assert proposal.source == ""
            assert proposal.failure
            assert "\n" not in proposal.failure

    def test_a_further_call_is_answered_alike_or_ends_the_steps(self) -> None:
        failed = Evaluation("runtime", "ZeroDivisionError: division by zero", "Traceback …")

        async def followed() -> list[Proposal | None]:
            proposer = self.make()
            found: list[Proposal | None] = []
            if isinstance(proposer, Follower):
                for request, parents in self.asked():
                    first = await _in_time(proposer.propose(request, parents))
                    version = parent(first.source or SOURCE, first.sketch, failed)
                    for attempt, step in enumerate(self.steps(), start=1):
                        found.append(await _in_time(proposer.follow(step, request, parents, version, attempt)))
            await _stop(proposer)
            return [told(each) for each in found]

        first = asyncio.run(followed())
        assert all(each is None or each.source or each.failure or each.raw for each in first)
        assert asyncio.run(followed()) == first

    def test_it_may_be_stopped_at_any_time_and_twice(self) -> None:
        async def stopped(at_work: bool) -> None:
            proposer = self.make()
            work = asyncio.ensure_future(_gathered(proposer, list(self.asked()) if at_work else []))
            await asyncio.sleep(0)
            work.cancel()
            await _in_time(_ended(work))
            await _stop(proposer)
            await _stop(proposer)

        for at_work in (False, True):
            asyncio.run(_in_time(stopped(at_work)))


async def _gathered(proposer: Proposer, asked: Sequence[Asked]) -> list[Proposal]:
    return list(await asyncio.gather(*(proposer.propose(*each) for each in asked)))


async def _ended(work: asyncio.Future[Any]) -> None:
    await asyncio.gather(work, return_exceptions=True)


async def _stop(proposer: Proposer) -> None:
    if isinstance(proposer, Stoppable):
        await _in_time(proposer.stop())
