"""The proposer of programs that exist already."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from grace_irl.propose.protocol import Parent, Proposal, Proposer, Repairer, Stoppable
from grace_irl.search.protocol import Request


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

    async def repair(self, request: Request, parents: Sequence[Parent], failed: Parent) -> Proposal | None:
        """See `Repairer`."""
        return await self._then.repair(request, parents, failed) if isinstance(self._then, Repairer) else None

    async def stop(self) -> None:
        """See `Stoppable`."""
        for proposer in (self._first, self._then):
            if isinstance(proposer, Stoppable):
                await proposer.stop()
