"""The writer without a model and demonstrations: what each operator promises, and that programs give what it means."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grace_irl.demos.trajectory import Trajectory
from grace_irl.errors import InputError
from grace_irl.evaluate.evaluation import Evaluation
from grace_irl.programs.check import read
from grace_irl.programs.program import Program, identify
from grace_irl.propose.protocol import Parent, Proposal
from grace_irl.sandbox import open_sandbox
from grace_irl.search.protocol import Request
from grace_irl.states.record import RecordStates
from grace_irl.synthesis.vector.components import LIMIT, Component, Rollout, measured
from grace_irl.synthesis.vector.designer import EXTREMES, FIRST_TERMS, MOST_TERMS, SIGMA, WEIGHTS, Designer
from grace_irl.synthesis.vector.numbers import VectorNumbers
from tests.fakes.in_process_sandbox import InProcessSandbox

FIELDS = ("hand_x", "hand_y", "goal_x", "goal_y", "cos", "sin", "height", "lamp", "unused")
CHILDREN = ("reflect", "mutate", "structure", "weights", "crossover", "path", "different")


def arm(seed: int, length: int = 40) -> Rollout:
    """A hand that wanders beside a goal, a direction, a height, a lamp that is on or off, and a number that is 0."""
    rng = np.random.default_rng(seed)
    hand = np.cumsum(rng.normal(size=(length + 1, 2)) * 0.1, axis=0)
    goal = np.tile(rng.normal(size=2), (length + 1, 1))
    angle = np.cumsum(rng.normal(size=length + 1) * 0.3)
    height = 1.3 + 0.1 * rng.normal(size=length + 1)
    lamp = (rng.random(length + 1) < 0.3) * 1.0
    columns = [hand, goal, np.cos(angle), np.sin(angle), height, lamp, np.zeros(length + 1)]
    return np.column_stack(columns), rng.uniform(-1, 1, size=(length, 2))


def record(seed: int) -> Rollout:
    """The same as a record with whole numbers, a text and an image."""
    states, actions = arm(seed)
    rng = np.random.default_rng(seed)
    parts = {
        "arm/hand": states[:, :2],
        "arm/goal": states[:, 2:4].astype(np.float32),
        "state": states[:, 4:7],
        "lamp": states[:, 7].astype(np.uint8),
        "counts": rng.integers(0, 9, size=(len(states), 2), dtype=np.uint8),
        "image": np.zeros((len(states), 9, 9, 3), dtype=np.uint8),
        "said": np.array([b"go"] * len(states)),
    }
    return RecordStates(parts), actions


def choices(seed: int) -> Rollout:
    states, actions = arm(seed)
    return states, np.random.default_rng(seed).integers(0, 4, size=len(actions))


def single(seed: int) -> Rollout:
    states, actions = arm(seed)
    return states[:, :1], actions[:, 0]


ROLLOUTS = {
    "vectors": [arm(seed) for seed in range(8)],
    "records": [record(seed) for seed in range(8)],
    "choices": [choices(seed) for seed in range(8)],
    "one number": [single(seed) for seed in range(8)],
}
DESIGNERS = {name: Designer(rollouts, FIELDS if name != "records" else ()) for name, rollouts in ROLLOUTS.items()}
UNNAMED = Designer(ROLLOUTS["vectors"])
ARM = DESIGNERS["vectors"]


def proposed(designer: Designer, operator: str, seed: int, parents: Sequence[Parent] = (), count: int = 0) -> Proposal:
    """The answer to a request whose first `count` programs are parents, and the others ancestors."""
    ids = tuple(parent.program.id for parent in parents)
    request = Request(0, operator, ids[:count], seed, ancestors=ids[count:])
    return replace(asyncio.run(designer.propose(request, parents)), seconds=0.0)


def parent(proposal: Proposal, **evidence: Any) -> Parent:
    identity = identify(read(proposal.source).tree)  # type: ignore[arg-type]
    evaluation = Evaluation("ok", score=1.0, evidence=evidence)
    return Parent(Program(identity.id, proposal.source, identity.size), evaluation, proposal.sketch)


def new(designer: Designer, seed: int) -> Parent:
    return parent(proposed(designer, "initialise", seed))


def of(designer: Designer, design: dict[str, float], **evidence: Any) -> Parent:
    """A parent with this design."""
    return parent(Proposal(designer.source(design), sketch=json.dumps(design)), **evidence)


def foreign() -> Parent:
    return replace(new(ARM, 0), sketch="")


def terms(found: Proposal | Parent) -> dict[str, float]:
    return dict(json.loads(found.sketch)) if found.sketch else {}


def read_by(designer: Designer, found: Proposal | Parent) -> set[str]:
    """Names of the quantities that a program reads."""
    return {designer.components.listed[name].quantity for name in terms(found)}


def kinds(designer: Designer, found: Proposal | Parent) -> list[tuple[str, str]]:
    return [designer.components.listed[name].kind for name in terms(found)]


def ran(source: str, rollout: Rollout) -> np.ndarray:
    """The rewards of the program at each step, in this process."""
    sandbox = InProcessSandbox()
    outcome = sandbox.run(source, sandbox.put([Trajectory(*rollout)]), [0])
    assert outcome.status == "ok", outcome.message
    return outcome.rewards[0][1:]


SEEDS = st.integers(0, 2**32)


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
        source = designer.source({name: -1.5})
        assert read(source).problems == ()
        expected = designer.rewards(json.dumps({name: -1.5}), *rollout)
        assert ran(source, rollout) == pytest.approx(expected, rel=1e-9, abs=1e-9), name


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
        source = designer.source({name: 1.0})
        found = ran(source, (np.stack([before, after]), np.array([[1.0, 2.0]])))
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
        rewards = ran(ARM.source({name: EXTREMES[1]}), (states, actions))
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


THREE = {"effort": 0.5, "level height": 1.0, "near distance(goal, hand) at 0.1": 2.0}


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
    source = designer.source(design)
    space: dict[str, Any] = {}
    exec(source, space)
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
    assert ARM.rewards('{"effort": 1.0}', *whole) == pytest.approx(ran(ARM.source({"effort": 1.0}), whole))
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
        expected = ran(ARM.source({name: 1.0}), (states, actions))
        assert ran(other.source({name: 1.0}), (states * units, actions)) == pytest.approx(expected, rel=1e-3, abs=1e-3)


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
    source = ARM.source(THREE)
    space: dict[str, Any] = {}
    exec(source, space)
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
