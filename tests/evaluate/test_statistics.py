"""Summaries of runs: closed forms, invariances, and what an interval promises."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grace_irl.errors import InputError
from grace_irl.evaluate.statistics import interquartile_mean, summarise

SCORES = st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=12)


@pytest.mark.parametrize(
    ("scores", "expected"),
    [([1.0, 2, 3, 4], 2.5), ([0.0, 1, 2, 3, 100], 2.0), ([7.0], 7.0), ([1.0, 3], 2.0), (list(range(8)), 3.5)],
)
def test_the_interquartile_mean_is_of_the_middle_half(scores: list[float], expected: float) -> None:
    assert interquartile_mean(np.array(scores, float)) == pytest.approx(expected)


def test_closed_forms_of_five_runs() -> None:
    found = summarise([[10.0, 12, 14, 16, 98]])
    assert (found.runs, found.mean, found.iqm) == (5, 30.0, 14.0)
    assert found.deviation == pytest.approx(np.std([10, 12, 14, 16, 98], ddof=1))
    low, high = found.iqm_interval
    assert 10 <= low <= 14 <= high <= 98
    assert found.mean_interval[0] < 30 < found.mean_interval[1]


def test_tasks_are_resampled_each_by_itself() -> None:
    """Between tasks there is no spread to be uncertain about: runs of one task never stand for another's."""
    apart = summarise([[0.0, 0.0, 0.0], [1.0, 1.0, 1.0]])
    assert apart.mean_interval == (0.5, 0.5)
    assert apart.deviation == 0
    together = summarise([[0.0, 0.0, 0.0, 1.0, 1.0, 1.0]])
    assert together.mean_interval[0] < 0.5 < together.mean_interval[1]
    mixed = summarise([[0.0, 0.2], [10.0, 10.2]])
    assert mixed.deviation == pytest.approx(np.std([0, 0.2], ddof=1))
    assert 5.0 - 1e-9 <= mixed.mean_interval[0] <= mixed.mean_interval[1] <= 5.2 + 1e-9


def test_one_run_has_no_interval() -> None:
    found = summarise([[3.0]])
    assert (found.mean, found.iqm) == (3.0, 3.0)
    assert math.isnan(found.deviation)
    assert all(map(math.isnan, (*found.mean_interval, *found.iqm_interval)))


@settings(max_examples=30, deadline=None)
@given(SCORES, st.floats(0.1, 10), st.floats(-100, 100))
def test_a_change_of_units_changes_the_summary_likewise(scores: list[float], scale: float, shift: float) -> None:
    before = summarise([scores], resamples=200)
    after = summarise([[scale * score + shift for score in scores]], resamples=200)
    close = {"rel": 1e-6, "abs": 1e-6 * (1 + max(map(abs, scores))) * scale}
    assert after.iqm == pytest.approx(scale * before.iqm + shift, **close)
    assert after.deviation == pytest.approx(scale * before.deviation, **close)
    for new, old in zip(after.iqm_interval, before.iqm_interval, strict=True):
        assert new == pytest.approx(scale * old + shift, **close)


@settings(max_examples=30, deadline=None)
@given(SCORES)
def test_intervals_hold_their_estimate_and_stay_within_the_scores(scores: list[float]) -> None:
    found = summarise([scores], resamples=500)
    for low, high in (found.mean_interval, found.iqm_interval):
        assert min(scores) - 1e-9 <= low <= high <= max(scores) + 1e-9
    # Of few and uneven runs the percentiles need not hold the estimate itself; of the mean at 95 % they do here.
    assert found.mean_interval[0] - 1e-9 <= found.mean <= found.mean_interval[1] + 1e-9


def test_intervals_cover_the_truth_about_as_often_as_they_say() -> None:
    generator = np.random.default_rng(0)
    hits = 0
    for _ in range(200):
        low, high = summarise([generator.normal(size=20)], confidence=0.9, resamples=400).mean_interval
        hits += low <= 0 <= high
    assert 0.82 <= hits / 200 <= 0.96


def test_the_same_seed_gives_the_same_interval() -> None:
    scores = [[1.0, 5.0, 2.0, 8.0]]
    assert summarise(scores, seed=3) == summarise(scores, seed=3)


@pytest.mark.parametrize("tasks", [[], [[]], [[1.0], []], [[float("nan"), 1.0]], [[float("inf")]]])
def test_what_cannot_be_summed_up_is_refused(tasks: list[list[float]]) -> None:
    with pytest.raises(InputError, match="expected"):
        summarise(tasks)
