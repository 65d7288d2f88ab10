"""Calibration: the optimum, its bounds, and what it makes f blind to."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grace_irl.evaluate.calibration import MAX_SCALE, calibrate, upper_bound
from grace_irl.evaluate.discriminator import Objective
from tests.evaluate.test_discriminator import rows_of


def reached(objective: Objective) -> float:
    fitted = calibrate(objective)
    return objective.value(fitted.scale, fitted.offset)


def overlapping(seed: int, count: int = 200) -> tuple[np.ndarray, list[bool]]:
    rng = np.random.default_rng(seed)
    marks = rng.random(count) < 0.4
    return rng.normal(size=count) + marks, marks.tolist()


def test_the_optimum_of_a_two_valued_reward_is_the_log_odds() -> None:
    # 3 of 4 experts and 1 of 4 negatives are valued 1: the best D is P(expert | value) at equal weight of
    # both sides.
    rewards = np.array([1.0, 1, 1, 0, 1, 0, 0, 0])
    fitted = calibrate(Objective.of(rewards, rows_of([True] * 4 + [False] * 4)))
    assert fitted.offset == pytest.approx(-math.log(3), abs=1e-8)
    assert fitted.scale == pytest.approx(2 * math.log(3), abs=1e-8)


def test_the_gradient_vanishes_at_an_inner_optimum() -> None:
    objective = Objective.of(overlapping(0)[0], rows_of(overlapping(0)[1]))
    fitted = calibrate(objective)
    assert objective.gradient(fitted.scale, fitted.offset) == pytest.approx([0, 0], abs=1e-7)


def test_separated_rewards_stop_at_the_largest_scale() -> None:
    rewards = np.array([1.0, 1, 0, 0])
    objective = Objective.of(rewards, rows_of([True, True, False, False]))
    fitted = calibrate(objective)
    assert fitted.scale == pytest.approx(MAX_SCALE / 0.5)  # the deviation of 0, 0, 1, 1 is one half
    assert fitted.offset == pytest.approx(-fitted.scale / 2)
    assert -1e-9 < objective.value(fitted.scale, fitted.offset) <= 0


def test_a_reward_that_prefers_negatives_is_not_turned_around() -> None:
    objective = Objective.of(np.array([0.0, 0, 1, 1]), rows_of([True, True, False, False]))
    fitted = calibrate(objective)
    assert fitted.scale > 0
    assert objective.value(fitted.scale, fitted.offset) == pytest.approx(2 * math.log(0.5), abs=1e-5)


def test_a_constant_reward_scores_two_log_half() -> None:
    objective = Objective.of(np.full(4, 7.0), rows_of([True, True, False, False]))
    assert reached(objective) == pytest.approx(2 * math.log(0.5))


@pytest.mark.parametrize("positive", [1, 5, 150])
def test_the_optimum_beats_a_grid(positive: int) -> None:
    rng = np.random.default_rng(positive)
    rewards = rng.normal(size=200)
    rewards[:positive] += 0.5
    objective = Objective.of(rewards, rows_of([True] * positive + [False] * (200 - positive)))
    grid = max(objective.value(s, o) for s in np.linspace(0.01, 6, 40) for o in np.linspace(-6, 6, 40))
    assert reached(objective) >= grid - 1e-12


@given(st.integers(0, 30), st.floats(1e-3, 1e3), st.floats(-100, 100))
def test_calibrated_fitness_ignores_rising_affine_maps(seed: int, factor: float, shift: float) -> None:
    rewards, marks = overlapping(seed, 60)
    plain = reached(Objective.of(rewards, rows_of(marks)))
    mapped = reached(Objective.of(factor * rewards + shift, rows_of(marks)))
    assert mapped == pytest.approx(plain, abs=1e-9)


@given(st.floats(1e-6, 1e6), st.floats(-1e3, 1e3))
def test_it_ignores_them_where_states_are_separated_too(factor: float, shift: float) -> None:
    rewards, rows = np.array([3.0, 2.0, 1.0, -1.0]), rows_of([True, True, False, False])
    plain = reached(Objective.of(rewards, rows))
    assert reached(Objective.of(factor * rewards + shift, rows)) == pytest.approx(plain, abs=1e-9)


def test_log_pi_takes_part() -> None:
    rng = np.random.default_rng(3)
    rewards, marks = overlapping(3)
    rows = rows_of(marks, log_pi=rng.normal(size=200).tolist())
    objective = Objective.of(rewards, rows)
    fitted = calibrate(objective)
    assert objective.gradient(fitted.scale, fitted.offset) == pytest.approx([0, 0], abs=1e-7)
    assert objective.value(fitted.scale, fitted.offset) >= objective.value(1.0, 0.0)


@given(st.integers(0, 40), st.integers(10, 190))
def test_the_bound_of_a_part_is_above_the_fitness_of_the_whole(seed: int, cut: int) -> None:
    rewards, marks = overlapping(seed)
    rows = rows_of(marks)
    part = np.arange(200) < cut
    bound = upper_bound(Objective.of(rewards[part], rows.of_items(part)))
    assert bound >= reached(Objective.of(rewards, rows)) - 1e-9


def test_the_bound_is_tight_for_the_whole() -> None:
    rewards, marks = overlapping(5)
    objective = Objective.of(rewards, rows_of(marks))
    assert upper_bound(objective) == pytest.approx(reached(objective), abs=1e-9)
