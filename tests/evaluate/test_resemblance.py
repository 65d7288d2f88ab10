"""Trajectories that can be told from an expert's."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from grace_irl.demos.trajectory import Demonstration, Demonstrations, Metadata, Trajectory
from grace_irl.runs.config import resolve
from grace_irl.runs.expand.likeness import like_experts, resemblance


def walks(count: int, centre: float, seed: int, spread: float = 1.0, length: int = 60) -> list[NDArray[np.float64]]:
    rng = np.random.default_rng(seed)
    return [centre + spread * rng.standard_normal((length, 3)) for _ in range(count)]


def test_the_same_source_cannot_be_told_apart() -> None:
    found = resemblance(walks(8, 0.0, 1), walks(8, 0.0, 2))
    assert found.shape == (8,)
    assert abs(found.mean() - 0.5) < 0.06


def test_a_shift_is_told_and_so_is_a_spread_that_no_line_separates() -> None:
    experts = walks(8, 0.0, 1)
    assert resemblance(experts, walks(8, 4.0, 2)).min() > 0.99
    assert resemblance(experts, walks(8, 0.0, 2, spread=4.0)).min() > 0.8


def test_each_trajectory_is_judged_by_itself() -> None:
    mixed = walks(5, 0.0, 3) + walks(5, 3.0, 4)
    found = resemblance(walks(10, 0.0, 1), mixed)
    assert found[:5].max() < found[5:].min()
    assert found[5:].min() > 0.9
    assert found[:5].max() < 0.75


def test_an_overfitted_difference_does_not_count() -> None:
    """With more numbers than states a classifier separates what it saw, whatever it is."""
    rng = np.random.default_rng(0)
    experts, others = ([rng.standard_normal((3, 200)) for _ in range(4)] for _ in range(2))
    assert abs(resemblance(experts, others).mean() - 0.5) < 0.3


@pytest.mark.parametrize(("many", "few"), [(1, 1), (1, 5), (6, 1)])
def test_single_trajectories_are_cut_in_two(many: int, few: int) -> None:
    assert resemblance(walks(many, 0.0, 1), walks(few, 3.0, 2)).min() > 0.9
    one = [np.zeros((1, 2))]
    assert resemblance(one, one) == pytest.approx([0.5])


def test_units_do_not_matter_and_grids_are_numbers_too() -> None:
    experts, others = walks(6, 0.0, 1), walks(6, 1.0, 2)
    scale = np.array([1e-6, 1.0, 1e6])
    plain, scaled = resemblance(experts, others), resemblance([e * scale for e in experts], [o * scale for o in others])
    np.testing.assert_allclose(plain, scaled, atol=1e-6)
    rng = np.random.default_rng(0)
    left, right = ([rng.integers(low, low + 3, (9, 2, 2, 3)).astype(np.uint8) for _ in range(4)] for low in (0, 5))
    assert resemblance(left, right).min() > 0.95


def test_the_deal_is_the_seed() -> None:
    experts, others = walks(5, 0.0, 1), walks(5, 0.4, 2)
    np.testing.assert_array_equal(resemblance(experts, others, 7), resemblance(experts, others, 7))
    with pytest.raises(ValueError, match="no trajectories"):
        resemblance([], others)


def test_pictures_are_told_apart_by_some_of_their_numbers() -> None:
    """All 7,500 numbers of each state, and their squares, would take gigabytes."""

    def film(bright: int, seed: int) -> Trajectory:
        rng = np.random.default_rng(seed)
        return Trajectory(rng.integers(bright, 100 + bright, (40, 50, 50, 3), dtype=np.uint8), kind="image")

    experts = tuple(Demonstration(film(0, seed), "expert") for seed in range(4))
    demonstrations = Demonstrations(Metadata("image", label="all"), experts)
    for bright, alike in ((0, True), (40, False)):
        played = [film(bright, 10 + seed) for seed in range(4)]
        assert like_experts(Path("unread"), played, demonstrations, resolve()) == [alike] * 4
