"""Calibration: the optimum, its bounds, and what it makes f blind to."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import OptimizeResult

from grace_irl.evaluate import calibration
from grace_irl.evaluate.calibration import MARGIN, MIN_SCALE, calibrate, upper_bound
from grace_irl.evaluate.discriminator import Objective
from tests.evaluate.test_discriminator import rows_of


def reached(objective: Objective) -> float:
    fitted = calibrate(objective)
    return objective.value(fitted.scale, fitted.offset)


def of(experts: list[float], negatives: list[float]) -> Objective:
    marks = [True] * len(experts) + [False] * len(negatives)
    return Objective.of(np.array(experts + negatives), rows_of(marks))


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


@pytest.mark.parametrize(
    ("experts", "negatives"),
    [
        ([1.0, 1.0], [0.0, 0.0]),
        ([1.0, 1e3], [0.0, 0.0]),  # an outlier must not sink a reward that separates
        ([1.0, 1e9], [0.0, -1e12]),
        ([1e-290, 1.0], [0.0]),
        ([1.0], [0.0]),
    ],
)
def test_separated_sides_stand_sixty_logits_apart(experts: list[float], negatives: list[float]) -> None:
    objective = of(experts, negatives)
    fitted = calibrate(objective)
    gap = min(experts) - max(negatives)
    assert fitted.scale == pytest.approx(MARGIN / gap, rel=1e-12)
    assert fitted.offset == pytest.approx(-MARGIN / 2, rel=1e-12)  # the middle between 0 and the gap
    assert objective.value(fitted.scale, fitted.offset) == pytest.approx(0, abs=2e-13)
    assert upper_bound(objective) == 0.0


def test_sides_that_touch_lose_only_where_they_touch() -> None:
    # Half of the experts and all negatives are valued 0: there D = 1/3, above it D = 1.
    objective = of([0.0, 1.0], [0.0, 0.0])
    expected = math.log(1 / 3) / 2 + math.log(2 / 3)
    assert reached(objective) == pytest.approx(expected, abs=1e-12)
    assert upper_bound(objective) == pytest.approx(expected, abs=1e-12)
    assert reached(of([0.0, 1e6], [0.0, 0.0])) == pytest.approx(expected, abs=1e-12)


def test_a_reward_that_prefers_negatives_is_not_turned_around() -> None:
    objective = of([0.0, 0.0], [1.0, 1.0])
    assert calibrate(objective).scale == pytest.approx(MIN_SCALE)
    assert reached(objective) == pytest.approx(2 * math.log(0.5), abs=1e-9)
    assert upper_bound(objective) == pytest.approx(2 * math.log(0.5), abs=1e-12)


@pytest.mark.parametrize("value", [0.0, 7.0, -1e9, 1e300, 5e-324])
def test_a_constant_reward_scores_two_log_half(value: float) -> None:
    objective = of([value] * 2, [value] * 3)
    fitted = calibrate(objective)
    assert (fitted.scale, fitted.offset) == (MIN_SCALE, pytest.approx(-MIN_SCALE * value, abs=1e-12))
    assert objective.value(fitted.scale, fitted.offset) == pytest.approx(2 * math.log(0.5), abs=1e-12)
    assert upper_bound(objective) == pytest.approx(2 * math.log(0.5), abs=1e-12)  # so that constants stop early


def test_the_bound_of_a_constant_part_is_the_entropy_of_its_weights() -> None:
    # One of two experts and one of four negatives: weights 1/2 and 1/4, so D = 2/3 is the best.
    rows = rows_of([True, True] + [False] * 4)
    part = np.array([True, False, True, False, False, False])
    expected = math.log(2 / 3) / 2 + math.log(1 / 3) / 4
    assert upper_bound(Objective.of(np.array([3.0, 3.0]), rows.of_items(part))) == pytest.approx(expected, abs=1e-12)


def test_a_part_of_one_side_bounds_nothing() -> None:
    part = np.array([True, False])
    assert upper_bound(Objective.of(np.array([3.0]), rows_of([True, False]).of_items(part))) == 0.0


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


@pytest.mark.parametrize(
    "broken",
    [
        OptimizeResult(x=np.array([1e-3, 5.0]), success=False),
        OptimizeResult(x=np.array([1e-3, 5.0]), success=True),  # claims to have converged, and has not
        OptimizeResult(x=np.array([np.nan, np.nan]), success=True),
        OptimizeResult(x=np.array([-4.0, 0.0]), success=True),
        OptimizeResult(x=np.array([1e12, 0.0]), success=False),
    ],
)
def test_a_solver_that_fails_changes_nothing(broken: OptimizeResult, monkeypatch: pytest.MonkeyPatch) -> None:
    rewards, marks = overlapping(7)
    objective = Objective.of(rewards, rows_of(marks))
    expected = calibrate(objective)
    monkeypatch.setattr(calibration, "minimize", lambda *args, **kwargs: broken)
    found = calibrate(objective)
    assert (found.scale, found.offset) == (pytest.approx(expected.scale, rel=1e-6), pytest.approx(expected.offset))
    assert reached(objective) == pytest.approx(objective.value(expected.scale, expected.offset), abs=1e-12)


ADVERSARIAL: dict[str, tuple[list[float], list[float]]] = {
    "two states": ([1.0], [0.0]),
    "two states, the wrong way": ([0.0], [1.0]),
    "two equal states": ([2.0], [2.0]),
    "a huge range": ([1e9, 1.0, -1e9], [0.0, 2.0, -1e9]),
    "an expert far on the wrong side": ([-1e9, 1.0, 1.0], [0.0, 0.0]),
    "a negative far on the wrong side": ([1.0, 1.0], [0.0, 1e9]),
    "a tiny overlap in a huge range": ([1e9, 0.0], [1e-9, -1e9]),
    "ties": ([0.0, 0.0, 1.0, 1.0], [0.0, 1.0, 1.0, 0.0]),
    "experts all equal": ([1.0] * 5, [0.0, 2.0, 1.0]),
    "negatives all equal": ([0.0, 2.0, 1.0], [1.0] * 5),
    "denormals": ([5e-324, 0.0], [0.0, 5e-324]),
    "separated denormals": ([5e-324], [0.0]),
    "small numbers": ([3e-308, 1e-308], [0.0, 2e-308]),
    "the largest numbers": ([1.7e308, -1.7e308, 0.0], [-1.7e308, 1.0, 0.0]),
    "the whole range of doubles": ([1.7e308, 1e-300], [-1.7e308, 1e-300]),
    "a gap of denormals beside large numbers": ([0.0, 179769314.0], [-5.430163538455702e-307]),
    "one unit in the last place": ([1e9 + 2e-7], [1e9]),
}


def check(objective: Objective) -> float:
    """What must hold of any rewards; returns f."""
    fitted = calibrate(objective)
    assert 0 < fitted.scale < math.inf
    assert math.isfinite(fitted.offset)
    value = objective.value(fitted.scale, fitted.offset)
    assert value >= 2 * math.log(0.5) - 1e-9
    assert value <= upper_bound(objective) + 1e-9
    with np.errstate(over="ignore"):
        assert value >= objective.value(1.0, 0.0) - 1e-9
    return value


@pytest.mark.parametrize("name", ADVERSARIAL)
def test_adversarial_rewards(name: str) -> None:
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        check(of(*ADVERSARIAL[name]))


reward = st.one_of(st.floats(-10, 10), st.sampled_from([0.0, 1.0]), st.floats(-1e9, 1e9))


@given(st.lists(reward, min_size=1, max_size=8), st.lists(reward, min_size=1, max_size=8))
def test_any_rewards(experts: list[float], negatives: list[float]) -> None:
    check(of(experts, negatives))


@given(
    st.lists(st.integers(-20, 20), min_size=1, max_size=8),
    st.lists(st.integers(-20, 20), min_size=1, max_size=8),
    st.sampled_from([2.0**-40, 1e-3, 0.1, 1.0, 3.0, 1e6]),
    st.integers(-1000, 1000),
)
def test_any_rewards_under_rising_affine_maps(
    experts: list[int], negatives: list[int], factor: float, shift: int
) -> None:
    plain = check(of([float(x) for x in experts], [float(x) for x in negatives]))
    mapped = check(of([factor * (x + shift) for x in experts], [factor * (x + shift) for x in negatives]))
    assert mapped == pytest.approx(plain, abs=1e-9)
