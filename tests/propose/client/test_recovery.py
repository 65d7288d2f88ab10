"""Waits grow, are bounded, and respect what a server asks for."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from grace_irl.propose.client.recovery import Backoff


@given(st.integers(1, 10_000))
def test_waits_are_between_nothing_and_the_bound(tries: int) -> None:
    assert 0 <= Backoff(0.5, 30.0).delay(tries) <= min(30.0, 0.5 * 2.0 ** min(tries - 1, 60))


@given(st.integers(1, 50), st.floats(0.001, 1e5))
def test_what_a_server_asks_for_is_kept_with_little_on_top(tries: int, asked: float) -> None:
    assert asked <= Backoff(0.5, 30.0).delay(tries, asked) <= asked + 0.5


def test_calls_that_failed_together_do_not_come_back_together() -> None:
    assert len({Backoff().delay(3) for _ in range(20)}) > 10
