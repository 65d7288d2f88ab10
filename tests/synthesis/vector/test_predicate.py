"""Predicates: their rewards, the search for them, and round limits."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from grace_irl.synthesis.vector.predicate import (
    Evidence,
    Limit,
    Predicate,
    PredicateSearch,
    found_in,
    roundest,
    run_lengths,
)
from grace_irl.synthesis.vector.quantities import Quantity


def episode(*columns: list[float]) -> np.ndarray:
    return np.array(columns).T


def test_rewards_are_one_at_the_goal_and_rise_toward_it() -> None:
    predicate = Predicate((Limit(0, "<=", 1.0, 2.0), Limit(1, ">=", 5.0, 1.0)))
    values = episode([5.0, 3.0, 1.0, 0.5], [4.0, 5.0, 4.0, 6.0])
    assert predicate.rewards(values).tolist() == [-3.0, -1.0, -1.0, 1.0]


def test_a_predicate_that_must_hold_rises_while_it_holds() -> None:
    predicate = Predicate((Limit(0, "<=", 0.0),), held=2)
    assert predicate.rewards(episode([1.0, 0.0, 2.0, 0.0, 0.0, 0.0])).tolist() == [-2.0, -0.5, -3.0, -0.5, 1.0, 1.0]


def test_run_lengths() -> None:
    holds = np.array([1, 1, 0, 1, 0, 0, 1, 1, 1], dtype=bool)
    assert run_lengths(holds, np.array([0])).tolist() == [1, 2, 0, 1, 0, 0, 1, 2, 3]
    assert run_lengths(holds, np.array([0, 1, 8])).tolist() == [1, 1, 0, 1, 0, 0, 1, 2, 1]  # an episode begins anew
    both = np.stack([holds, ~holds], axis=1)
    assert run_lengths(both, np.array([0, 8]))[:, 1].tolist() == [0, 0, 1, 0, 1, 2, 0, 0, 0]


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0.0488, 0.0512, 0.05),
        (0.011, 0.044, 0.03),
        (-0.3, 0.2, 0.0),
        (9.7, 11.2, 10.0),
        (0.9671, 0.9679, 0.9675),
        (-44.0, -36.0, -40.0),
        (1.23456, 1.23456, 1.23456),
    ],
)
def test_round_numbers(low: float, high: float, expected: float) -> None:
    assert roundest(low, high) == pytest.approx(expected, abs=1e-9)


def evidence(seed: int, noise: int = 20) -> Evidence:
    """Eight experts whose distance falls below 0.1 while a hand opens beyond 0.5, and 16 negatives that miss one.

    The first number is the distance, the second the hand. All others are noise.
    """
    rng = np.random.default_rng(seed)
    values, goals = [], []
    for number in range(24):
        length = int(rng.integers(15, 30))
        distance = np.abs(np.linspace(rng.uniform(0.5, 1.0), 0.0, length) + rng.normal(0, 0.01, length))
        hand = rng.uniform(0.0, 0.5, length)
        if number < 8 or number % 2:
            hand[-1] = rng.uniform(0.5, 1.0)
        if number >= 8 and number % 2:
            distance += 0.15
        distance[:-1] = np.maximum(distance[:-1], 0.0)
        columns = [distance, hand, *rng.normal(size=(noise, length)).cumsum(axis=1)]
        values.append(np.column_stack(columns))
        reached = (values[-1][:, 0] <= 0.1) & (values[-1][:, 1] >= 0.5)
        goals.append(reached & (np.arange(length) == length - 1) & (number < 8))
    return Evidence(tuple(values), tuple(goals))


@pytest.mark.parametrize("seed", range(5))
def test_two_conditions_are_found_among_noise(seed: int) -> None:
    data = evidence(seed)
    quantities = [Quantity("number", (i,)) for i in range(22)]
    found = found_in(quantities, data, np.zeros(22), 5)
    first = next(iter(found))
    assert {(limit.quantity, limit.side) for limit in first.limits} == {(0, "<="), (1, ">=")}
    assert found[first] == min(found.values())


@pytest.mark.parametrize("seed", range(3))
def test_many_experts_are_no_reason_for_a_limit_that_no_episode_needs(seed: int) -> None:
    """All episodes begin at rest, so that "moves" is true of nearly all states but the first ones."""
    rng = np.random.default_rng(seed)
    values, goals = [], []
    for number in range(80):
        length, expert = int(rng.integers(15, 30)), number < 40
        distance = np.abs(np.linspace(rng.uniform(0.5, 1.0), 0.0, length) + rng.normal(0, 0.2, length))
        distance[:-1] = np.maximum(distance[:-1], 0.11)
        distance[-1] = rng.uniform(0.0, 0.1) if expert else rng.uniform(0.11, 0.3)
        moved = np.minimum(np.linspace(0.0, 4.0, length), 1.0) + rng.uniform(0.01, 0.1, length)
        moved[:2] = 0.0
        values.append(np.column_stack([distance, moved]))
        goals.append((np.arange(length) == length - 1) & expert)
    found = found_in(
        [Quantity("number", (0,)), Quantity("number", (1,))], Evidence(tuple(values), tuple(goals)), np.zeros(2), 5
    )
    first = next(iter(found))
    assert [(limit.quantity, limit.side) for limit in first.limits] == [(0, "<=")]
    # It separates, so nothing speaks for one that must hold for several states, however noisy the way to the goal is.
    assert {each.held for each in found} == {1}


def test_a_quantity_that_may_have_no_limit_has_none() -> None:
    quantities = [Quantity("number", (i,)) for i in range(22)]
    nats = np.zeros(22)
    nats[0] = np.inf
    found = found_in(quantities, evidence(0), nats, 20)
    assert found
    assert not any(limit.quantity == 0 for predicate in found for limit in predicate.limits)


def test_a_goal_that_must_hold_for_some_states() -> None:
    """Near misses come as near, but stay for three states only."""
    rng = np.random.default_rng(0)
    values, goals = [], []
    for number in range(16):
        length = 20
        distance = rng.uniform(1.0, 3.0, length)
        distance[-4 if number < 8 else slice(10, 13)] = 0.0
        if number < 8:
            distance[-4:] = rng.uniform(0.0, 0.5, 4)
        else:
            distance[10:13] = rng.uniform(0.0, 0.5, 3)
        values.append(distance[:, None])
        goals.append((np.arange(length) == length - 1) & (number < 8))
    (first, *_) = found_in([Quantity("number", (0,))], Evidence(tuple(values), tuple(goals)), np.zeros(1), 5)
    assert first.held == 4
    assert 0.4 <= first.limits[0].limit <= 1.0


def test_episodes_may_be_shorter_than_a_predicate_is_held() -> None:
    values = [np.linspace(1.0, 0.0, 12)[:, None] for _ in range(4)]
    goals = [np.arange(12) == 11 for _ in values]
    short = [np.full((length, 1), 0.05) for length in (1, 2, 3)]
    data = Evidence((*values, *short), (*goals, *(np.zeros(len(each), dtype=bool) for each in short)))
    found = found_in([Quantity("number", (0,))], data, np.zeros(1), 5)
    assert found
    for predicate in found:
        assert [len(predicate.rewards(each)) for each in short] == [1, 2, 3]


def test_a_limit_is_round_within_the_gap_between_goals_and_others() -> None:
    values = [np.linspace(1.0, end, 30)[:, None] for end in (0.031, 0.047, 0.012, 0.045)]
    goals = [np.arange(30) == 29 for _ in values]
    far = [np.linspace(1.0, end, 30)[:, None] for end in (0.062, 0.3, 0.2, 0.9)]
    data = Evidence((*values, *far), (*goals, *(np.zeros(30, dtype=bool) for _ in far)))
    search = PredicateSearch([Quantity("number", (0,))], data, np.zeros(1))
    (first, *_) = search.best(3)
    assert [(limit.side, limit.limit) for limit in first.limits] == [("<=", 0.05)]


def test_single_states_beyond_a_limit_do_not_hold_it_back_if_it_must_hold_for_some() -> None:
    """Experts fly between 2 and 3 for four states, negatives for three, and all pass through these heights before."""
    rng = np.random.default_rng(3)
    values, goals = [], []
    for number in range(16):
        height = np.where(np.arange(30) % 3 == 0, rng.uniform(1.99, 3.01, 30), rng.choice([1.4, 3.6], 30))
        hovers = slice(26, 30) if number < 8 else slice(10, 13)
        height[[9, 13, 24, 25]] = 1.4 if number % 2 else 3.6
        height[hovers] = rng.uniform(2.1, 2.9, hovers.stop - hovers.start)
        values.append(height[:, None])
        goals.append((np.arange(30) == 29) & (number < 8))
    (first, *_) = found_in([Quantity("number", (0,))], Evidence(tuple(values), tuple(goals)), np.zeros(1), 5)
    assert first.held == 4
    assert sorted(limit.limit for limit in first.limits) == [2.0, 3.0]


@pytest.mark.parametrize("held", [1, 2, 3])
def test_a_cost_is_what_each_episode_adds(held: int) -> None:
    """Episode by episode, from the rewards of each, with some goals that the predicate misses."""
    rng, numbers = np.random.default_rng(held), [Quantity("number", (0,)), Quantity("number", (1,))]
    values = [rng.normal(size=(length, 2)).round(1) for length in (1, 2, 9, 40, 31, 12)]
    goals = [np.zeros(len(each), dtype=bool) for each in values]
    for place, at in ((1, 1), (2, 8), (3, 39), (3, 20)):
        goals[place][at] = True
    search = PredicateSearch(numbers, Evidence(tuple(values), tuple(goals)), np.ones(2), held)
    for low, high in ((-0.5, 0.5), (-2.0, 1.0), (0.0, 0.1)):
        predicate = Predicate((Limit(0, "<=", high, 0.7), Limit(1, ">=", low, 1.3)), held)
        wrong = missed = rising = 0.0
        for each, marks in zip(values, goals, strict=True):
            rewards = predicate.rewards(each)
            wrong += bool((rewards[~marks] == 1.0).any())
            if marks.any():
                missed += float((rewards[marks] < 1.0).mean())
            if marks.any() and len(each) > 1:
                path = -rewards[np.unique(np.linspace(0, int(np.argmax(marks)), 30).astype(int))]
                signs = [np.sign(later - earlier) for earlier, later in itertools.combinations(path, 2)]
                rising += float(np.mean(np.array(signs) + 1) / 2)
        cost = 5.0 * (wrong + 6 * missed) + 3.0 * rising + search.description(predicate)
        assert search.cost(predicate) == pytest.approx(cost, rel=1e-12)
