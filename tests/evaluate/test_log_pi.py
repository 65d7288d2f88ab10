"""The choices of log pi."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from grace_irl.demos.labels import Problem, label
from grace_irl.demos.trajectory import Demonstration, Demonstrations, Metadata, Role, Trajectory
from grace_irl.errors import InputError
from grace_irl.evaluate.columns import columns
from grace_irl.evaluate.log_pi import align, log_pi
from tests.fakes.data import vector_set


def problem(*trajectories: Trajectory, roles: tuple[str, ...] = ()) -> Problem:
    names = roles or ("expert",) * len(trajectories)
    items = tuple(Demonstration(t, role) for t, role in zip(trajectories, names, strict=True))  # type: ignore[arg-type]
    return label(Demonstrations(Metadata("vector"), items), "all")


def test_constant_is_zero() -> None:
    found = log_pi(label(vector_set(), "all"), "constant")
    assert found.constant
    assert (found.of(vector_set()[0].trajectory) == 0).all()


def test_uniform_over_discrete_actions() -> None:
    one = Trajectory(np.zeros((5, 2)), np.array([0, 1, 2, 2]))
    assert log_pi(problem(one), "uniform").of(one) == pytest.approx(np.full(5, -math.log(3)))


def test_uniform_over_a_box() -> None:
    one = Trajectory(np.zeros((3, 2)), np.array([[-1.0, 0.0], [1.0, 0.5]]))
    assert log_pi(problem(one), "uniform").of(one) == pytest.approx(np.zeros(3), abs=1e-12)  # volume 2 * 0.5


def test_recorded_gives_the_last_state_the_mean() -> None:
    one = Trajectory(np.zeros((3, 2)), np.zeros(2, dtype=int), log_probs=np.array([-1.0, -3.0]))
    assert log_pi(problem(one), "recorded").of(one).tolist() == [-1.0, -3.0, -2.0]


def test_a_recorded_probability_of_zero_is_clipped() -> None:
    one = Trajectory(np.zeros((3, 2)), np.zeros(2, dtype=int), log_probs=np.array([-1.0, -np.inf]))
    assert log_pi(problem(one), "recorded").of(one).tolist() == [-1.0, -20.0, -10.5]


def test_equal_states_with_other_records_keep_their_own() -> None:
    states, alike = np.zeros((3, 2)), np.array([0, 1])
    mine = Trajectory(states, alike, log_probs=np.array([-1.0, -1.0]))
    theirs = Trajectory(states, alike, log_probs=np.array([-2.0, -4.0]))
    acted_otherwise = Trajectory(states, np.array([1, 1]), log_probs=np.array([-3.0, -5.0]))
    assert mine.digest == theirs.digest != acted_otherwise.digest
    whole = problem(mine, theirs, acted_otherwise, roles=("expert", "negative", "negative"))
    found = log_pi(whole, "recorded")
    assert found.of(mine)[:2].tolist() == [-1.0, -1.0]
    assert found.of(theirs)[:2].tolist() == [-2.0, -4.0]
    assert found.of(acted_otherwise)[:2].tolist() == [-3.0, -5.0]
    rows = columns(whole.items, found, takes_action=False)
    assert rows is not None
    assert rows.log_pi is not None
    mean = -16 / 6  # over the steps of all three: what the last states take
    assert rows.log_pi == pytest.approx(np.array([-1, -1, mean, -2, -4, mean, -3, -5, mean]) - mean)


def test_cloned_gives_each_its_own_actions() -> None:
    states = np.random.default_rng(2).normal(size=(9, 2))
    one = Trajectory(states, np.array([0, 1] * 4), log_probs=np.full(8, -1.0))
    other = Trajectory(states, np.array([1, 0] * 4), log_probs=np.full(8, -1.0))
    found = log_pi(problem(one, other, roles=("expert", "negative")), "cloned")
    assert np.exp(found.of(one)[:8]) + np.exp(found.of(other)[:8]) == pytest.approx(np.ones(8))


def test_cloned_prefers_the_experts_action() -> None:
    rng = np.random.default_rng(0)
    states = rng.normal(size=(201, 2))
    expert = Trajectory(states, (states[:-1, 0] > 0).astype(int))
    other = Trajectory(states, (states[:-1, 0] <= 0).astype(int))
    found = log_pi(problem(expert, other, roles=("expert", "negative")), "cloned")
    assert found.of(expert)[:-1].mean() > -0.2
    assert found.of(other)[:-1].mean() < -2.0
    both = np.exp(found.of(expert)[:-1]) + np.exp(found.of(other)[:-1])
    assert both == pytest.approx(np.ones(200))  # two actions: their probabilities sum to one


def test_cloned_continuous_recovers_a_linear_policy() -> None:
    rng = np.random.default_rng(1)
    states = rng.normal(size=(4001, 2))
    actions = states[:-1] @ np.array([[2.0], [-1.0]]) + 0.5 * rng.normal(size=(4000, 1))
    one = Trajectory(states, actions)
    entropy = 0.5 * math.log(2 * math.pi * math.e * 0.25)
    assert log_pi(problem(one), "cloned").of(one)[:-1].mean() == pytest.approx(-entropy, abs=0.05)


def test_cloned_knows_no_action_that_only_held_out_data_has() -> None:
    one = Trajectory(np.random.default_rng(0).normal(size=(9, 2)), np.array([0, 1] * 4))
    other = Trajectory(one.states, np.full(8, 7))
    held = problem(one, other)
    items = (
        held.items[0],
        replace(held.items[1], demonstration=replace(held.items[1].demonstration, split="held_out")),
    )
    found = log_pi(replace(held, items=items), "cloned")
    assert (found.of(other)[:-1] == -20.0).all()


@pytest.mark.parametrize("role", ["expert", "negative"])
def test_cloned_learns_from_training_experts_alone(role: Role) -> None:
    """Whatever held-out experts do, and negatives of either side, the policy is the training experts'."""
    rng = np.random.default_rng(0)
    states = rng.normal(size=(201, 2))
    right = (states[:-1, 0] > 0).astype(int)
    experts = [Demonstration(Trajectory(states, right), "expert", split="train")]
    others = [Demonstration(Trajectory(states + 1e-9 * n, 1 - right), role, split="held_out") for n in range(1, 9)]
    negative = Demonstration(Trajectory(states + 1e-6, 1 - right), "negative", split="train")
    alone = label(Demonstrations(Metadata("vector"), (*experts, negative)), "all")
    whole = label(Demonstrations(Metadata("vector"), (*experts, negative, *others)), "all")
    mine = experts[0].trajectory
    assert log_pi(whole, "cloned").of(mine).tolist() == log_pi(alone, "cloned").of(mine).tolist()
    assert log_pi(whole, "cloned").of(others[0].trajectory)[:-1].mean() < -2.0


@pytest.mark.parametrize("choice", ["uniform", "recorded", "cloned", "other"])
def test_data_that_lacks_what_is_needed(choice: str) -> None:
    with pytest.raises(InputError, match=r"log-pi|log pi"):
        log_pi(label(vector_set(actions=False), "all"), choice)


def test_align_puts_the_action_beside_its_transition() -> None:
    values = np.array([1.0, 2.0, 1.5])
    assert align(values, takes_action=False).tolist() == [1.0, 2.0, 1.5]
    assert align(values, takes_action=True).tolist() == [1.0, 2.0]
