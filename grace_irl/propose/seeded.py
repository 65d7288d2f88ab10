"""Two proposers in one run: the first programs by one, all others by the other."""

from __future__ import annotations

from collections.abc import Sequence

from grace_irl.propose.protocol import Parent, Proposal, Proposer, Repairer, Stoppable
from grace_irl.search.protocol import Request


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
