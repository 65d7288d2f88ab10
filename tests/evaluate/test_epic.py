"""EPIC against closed forms: what it does not count, negation, and independence (Gleave et al. 2021)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from grace_irl.errors import InputError
from grace_irl.evaluate.epic import Reward, Transitions, canonical, epic_distance, pearson_distance

STATES, ACTIONS = 6, 3
SEEDS = st.integers(0, 10_000)


def sample(count: int = 400, seed: int = 0) -> Transitions:
    """Transitions of a finite world, drawn uniformly."""
    generator = np.random.default_rng(seed)
    states, reached = generator.integers(STATES, size=(2, count))
    return Transitions(states, generator.integers(ACTIONS, size=count), reached, np.zeros(count, bool))


def table(seed: int) -> NDArray[np.float64]:
    """Rewards `(s, a, s')`, of no structure."""
    return np.random.default_rng(seed).normal(size=(STATES, ACTIONS, STATES))


def reward(values: NDArray[np.float64]) -> Reward:
    def of(state: Any, action: Any, next_state: Any, done: Any) -> Any:
        return values[state, action, next_state]

    return of


def shaping(seed: int, discount: float) -> NDArray[np.float64]:
    potential = np.random.default_rng(seed).normal(size=STATES)
    return np.broadcast_to(discount * potential[None, None] - potential[:, None, None], (STATES, ACTIONS, STATES))


@settings(max_examples=40)
@given(SEEDS, st.floats(0.01, 100), st.floats(-100, 100), st.floats(0, 1))
def test_scale_shift_and_potential_shaping_do_not_count(seed: int, scale: float, shift: float, discount: float) -> None:
    first = table(seed)
    second = scale * first + shift + shaping(seed + 1, discount)
    assert epic_distance(reward(first), reward(second), sample(), discount, samples=32) < 1e-6


@settings(max_examples=40)
@given(SEEDS, st.floats(0.01, 100), st.floats(0, 0.99))
def test_a_reward_and_its_negation_are_at_1(seed: int, scale: float, discount: float) -> None:
    first = table(seed)
    second = shaping(seed + 1, discount) - scale * first
    assert epic_distance(reward(first), reward(second), sample(), discount, samples=32) == pytest.approx(1)


def test_rewards_that_have_nothing_to_do_with_each_other() -> None:
    """Of two independent directions of the action: the correlation of 20,000 draws is 0 within 4 / sqrt(20,000)."""
    generator = np.random.default_rng(0)
    count = 20_000
    drawn = Transitions(*generator.normal(size=(3, count, 2)), np.zeros(count, bool))
    found = epic_distance(lambda s, a, n, d: a[:, 0], lambda s, a, n, d: a[:, 1], drawn, 0.9, samples=8)
    assert found == pytest.approx(math.sqrt(0.5), abs=0.02)


def test_a_closed_form_between_0_and_1() -> None:
    """a0 against a0 + a1 has correlation 1 / sqrt(2)."""
    generator = np.random.default_rng(1)
    count = 50_000
    drawn = Transitions(*generator.normal(size=(3, count, 2)), np.zeros(count, bool))
    found = epic_distance(lambda s, a, n, d: a[:, 0], lambda s, a, n, d: a.sum(axis=1), drawn, 0.9, samples=8)
    assert found == pytest.approx(math.sqrt((1 - math.sqrt(0.5)) / 2), abs=0.01)


@settings(max_examples=40)
@given(SEEDS, st.floats(0, 1))
def test_it_is_a_pseudometric(seed: int, discount: float) -> None:
    first, second, third = (reward(table(seed + number)) for number in range(3))

    def distance(one: Reward, other: Reward) -> float:
        return epic_distance(one, other, sample(), discount, samples=16, seed=seed)

    assert distance(first, first) == 0
    assert distance(first, second) == distance(second, first)
    assert 0 <= distance(first, second) <= 1
    assert distance(first, third) <= distance(first, second) + distance(second, third) + 1e-12


def test_the_sampled_form_tends_to_the_exact_one() -> None:
    """Canonical shaping by enumeration, where states and actions are uniform."""
    values, discount = table(5), 0.9
    drawn = sample(3_000, seed=2)
    mean = values.mean(axis=(1, 2))  # E R(s, A, S')
    exact = values[drawn.states, drawn.actions, drawn.next_states]
    exact = exact + discount * mean[drawn.next_states] - mean[drawn.states]
    found = canonical(reward(values), drawn, discount, 4_000, 0)
    assert pearson_distance(found, exact) < 0.02


def test_without_canonical_shaping_shaping_would_count() -> None:
    first, drawn = table(0), sample()
    second = first + 5 * shaping(1, 0.9)
    raw = [reward(values)(drawn.states, drawn.actions, drawn.next_states, drawn.dones) for values in (first, second)]
    assert pearson_distance(*raw) > 0.3
    assert epic_distance(reward(first), reward(second), drawn, 0.9) < 1e-6


@pytest.mark.parametrize("constant", [0.0, 1.0, -1e6])
def test_a_constant_reward_is_correlated_with_nothing(constant: float) -> None:
    flat, other = reward(np.full((STATES, ACTIONS, STATES), constant)), reward(table(0))
    assert epic_distance(flat, other, sample(), 0.9) == math.sqrt(0.5)
    assert epic_distance(flat, flat, sample(), 0.9) == 0
    assert epic_distance(reward(np.array(shaping(3, 0.9))), flat, sample(), 0.9) == 0


def test_chunks_do_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = epic_distance(reward(table(0)), reward(table(1)), sample(), 0.9, samples=50)
    monkeypatch.setattr("grace_irl.evaluate.epic.CHUNK", 120)
    assert epic_distance(reward(table(0)), reward(table(1)), sample(), 0.9, samples=50) == pytest.approx(whole)


def test_what_cannot_be_compared_is_refused() -> None:
    good, drawn = reward(table(0)), sample()
    with pytest.raises(InputError, match=r"discount 1\.5; expected 0 to 1"):
        epic_distance(good, good, drawn, 1.5)
    with pytest.raises(InputError, match="0 samples; expected at least 1"):
        epic_distance(good, good, drawn, 0.9, samples=0)
    with pytest.raises(InputError, match="400 not finite; expected one finite number each"):
        epic_distance(good, lambda s, a, n, d: np.full(len(s), np.nan), drawn, 0.9)
    with pytest.raises(InputError, match="expected one finite number each"):
        epic_distance(good, lambda s, a, n, d: np.zeros((len(s), 1)), drawn, 0.9)
    one = np.zeros(1)
    with pytest.raises(InputError, match="at least 2"):
        Transitions(one, one, one, one.astype(bool))
    with pytest.raises(InputError, match="columns of equal length"):
        Transitions(np.zeros(3), one, np.zeros(3), np.zeros(3, bool))
