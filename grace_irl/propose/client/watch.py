"""Waits for a server that went away: one look-out for all calls."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from grace_irl.propose.client.errors import CallFailure, ServerGone


@dataclass(frozen=True)
class Backoff:
    """Exponential, with full jitter, so that many calls that failed at once do not come back at once.

    Source: M. Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015.

    Attributes:
        first: longest wait before the second try, seconds.
        longest: of all waits, seconds; what a server asks for by Retry-After is not cut.
    """

    first: float = 0.5
    longest: float = 30.0

    def delay(self, tries: int, asked: float = 0.0) -> float:
        """Seconds to wait after `tries` failed ones; `asked` is what the server wants."""
        top = min(self.longest, self.first * 2.0 ** min(tries - 1, 60))
        # Jitter on top of what is asked for, or all of those told the same second would come in it.
        return asked + random.uniform(0.0, min(top, self.first) if asked else top)


OFTEN = 10.0  # seconds between two looks, at most


class ServerWatch:
    """While the server is away all calls stand still, and one task looks for it.

    Args:
        look: asks the server for something cheap; raises `CallFailure` where it does not answer.
        patience: seconds.
        backoff: between looks.
        on_note: told when the waiting starts (True) and ends (False).
    """

    def __init__(
        self,
        look: Callable[[], Awaitable[object]],
        patience: float,
        backoff: Backoff,
        on_note: Callable[[str, bool], None],
    ) -> None:
        self._look = look
        self._patience = patience
        self._backoff = backoff
        self._on_note = on_note
        self._task: asyncio.Task[bool] | None = None
        self._given_up = False  # patience is spent once: until the server was seen again, nobody waits anew

    async def wait(self, why: str) -> bool:
        """Returns when the server answers: True if it had been away, False if it is there at the first look.

        Raises:
            ServerGone: when patience is over.
        """
        if self._task is None or self._task.done():
            self._task = asyncio.ensure_future(self._until_back(why))
            self._task.add_done_callback(_looked_at)
        return await asyncio.shield(self._task)  # a call that is cancelled leaves the look-out to the others

    def close(self) -> None:
        """Stops looking."""
        if self._task is not None:
            self._task.cancel()

    async def _until_back(self, why: str) -> bool:
        started, looks = time.monotonic(), 0
        while not await self._there():
            waited = time.monotonic() - started
            if self._given_up or waited >= self._patience:
                self._given_up = True
                raise ServerGone(
                    f"the server has been away for the {self._patience:g} s of --llm-patience ({why}); "
                    "start it again and resume the run"
                )
            if not looks:
                self._on_note(f"the server is away ({why}); waiting for it up to {self._patience:g} s", True)
            looks += 1
            await asyncio.sleep(min(self._backoff.delay(looks), OFTEN, self._patience - waited))
        self._given_up = False
        if looks:
            self._on_note(f"the server is back after {time.monotonic() - started:.0f} s", False)
        return looks > 0

    async def _there(self) -> bool:
        try:
            await self._look()
        except CallFailure as failure:
            return failure.kind == "rejected"  # whatever it says, it is there
        return True


def _looked_at(task: asyncio.Task[bool]) -> None:
    """Where all who waited were cancelled, nobody else takes the error."""
    if not task.cancelled():
        task.exception()
