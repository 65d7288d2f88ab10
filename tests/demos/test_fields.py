"""Fields whose values do not depend on behaviour: which are found, in which data, and which are not."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from grace_irl.demos.fields import BLOCK, FieldCues, clock_fields, columns, find_cues, fixed_fields, source_fields
from grace_irl.demos.labels import Labelled, label
from grace_irl.demos.trajectory import Demonstration, Demonstrations, LabelRule, Metadata, Trajectory
from grace_irl.states.record import RecordStates

NAMES = ("position", "goal", "step", "gravity", "width")


def episode(rng: np.random.Generator, length: int, expert: bool) -> NDArray[np.float64]:
    """A walk, with a goal and a width of its own, the step, and the gravity of its side's simulator."""
    goal, gravity = rng.uniform(-1, 1), -9.81 if expert else -9.8
    walk = rng.normal(size=length).cumsum()
    return np.column_stack([walk, np.full(length, goal), np.arange(length), np.full(length, gravity), np.ones(length)])


def labelled(states: Sequence[object], experts: int, rule: LabelRule = "last", kind: str = "vector") -> list[Labelled]:
    """Labelled episodes, of which the first `experts` are experts."""
    items = [
        Demonstration(Trajectory(one), "expert" if number < experts else "negative")
        for number, one in enumerate(states)
    ]
    return list(label(Demonstrations(Metadata(kind), tuple(items)), rule))


@pytest.fixture
def walks() -> list[NDArray[np.float64]]:
    rng = np.random.default_rng(0)
    return [episode(rng, length, expert=number < 3) for number, length in enumerate([9, 12, 7, 20, 11, 9])]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_fields_of_vectors(walks: list[NDArray[np.float64]], dtype: type) -> None:
    items = labelled([walk.astype(dtype) for walk in walks], 3)
    assert find_cues(items, NAMES) == FieldCues(fixed=("goal",), clocks=("step",), sources=("gravity",))
    assert find_cues(items) == FieldCues(fixed=("[1]",), clocks=("[2]",), sources=("[3]",))


def test_fields_of_records(walks: list[NDArray[np.float64]]) -> None:
    states = [
        RecordStates(
            {
                "achieved_goal": walk[:, :1],
                "desired_goal": walk[:, 1:2],
                "step": walk[:, 2].astype(np.int64),
                "task": np.full(len(walk), b"reach"),
                "world": walk[:, 3:],
            }
        )
        for walk in walks
    ]
    found = find_cues(labelled(states, 3, kind="record"))
    assert found == FieldCues(fixed=("desired_goal[0]",), clocks=("step",), sources=("world[0]",))


def test_states_without_named_numbers_have_no_cues() -> None:
    assert find_cues([]) == FieldCues()
    texts = [RecordStates({"task": np.full(4, word)}) for word in (b"push", b"pull")]
    assert find_cues(labelled(texts, 1, kind="record")) == FieldCues()
    grids = [np.full((4, 3, 3, 3), number, np.uint8) for number in range(2)]
    assert find_cues(labelled(grids, 1, kind="grid")) == FieldCues()


def test_constants_up_to_rounding_are_constants() -> None:
    """Each value errs by a few roundings; goals near zero by as much as other goals."""
    rng = np.random.default_rng(0)
    eps = np.finfo(np.float32).eps
    episodes = [np.column_stack([goal + 2 * eps * rng.uniform(-1, 1, 30)]) for goal in (1.0, -0.7, 1e-9, 0.4)]
    assert fixed_fields(episodes, [True] * 4).tolist() == [True]
    assert fixed_fields([*episodes, np.linspace(0.5, 0.5001, 30)[:, None]], [True] * 5).tolist() == [False]


def test_an_outlier_does_not_make_others_constant() -> None:
    rng = np.random.default_rng(0)
    episodes = [np.full((5, 1), 1e9), *(rng.normal(size=(5, 1)) for _ in range(3))]
    assert fixed_fields(episodes, [True] * 4).tolist() == [False]


def test_episodes_of_one_state_say_nothing() -> None:
    """In them every field is constant, so without longer experts and negatives nothing is found."""
    short, long = [np.array([[1.0, 2.0]])] * 2, [np.array([[0.0, 2.0]] * 3)] * 2
    assert fixed_fields(short, [True, False]).tolist() == [False, False]
    assert fixed_fields([*short, *long], [True, True, False, False]).tolist() == [False, False]
    assert source_fields([*short, *long], [True, True, False, False]).tolist() == [False, False]
    assert fixed_fields([*short, *long], [True, False, True, False]).tolist() == [True, True]
    assert clock_fields(short).tolist() == [False, False]


@pytest.mark.parametrize(
    ("columns", "is_clock"),
    [
        ([np.arange(5), np.arange(9)], True),
        ([np.arange(500) * np.float32(0.02), np.arange(90) * np.float32(0.02)], True),
        ([np.float32(0.05).repeat(3000).cumsum(), np.float32(0.05).repeat(40).cumsum()], True),
        ([1.7e9 + np.arange(5) * 0.05, 1.7e9 + 77 + np.arange(9) * 0.05], True),
        ([np.linspace(0, 1, 5), np.linspace(0, 1, 9)], True),
        ([50 - np.arange(5), 50 - np.arange(9)], True),
        ([np.arange(5), 50 - np.arange(9)], False),
        ([np.arange(5), np.full(9, 3.0)], False),
        ([np.full(5, 3.0), np.full(9, 3.0)], False),
        ([np.arange(5), np.arange(9) ** 1.1], False),
        ([np.arange(2), np.arange(2)], False),
    ],
    ids=[
        *("counter", "seconds", "added seconds", "timestamp", "share", "left"),
        *("both ways", "stops", "constant", "faster", "two states"),
    ],
)
def test_clocks(columns: list[NDArray[np.float64]], is_clock: bool) -> None:
    assert clock_fields([np.asarray(column, np.float64)[:, None] for column in columns]).tolist() == [is_clock]


def test_a_constant_of_a_side_needs_a_second_episode() -> None:
    """One expert and one negative may have different goals in one simulator."""
    one, other = np.full((4, 1), 1.0), np.full((4, 1), 2.0)
    assert source_fields([one, other], [True, False]).tolist() == [False]
    assert source_fields([one, other, other], [True, False, False]).tolist() == [True]
    assert source_fields([one, other, one], [True, False, False]).tolist() == [False]
    assert source_fields([one, other, other], [True, True, True]).tolist() == [False]
    assert source_fields([one, one, one], [True, False, False]).tolist() == [False]
    assert find_cues(labelled([one, other], 1)) == FieldCues(fixed=("[0]",))


def test_the_label_rule_has_no_influence(walks: list[NDArray[np.float64]]) -> None:
    assert find_cues(labelled(walks, 3, "all"), NAMES) == find_cues(labelled(walks, 3, "last"), NAMES)


def test_a_thing_that_moves_evenly_is_no_clock() -> None:
    rng = np.random.default_rng(0)
    moves = [np.linspace(rng.uniform(0, 0.3), 1, int(rng.integers(8, 15)))[:, None] for _ in range(10)]
    assert clock_fields(moves).tolist() == [False]


@pytest.mark.parametrize("count", [0, 1, BLOCK, 2 * BLOCK + 1])
def test_columns_are_read_in_blocks(count: int) -> None:
    episodes = [np.random.default_rng(length).normal(size=(length, 200)) for length in (1, 4)]
    chosen = np.random.default_rng(0).permutation(200)[:count]
    found = list(columns(episodes, chosen))
    assert [number for number, _ in found] == chosen.tolist()
    for number, values in found:
        for episode, own in zip(episodes, values, strict=True):
            np.testing.assert_array_equal(own, episode[:, number])
