"""The writer without a model and demonstrations: programs give what their designs mean, in all units and orders."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grace_irl.demos.trajectory import Trajectory
from grace_irl.errors import InputError
from grace_irl.programs.check import read
from grace_irl.propose.protocol import Parent
from grace_irl.sandbox import open_sandbox
from grace_irl.synthesis.vector.components import LIMIT, Component, Rollout, measured
from grace_irl.synthesis.vector.design import EXTREMES, MOST_TERMS, source
from grace_irl.synthesis.vector.designer import FIRST_TERMS, WEIGHTS, Designer
from grace_irl.synthesis.vector.numbers import VectorNumbers
from tests.synthesis.vector.designs import (
    ARM,
    CHILDREN,
    DESIGNERS,
    FIELDS,
    ROLLOUTS,
    SEEDS,
    THREE,
    UNNAMED,
    arm,
    choices,
    kinds,
    new,
    of,
    parent,
    proposed,
    ran,
    read_by,
    record,
    single,
    terms,
)


@pytest.mark.parametrize("world", [*ROLLOUTS, "unnamed"])
@settings(max_examples=25, derandomize=True)
@given(seed=SEEDS, operator=st.sampled_from(CHILDREN))
def test_programs_give_what_their_designs_mean(world: str, seed: int, operator: str) -> None:
    """A new program and its child pass the checks, and their rewards are finite, on other rollouts, too."""
    designer = UNNAMED if world == "unnamed" else DESIGNERS[world]
    rollout = {"records": record, "choices": choices, "one number": single}.get(world, arm)(99)
    first = proposed(designer, "initialise", seed)
    others = [parent(first), new(designer, seed + 1)]
    child = proposed(designer, operator, seed, others, 2 if operator == "crossover" else 1)
    for found in [first, *([] if child.failure else [child])]:
        assert read(found.source).problems == ()
        assert read(found.source).takes_action
        given_rewards = ran(found.source, rollout)
        assert np.isfinite(given_rewards).all()
        assert given_rewards == pytest.approx(designer.rewards(found.sketch, *rollout), rel=1e-9, abs=1e-9)
        assert found.reasoning.endswith(".")
        assert "\n" not in found.reasoning


@pytest.mark.parametrize("world", ROLLOUTS)
def test_every_component_gives_what_it_means(world: str) -> None:
    designer, rollout = DESIGNERS[world], ROLLOUTS[world][3]
    for name in designer.components.listed:
        program = source(designer.components, {name: -1.5})
        assert read(program).problems == ()
        expected = designer.rewards(json.dumps({name: -1.5}), *rollout)
        assert ran(program, rollout) == pytest.approx(expected, rel=1e-9, abs=1e-9), name


def test_shapes_are_what_they_are_called() -> None:
    """By hand, on one step from (0, 4) to (3, 4) by the action (1, 2)."""
    designer = Designer(ROLLOUTS["vectors"], FIELDS)
    before, after = np.zeros(9), np.zeros(9)
    before[:2], after[:2] = (0.0, 4.0), (3.0, 4.0)
    listed = designer.components.listed
    expected = {
        "level norm(hand)": lambda s: 5.0 / s,
        "lower norm(hand)": lambda s: -5.0 / s,
        "near norm(hand) at 0.5": lambda s: np.exp(-5.0 / s),
        "fall norm(hand)": lambda s: -1.0 / s,
        "within change(hand) at 0.5": lambda s: float(s >= 3.0),
        "level change(hand)": lambda s: 3.0 / s,
        "effort": lambda s: -5.0 / s,
    }
    for name, value in expected.items():
        program = source(designer.components, {name: 1.0})
        found = ran(program, (np.stack([before, after]), np.array([[1.0, 2.0]])))
        assert found[0] == pytest.approx(value(listed[name].scale) / listed[name].spread, rel=1e-4), name


def test_a_weight_counts_standard_deviations() -> None:
    """And units are those of the rollouts: deviations, typical steps, quantiles and mean squares."""
    listed, rollouts = ARM.components.listed, ROLLOUTS["vectors"]
    for name, component in listed.items():
        values = np.concatenate([ARM.rewards(json.dumps({name: 1.0}), *each) for each in rollouts])
        assert values.std() == pytest.approx(1.0, rel=1e-3), component
    heights = np.concatenate([states[1:, 6] for states, _ in rollouts])
    steps = np.concatenate([np.diff(states[:, 6]) for states, _ in rollouts])
    effort = np.concatenate([(actions**2).sum(axis=1) for _, actions in rollouts])
    assert listed["level height"].scale == pytest.approx(heights.std(), rel=1e-5)
    assert listed["fall height"].scale == pytest.approx(np.sqrt((steps**2).mean()), rel=1e-5)
    assert listed["within height at 0.2"].scale == pytest.approx(np.quantile(heights, 0.2), rel=1e-5)
    assert listed["effort"].scale == pytest.approx(effort.mean(), rel=1e-5)


@pytest.mark.slow
def test_programs_run_in_the_sandbox() -> None:
    with open_sandbox(workers=1) as sandbox:
        for world, designer in DESIGNERS.items():
            rollout = ROLLOUTS[world][0]
            handle = sandbox.put([Trajectory(*rollout)])
            for seed in range(5):
                found = proposed(designer, "initialise", seed)
                outcome = sandbox.run(found.source, handle, [0], mode="strict")
                assert outcome.status == "ok", outcome
                expected = designer.rewards(found.sketch, *rollout)
                assert outcome.rewards[0][1:] == pytest.approx(expected, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("size", [1e300, 1.7e308, 1e-300])
@pytest.mark.filterwarnings("ignore:overflow", "ignore:invalid value")
def test_rewards_are_finite_in_any_finite_state(size: float) -> None:
    rng = np.random.default_rng(0)
    states = rng.choice([-1.0, 0.0, 1.0], size=(12, 9)) * size
    actions = rng.choice([-1.0, 0.0, 1.0], size=(11, 2)) * size
    for name in ARM.components.listed:
        rewards = ran(source(ARM.components, {name: EXTREMES[1]}), (states, actions))
        assert np.isfinite(rewards).all()
        assert abs(rewards).max() * MOST_TERMS <= 1e9  # the largest reward that the contract allows


@given(seed=SEEDS)
@settings(max_examples=60, derandomize=True)
def test_initial_designs(seed: int) -> None:
    found = proposed(ARM, "initialise", seed)
    assert 1 <= len(terms(found)) <= FIRST_TERMS
    assert len(set(kinds(ARM, found))) == len(terms(found))
    assert all(WEIGHTS[0] * 0.99 <= abs(weight) <= WEIGHTS[1] * 1.01 for weight in terms(found).values())
    assert all(float(f"{weight:.3g}") == weight for weight in terms(found).values())


def test_families_have_equal_chances() -> None:
    """However many quantities are of one form. Few distances are not lost among many numbers."""
    rng = np.random.default_rng(0)
    rollouts = [(np.hstack([arm(s)[0], rng.normal(size=(41, 30)) * 2.0 ** np.arange(30)]), arm(s)[1]) for s in range(4)]
    designer = Designer(rollouts, (*FIELDS, *(f"field {chr(97 + i // 6)}{chr(97 + i % 6)}" for i in range(30))))
    listed = designer.components
    families = {quantity: family for family, each in listed.families.items() for quantity in each}
    counts = dict.fromkeys(listed.families, 0)
    for seed in range(600):
        for quantity in read_by(designer, proposed(designer, "plan", seed)):
            counts[families[quantity]] += 1
    assert {"number", "norm", "distance", "angle", "effort"} <= {*counts}
    assert min(counts.values()) > 0.5 * 600 / len(counts)
    assert max(counts.values()) < 1.5 * 600 / len(counts)


@pytest.mark.parametrize("operator", ["initialise", "plan", *CHILDREN])
def test_the_same_request_has_the_same_answer(operator: str) -> None:
    parents = [] if operator in ("initialise", "plan") else [new(ARM, 1), new(ARM, 2)]
    count = 2 if operator == "crossover" else 1
    again = Designer(ROLLOUTS["vectors"], FIELDS, seed=3)
    answers = {proposed(ARM, operator, seed, parents, count) for seed in range(20)}
    assert answers == {proposed(again, operator, seed, parents, count) for seed in range(20)}
    assert len(answers) > (1 if operator == "path" else 10)  # a path that drops has few ways on


def test_plans_differ_until_nothing_is_left() -> None:
    """Each is one component whose quantity and shape no ancestor has."""
    designer = DESIGNERS["one number"]
    pool: list[Parent] = []
    while not (found := proposed(designer, "plan", len(pool), pool)).failure:
        assert len(terms(found)) == 1
        assert kinds(designer, found)[0] not in [kind for each in pool for kind in kinds(designer, each)]
        assert found.reasoning.startswith("This component pays more where ")
        pool.insert(0, parent(found))
    assert found.exhausted
    assert found.source == ""
    assert {kind for each in pool for kind in kinds(designer, each)} == {
        component.kind for component in designer.components.listed.values()
    }


@pytest.mark.parametrize(
    "sketch",
    [
        *("x", "[0, 1]", "3", "null", "{}", "[" * 100_000, '{"level nothing\\n": 1.0}'),
        *(f'{{"level height": {weight}}}' for weight in ('"1"', "0", "true", "NaN", "1e9")),
        json.dumps(dict.fromkeys([*ARM.components.listed][:7], 1.0)),
    ],
)
def test_a_sketch_of_another_version_is_refused(sketch: str) -> None:
    one = replace(new(ARM, 0), sketch=sketch)
    with pytest.raises(InputError, match="expected those of this run: begin a new one") as raised:
        proposed(ARM, "mutate", 0, [one], 1)
    assert "\n" not in str(raised.value)
    assert len(str(raised.value)) < 250


def test_unknown_operators_fail() -> None:
    assert proposed(ARM, "repair", 0, [new(ARM, 0)], 1).failure == "the operator 'repair' needs a model"


def test_nothing_is_proposed_where_nothing_varies() -> None:
    designer = Designer([(np.ones((10, 3)), np.zeros(9, dtype=int))])
    for operator in ("initialise", "plan", "mutate"):
        found = proposed(designer, operator, 0)
        assert found.exhausted
        assert found.failure == "nothing that a reward may read varies in the rollouts"


def test_constant_fields_and_names_of_choices_are_no_components() -> None:
    assert not any("unused" in name for name in ARM.components.listed)
    assert "effort" in ARM.components.listed
    assert "effort" not in DESIGNERS["choices"].components.listed
    assert "effort" in DESIGNERS["one number"].components.listed
    as_floats = [(states, actions.astype(float)) for states, actions in ROLLOUTS["choices"]]
    assert "effort" not in Designer(as_floats, FIELDS).components.listed


def test_an_episode_of_whole_actions_has_effort() -> None:
    """Where others have actions between them."""
    states, actions = arm(0)
    whole = states, np.sign(actions)
    assert ARM.rewards('{"effort": 1.0}', *whole) == pytest.approx(ran(source(ARM.components, {"effort": 1.0}), whole))
    assert ARM.rewards('{"effort": 1.0}', *whole).max() < 0
    assert "effort" in Designer([*ROLLOUTS["vectors"], whole], FIELDS).components.listed


def test_angles_do_not_fall_and_lengths_of_numbers_are_not_near_0() -> None:
    """An angle jumps from 180 to -180 degrees. A number is near 0 where its length is."""
    listed = ARM.components.listed
    assert "level angle(cos, sin)" in listed
    assert "fall angle(cos, sin)" not in listed
    assert "near hand_x at 0.5" in listed
    assert "fall norm(hand_x)" in listed
    assert "near norm(hand_x) at 0.5" not in listed


def test_steps_that_are_not_finite_set_no_scale() -> None:
    states, actions = arm(0)
    broken = np.vstack([states, np.full(9, np.inf)]), np.vstack([actions, np.zeros(2)])
    assert Designer([broken], FIELDS).components.listed == Designer([(states, actions)], FIELDS).components.listed


@pytest.mark.parametrize("rollouts", [[], [(np.zeros((3, 2, 2, 3)), np.zeros(2))]])
def test_other_states_are_refused(rollouts: list[Rollout]) -> None:
    with pytest.raises(InputError, match="expected"):
        Designer(rollouts)


def words_in(source: str) -> list[str]:
    """The names of a program's quantities and terms, in their order."""
    return re.findall(r'"[^"]*":', source)


@pytest.mark.parametrize("operator", ["initialise", "plan", *CHILDREN])
@pytest.mark.parametrize("factor", [1e-3, 1e4])
def test_other_units_have_the_same_rewards(operator: str, factor: float) -> None:
    """Of all lengths. A direction has no unit."""
    units = np.array([factor] * 4 + [1.0] * 2 + [factor] * 3)
    scaled = [(states * units, actions * 5.0) for states, actions in ROLLOUTS["vectors"]]
    other = Designer(scaled, FIELDS)
    assert [*other.components.listed] == [*ARM.components.listed]
    for seed in range(10):
        parents = [] if operator in ("initialise", "plan") else [new(ARM, seed), new(ARM, seed + 1)]
        count = 2 if operator == "crossover" else 1
        one, same = proposed(ARM, operator, seed, parents, count), proposed(other, operator, seed, parents, count)
        assert same.sketch == one.sketch
        expected = ran(one.source, ROLLOUTS["vectors"][0])
        assert ran(same.source, scaled[0]) == pytest.approx(expected, rel=1e-3, abs=1e-3)


@pytest.mark.parametrize("seed", range(4))
def test_every_number_may_have_a_unit_of_its_own(seed: int) -> None:
    """The reward of a term over one number does not depend on it."""
    units = 10.0 ** np.random.default_rng(seed).integers(-4, 5, size=9)
    other = Designer([(states * units, actions) for states, actions in ROLLOUTS["vectors"]], FIELDS)
    single = {name for name, each in ARM.components.quantities.items() if each.form == "number"}
    names = [name for name, each in ARM.components.listed.items() if each.quantity in single]
    states, actions = arm(5)
    for name in names:
        expected = ran(source(ARM.components, {name: 1.0}), (states, actions))
        assert ran(source(other.components, {name: 1.0}), (states * units, actions)) == pytest.approx(
            expected, rel=1e-3, abs=1e-3
        )


@pytest.mark.parametrize("operator", ["initialise", "plan", *CHILDREN])
def test_another_order_of_fields_has_the_same_rewards(operator: str) -> None:
    """Even if the axes of two places are in different orders."""
    for seed in range(8):
        order = np.random.default_rng(seed).permutation(9)
        moved = [(states[:, order], actions) for states, actions in ROLLOUTS["vectors"]]
        other = Designer(moved, [FIELDS[i] for i in order])
        parents = [] if operator in ("initialise", "plan") else [new(ARM, seed), new(ARM, seed + 1)]
        count = 2 if operator == "crossover" else 1
        one, same = proposed(ARM, operator, seed, parents, count), proposed(other, operator, seed, parents, count)
        assert same.sketch == one.sketch
        assert words_in(same.source) == words_in(one.source)
        assert ran(same.source, moved[0]) == pytest.approx(ran(one.source, ROLLOUTS["vectors"][0]), rel=1e-6, abs=1e-6)


def test_places_without_names_are_compared_where_they_are_alike() -> None:
    """Numbers of like means and deviations. A height of another unit is compared with none."""
    found = {name for name, each in UNNAMED.components.quantities.items() if each.form in ("difference", "distance")}
    assert "distance(x0, x1, x2, x3)" in found
    assert "x0 - x2" in found
    assert not any("x6" in name for name in found)


def test_named_places_are_compared_along_the_same_axes() -> None:
    rng = np.random.default_rng(0)
    fields = (*(f"{place}_{axis}" for place in ("one", "two") for axis in "xyz"), "lamp")
    found = {each.name(VectorNumbers(fields)) for each in measured(VectorNumbers(fields), rng.normal(size=(99, 7)))}
    assert not any("- lamp" in name for name in found)
    assert {"distance(one, two)", "one_x - two_x", "distance(one_x, one_y, two_x, two_y)"} <= found
    assert not found & {"one_x - one_y", "one_x - two_y", "distance(one_x, one_y, two_y, two_z)"}


def test_hostile_names_run_nothing() -> None:
    names = (
        'a", z("b',
        "');raise SystemExit(1)#",
        '"""',
        "\\",
        "state[0]",
        "x\u202ey",
        "__import__('os')",
        "{{ 1 }}",
        "é",
    )
    designer = Designer(ROLLOUTS["vectors"], names)
    for seed in range(20):
        found = proposed(designer, "initialise", seed)
        assert read(found.source).problems == ()
        expected = designer.rewards(found.sketch, *arm(5))
        assert ran(found.source, arm(5)) == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_a_program_tells_its_terms() -> None:
    """By names that a reader knows, weighted as they enter the sum; the dict that it gives away is a copy."""
    program = source(ARM.components, THREE)
    space: dict[str, Any] = {}
    exec(program, space)
    reward = space["Reward"]("go")
    (states, actions) = arm(3)
    paid = reward.reward_fn(states[0], actions[0], states[1])
    told = reward.terms_fn(states[1])
    assert [*told] == ["effort", "level height", "near distance(goal, hand)"]
    assert sum(told.values()) == pytest.approx(paid)
    told.clear()
    assert len(reward.terms_fn(states[1])) == 3
    assert "near distance(goal, hand): +" in reward.debug_fn(states[1])


def test_children_say_what_they_change() -> None:
    one = of(ARM, THREE)
    said = {proposed(ARM, "structure", seed, [one], 1).reasoning for seed in range(40)}
    assert "The reward drops effort." in said
    assert any(re.fullmatch(r"The reward adds [^.]*(\.\d+)?\.", each) for each in said)
    weighed = proposed(ARM, "weights", 0, [one], 1).reasoning
    assert weighed == "The reward weighs effort, level height and near distance(goal, hand) at 0.1 anew."


def test_components_without_spread_are_left_out() -> None:
    """A clock falls by the same at each step. Its level varies."""
    clock = [(np.arange(40.0)[:, None] + seed, np.zeros(39, dtype=int)) for seed in range(3)]
    listed = Designer(clock, ("clock",)).components.listed
    assert "level clock" in listed
    assert "fall clock" not in listed
    assert not any("change" in name for name in listed)


def test_values_stay_within_the_limit() -> None:
    one = Component("x", "level", 1.0)
    found = one.of(np.zeros(3), np.array([np.nan, np.inf, -1e9]))
    assert found.tolist() == [0.0, LIMIT, -LIMIT]
