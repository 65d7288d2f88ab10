"""The tally of a run that takes several children: used and given so far."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from grace_irl.sandbox.protocol import DebugRequest, Limits, Outcome


class Tally:
    """Adds the outcomes of a run's portions up to one.

    Args:
        lengths: states of each position of the run, `(positions,)`.
        limits: of the whole run.
        debug: requests of the whole run.
        passes: how often each limit holds: twice in strict mode.
    """

    def __init__(
        self, lengths: NDArray[np.int64], limits: Limits, debug: Sequence[DebugRequest] = (), passes: int = 1
    ) -> None:
        self.lengths = lengths
        self._limits, self._debug, self._passes = limits, tuple(debug), passes
        self._texts = [""] * len(self._debug)
        self._sum = Outcome("ok")
        self._covered = 0

    @property
    def left(self) -> Limits:
        """What the next portion may use."""
        wall_s = self._limits.wall_s - self._sum.wall_s / self._passes
        cpu_s = self._limits.cpu_s - self._sum.cpu_s / self._passes
        return replace(self._limits, wall_s=wall_s, cpu_s=cpu_s)

    @property
    def goes_on(self) -> bool:
        """Whether another portion may follow: none failed, and something is left of the limits."""
        return self._sum.status == "ok" and min(self.left.wall_s, self.left.cpu_s) > 0

    def requests(self, part: slice) -> list[DebugRequest]:
        """The debug requests of the positions `part`, as that portion numbers them."""
        return [replace(r, position=r.position - part.start) for r in self._debug if _within(r, part)]

    def add(self, part: slice, outcome: Outcome) -> None:
        """Count in what the positions `part` gave."""
        asked = [slot for slot, request in enumerate(self._debug) if _within(request, part)]
        for slot, text in zip(asked, outcome.debug, strict=False):  # a failed portion has no texts
            self._texts[slot] = text
        self._covered = part.stop
        before = self._sum
        self._sum = replace(
            outcome,
            rewards=before.rewards + outcome.rewards,
            cpu_s=before.cpu_s + outcome.cpu_s,
            wall_s=before.wall_s + outcome.wall_s,
            peak_mb=max(before.peak_mb, outcome.peak_mb),
        )

    def outcome(self) -> Outcome:
        """What the whole run gave."""
        if self._sum.status != "ok":
            return replace(self._sum, rewards=(), debug=())
        if self._covered < len(self.lengths):
            message = f"stopped after {self._sum.wall_s:.1f} s, {self._sum.cpu_s:.1f} s of CPU: the time limit"
            return replace(self._sum, status="timeout", message=message, rewards=(), debug=())
        return replace(self._sum, debug=tuple(self._texts))


def _within(request: DebugRequest, part: slice) -> bool:
    return bool(part.start <= request.position < part.stop)
