"""Proposers around answers of others: programs to begin with, a recording, and one that works in a thread."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from grace_irl.errors import InputError
from grace_irl.propose.protocol import Follower, Parent, Proposal, Proposer, Step, Stoppable
from grace_irl.search.protocol import Request
from grace_irl.work import Job, LocalExecutor


@dataclass(frozen=True)
class GivenProgram:
    """A program to begin with.

    Attributes:
        source: its text.
        origin: where it comes from, for people.
        prior: as its proposer had it; 0 without an opinion.
    """

    source: str
    origin: str
    prior: float = 0.0


class Given:
    """Answers request i with program i; beyond the last one with the failure "no more given programs"."""

    def __init__(self, programs: Sequence[GivenProgram]) -> None:
        self._programs = tuple(programs)

    async def propose(self, request: Request, parents: Sequence[Parent]) -> Proposal:  # noqa: ARG002
        """See `Proposer`."""
        if request.index >= len(self._programs):
            return Proposal("", failure="no more given programs")
        program = self._programs[request.index]
        return Proposal(program.source, reasoning=f"given: {program.origin}", prior=program.prior)


class Seeded:
    """The first `count` requests to initialise go to `first`, as far as it has programs; the rest to `then`."""

    def __init__(self, first: Proposer, then: Proposer, count: int) -> None:
        self._first = first
        self._then = then
        self._count = count

    async def propose(self, request: Request, parents: Sequence[Parent]) -> Proposal:
        """See `Proposer`."""
        if request.index < self._count and request.operator == "initialise":
            proposal = await self._first.propose(request, parents)
            if not proposal.failure:
                return proposal
        return await self._then.propose(request, parents)

    async def follow(
        self, step: Step, request: Request, parents: Sequence[Parent], version: Parent, attempt: int
    ) -> Proposal | None:
        """See `Follower`."""
        if not isinstance(self._then, Follower):
            return None
        return await self._then.follow(step, request, parents, version, attempt)

    async def stop(self) -> None:
        """See `Stoppable`."""
        for proposer in (self._first, self._then):
            if isinstance(proposer, Stoppable):
                await proposer.stop()


class Recording(Protocol):
    """Answers of a run's proposer."""

    def proposal(self, index: int, attempt: int = 0) -> Proposal | None:
        """The answer to request `index`; attempts from 1 on are further calls about it."""
        ...


class Replay:
    """Answers each request as the recorded run was answered, repairs included: no server, no model, the same run.

    Args:
        recording: of the run.
        name: of the recording, for messages.
    """

    def __init__(self, recording: Recording, name: str) -> None:
        self._recording = recording
        self._name = name

    async def propose(self, request: Request, parents: Sequence[Parent]) -> Proposal:
        """See `Proposer`. What the recording lacks is a failure: the recorded run went no further."""
        del parents
        missing = f"exhausted: {self._name} holds no answer to request {request.index}"
        return self._recording.proposal(request.index) or Proposal("", failure=missing, exhausted=True)

    async def follow(
        self, step: Step, request: Request, parents: Sequence[Parent], version: Parent, attempt: int
    ) -> Proposal | None:
        """See `Follower`: the call that the recorded run made there."""
        del step, parents, version
        return self._recording.proposal(request.index, attempt)


def require_answers(recording: Recording, name: str) -> None:
    """Raises InputError for a recording without a first answer."""
    if recording.proposal(0) is None:
        raise InputError(f"{name}: no recorded answers; expected the folder of a run, or a recording made by export")


class InThread:
    """Runs a proposer that computes rather than waits in one thread of its own, request by request in order.

    The event loop stays free for evaluations meanwhile. A run that is stopped or interrupted does not wait for an
    answer that nobody wants any more.
    """

    def __init__(self, proposer: Proposer) -> None:
        self._proposer = proposer
        self._executor = LocalExecutor(1, {"propose": self._proposal}, name="propose")

    async def propose(self, request: Request, parents: Sequence[Parent]) -> Proposal:
        """See `Proposer`."""
        job = Job("propose", {"request": request, "parents": tuple(parents)})
        proposal: Proposal = await asyncio.wrap_future(self._executor.submit(job))
        return proposal

    async def stop(self) -> None:
        """See `Stoppable`: drops what waits; what runs ends by itself."""
        self._executor.close()

    def _proposal(self, request: Request, parents: tuple[Parent, ...]) -> Proposal:
        return asyncio.run(self._proposer.propose(request, parents))
