"""Rounding to float32 moves no reward noticeably, and no number weighs more because it hardly varies."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from grace_irl.demos.labels import label
from grace_irl.demos.trajectory import Demonstration, Demonstrations, Metadata, Trajectory
from grace_irl.search.protocol import Request
from grace_irl.synthesis import Synthesiser
from grace_irl.synthesis.vector.terms import EPSILON, FAR, RESOLUTION, vocabulary
from tests.synthesis.worlds import rewards_of_all

Draw = Callable[[np.random.Generator, bool, int], NDArray[np.float64]]
"""Values of a number in an episode of an expert or a negative, of a length."""


def constant(rng: np.random.Generator, expert: bool, length: int) -> NDArray[np.float64]:
    return np.full(length, 9.81)


def saturated(rng: np.random.Generator, expert: bool, length: int) -> NDArray[np.float64]:
    """A number with a limit, at which experts are often."""
    return np.where(expert & (rng.random(length) < 0.4), 1.0, rng.uniform(0, 1, length))


def far_from_zero(rng: np.random.Generator, expert: bool, length: int) -> NDArray[np.float64]:
    return rng.normal(3e4 + 1.5 * expert, 1.0, length)


def farther_from_zero(rng: np.random.Generator, expert: bool, length: int) -> NDArray[np.float64]:
    return rng.normal(1e6 + 1.5 * expert, 1.0, length)


def constant_for_experts(rng: np.random.Generator, expert: bool, length: int) -> NDArray[np.float64]:
    return np.full(length, 7.0) if expert else rng.normal(7.0, 3.0, length)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("draw", [constant, saturated, far_from_zero, farther_from_zero, constant_for_experts])
def test_rounding_moves_no_reward(draw: Draw, dtype: type) -> None:
    """Not by a hundredth of the standard deviation of the rewards, in any of the first programs."""
    rng = np.random.default_rng(0)
    items = []
    for number in range(16):
        expert = number < 8
        rounded = draw(rng, expert, 40) * (1 + EPSILON / 2 * rng.uniform(-1, 1, 40))
        states = np.column_stack([rng.normal(size=40), rounded]).astype(dtype)
        items.append(Demonstration(Trajectory(states), "expert" if expert else "negative"))
    synthesiser = Synthesiser(label(Demonstrations(Metadata("vector"), tuple(items)), "all"), 0)
    states = [item.trajectory.states for item in items]
    moved = [(each * dtype(1 + 1e-7)).astype(dtype) for each in states]
    assert not np.array_equal(moved, states)
    for index in (0, 4, 8, 16):
        source = asyncio.run(synthesiser.propose(Request(index, "initialise"), ())).source
        before, after = (np.concatenate(rewards_of_all(source, each, [""] * 16)) for each in (states, moved))
        assert before.std() > 0
        assert np.abs(after - before).max() < 0.01 * before.std()


def test_a_number_that_rounding_alone_changes_has_no_term() -> None:
    rng = np.random.default_rng(0)
    states = np.column_stack([rng.normal(size=80), 0.7 * (1 + EPSILON * rng.uniform(-1, 1, 80))])
    assert {field for term in vocabulary(states[:40], states, 2, 2) for field in term.fields} == {0}


def test_a_threshold_among_equal_values_has_no_term() -> None:
    """Only rounding puts a value above the limit of all values, so nothing is to be learnt there."""
    rng = np.random.default_rng(0)
    states = np.where(np.arange(200) % 3, 1.0, rng.uniform(0, 1, 200)) * (1 + EPSILON / 2 * rng.uniform(-1, 1, 200))
    terms = vocabulary(states[:100, None], states[:, None], 0)
    assert sum(term.threshold > 0.999 for term in terms if term.shape == "below") == 1
    assert not [term for term in terms if term.shape == "above" and term.threshold > 0.999]
    assert all(term.value(states[:, None]).std() > RESOLUTION * term.rounding for term in terms)


def test_a_range_of_no_width_is_none() -> None:
    """A number that 1 in 300 expert states changes is not out of the experts' range wherever it changes."""
    experts = np.where(np.arange(600) % 300, 1.0, 3.0)[:, None]
    everything = np.concatenate([experts, np.where(np.arange(600) % 3, 1.0, 3.0)[:, None]])
    outside, *_ = vocabulary(experts, everything, 0, 1)
    assert outside.shape == "outside"
    assert outside.value(np.array([[1.0], [3.0]])).tolist() == [0.0, 0.0]
    assert outside.value(np.array([[1.0 + 99 * everything.std()]])).tolist() == [FAR]


def test_pairs_of_conditions_and_conditions_alone_have_no_term() -> None:
    rng = np.random.default_rng(0)
    states = rng.normal(size=(80, 4))
    conditions = np.array([True, False, True, False])
    terms = vocabulary(states[:40], states, 4, 4, conditions)
    assert terms[0].fields == (1, 3)
    assert {term.fields for term in terms[1:]} == {(1,), (3,), (0, 1), (0, 3), (1, 2), (1, 3), (2, 3)}
