"""Proposers (sources of programs) that need no model, and wrappers of proposers.

`Given` returns programs that exist already. `Replay` returns the answers of a recorded run. `Seeded` and `InThread`
wrap other proposers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from grace_irl.errors import InputError
from grace_irl.programs.parts import Reads
from grace_irl.propose.protocol import (
    Follower,
    Parent,
    Proposal,
    Proposer,
    SizeFigures,
    SizesPrograms,
    Step,
    Stoppable,
    proposed,
)
from grace_irl.search.protocol import Request
from grace_irl.work import Job, LocalExecutor


@dataclass(frozen=True)
class GivenProgram:
    """A program that a search starts with.

    Attributes:
        source: the program's text.
        origin: the file or the run that the program comes from, for messages.
        prior: log-prior in nats, relative to the most probable program of the same proposer, so at most 0; 0 if
            unknown.
        fields: names of the components of a state vector, in the order in which the program reads them; () if unknown.
        reads: the form of the states that the program reads.
    """

    source: str
    origin: str
    prior: float = 0.0
    fields: tuple[str, ...] = ()
    reads: Reads = field(default_factory=Reads)


class Given:
    """A proposer that returns program i for the request with index i.

    If there are too few programs, the answer is the failure "no more given programs".
    """

    def __init__(self, programs: Sequence[GivenProgram]) -> None:
        self._programs = tuple(programs)

    async def propose(self, request: Request, parents: Sequence[Parent]) -> Proposal:  # noqa: ARG002
        """See `Proposer`."""
        if request.index >= len(self._programs):
            return Proposal("", failure="no more given programs")
        program = self._programs[request.index]
        return Proposal(program.source, reasoning=f"given: {program.origin}", prior=program.prior)


class Seeded:
    """A proposer that passes each request on to one of two proposers, `first` or `then`.

    `first` gets the requests with an index below `count` that name no parent. `then` gets all other requests, and the
    requests for which `first` has no program.
    """

    def __init__(self, first: Proposer, then: Proposer, count: int) -> None:
        self._first = first
        self._then = then
        self._count = count

    async def propose(self, request: Request, parents: Sequence[Parent]) -> Proposal:
        """See `Proposer`."""
        if request.index < self._count and not request.parents:
            proposal = await proposed(self._first, request, parents)
            if not proposal.failure:
                return proposal
        return await proposed(self._then, request, parents)

    async def follow(
        self, step: Step, request: Request, parents: Sequence[Parent], version: Parent, attempt: int
    ) -> Proposal | None:
        """See `Follower`."""
        if not isinstance(self._then, Follower):
            return None
        return await self._then.follow(step, request, parents, version, attempt)

    @property
    def sizes(self) -> tuple[SizeFigures, ...] | None:
        """See `SizesPrograms`."""
        return self._then.sizes if isinstance(self._then, SizesPrograms) else None

    async def stop(self) -> None:
        """See `Stoppable`."""
        for proposer in (self._first, self._then):
            if isinstance(proposer, Stoppable):
                await proposer.stop()


class Recording(Protocol):
    """Recorded answers of a run's proposer."""

    def proposal(self, index: int, attempt: int = 0) -> Proposal | None:
        """A recorded answer to request `index`. Attempt 0 is the first answer, attempt n that to follow-up call n."""
        ...


class Replay:
    """A proposer that repeats the answers of a recorded run, including answers to follow-up calls such as repairs.

    No server or model is needed.

    Args:
        recording: the recorded answers.
        name: name of the recording in messages.
    """

    def __init__(self, recording: Recording, name: str) -> None:
        self._recording = recording
        self._name = name

    async def propose(self, request: Request, parents: Sequence[Parent]) -> Proposal:
        """See `Proposer`. A request fails if the recorded run ended before this request."""
        del parents
        missing = f"exhausted: {self._name} holds no answer to request {request.index}"
        return self._recording.proposal(request.index) or Proposal("", failure=missing, exhausted=True)

    async def follow(
        self, step: Step, request: Request, parents: Sequence[Parent], version: Parent, attempt: int
    ) -> Proposal | None:
        """See `Follower`. The result is the recorded answer to the follow-up call."""
        del step, parents, version
        return self._recording.proposal(request.index, attempt)


def require_answers(recording: Recording, name: str) -> None:
    """Raise InputError if the recording has no answer to request 0."""
    if recording.proposal(0) is None:
        raise InputError(f"{name}: no recorded answers; expected the folder of a run, or a recording made by export")


class InThread:
    """A wrapper that runs a proposer in a separate thread, one request at a time.

    So the event loop stays free for evaluations while the proposer computes. A proposer that only waits for a server
    needs no thread. When a run is stopped or interrupted, it does not wait for an answer that is being computed.
    """

    def __init__(self, proposer: Proposer) -> None:
        self._proposer = proposer
        self._executor = LocalExecutor(1, {"propose": self._proposal}, name="propose")

    async def propose(self, request: Request, parents: Sequence[Parent]) -> Proposal:
        """See `Proposer`."""
        job = Job("propose", {"request": request, "parents": tuple(parents)})
        proposal: Proposal = await asyncio.wrap_future(self._executor.submit(job))
        return proposal

    @property
    def sizes(self) -> tuple[SizeFigures, ...] | None:
        """See `SizesPrograms`. The synthesiser has no figures before its first answer."""
        return self._proposer.sizes if isinstance(self._proposer, SizesPrograms) else None

    async def stop(self) -> None:
        """See `Stoppable`. Drop waiting requests; a request in progress ends by itself."""
        self._executor.close()

    def _proposal(self, request: Request, parents: tuple[Parent, ...]) -> Proposal:
        return asyncio.run(self._proposer.propose(request, parents))
