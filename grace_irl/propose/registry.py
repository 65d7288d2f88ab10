"""Proposers by name."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from grace_irl.demos.labels import Problem
from grace_irl.errors import InputError
from grace_irl.propose.protocol import Parent, Proposal, Proposer
from grace_irl.search.protocol import Request

Factory = Callable[[Problem, int], Proposer]
"""From the labelled data and the run's seed to a proposer."""


class InThread:
    """Runs a proposer that computes rather than waits in one thread of its own, request by request in order.

    The event loop stays free for evaluations meanwhile.
    """

    def __init__(self, proposer: Proposer) -> None:
        self._proposer = proposer
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="propose")

    async def propose(self, request: Request, parents: Sequence[Parent]) -> Proposal:
        """See `Proposer`."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._pool, self._run, request, tuple(parents))

    def _run(self, request: Request, parents: Sequence[Parent]) -> Proposal:
        return asyncio.run(self._proposer.propose(request, parents))

    def close(self) -> None:
        """Drops what waits; what runs ends by itself."""
        self._pool.shutdown(wait=False, cancel_futures=True)


def _synthesis(problem: Problem, seed: int) -> Proposer:
    from grace_irl.propose.synthesis import Synthesiser

    return InThread(Synthesiser(problem, seed))


PROPOSERS: dict[str, Factory] = {"synthesis": _synthesis}


def factory(name: str) -> Factory:
    """The factory of this name.

    Raises:
        InputError: for a name that is not registered.
    """
    if name not in PROPOSERS:
        raise InputError(f"proposer {name!r} is unknown; expected one of {', '.join(sorted(PROPOSERS))}")
    return PROPOSERS[name]
