"""The writer without a model and demonstrations: what each operator keeps of its parents, and what it changes."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grace_irl.propose.protocol import Parent, Proposal
from grace_irl.synthesis.vector.design import MOST_TERMS, source
from grace_irl.synthesis.vector.designer import FIRST_TERMS, SIGMA, Designer
from tests.synthesis.vector.designs import (
    ARM,
    CHILDREN,
    DESIGNERS,
    ROLLOUTS,
    SEEDS,
    THREE,
    foreign,
    new,
    of,
    parent,
    proposed,
    read_by,
    terms,
)


def changed(one: Parent, child: Proposal) -> tuple[set[str], set[str]]:
    """The terms that only the parent has, and those that only the child has."""
    return {*terms(one)} - {*terms(child)}, {*terms(child)} - {*terms(one)}


@given(seed=SEEDS)
@settings(max_examples=100, derandomize=True)
def test_structure_changes_one_term(seed: int) -> None:
    one = new(ARM, seed)
    child = proposed(ARM, "structure", seed + 1, [one], 1)
    dropped, added = changed(one, child)
    assert (len(dropped), len(added)) in {(1, 0), (0, 1), (1, 1)}
    assert all(terms(child)[name] == terms(one)[name] for name in {*terms(one)} & {*terms(child)})


def test_structure_takes_every_step() -> None:
    one = new(ARM, 2)
    assert len(terms(one)) > 1
    steps = set()
    for seed in range(60):
        child = proposed(ARM, "structure", seed, [one], 1)
        dropped, added = changed(one, child)
        same = {ARM.components.listed[name].quantity for name in dropped} == {
            ARM.components.listed[name].quantity for name in added
        }
        steps.add((len(dropped), len(added), same))
    assert steps == {(1, 0, False), (0, 1, False), (1, 1, False), (1, 1, True)}


def test_designs_have_at_most_six_terms_and_at_least_one() -> None:
    rng = np.random.default_rng(0)
    several = [new(ARM, 0), new(ARM, 1)]
    lengths = set()
    for step in range(150):
        operator = str(rng.choice(["structure", "mutate", "reflect", "crossover", "path"]))
        child = parent(proposed(ARM, operator, step, several, 2 if operator == "crossover" else 1))
        assert child.sketch != several[0].sketch
        lengths.add(len(terms(child)))
        several = [child, *several[:3]]
    assert lengths <= set(range(1, MOST_TERMS + 1))
    assert MOST_TERMS in lengths


@given(seed=SEEDS)
@settings(max_examples=60, derandomize=True)
def test_weights_keep_terms_and_signs(seed: int) -> None:
    one = new(ARM, seed)
    child = proposed(ARM, "weights", seed + 1, [one], 1)
    assert terms(child).keys() == terms(one).keys()
    assert terms(child) != terms(one)
    assert all(np.sign(weight) == np.sign(terms(one)[name]) for name, weight in terms(child).items())


def test_weights_move_by_log_normal_factors() -> None:
    one = of(ARM, {"level height": 1.0})
    factors = [terms(proposed(ARM, "weights", seed, [one], 1))["level height"] for seed in range(400)]
    assert np.log(factors).std() == pytest.approx(SIGMA, rel=0.1)
    assert np.log(factors).mean() == pytest.approx(0.0, abs=0.1)


@pytest.mark.parametrize("operator", ["mutate", "reflect"])
def test_mutations_are_structure_or_weights(operator: str) -> None:
    one = new(ARM, 2)
    same = [terms(proposed(ARM, operator, seed, [one], 1)).keys() == terms(one).keys() for seed in range(200)]
    assert 70 < sum(same) < 130


def values(*numbers: float) -> dict[str, Any]:
    return {"values": [*numbers], "max": max(numbers), "mean": float(np.mean(numbers)), "min": min(numbers)}


def test_reflection_drops_the_component_that_hardly_moves() -> None:
    logged = {
        "effort": values(*np.linspace(-1.0, -0.2, 10)),
        "level height": values(*np.linspace(13.0, 13.1, 10)),
        "near distance(goal, hand)": values(*np.linspace(0.0, 0.4, 10)),
    }
    one = of(ARM, THREE, components=logged)
    children = [terms(proposed(ARM, "reflect", seed, [one], 1)) for seed in range(30)]
    assert not any("level height" in child for child in children)
    assert len({json.dumps(child) for child in children}) > 10
    logged["near distance(goal, hand)"] = values(*[0.0] * 10)  # it moves even less
    one = of(ARM, THREE, components=logged)
    assert not any(
        "near distance(goal, hand) at 0.1" in terms(proposed(ARM, "reflect", s, [one], 1)) for s in range(30)
    )


def test_reflection_replaces_the_only_component_if_it_hardly_moves() -> None:
    one = of(ARM, {"level height": 1.0}, components={"level height": values(*[3.0] * 10)})
    for seed in range(20):
        child = terms(proposed(ARM, "reflect", seed, [one], 1))
        assert len(child) == 1
        assert "level height" not in child


@pytest.mark.parametrize(
    "logged",
    [
        *(None, 3, [], {}, {"effort": None}, {"effort": {}}, {"effort": {"values": "x"}}),
        *({"effort": {"values": each}} for each in ([[1.0]], [1.0], [float("nan")] * 10)),
        {"other": values(1.0, 1.0)},
    ],
)
def test_reflection_takes_whatever_was_logged(logged: Any) -> None:
    one, plain = of(ARM, THREE, components=logged), of(ARM, THREE)
    for seed in range(5):
        assert proposed(ARM, "reflect", seed, [one], 1) == proposed(ARM, "reflect", seed, [plain], 1)


def test_reflection_knows_components_by_the_names_that_programs_log() -> None:
    """Names are cut where an evaluator cuts them, and differ even then."""
    fields = tuple(f"{'a very long name of a place or of a speed'[:36]} {i} {axis}" for i in range(2) for axis in "xy")
    designer = Designer([(states[:, :4], actions) for states, actions in ROLLOUTS["vectors"]], fields)
    names = [name for name in designer.components.listed if name.startswith("near distance")][:4]
    design = dict.fromkeys(names, 1.0)
    program = source(designer.components, design)
    space: dict[str, Any] = {}
    exec(program, space)
    reward = space["Reward"]()
    reward.reward_fn(np.ones(4), np.ones(2), np.zeros(4))
    logged = [*reward.terms_fn(np.zeros(4))]
    assert len(logged) == len({label[:64] for label in logged}) == 4
    assert max(map(len, logged)) <= 64
    moving = {label: values(*np.linspace(0, 1, 10)) for label in logged} | {logged[2]: values(*[0.5] * 10)}
    children = [
        terms(proposed(designer, "reflect", s, [of(designer, design, components=moving)], 1)) for s in range(20)
    ]
    assert not any(names[2] in child for child in children)


@given(seed=SEEDS, count=st.integers(2, 8))
@settings(max_examples=40, derandomize=True)
def test_crossover_has_terms_of_the_parents_only(seed: int, count: int) -> None:
    """With the weights that a parent gives them."""
    parents = [new(ARM, seed + k) for k in range(count)]
    child = terms(proposed(ARM, "crossover", seed, parents, count))
    assert child not in [terms(each) for each in parents]
    assert all(weight in [terms(each).get(name) for each in parents] for name, weight in child.items())
    assert 0 < len(child) <= MOST_TERMS
    if count <= 3:
        assert all(child.keys() & terms(each).keys() for each in parents)


def test_crossover_takes_what_only_one_parent_has() -> None:
    one = of(ARM, {"effort": 1.0, "level height": 1.0})
    other = of(ARM, {"effort": 2.0, "fall norm(hand)": 1.0})
    for seed in range(20):
        child = terms(proposed(ARM, "crossover", seed, [one, other], 2))
        assert {"level height", "fall norm(hand)"} <= child.keys()


@pytest.mark.parametrize("other", [{"effort": 1.0}, {"effort": 1.0, "level height": 1.0}])
def test_a_crossover_of_almost_equal_parents_has_their_terms_with_new_weights(other: dict[str, float]) -> None:
    one, two = of(ARM, {"effort": 1.0}), of(ARM, other)
    for seed in range(20):
        child = terms(proposed(ARM, "crossover", seed, [one, two], 2))
        assert child.keys() <= terms(two).keys()
        assert child not in (terms(one), terms(two))


def test_a_path_goes_on_in_its_direction() -> None:
    """What was added is followed by what is added. Terms that stayed stay, and weights move on by the last ratio."""
    oldest = of(ARM, {"effort": 1.0})
    middle = of(ARM, {"effort": 0.5, "level height": 1.0})
    last = of(ARM, {"effort": 0.2, "fall norm(hand)": 1.0, "level height": 2.0})
    for seed in range(20):
        found = terms(proposed(ARM, "path", seed, [last, middle, oldest], 1))
        assert len(found) == 4
        assert found.keys() >= terms(last).keys()
        assert (found["effort"], found["level height"], found["fall norm(hand)"]) == (0.08, 4.0, 1.0)
        dropping = proposed(ARM, "path", seed, [middle, last, oldest], 1)
        assert terms(dropping) == {"effort": 1.25}
        replacing = proposed(ARM, "path", seed, [of(ARM, {"effort": 0.5, "level cos": 1.0}), middle, oldest], 1)
        assert len(terms(replacing)) == 2
        assert terms(replacing)["effort"] == 0.5
        assert "level cos" not in terms(replacing)
        weighing = proposed(ARM, "path", seed, [of(ARM, {"effort": 0.2}), oldest], 1)
        assert terms(weighing) == {"effort": 0.04}


@given(seed=SEEDS, steps=st.lists(st.sampled_from(["structure", "weights"]), max_size=5))
@settings(max_examples=40, derandomize=True)
def test_a_path_keeps_what_stayed(seed: int, steps: list[str]) -> None:
    way = [new(ARM, seed)]
    for k, operator in enumerate(steps):
        way.insert(0, parent(proposed(ARM, operator, seed + k, way[:1], 1)))
    child = terms(proposed(ARM, "path", seed, way, 1))
    assert child != terms(way[0])
    if len(way) > 1 and len(terms(way[0])) < MOST_TERMS:
        assert {*child} >= set.intersection(*({*terms(each)} for each in way))


@given(seed=SEEDS, count=st.integers(1, 5))
@settings(max_examples=60, derandomize=True)
def test_different_designs_share_no_quantity(seed: int, count: int) -> None:
    nodes = [new(ARM, seed + k) for k in range(count)]
    child = proposed(ARM, "different", seed, nodes, 1)
    assert child.failure == ""
    assert not read_by(ARM, child) & set.union(*(read_by(ARM, each) for each in nodes))


def test_no_design_is_different_from_all() -> None:
    designer = DESIGNERS["one number"]
    nodes = [of(designer, {name: 1.0}) for name in designer.components.listed]
    found = proposed(designer, "different", 0, nodes, 1)
    assert found.failure == "the parent and the others read every quantity"
    assert not found.exhausted  # of another parent there may be one


@pytest.mark.parametrize("operator", CHILDREN)
def test_children_of_foreign_programs_are_new_designs(operator: str) -> None:
    one = foreign()
    found = proposed(ARM, operator, 0, [one, one], 2 if operator == "crossover" else 1)
    assert 1 <= len(terms(found)) <= FIRST_TERMS
    assert found.reasoning.startswith("The reward is higher where ")


def test_a_foreign_parent_adds_nothing_to_a_crossover() -> None:
    one = new(ARM, 2)
    for both in ([one, foreign()], [foreign(), one]):
        child = terms(proposed(ARM, "crossover", 0, both, 2))
        assert child.keys() < terms(one).keys()
