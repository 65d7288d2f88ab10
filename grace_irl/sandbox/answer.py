"""What a child, or the runner of strict mode, writes into a job's memory."""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grace_irl.sandbox.failure import Failure
from grace_irl.sandbox.wire import ANSWER, CODES, COUNTS, TRACEBACK_BYTES, Job


class Answer:
    """The writable map of one job.

    Attributes:
        job: the layout.
        rewards: a view of `(states,)` doubles.
        mapped: bytes of address space.
        transitions: to be set where the program rewards transitions.
    """

    def __init__(self, fd: int) -> None:
        self._map = mmap.mmap(fd, 0, flags=mmap.MAP_SHARED, prot=mmap.PROT_READ | mmap.PROT_WRITE)
        self.job = Job.unpack(self._map[: COUNTS.size])
        self.mapped = len(self._map)
        self.transitions = False
        self._view = memoryview(self._map)
        self.rewards = self._section(self.job.rewards_at, 8 * self.job.states).cast("d")

    def source(self) -> bytes:
        """The program's text, UTF-8."""
        start = self.job.SOURCE_AT
        return self._map[start : start + self.job.source]

    def order(self) -> NDArray[np.int64]:
        """Indices of the trajectories, `(positions,)`; a copy."""
        return self._integers(self.job.order_at, self.job.positions)

    def second(self) -> NDArray[np.int64]:
        """Strict mode's second order, as positions in the first; a copy."""
        return self._integers(self.job.second_at, self.job.positions)

    def requests(self) -> dict[int, dict[int, int]]:
        """Debug requests: position to step to slot."""
        found: dict[int, dict[int, int]] = {}
        pairs = self._integers(self.job.requests_at, 2 * self.job.requests).reshape(-1, 2)
        for slot, (position, step) in enumerate(pairs.tolist()):
            found.setdefault(position, {})[step] = slot
        return found

    def finish(self, status: str, message: str = "", traceback: str = "") -> None:
        """Say how the run ended. The code is written last: half an answer is no answer."""
        said = self._text(self.job.message_at, message, self.job.message)
        trace = self._text(self.job.traceback_at, traceback, TRACEBACK_BYTES)
        ANSWER.pack_into(self._map, self.job.answer_at, CODES[status], said, trace, self.transitions)

    def fail(self, failure: Failure) -> None:
        """`finish` for a failure."""
        self.finish(failure.status, failure.message, failure.traceback)

    def debug(self, slot: int, text: str) -> None:
        """One debug text, cut to its room."""
        at = self.job.debug_at + slot * (8 + self.job.debug_bytes)
        written = self._text(at + 8, text, self.job.debug_bytes)
        self._map[at : at + 8] = written.to_bytes(8, "little")

    def _text(self, at: int, text: str, room: int) -> int:
        data = text[:room].encode("utf-8", "replace")[:room]
        self._map[at : at + len(data)] = data
        return len(data)

    def _integers(self, at: int, count: int) -> NDArray[np.int64]:
        return np.frombuffer(self._map, np.int64, count, at).copy()

    def _section(self, at: int, size: int) -> Any:
        return self._view[at : at + size]
