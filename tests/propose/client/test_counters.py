"""Sums over requests, and the mean number of them in flight."""

from __future__ import annotations

import pytest

from grace_irl.propose.chat import Completion
from grace_irl.propose.client.wire import Counters


def test_answers_of_a_request_are_summed() -> None:
    counters = Counters()
    counters.add([Completion("a", tokens_in=7, tokens_out=2, seconds=1.5), Completion("b", tokens_out=3)])
    counters.add([Completion("c", tokens_in=5, tokens_out=1, seconds=0.5)])
    assert (counters.calls, counters.answers) == (2, 3)
    assert (counters.tokens_in, counters.tokens_out, counters.seconds) == (12, 6, 2.0)


def test_mean_in_flight() -> None:
    now = 10.0
    counters = Counters(clock=lambda: now)
    assert counters.mean_in_flight == 0.0
    with counters.request():
        now = 12.0
        with counters.request():
            assert counters.in_flight == 2
            now = 15.0
    # one request for two seconds, two for three
    assert counters.mean_in_flight == pytest.approx((1 * 2 + 2 * 3) / 5)
    now = 20.0
    with counters.request():
        now = 25.0
    # none for five, one for five
    assert counters.mean_in_flight == pytest.approx((1 * 2 + 2 * 3 + 0 * 5 + 1 * 5) / 15)
    assert counters.in_flight == 0


def test_a_request_that_fails_leaves_the_air() -> None:
    counters = Counters()
    with pytest.raises(ValueError), counters.request():
        raise ValueError
    assert counters.in_flight == 0
