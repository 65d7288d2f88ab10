"""A proposer that computes, kept off the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from grace_irl.propose.protocol import Parent, Proposal, Proposer
from grace_irl.search.protocol import Request
from grace_irl.work import Job, LocalExecutor


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
