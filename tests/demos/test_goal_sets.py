"""The sets of tasks with a goal (`benchmarks/goal_sets`): roles, ends, near misses and seeds."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec

import numpy as np
import pytest

from benchmarks.goal_sets import sets
from benchmarks.goal_sets.world import LONGEST, SHORTEST
from grace_irl.demos.trajectory import Demonstrations, Trajectory
from grace_irl.errors import InputError

ROBOTS = find_spec("gymnasium_robotics") is not None
NEEDS_ROBOTS = pytest.mark.skipif(not ROBOTS, reason="needs gymnasium_robotics")
EACH = [pytest.param(name, marks=NEEDS_ROBOTS if name == "fetch_reach" else ()) for name in sets.NAMES]


@cache
def drawn(name: str, seed: int = 0) -> Demonstrations:
    """A set of the size that a method is tested with."""
    return sets.episodes(name, seed, 8, 8)


def numbers(trajectory: Trajectory) -> np.ndarray:
    """All numbers of an episode, one row per state."""
    found = trajectory.state_kind.numbers(trajectory.states)
    assert found is not None
    return found


@pytest.mark.parametrize("name", EACH)
def test_experts_end_in_the_first_state_that_reaches_the_goal(name: str) -> None:
    experts = drawn(name).select(role="expert")
    assert len(experts) == 8
    assert drawn(name).metadata.label == "last"
    for item in experts:
        assert np.flatnonzero(sets.reached(name, item.trajectory.states)).tolist() == [item.trajectory.num_steps]


@pytest.mark.parametrize("name", EACH)
def test_no_state_of_a_negative_reaches_the_goal(name: str) -> None:
    negatives = drawn(name).select(role="negative")
    assert len(negatives) == 8
    assert not any(sets.reached(name, item.trajectory.states).any() for item in negatives)


@pytest.mark.parametrize("name", EACH)
def test_half_of_the_negatives_are_near_misses(name: str) -> None:
    intents = [item.trajectory.source.split(", ")[-1] for item in drawn(name).select(role="negative")]
    assert intents[::2] == ["random"] * 4
    assert set(intents[1::2]) == set(sets.WORLDS[name].misses)


@pytest.mark.parametrize("name", EACH)
def test_every_condition_decides_in_some_states(name: str) -> None:
    """Without it, more than the experts' last states would be goals."""
    world = sets.WORLDS[name]
    for number in set(world.misses.values()):
        alone = [world.fails_alone(item.trajectory.states, number).any() for item in drawn(name)]
        assert sum(alone) >= 2
    first = drawn(name)[0].trajectory.states
    assert set(world.misses.values()) == set(range(len(world.conditions(world.parts(first)))))


@pytest.mark.parametrize("name", EACH)
def test_states_are_short_numbers_and_episodes_vary(name: str) -> None:
    trajectories = [item.trajectory for item in drawn(name)]
    assert all(SHORTEST <= len(each.states) <= LONGEST for each in trajectories)
    assert len({len(each.states) for each in trajectories[:8]}) >= 4
    assert len({numbers(each)[0].tobytes() for each in trajectories}) == 16
    kinds = {array.dtype for array in each_array(trajectories[0])}
    assert kinds == {np.dtype(np.float32)}


def each_array(trajectory: Trajectory) -> list[np.ndarray]:
    """The arrays of an episode's states."""
    return list(trajectory.state_kind.parts(trajectory.states).values())


@pytest.mark.parametrize("name", EACH)
def test_equal_seeds_give_equal_sets(name: str) -> None:
    again = [item.trajectory.digest for item in sets.episodes(name, 0, 2, 3)]
    whole = [item.trajectory.digest for item in drawn(name)]
    assert again == whole[:2] + whole[8:11]
    other = {item.trajectory.digest for item in sets.episodes(name, 1, 2, 2)}
    assert not other & set(whole)


def test_an_unknown_set_is_refused() -> None:
    with pytest.raises(InputError, match="set 'reach'; expected one of reacher, "):
        sets.episodes("reach", 0, 1, 1)


@pytest.mark.skipif(ROBOTS, reason="gymnasium_robotics is there")
def test_a_missing_simulator_is_named_in_one_line() -> None:
    with pytest.raises(InputError, match=r"gymnasium_robotics is not installed; expected .*: run this set there$"):
        sets.episodes("fetch_reach", 0, 1, 1)
