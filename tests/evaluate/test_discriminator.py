"""The AIRL discriminator and GRACE's fitness, against closed forms."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grace_irl.demos.labels import label
from grace_irl.evaluate.columns import LabelColumns, columns, shares
from grace_irl.evaluate.discriminator import Group, Objective, fitness
from grace_irl.evaluate.log_pi import LogPi
from tests.fakes.data import vector_set


def rows_of(positive: list[bool], task: list[int] | None = None, log_pi: list[float] | None = None) -> LabelColumns:
    """Every state a trajectory of its own."""
    marks = np.array(positive)
    tasks = np.array(task or [0] * len(marks))
    count = int(tasks.max()) + 1
    share = shares(np.bincount(tasks[marks], minlength=count), np.bincount(tasks[~marks], minlength=count))
    assert share is not None
    pi = None if log_pi is None else np.array(log_pi)
    names = tuple(f"task {number}" for number in range(count))
    return LabelColumns(marks, pi, np.ones(len(marks), dtype=np.int64), 0, tasks, names, share)


@pytest.mark.parametrize(
    ("reward", "log_pi", "d"),
    [(0.0, 0.0, 0.5), (math.log(3), 0.0, 0.75), (0.0, math.log(0.25), 0.8), (-math.log(3), 0.0, 0.25)],
)
def test_d_is_exp_r_over_exp_r_plus_pi(reward: float, log_pi: float, d: float) -> None:
    assert math.exp(reward) / (math.exp(reward) + math.exp(log_pi)) == pytest.approx(d)
    rows = rows_of([True, False], log_pi=[log_pi, log_pi])
    assert fitness(np.array([reward, reward]), rows) == pytest.approx(math.log(d) + math.log(1 - d))


@pytest.mark.parametrize(("expert", "negative", "expected"), [(-1e9, -1e9, -1e9), (1e9, 1e9, -1e9), (1e9, -1e9, 0.0)])
def test_large_rewards_neither_overflow_nor_saturate(expert: float, negative: float, expected: float) -> None:
    with np.errstate(over="raise", divide="raise", invalid="raise"):
        assert fitness(np.array([expert, negative]), rows_of([True, False])) == expected


def test_fitness_is_the_mean_of_each_side() -> None:
    rewards = np.array([0.0, math.log(3), 0.0, 0.0, -math.log(3)])
    rows = rows_of([True, True, False, False, False])
    expected = (math.log(0.5) + math.log(0.75)) / 2 + (2 * math.log(0.5) + math.log(0.75)) / 3
    assert fitness(rewards, rows) == pytest.approx(expected)


def test_a_constant_zero_reward_scores_two_log_half() -> None:
    assert fitness(np.zeros(7), rows_of([True] * 2 + [False] * 5)) == pytest.approx(2 * math.log(0.5))


def test_log_pi_moves_the_logit() -> None:
    rows = rows_of([True, False], log_pi=[math.log(0.25), 0.0])
    assert fitness(np.zeros(2), rows) == pytest.approx(math.log(0.8) + math.log(0.5))


def test_tasks_weigh_the_same_whatever_their_size() -> None:
    rewards = np.array([0.0, 0.0, math.log(3), *[-math.log(3)] * 50])
    rows = rows_of([True, False, True, *[False] * 50], task=[0, 0, 1, *[1] * 50])
    assert fitness(rewards, rows) == pytest.approx((2 * math.log(0.5) + 2 * math.log(0.75)) / 2)


def test_all_swaps_weigh_as_much_as_all_other_negatives() -> None:
    """Three negative states and one of a swap; the swap alone is paid."""
    rows = rows_of([True, False, False, False, False])
    share = shares(np.array([1]), np.array([3]), np.array([1]))
    assert share is not None
    swapped = replace(rows, share=share, swapped=np.array([False, False, False, False, True]))
    rewards = np.array([0.0, 0.0, 0.0, 0.0, math.log(3)])
    assert fitness(rewards, swapped) == pytest.approx(math.log(0.5) + (math.log(0.5) + math.log(0.25)) / 2)
    assert fitness(np.zeros(5), swapped) == pytest.approx(2 * math.log(0.5))
    # Without swaps in a part of the data, and with swaps alone as negatives.
    assert fitness(np.zeros(4), swapped.of_items(np.array([True, True, True, True, False]))) > 2 * math.log(0.5)
    alone = shares(np.array([1]), np.array([0]), np.array([4]))
    assert alone is not None
    assert alone[:, 0].tolist() == [0.0, 1.0, 0.25]
    task = swapped.of_task(0)
    assert task is not None
    assert fitness(rewards, task) == fitness(rewards, swapped)


def test_swaps_are_a_class_of_labelled_trajectories() -> None:
    items = label(vector_set(), "last").items
    marked = [
        replace(item, demonstration=replace(item.demonstration, swapped=True)) if at == len(items) - 1 else item
        for at, item in enumerate(items)
    ]
    assert items[-1].demonstration.role == "negative"
    found = columns(marked, LogPi(), takes_action=False)
    assert found is not None
    weights = [(sign, weight * int(mask.sum())) for mask, sign, weight in found.groups()]
    assert weights == [(1.0, pytest.approx(1.0)), (-1.0, pytest.approx(0.5)), (-1.0, pytest.approx(0.5))]


def test_a_task_with_one_side_weighs_nothing() -> None:
    found = shares(np.array([2, 1]), np.array([4, 0]))
    assert found is not None
    assert found.tolist() == [[0.25, 0.0], [0.5, 0.0], [0.0, 0.0]]
    assert shares(np.array([2]), np.array([0])) is None
    rows = rows_of([True, False, True], task=[0, 0, 1])
    assert fitness(np.array([0.0, 0.0, 99.0]), rows) == pytest.approx(2 * math.log(0.5))
    assert rows.of_task(1) is None


@given(
    st.lists(st.tuples(st.floats(-5, 5), st.booleans()), min_size=2, max_size=40).filter(
        lambda rows: len({mark for _, mark in rows}) == 2
    ),
    st.floats(0.1, 3),
    st.floats(-3, 3),
)
def test_objective_has_the_gradient_and_hessian_of_its_value(
    rows: list[tuple[float, bool]], scale: float, offset: float
) -> None:
    objective = Objective.of(np.array([r for r, _ in rows]), rows_of([mark for _, mark in rows]))
    step = 1e-5
    numeric = [
        (objective.value(scale + step, offset) - objective.value(scale - step, offset)) / (2 * step),
        (objective.value(scale, offset + step) - objective.value(scale, offset - step)) / (2 * step),
    ]
    assert objective.gradient(scale, offset) == pytest.approx(numeric, abs=1e-6)
    bend = (objective.gradient(scale + step, offset) - objective.gradient(scale - step, offset)) / (2 * step)
    assert objective.hessian(scale, offset)[0] == pytest.approx(bend, abs=1e-5)
    assert np.linalg.eigvalsh(objective.hessian(scale, offset)).max() <= 1e-12


def test_merging_equal_rewards_changes_nothing() -> None:
    rng = np.random.default_rng(0)
    rewards = rng.integers(0, 3, size=500).astype(float)
    rows = rows_of((rng.random(500) < 0.3).tolist())
    merged = Objective.of(rewards, rows)
    plain = Objective([Group(rewards[mask], sign, weight) for mask, sign, weight in rows.groups()])
    assert sum(len(group.x) for group in merged.groups) <= 6
    assert merged.value(1.3, -0.2) == pytest.approx(plain.value(1.3, -0.2), rel=1e-12)


def test_columns_of_transitions_leave_the_first_state_out() -> None:
    items = label(vector_set(2, 2, 5, actions=True), "last").train
    states = columns(items, LogPi(), takes_action=False)
    transitions = columns(items, LogPi(), takes_action=True)
    assert states is not None
    assert transitions is not None
    assert len(states.positive) == 20
    assert len(transitions.positive) == 16
    assert [states.place(row) for row in (0, 4, 5, 19)] == [(0, 0), (0, 4), (1, 0), (3, 4)]
    assert [transitions.place(row) for row in (0, 3, 4)] == [(0, 1), (0, 4), (1, 1)]
    assert states.positive.sum() == transitions.positive.sum() == 2
