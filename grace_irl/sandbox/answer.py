"""The answer of a child, or of the runner of strict mode, in a job's memory."""

from __future__ import annotations

import mmap

from grace_irl.sandbox.failure import Failure
from grace_irl.sandbox.wire import ANSWER, CODES, HEADER, SOURCE_AT, TRACEBACK_BYTES, Job


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
        self.job = Job._make(HEADER.unpack_from(self._map))
        self.mapped = len(self._map)
        self.transitions = False
        at = self.job.rewards_at
        self.rewards = memoryview(self._map)[at : at + 8 * self.job.states].cast("d")

    def source(self) -> bytes:
        """The program's text, UTF-8."""
        return self._map[SOURCE_AT : SOURCE_AT + self.job.source]

    def second(self) -> list[int]:
        """Strict mode's second order of the run's trajectories."""
        return self._integers(self.job.second_at, self.job.positions)

    def requests(self) -> dict[int, dict[int, int]]:
        """Debug requests: position to step to slot."""
        found: dict[int, dict[int, int]] = {}
        flat = self._integers(self.job.requests_at, 2 * self.job.requests)
        for slot, (position, step) in enumerate(zip(flat[::2], flat[1::2], strict=True)):
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

    def _integers(self, at: int, count: int) -> list[int]:
        with memoryview(self._map)[at : at + 8 * count].cast("q") as numbers:
            return numbers.tolist()
