"""Signs that learning stalls, by payments and rollouts alone."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from grace_irl.runs.expand.expanding import stalls


@pytest.mark.parametrize(
    ("paid", "alike", "rollouts", "expected"),
    [
        ((0.0, 0.0, 0.0), 0, 20, True),  # never found the goal
        ((0.01, 0.05, 0.2), 1, 20, True),  # paid more and more, and almost never where experts go
        ((0.01, 0.05, 0.2), 4, 20, False),  # on its way
        ((0.2, 0.3, 0.21), 4, 20, True),  # no longer
        ((0.0, None, 0.1), 4, 20, False),
        ((-5.0, -2.0, -1.0), 4, 20, True),  # still nothing but costs
        ((None, None), 4, 20, True),
        ((0.3, 0.3, 0.3), 10, 20, False),  # half of the time is learnt well enough
        ((), 0, 0, True),
    ],
)
def test_stalls(paid: Sequence[float | None], alike: int, rollouts: int, expected: bool) -> None:
    assert stalls(paid, alike, rollouts) is expected
