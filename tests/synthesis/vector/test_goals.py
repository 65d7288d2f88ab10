"""Programs of predicates: they give what the search computed, and stand odd data."""

from __future__ import annotations

import asyncio
import math
from typing import Any

import numpy as np
import pytest

from grace_irl.demos.labels import Problem, label
from grace_irl.demos.trajectory import Demonstration, Demonstrations, Metadata, Trajectory
from grace_irl.programs.check import read
from grace_irl.propose.protocol import Proposal
from grace_irl.search.protocol import Request
from grace_irl.states.record import RecordStates
from grace_irl.synthesis import Synthesiser
from grace_irl.synthesis.vector.goals import GoalSketcher, write_predicate
from grace_irl.synthesis.vector.numbers import RecordNumbers, VectorNumbers
from grace_irl.synthesis.vector.predicate import Limit, Predicate
from grace_irl.synthesis.vector.quantities import Quantity
from tests.synthesis.worlds import rewards

NAMES = VectorNumbers(("hand", "hand_x", "hand_y", 'a"; b', "angle"))
LISTED = [
    Quantity("number", (0,)),
    Quantity("norm", (1, 2)),
    Quantity("change", (1, 2)),
    Quantity("difference", (3,), (4,)),
    Quantity("distance", (1, 2), (3, 4)),
]


def made(source: str) -> Any:
    space: dict[str, Any] = {}
    exec(compile(source, "reward.py", "exec"), space)
    return space["Reward"]()


@pytest.mark.parametrize("held", [1, 3])
@pytest.mark.parametrize("seed", range(12))
def test_a_program_gives_what_the_predicate_gives(seed: int, held: int) -> None:
    """Also with two limits on one quantity, with changes, and with fields of nearly equal names."""
    rng = np.random.default_rng(seed)
    states = rng.normal(size=(40, 5)).round(1)
    values = np.stack([each.value(states) for each in LISTED], axis=1)
    limits = []
    for index in [*rng.choice(len(LISTED), 2, replace=False).tolist(), 2, 2]:
        side = ("<=", ">=")[len(limits) % 2]
        limits.append(Limit(index, side, float(np.quantile(values[:, index], rng.uniform(0.2, 0.8))), 2.0))  # type: ignore[arg-type]
    predicate = Predicate(tuple(limits), held)
    source = write_predicate(predicate, LISTED, NAMES)
    assert read(source).problems == ()
    assert rewards(source, states) == pytest.approx(predicate.rewards(values), abs=1e-2)


def test_conditions_of_equal_names_are_all_there() -> None:
    predicate = Predicate((Limit(0, "<=", 1.0), Limit(1, "<=", 1.0)))
    twice = [Quantity("number", (0,)), Quantity("number", (0,))]
    assert len(made(write_predicate(predicate, twice, NAMES)).lacking_fn(np.zeros(5))) == 2


def test_a_state_that_is_no_number_is_no_goal() -> None:
    reward = made(write_predicate(Predicate((Limit(0, "<=", 1.0),)), LISTED, NAMES))
    assert math.isnan(reward.reward_fn(np.full(5, np.nan)))
    assert reward.reward_fn(np.zeros(5)) == 1.0


def test_debug_fn_needs_no_reward_before() -> None:
    reward = made(write_predicate(Predicate((Limit(0, "<=", 1.0),)), LISTED, NAMES))
    assert reward.debug_fn(np.zeros(5)) == ""
    reward.reward_fn(np.full(5, 2.0))
    assert reward.debug_fn(np.full(5, 2.0)) == "hand <= 1: 1.00 lacking"


def problem(episodes: list[Any], kind: str = "vector") -> Problem:
    """The first half are experts."""
    half = len(episodes) // 2
    items = (Demonstration(Trajectory(each), ("expert", "negative")[i >= half]) for i, each in enumerate(episodes))
    return label(Demonstrations(Metadata(kind), tuple(items)), "last")


def first(data: Problem) -> Proposal:
    return asyncio.run(Synthesiser(data, 0).propose(Request(0, "initialise"), ()))


def test_constants_distinguish_nothing() -> None:
    found = first(problem([np.full((4, 3), 2.0) for _ in range(12)]))
    assert "nothing distinguishes" in found.failure


def test_whole_numbers_of_records_are_read_as_numbers() -> None:
    """A `uint8` level falls to 20 at goals, and differences with a higher limit would wrap around."""
    rng = np.random.default_rng(0)
    episodes = []
    for number in range(16):
        level = rng.integers(60, 250, 15).astype(np.uint8)
        if number < 8:
            level[-1] = rng.integers(18, 23)
        episodes.append(RecordStates({"level": level, "noise": rng.normal(size=15)}))
    data = problem(episodes, "record")
    source = first(data).source
    assert 'float(state["level"])' in source
    for item in data.train:
        paid = [reward == 1.0 for reward in rewards(source, list(item.trajectory.states))]
        assert paid == item.positive.tolist()


def test_constants_of_simulators_are_in_no_condition() -> None:
    rng = np.random.default_rng(0)
    episodes = []
    for number in range(16):
        walk = rng.normal(size=(20, 2)).cumsum(axis=0)
        episodes.append(np.column_stack([walk, np.full(20, 0.0 if number < 8 else 50.0)]))
    sketcher = GoalSketcher(problem(episodes).train, VectorNumbers(("a", "b", "gravity")))
    assert not [sketch for sketch in sketcher.initial() if "gravity" in sketcher.source(sketch)]


def test_programs_of_all_sketches_give_what_the_search_computed() -> None:
    rng = np.random.default_rng(1)
    episodes = []
    for number in range(16):
        path = np.cumsum(rng.normal(size=(20, 2)), axis=0)
        goal = path[-1] + (0.05 if number < 8 else 1.0)
        parts = {"at": path, "to": np.tile(goal, (20, 1)), "m": rng.normal(size=(20, 2, 2))}
        episodes.append(RecordStates(parts))
    data = problem(episodes, "record")
    numbers = RecordNumbers.of(episodes[0])
    sketcher = GoalSketcher(data.train, numbers)
    for sketch in sketcher.initial():
        if not sketch.startswith("["):
            predicate, chosen = sketcher._read(sketch)
            for item in data.train[::5]:
                plain = numbers.values(item.trajectory.states)
                values = np.stack([each.value(plain) for each in chosen], axis=1)
                got = rewards(sketcher.source(sketch), list(item.trajectory.states))
                assert got == pytest.approx(predicate.rewards(values), abs=2e-2, rel=1e-2)
