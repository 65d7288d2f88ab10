"""A proposer that computes, kept off the event loop."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Sequence
from dataclasses import dataclass

from grace_irl.propose.protocol import Parent, Proposal, Proposer
from grace_irl.search.protocol import Request


@dataclass(frozen=True, eq=False)
class _Job:
    request: Request
    parents: tuple[Parent, ...]
    loop: asyncio.AbstractEventLoop
    answer: asyncio.Future[Proposal]


class InThread:
    """Runs a proposer that computes rather than waits in one thread of its own, request by request in order.

    The event loop stays free for evaluations meanwhile. The thread is a daemon: a run that is stopped or
    interrupted does not wait for an answer that nobody wants any more.
    """

    def __init__(self, proposer: Proposer) -> None:
        self._proposer = proposer
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None

    async def propose(self, request: Request, parents: Sequence[Parent]) -> Proposal:
        """See `Proposer`."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="propose", daemon=True)
            self._thread.start()
        loop = asyncio.get_running_loop()
        job = _Job(request, tuple(parents), loop, loop.create_future())
        self._jobs.put(job)
        return await job.answer

    async def stop(self) -> None:
        """See `Stoppable`: drops what waits; what runs ends by itself."""
        self._closed.set()
        self._jobs.put(None)

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None and not self._closed.is_set():
            if job.answer.cancelled():
                continue
            proposal: Proposal | None = None
            problem: BaseException | None = None
            try:
                proposal = asyncio.run(self._proposer.propose(job.request, job.parents))
            except BaseException as error:  # the one who awaits the answer decides what to do
                problem = error
            try:
                job.loop.call_soon_threadsafe(_settle, job.answer, proposal, problem)
            except RuntimeError:  # the loop is closed: the run has ended
                return


def _settle(answer: asyncio.Future[Proposal], proposal: Proposal | None, problem: BaseException | None) -> None:
    if answer.cancelled():
        return
    if proposal is None:
        answer.set_exception(problem or RuntimeError("the proposer gave nothing"))
    else:
        answer.set_result(proposal)
