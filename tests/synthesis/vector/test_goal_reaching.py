"""Goal-reaching episodes of a point mass: a reward reads how far the goal is, and not where experts' goals lay."""

from __future__ import annotations

import asyncio
import re
from functools import cache
from typing import Any

import numpy as np
import pytest

from grace_irl.demos.labels import Labelled, Problem, label
from grace_irl.demos.trajectory import Demonstration, Demonstrations, LabelRule, Metadata, Trajectory
from grace_irl.evaluate.metrics import ranking
from grace_irl.propose.protocol import Proposal
from grace_irl.search.protocol import Request
from grace_irl.states.record import RecordStates
from grace_irl.synthesis import Synthesiser
from tests.synthesis.worlds import rewards_of_all

GOAL = ("desired_goal[0]", "desired_goal[1]")
SIZES = {"achieved_goal": 2, "desired_goal": 2, "observation": 4}
SEEDS = range(5)


def episode(rng: np.random.Generator, expert: bool) -> RecordStates:
    """A point mass that starts at rest. It is steered to the goal, or pushed at random, for at most 40 steps."""
    place, speed, goal = rng.uniform(-1, 1, 2), np.zeros(2), rng.uniform(-1, 1, 2)
    places, speeds = [place], [speed]
    while len(places) <= 40 and (len(places) == 1 or np.hypot(*(place - goal)) >= 0.1):
        steered = np.clip(4 * (goal - place) - 2.5 * speed, -1, 1) + rng.normal(0, 0.1, 2)
        action = np.clip(steered if expert else rng.uniform(-1, 1, 2), -1, 1)
        speed = speed + 0.2 * action
        place = place + 0.1 * speed
        places.append(place)
        speeds.append(speed)
    achieved, moving = np.array(places, np.float32), np.array(speeds, np.float32)
    return RecordStates(
        {
            "achieved_goal": achieved,
            "desired_goal": np.tile(goal.astype(np.float32), (len(places), 1)),
            "observation": np.concatenate([achieved, moving], axis=1),
        }
    )


def reaching(seed: int, rule: LabelRule, kind: str, count: int = 8) -> Problem:
    """As many experts as negatives, as records or as vectors of all their numbers."""
    rng = np.random.default_rng(seed)
    items = []
    for number in range(2 * count):
        states = episode(rng, expert=number < count)
        kept = states if kind == "record" else np.concatenate([states.parts[name] for name in SIZES], axis=1)
        items.append(Demonstration(Trajectory(kept), "expert" if number < count else "negative"))
    names = tuple(f"{name}[{i}]" for name, size in SIZES.items() for i in range(size)) if kind == "vector" else ()
    return label(Demonstrations(Metadata(kind, names), tuple(items)), rule)


@cache
def answer(seed: int, rule: LabelRule, kind: str, index: int = 0) -> Proposal:
    return asyncio.run(Synthesiser(reaching(seed, rule, kind), 0).propose(Request(index, "initialise"), ()))


def rows(source: str) -> list[tuple[str, str, object]]:
    """The terms of a program, without weights: a number, a shape, and a threshold or another number."""
    space: dict[str, list[tuple[float, str, str, object]]] = {}
    exec(compile(source, "reward.py", "exec"), space)
    return [row[1:] for row in space["TERMS"]]


def watched(source: str) -> set[str]:
    """Names of the numbers of which the program asks whether they are in the experts' range."""
    space: dict[str, set[str]] = {}
    exec(compile(source, "reward.py", "exec"), space)
    return {*space.get("WATCHED", space["FIELDS"])}


def limits(source: str) -> list[str]:
    """The conditions of a predicate, as the program names them."""
    space: dict[str, Any] = {}
    exec(compile(source, "reward.py", "exec"), space)
    zeros = {name: np.zeros(size) for name, size in SIZES.items()}
    state = zeros if 'state["' in source else np.zeros(sum(SIZES.values()))
    return list(space["Reward"]().lacking_fn(state))


@pytest.mark.slow
@pytest.mark.parametrize("index", [0, 5, 15])
@pytest.mark.parametrize("kind", ["record", "vector"])
def test_no_term_reads_the_goal_alone(kind: str, index: int) -> None:
    for seed in SEEDS:
        source = answer(seed, "all", kind, index).source
        assert rows(source)
        assert not [row for row in rows(source) if row[0] in GOAL and (row[2] in GOAL or not isinstance(row[2], str))]
        assert not watched(source) & {*GOAL}


@pytest.mark.parametrize("index", [0, 5, 10])
@pytest.mark.parametrize("kind", ["record", "vector"])
def test_no_condition_reads_the_goal_alone(kind: str, index: int) -> None:
    for seed in SEEDS:
        for each in limits(answer(seed, "last", kind, index).source):
            assert not re.match(r"(norm\()?desired_goal(\[\d\])?\)? [<>]=", each)


@pytest.mark.parametrize("kind", ["record", "vector"])
def test_the_predicate_is_the_distance_of_the_two_places(kind: str) -> None:
    """The world's own goal is a distance below 0.1. Of `limits`, one suffices."""
    for seed in range(10):
        (one,) = limits(answer(seed, "last", kind).source)
        what, _, limit = one.rpartition(" <= ")
        assert what == "distance(achieved_goal, desired_goal)"
        assert 0.09 <= float(limit) <= 0.11


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["record", "vector"])
def test_terms_read_the_goal_with_what_changes(kind: str) -> None:
    for seed in SEEDS:
        read = {str(name) for row in rows(answer(seed, "all", kind).source) for name in (row[0], row[2])}
        assert any("desired_goal" in name for name in read)


def auc(seed: int, rule: LabelRule, kind: str) -> float:
    """On 40 + 40 fresh episodes, with goals of their own."""
    fresh = reaching(seed + 1000, rule, kind, 40)
    values = rewards_of_all(answer(seed, rule, kind).source, [i.trajectory.states for i in fresh], [""] * 80)
    return ranking(np.concatenate(values), np.concatenate([item.positive for item in fresh])).auc


@pytest.mark.slow
@pytest.mark.parametrize(("rule", "least"), [("last", 0.995), ("all", 0.76)])
@pytest.mark.parametrize("kind", ["record", "vector"])
def test_rewards_hold_on_episodes_with_other_goals(rule: LabelRule, kind: str, least: float) -> None:
    """With terms of goals alone, the mean for rule `all` is 0.693 for both kinds."""
    assert np.mean([auc(seed, rule, kind) for seed in range(10)]) > least


def constants(experts: float, others: float, seed: int = 0, informative: float = 0.0) -> Problem:
    """Vectors of noise, beside a constant of the simulator of each side."""
    rng = np.random.default_rng(seed)
    items = []
    for number in range(16):
        expert = number < 8
        noise = rng.normal(informative * expert, 1.0, 30)
        states = np.column_stack([noise, np.full(30, experts if expert else others)])
        items.append(Demonstration(Trajectory(states), "expert" if expert else "negative"))
    return label(Demonstrations(Metadata("vector", ("speed", "gravity")), tuple(items)), "all")


@pytest.mark.parametrize(("experts", "others"), [(-9.81, -9.8), (1.0, 0.0), (9.81, 9.81)])
def test_constants_of_simulators_are_not_read(experts: float, others: float) -> None:
    synthesiser = Synthesiser(constants(experts, others, informative=1.0), 0)
    for index in range(12):
        source = asyncio.run(synthesiser.propose(Request(index, "initialise"), ())).source
        assert "speed" in source
        assert "gravity" not in source


def test_goals_alone_distinguish_nothing() -> None:
    rng = np.random.default_rng(0)
    items = [
        Demonstration(Trajectory(np.tile(rng.normal(2.0 * expert, 0.1, 3), (5, 1))), "expert" if expert else "negative")
        for expert in (True, False)
        for _ in range(4)
    ]
    problem = label(Demonstrations(Metadata("vector"), tuple(items)), "all")
    found = asyncio.run(Synthesiser(problem, 0).propose(Request(0, "initialise"), ()))
    assert re.match("nothing distinguishes", found.failure)


def test_states_by_themselves_are_read_as_they_are() -> None:
    """Of episodes of one state nobody knows what would change in them."""
    rng = np.random.default_rng(0)
    items = [
        Demonstration(Trajectory(rng.normal(2.0 * expert, 0.1, (1, 3))), "expert" if expert else "negative")
        for expert in (True, False)
        for _ in range(8)
    ]
    problem = label(Demonstrations(Metadata("vector"), tuple(items)), "all")
    found = asyncio.run(Synthesiser(problem, 0).propose(Request(0, "initialise"), ()))
    assert found.failure == ""
    assert rows(found.source)


@pytest.mark.parametrize(("experts", "with_goals"), [(8, 8), (8, 1), (3, 2), (1, 1)])
def test_few_experts_with_goals_have_a_reward(experts: int, with_goals: int) -> None:
    """Of experts without a goal state, no state is positive; a fold may be left without any goal."""
    rng = np.random.default_rng(0)
    items = []
    for number in range(experts + 8):
        states = episode(rng, expert=number < experts)
        goals = [number < with_goals and place == len(states) - 1 for place in range(len(states))]
        found = Demonstration(Trajectory(states), "expert" if number < experts else "negative")
        items.append(Labelled(found, np.array(goals)))
    problem = Problem(Metadata("record"), "goal", tuple(items))
    proposer = Synthesiser(problem, 0)
    proposal = asyncio.run(proposer.propose(Request(0, "initialise"), ()))
    assert "class Reward" in proposal.source
    assert (proposer.sizes is None) == (with_goals == 1 and experts == 8)  # folds without a goal judge nothing
