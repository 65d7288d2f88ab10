"""Summaries of runs: closed forms, invariances, and how often an interval of a few runs holds."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from grace_irl.compare.standings import UNKNOWN, interquartile_mean, summarise
from grace_irl.errors import InputError

SCORES = st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=12)


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ([1.0, 2, 3, 4], 2.5),
        ([0.0, 1, 2, 3, 100], 2.0),
        ([7.0], 7.0),
        ([1.0, 3], 2.0),
        ([0.0, 10, 11, 12, 13, 14, 90, 100], 12.5),  # two from each end, and not one
        ([0.0, 1, 20, 21, 22, 23, 24, 28, 90, 100], 23.0),  # two from each end, and not three
        ([0.0, 1, 2, 30, 31, 32, 33, 34, 35, 36, 99, 100], 32.5),
    ],
)
def test_the_interquartile_mean_is_of_the_middle_half(scores: list[float], expected: float) -> None:
    assert interquartile_mean(np.array(scores, float)) == pytest.approx(expected)


def test_closed_forms_of_five_runs() -> None:
    found = summarise([10.0, 12, 14, 16, 98])
    assert (found.runs, found.mean, found.iqm) == (5, 30.0, 14.0)
    assert found.deviation == pytest.approx(np.std([10, 12, 14, 16, 98], ddof=1))
    half = 2.7764 * found.deviation / math.sqrt(5)  # Student's t, 4 degrees of freedom
    assert found.interval == pytest.approx((30 - half, 30 + half), rel=1e-4)


def test_no_interquartile_mean_where_it_is_the_mean() -> None:
    assert [summarise([0.0, 1.0, 5.0, 9.0][:runs]).iqm for runs in (1, 2, 3)] == [None] * 3
    assert summarise([0.0, 1.0, 5.0, 9.0]).iqm == 3.0


@pytest.mark.parametrize("scores", [[3.0], [1.0, 1.0, 1.0]])
def test_one_run_and_equal_ones_have_no_interval(scores: list[float]) -> None:
    found = summarise(scores)
    assert found.mean == scores[0]
    assert all(map(math.isnan, found.interval))
    assert math.isnan(found.deviation) if len(scores) == 1 else found.deviation == 0


def test_an_interval_ends_where_no_mean_can_be() -> None:
    found = summarise([0.9, 1.0, 0.95], within=(0.0, 1.0))
    assert found.interval == (pytest.approx(summarise([0.9, 1.0, 0.95]).interval[0]), 1.0)
    assert summarise([0.0, 1.0, 0.0], within=(0.0, 1.0)).interval == (0.0, 1.0)


@settings(max_examples=30)
@given(SCORES, st.floats(0.1, 10), st.floats(-100, 100))
def test_a_change_of_units_changes_the_summary_likewise(scores: list[float], scale: float, shift: float) -> None:
    before, after = summarise(scores), summarise([scale * score + shift for score in scores])
    close = {"rel": 1e-6, "abs": 1e-6 * (1 + max(map(abs, scores))) * scale}
    assert after.mean == pytest.approx(scale * before.mean + shift, **close)
    assert after.deviation == pytest.approx(scale * before.deviation, **close)
    if all(map(math.isfinite, (*before.interval, *after.interval))):
        for new, old in zip(after.interval, before.interval, strict=True):
            assert new == pytest.approx(scale * old + shift, **(close | {"abs": 20 * close["abs"]}))


@settings(max_examples=30)
@given(SCORES)
def test_an_interval_holds_its_estimate(scores: list[float]) -> None:
    found = summarise(scores)
    assert found.interval == pytest.approx(UNKNOWN, nan_ok=True) or (
        found.interval[0] <= found.mean <= found.interval[1]
    )


@pytest.mark.parametrize("runs", [3, 5, 10])
@pytest.mark.parametrize(
    ("draw", "mean", "least"),
    [
        (lambda rng, runs: rng.normal(size=runs), 0.0, 0.93),
        (lambda rng, runs: (rng.random(runs) < 0.8).astype(float), 0.8, 0.93),
        (lambda rng, runs: rng.lognormal(size=runs), math.exp(0.5), 0.78),
    ],
    ids=["normal", "0 or 1", "skewed"],
)
def test_intervals_of_few_runs_hold_about_as_often_as_they_say(
    draw: Callable[[np.random.Generator, int], np.ndarray], mean: float, least: float, runs: int
) -> None:
    """A percentile bootstrap of three normal runs holds in 0.73 of all cases (benchmarks/interval_coverage.py)."""
    rng, held = np.random.default_rng(0), []
    for _ in range(600):
        low, high = summarise(draw(rng, runs)).interval
        if math.isfinite(low):
            held.append(low <= mean <= high)
    assert np.mean(held) >= least


def test_of_differences_it_is_the_paired_test_of_scipy() -> None:
    first, second = np.array([1.0, 5.0, 9.0, 13.0]), np.array([0.5, 4.0, 8.7, 12.0])
    low, high = stats.ttest_rel(first, second).confidence_interval(0.95)
    assert summarise(first - second).interval == pytest.approx((float(low), float(high)))


@pytest.mark.parametrize("scores", [[], [[1.0]], [float("nan"), 1.0], [float("inf")]])
def test_what_cannot_be_summed_up_is_refused(scores: list[float]) -> None:
    with pytest.raises(InputError, match="expected"):
        summarise(scores)
