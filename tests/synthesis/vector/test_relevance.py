"""Relevance of components to the score of random episodes, and the designer that is guided by it."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from grace_irl.synthesis.vector.components import Components, Rollout
from grace_irl.synthesis.vector.designer import GUIDED, WEIGHTS, Designer
from grace_irl.synthesis.vector.relevance import FALSE, LEAST_EPISODES, relevance
from tests.synthesis.vector.designs import (
    ARM,
    CHILDREN,
    FIELDS,
    ROLLOUTS,
    arm,
    kinds,
    new,
    proposed,
    ran,
    read_by,
    terms,
)

PLAYED = [arm(1_000 + seed) for seed in range(400)]


def reached(rollout: Rollout) -> float:
    """The share of the last ten states in which the hand is at most 0.3 from the goal."""
    states = rollout[0][-10:]
    return float(np.mean(np.hypot(*(states[:, :2] - states[:, 2:4]).T) <= 0.3))


SCORES = [reached(each) for each in PLAYED]
COMPONENTS = Components(ROLLOUTS["vectors"], FIELDS, 0)
FOUND = relevance(COMPONENTS, PLAYED, SCORES)
GUIDE = Designer(ROLLOUTS["vectors"], FIELDS).guided(PLAYED, SCORES)


def test_the_way_to_the_goal_is_most_relevant() -> None:
    assert 20 < sum(score > 0 for score in SCORES) < 100
    most = sorted(FOUND, key=lambda name: -abs(FOUND[name]))[:3]
    assert {COMPONENTS.listed[name].quantity for name in most} == {"distance(goal, hand)"}
    assert FOUND["near distance(goal, hand) at 0.1"] > 0.3
    assert not any("lamp" in name or "height" in name for name in FOUND)


def test_of_opposites_one_is_relevant() -> None:
    assert FOUND["lower distance(goal, hand)"] > 0
    assert "level distance(goal, hand)" not in FOUND


def test_the_sign_is_that_of_the_score() -> None:
    """Who is scored for staying away has the opposite correlations."""
    away = relevance(COMPONENTS, PLAYED, [-score for score in SCORES])
    assert away["near distance(goal, hand) at 0.1"] == pytest.approx(-FOUND["near distance(goal, hand) at 0.1"])
    assert "level distance(goal, hand)" in away


def test_scores_without_a_relation_have_no_relevant_components() -> None:
    """At least 18 of 20 draws of scores by chance have none; the rate of false discoveries lets one in 20 have some."""
    rng = np.random.default_rng(0)
    found = [relevance(COMPONENTS, PLAYED, rng.permutation(SCORES).tolist()) for _ in range(20)]
    assert sum(not each for each in found) >= 20 * (1 - 2 * FALSE)


@pytest.mark.parametrize("scored", [0, LEAST_EPISODES - 1])
def test_scores_that_hardly_vary_say_nothing(scored: int) -> None:
    near = np.argsort(SCORES)[-scored:] if scored else []
    assert relevance(COMPONENTS, PLAYED, [float(k in near) for k in range(len(PLAYED))]) == {}


def test_without_episodes_nothing_is_relevant() -> None:
    assert relevance(COMPONENTS, [], []) == {}


def test_steps_that_are_not_finite_do_not_count() -> None:
    """Neither do they move the steps of other episodes."""
    states, actions = PLAYED[0]
    broken = states.copy()
    broken[5, 6] = np.nan
    found = relevance(COMPONENTS, [(broken, actions), *PLAYED[1:]], SCORES)
    assert found.keys() == FOUND.keys()
    assert list(found.values()) == pytest.approx([*FOUND.values()], abs=0.02)


def test_a_guided_designer_prefers_relevant_components() -> None:
    """By their squared correlation, with the sign of it; all others stay possible."""
    single = [next(iter(terms(proposed(GUIDE, "plan", seed)).items())) for seed in range(400)]
    relevant = [(name, weight) for name, weight in single if name in FOUND]
    assert GUIDED < len(relevant) / len(single) < GUIDED + 0.25  # the other draw finds some, too
    assert all(WEIGHTS[0] <= abs(weight) <= WEIGHTS[1] for _, weight in single)
    signed = [name for name, weight in relevant if weight * FOUND[name] > 0]
    assert len(signed) > 0.9 * len(relevant)
    drawn = Counter(name for name, _ in relevant)
    best = max(FOUND, key=lambda name: abs(FOUND[name]))
    assert drawn[best] > drawn[min(FOUND, key=lambda name: abs(FOUND[name]))]
    assert len({name for name, _ in single} - {*FOUND}) > 50


def test_a_designer_whose_scores_say_nothing_draws_as_without_them() -> None:
    blind = Designer(ROLLOUTS["vectors"], FIELDS).guided(PLAYED, [0.0] * len(PLAYED))
    for seed in range(20):
        assert proposed(blind, "initialise", seed) == proposed(ARM, "initialise", seed)


@pytest.mark.parametrize("operator", CHILDREN)
def test_a_guided_child_keeps_what_any_child_keeps(operator: str) -> None:
    """Its program runs, too."""
    for seed in range(30):
        one, other = new(GUIDE, seed), new(GUIDE, 1_000 + seed)
        child = proposed(GUIDE, operator, seed, [one, other], 2 if operator == "crossover" else 1)
        if operator == "different" and not child.source:
            continue
        assert np.isfinite(ran(child.source, arm(99))).all()
        if operator != "crossover":  # parents may have one kind at two scales
            assert len({*kinds(GUIDE, child)}) == len(terms(child))
        if operator == "weights":
            assert terms(child).keys() == terms(one).keys()
        if operator == "crossover":
            assert terms(child).keys() <= terms(one).keys() | terms(other).keys()
        if operator == "different":
            assert not read_by(GUIDE, child) & (read_by(GUIDE, one) | read_by(GUIDE, other))
