"""Weights of terms: a weighted logistic regression with a ridge, grown term by term."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit, log_expit

from grace_irl.demos.labels import label
from grace_irl.demos.split import split
from grace_irl.errors import InputError
from grace_irl.synthesis.vector.additive import Additive
from grace_irl.synthesis.vector.numbers import VectorNumbers
from grace_irl.synthesis.vector.quantities import Measures
from grace_irl.synthesis.vector.sketcher import AdditiveSketcher
from grace_irl.synthesis.vector.term_table import MOST_OUTSIDE, RIDGE, ROUNDED, TermTable, design_effect
from grace_irl.synthesis.vector.terms import Term, vocabulary
from tests.fakes.data import vector_set


def table(seed: int, count: int = 120, width: int = 4, gap: float = 1.0) -> TermTable:
    """Experts that differ from the others by `gap` deviations in the first number and by their spread in the second."""
    rng = np.random.default_rng(seed)
    positive = np.arange(count) < count // 3
    states = rng.normal(size=(count, width))
    states[positive, 0] += gap
    states[positive, 1] *= 0.3
    return TermTable(vocabulary(states[positive], states, 2), states, positive)


def gradient(one: TermTable, chosen: list[int], beta: NDArray[np.float64]) -> NDArray[np.float64]:
    columns = np.column_stack([np.ones(len(one.values)), one.values[:, chosen]])
    ridge = np.full(len(beta), RIDGE * len(columns) / 100)
    ridge[0] = 0.0
    return columns.T @ (one.weight * (one.positive - expit(columns @ beta))) - ridge * beta


def penalised(one: TermTable, chosen: list[int]) -> float:
    beta, likelihood = one.fit(chosen)
    return likelihood - 0.5 * RIDGE * len(one.values) / 100 * float((beta[1:] ** 2).sum())


@settings(max_examples=40, derandomize=True)
@given(
    st.integers(0, 10**6), st.sampled_from([0.0, 1.0, 3.0, 50.0]), st.lists(st.integers(0, 30), max_size=6, unique=True)
)
def test_a_fit_is_where_the_gradient_vanishes(seed: int, gap: float, chosen: list[int]) -> None:
    """Also where experts and others are separated: the ridge keeps weights finite."""
    one = table(seed, gap=gap)
    beta, _ = one.fit(chosen)
    assert len(beta) == len(chosen) + 1
    assert np.abs(gradient(one, chosen, beta)).max() < 1e-3


def test_a_fit_is_the_optimum_that_a_general_optimiser_finds() -> None:
    one, chosen = table(0), [0, 1, 16, 17]
    columns = np.column_stack([np.ones(len(one.values)), one.values[:, chosen]])
    ridge = RIDGE * len(columns) / 100

    def loss(beta: NDArray[np.float64]) -> float:
        margin = columns @ beta
        likelihood = one.weight * log_expit(np.where(one.positive, margin, -margin))
        return float(-likelihood.sum() + 0.5 * ridge * (beta[1:] ** 2).sum())

    found = minimize(loss, np.zeros(5), jac=lambda beta: -gradient(one, chosen, beta), method="BFGS", tol=1e-10)
    beta, likelihood = one.fit(chosen)
    assert beta == pytest.approx(found.x, abs=1e-4)
    margin = columns @ beta
    assert likelihood == pytest.approx((one.weight * log_expit(np.where(one.positive, margin, -margin))).sum())


@settings(max_examples=40, derandomize=True)
@given(st.integers(0, 10**6), st.lists(st.integers(1, 30), max_size=5, unique=True), st.booleans())
def test_leaving_the_range_always_costs(seed: int, others: list[int], tame: bool) -> None:
    """Also where the demonstrations say that it pays; all other weights are then the best ones beside it."""
    rng = np.random.default_rng(seed)
    positive = np.arange(120) < 40
    states = rng.normal(size=(120, 3))
    states[~positive] *= 0.2 if tame else 3.0
    one = TermTable(vocabulary(states[positive], states, 2, 3), states, positive)
    assert one.terms[0].shape == "outside"
    chosen = [0, *others]
    beta, likelihood = one.fit(chosen)
    assert one.reward(chosen).weights[0] <= MOST_OUTSIDE + 1e-9
    slope = gradient(one, chosen, beta)
    at_bound = beta[1] / one.deviation[0] > MOST_OUTSIDE - 1e-9
    assert np.abs(np.delete(slope, 1)).max() < 1e-3
    assert slope[1] > -1e-3 if at_bound else abs(slope[1]) < 1e-3
    if tame:
        assert at_bound
    assert np.isfinite(likelihood)


def test_both_classes_weigh_one_half() -> None:
    one = table(0, count=90)
    assert one.weight[one.positive].sum() == pytest.approx(45.0)
    assert one.weight[~one.positive].sum() == pytest.approx(45.0)
    beta, likelihood = one.fit([])
    assert beta == pytest.approx([0.0])
    assert likelihood == pytest.approx(90 * np.log(0.5))


@settings(max_examples=25, derandomize=True)
@given(st.integers(0, 10**6), st.sampled_from([0.0, 1.0, 3.0]))
def test_growing_never_fits_worse(seed: int, gap: float) -> None:
    one = table(seed, gap=gap)
    chosen: list[int] = []
    for _ in range(5):
        grown = one.grow(chosen)
        assert grown[:-1] == chosen
        assert grown[-1] not in chosen
        assert penalised(one, grown) >= penalised(one, chosen) - 1e-6
        assert one.fit(grown)[1] >= one.fit(chosen)[1] - 1e-6
        chosen = grown


@pytest.mark.parametrize("start", [[], [2], [0, 19]])
def test_growing_takes_the_term_that_fits_best(start: list[int]) -> None:
    one = table(0, gap=2.0)
    allowed = [5, 9, 14, 20, 23, 27]
    likelihoods = {column: one.fit([*start, column])[1] for column in allowed}
    assert one.grow(start, allowed) == [*start, max(allowed, key=lambda column: likelihoods[column])]


def test_growing_keeps_to_what_is_allowed() -> None:
    one = table(0)
    assert one.grow([], [5]) == [5]
    assert one.grow([5], [5]) == [5]
    assert one.grow([5], []) == [5]
    everything = list(range(len(one.terms)))
    assert one.grow(everything) == everything


@settings(max_examples=25, derandomize=True)
@given(st.integers(0, 10**6), st.lists(st.integers(0, 30), max_size=6, unique=True))
def test_own_units_say_the_same_as_standardised_ones(seed: int, chosen: list[int]) -> None:
    one = table(seed)
    rng = np.random.default_rng(seed)
    fresh = rng.normal(size=(20, 4))
    reward = one.reward(chosen)
    assert reward.terms == tuple(one.terms[i] for i in chosen)
    beta, _ = one.fit(chosen)
    raw = np.stack([term.value(fresh) for term in one.terms], axis=1)
    standard = (raw - one.mean) / one.deviation
    own = reward.value(fresh)
    exact = beta[1:] / one.deviation[chosen]
    rounding = np.abs(raw[:, chosen] - one.mean[chosen]) @ np.abs(np.array(reward.weights) - exact)
    assert (np.abs(own - beta[0] - standard[:, chosen] @ beta[1:]) <= rounding + 1e-6).all()


def test_rounded_weights_cost_next_to_nothing() -> None:
    one = table(3)
    chosen = [0, 1, 7]
    reward = one.reward(chosen)
    _, best = one.fit(chosen)
    states = one.values[:, chosen] * one.deviation[chosen] + one.mean[chosen]
    margin = reward.bias + states @ np.array(reward.weights)
    reached = float((one.weight * log_expit(np.where(one.positive, margin, -margin))).sum())
    assert best - reached <= ROUNDED * len(states)
    assert all(len(f"{abs(weight):e}".partition("e")[0].strip("0").replace(".", "")) <= 4 for weight in reward.weights)


def test_what_is_constant_within_episodes_is_worth_an_episode() -> None:
    """A column that is constant within episodes has the length of an episode as its design effect; noise has 1."""
    rng = np.random.default_rng(0)
    episodes = np.repeat(np.arange(40), 25)
    values = np.column_stack([rng.normal(size=40)[episodes], rng.normal(size=1000)])
    constant, noise = design_effect(values, episodes < 20, episodes)
    assert constant == pytest.approx(25.0, rel=0.15)
    assert noise == pytest.approx(1.0, abs=0.5)


def test_an_empty_vocabulary_has_nothing_to_grow() -> None:
    one = TermTable([], np.zeros((4, 2)), np.array([True, False, True, False]))
    assert one.grow([]) == []
    assert one.reward([]) == Additive((), (), pytest.approx(0.0))


def test_a_term_that_never_changes_weighs_nothing() -> None:
    states = np.column_stack([np.arange(8.0), np.full(8, 0.3)])
    one = TermTable(
        [Term("minus", (i,), (c,), (1.0,), ((-9.0, 9.0),), c) for i, c in ((1, 0.1), (0, 0.0))],
        states,
        states[:, 0] > 3,
    )
    assert one.grow([]) == [1]
    assert one.fit([0, 1])[0][1] == pytest.approx(0.0, abs=1e-6)


def test_a_sketch_with_terms_of_another_version_is_refused_in_one_line() -> None:
    problem = label(split(vector_set(), 0.0, 0), "all")
    sketcher = AdditiveSketcher(problem.train, Measures.plain(VectorNumbers.of((), 3)))
    good = sketcher.initial()[0]
    assert "class Reward" in sketcher.source(good)
    with pytest.raises(InputError, match="another version of grace-irl began this run"):
        sketcher.mutate(json.dumps([*json.loads(good), 10_000]), 0)
