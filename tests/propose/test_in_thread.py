"""Proposers that compute."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence

from grace_irl.propose.given import InThread
from grace_irl.propose.protocol import Parent, Proposal
from grace_irl.search.protocol import Request


class _Noting:
    """Notes who asks, in which order and in which thread."""

    def __init__(self) -> None:
        self.asked: list[int] = []
        self.threads: set[int] = set()

    async def propose(self, request: Request, parents: Sequence[Parent]) -> Proposal:
        self.threads.add(threading.get_ident())
        self.asked.append(request.index)
        await asyncio.sleep(0.001 * (3 - request.index))
        return Proposal(f"program {request.index}")


def test_requests_are_answered_one_by_one_off_the_loop() -> None:
    noting = _Noting()
    proposer = InThread(noting)

    async def ask() -> list[Proposal]:
        return await asyncio.gather(*(proposer.propose(Request(i, "initialise"), ()) for i in range(4)))

    answers = asyncio.run(ask())
    asyncio.run(proposer.stop())
    assert [answer.source for answer in answers] == [f"program {i}" for i in range(4)]
    assert noting.asked == [0, 1, 2, 3]
    assert len(noting.threads) == 1
    assert threading.get_ident() not in noting.threads
