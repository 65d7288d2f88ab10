"""The wait before the next try."""

from __future__ import annotations

import random
from dataclasses import dataclass


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
