"""Portions of a run add up to one outcome."""

from __future__ import annotations

import numpy as np
import pytest

from grace_irl.sandbox.job import RunTally
from grace_irl.sandbox.protocol import DebugRequest, Limits, Outcome

LENGTHS = np.array([2, 3, 1])


def part(count: int, *texts: str, cpu_s: float = 1.0, wall_s: float = 2.0, peak_mb: float = 5.0) -> Outcome:
    return Outcome("ok", (np.zeros(1),) * count, debug=texts, cpu_s=cpu_s, wall_s=wall_s, peak_mb=peak_mb)


def test_a_whole_run() -> None:
    requests = [DebugRequest(2, 0), DebugRequest(0, 1), DebugRequest(2, 0)]
    tally = RunTally(LENGTHS, Limits(wall_s=10, cpu_s=5), requests)
    assert tally.requests(slice(0, 2)) == [DebugRequest(0, 1)]
    assert tally.requests(slice(2, 3)) == [DebugRequest(0, 0)]  # each state once
    tally.add(slice(0, 2), part(2, "b", peak_mb=9.0))
    assert (tally.left.wall_s, tally.left.cpu_s) == (8, 4)
    tally.add(slice(2, 3), part(1, "a"))
    outcome = tally.outcome()
    assert (outcome.status, outcome.debug, len(outcome.rewards)) == ("ok", ("a", "b", "a"), 3)
    assert (outcome.cpu_s, outcome.wall_s, outcome.peak_mb) == (2, 4, 9)


def test_a_failure_ends_it() -> None:
    tally = RunTally(LENGTHS, Limits(), [DebugRequest(0, 0)])
    tally.add(slice(0, 1), part(1, "a"))
    tally.add(slice(1, 2), Outcome("runtime", message="why", traceback="where", cpu_s=1.0))
    assert not tally.goes_on
    outcome = tally.outcome()
    assert (outcome.status, outcome.message, outcome.traceback, outcome.cpu_s) == ("runtime", "why", "where", 2)
    assert (outcome.rewards, outcome.debug) == ((), ())


@pytest.mark.parametrize(("passes", "goes_on"), [(1, False), (2, True)])
def test_limits_hold_for_all_portions_together(passes: int, goes_on: bool) -> None:
    tally = RunTally(LENGTHS, Limits(wall_s=4, cpu_s=1), passes=passes)
    tally.add(slice(0, 1), part(1))
    assert tally.goes_on is goes_on
    if not goes_on:
        outcome = tally.outcome()
        assert (outcome.status, outcome.rewards) == ("timeout", ())
        assert "the time limit" in outcome.message
