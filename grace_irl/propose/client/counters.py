"""Totals over the calls of a client."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from grace_irl.propose.chat import Completion


@dataclass
class Counters:
    """Live sums; reading them costs nothing.

    Attributes:
        calls: requests that brought answers.
        answers: in all.
        tokens_in, tokens_out: of those requests, as the server counted them.
        seconds: those requests took, added up (not wall time: requests overlap).
        retries: requests sent again after a failure.
        waits: times that the server was away and was waited for.
        failures: requests that brought no answer, by kind: "busy" (429), "server error", "connection", "time-out",
            "empty body", "malformed body", "no answer", "too long", "rejected".
        in_flight: requests right now.
    """

    calls: int = 0
    answers: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    seconds: float = 0.0
    retries: int = 0
    waits: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    in_flight: int = 0
    clock: Callable[[], float] = field(default=time.monotonic, repr=False)
    _first: float | None = field(default=None, repr=False)
    _last: float = field(default=0.0, repr=False)
    _area: float = field(default=0.0, repr=False)

    def add(self, answers: Sequence[Completion]) -> None:
        """Counts the answers of one request."""
        self.calls += 1
        self.answers += len(answers)
        self.tokens_in += sum(one.tokens_in for one in answers)
        self.tokens_out += sum(one.tokens_out for one in answers)
        self.seconds += sum(one.seconds for one in answers)

    @contextmanager
    def request(self) -> Iterator[None]:
        """Holds one request in flight."""
        self._step(+1)
        try:
            yield
        finally:
            self._step(-1)

    @property
    def mean_in_flight(self) -> float:
        """Requests in flight, averaged over time from the first one's start to the last change."""
        if self._first is None or self._last <= self._first:
            return 0.0
        return self._area / (self._last - self._first)

    def _step(self, by: int) -> None:
        now = self.clock()
        if self._first is None:
            self._first = self._last = now
        self._area += self.in_flight * (now - self._last)
        self._last = now
        self.in_flight += by
