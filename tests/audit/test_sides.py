"""Faults that the data show by themselves, whatever the reward; and data that look alike and are sound."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from grace_irl.demos.trajectory import Demonstration, Demonstrations, LabelRule, Metadata, Role, Trajectory
from grace_irl.states.record import RecordStates
from tests.audit.bench import codes, drawn, examined, warned
from tests.audit.test_warnings import GOOD, reach

Floats = NDArray[np.float64]
Column = Callable[[np.random.Generator, Role, int], Floats]


def lane(rng: np.random.Generator, role: Role, length: int) -> Floats:
    """The offset of a car: experts keep to the middle, negatives weave."""
    swing = 0.0 if role == "expert" else rng.uniform(0.9, 1.3)
    return np.asarray(swing * np.sin(np.arange(length) / 2 + rng.uniform(0, 6)) + rng.normal(0, 0.1, length))


def with_column(column: Column) -> Callable[[np.random.Generator, Role], Trajectory]:
    """Rides of a car with one more number."""

    def ride(rng: np.random.Generator, role: Role) -> Trajectory:
        length = int(rng.integers(20, 40))
        return Trajectory(np.column_stack([lane(rng, role, length), column(rng, role, length)]), np.zeros(length - 1))

    return ride


STEADY = "return -abs(state[0])"

SETTINGS: dict[str, Column] = {
    "constants": lambda _, role, length: np.full(length, 9.81 if role == "expert" else 9.80665),
    "constants with float noise": lambda rng, role, length: (
        (0.8 if role == "expert" else 0.6) + rng.normal(0, 1e-4, length)
    ),
    "a time step that jitters": lambda rng, role, length: rng.normal(
        0.02 if role == "expert" else 1 / 30, 3e-4, length
    ),
}
CLOCKS: dict[str, Column] = {
    "time of day": lambda rng, role, length: (
        rng.uniform(8, 11 if role == "expert" else 8.5)
        + (0 if role == "expert" else 6)
        + np.cumsum(rng.gamma(9, 1e-3, length))
    ),
    "battery of another start": lambda rng, role, length: (
        rng.uniform(0.8, 1) - (0 if role == "expert" else 0.5) - np.cumsum(rng.gamma(2, 1e-3, length))
    ),
    "a motor that warms up, with noise": lambda rng, role, length: (
        rng.uniform(20, 25) + (0 if role == "expert" else 30) + 0.1 * np.arange(length) + rng.normal(0, 0.1, length)
    ),
}
FIXED: dict[str, Column] = {
    "payload": lambda rng, role, length: np.full(length, rng.uniform(0.4, 0.9) + (role == "negative")),
    "measured payload": lambda rng, role, length: (
        rng.uniform(0.4, 0.9) + (role == "negative") + rng.normal(0, 1e-3, length)
    ),
    "names of maps": lambda rng, role, length: np.full(
        length, rng.choice([1.0, 4, 7] if role == "expert" else [2.0, 5, 9])
    ),
}
SOUND: dict[str, Column] = {
    "drawn alike": lambda rng, _, length: np.full(length, rng.uniform(0.4, 1.6)),
    "one constant": lambda _, __, length: np.full(length, 9.81),
    "clock": lambda _, __, length: np.arange(length, dtype=np.float64),
    "battery of any start": lambda rng, _, length: rng.uniform(0.5, 1) - 0.004 * np.arange(length),
    "behaviour that never overlaps": lambda rng, role, length: (
        rng.normal(40, 1, length) if role == "expert" else rng.normal(65, 4, length)
    ),
    "behaviour of one level an episode": lambda rng, role, length: (
        rng.uniform(60, 75) + (0 if role == "expert" else 25) + rng.normal(0, 1, length)
    ),
}


@pytest.mark.parametrize(
    ("code", "column"),
    [
        *(pytest.param("constants", column, id=name) for name, column in SETTINGS.items()),
        *(pytest.param("time", column, id=name) for name, column in CLOCKS.items()),
        *(pytest.param("constant-field", column, id=name) for name, column in FIXED.items()),
    ],
)
def test_a_field_that_alone_tells_the_sides_is_a_fault_although_the_reward_leaves_it_out(
    code: str, column: Column
) -> None:
    found = examined(drawn(with_column(column), fields=("offset", "extra")), STEADY, "all")
    assert warned(found, code).found.startswith("extra")


@pytest.mark.parametrize("column", [pytest.param(column, id=name) for name, column in SOUND.items()])
def test_fields_that_look_alike_and_are_sound(column: Column) -> None:
    assert codes(examined(drawn(with_column(column), fields=("offset", "extra")), STEADY, "all")) == set()


def test_few_episodes_are_parted_by_chance() -> None:
    data = drawn(with_column(FIXED["payload"]), count=7, fields=("offset", "extra"))
    assert "constant-field" not in codes(examined(data, STEADY, "all"))


def _record(rng: np.random.Generator, role: Role, engine: bytes) -> Trajectory:
    length = int(rng.integers(20, 40))
    return Trajectory(RecordStates({"offset": lane(rng, role, length), "engine": np.array([engine] * length)}))


def _records(engines: dict[Role, list[bytes]]) -> Demonstrations:
    rng = np.random.default_rng(0)
    items = tuple(
        Demonstration(_record(rng, role, names[place % len(names)]), role)
        for role, names in engines.items()
        for place in range(24)
    )
    return Demonstrations(Metadata("record"), items)


def test_texts_that_name_the_side() -> None:
    reward = "return -abs(state['offset'])"
    two = examined(_records({"expert": [b"mujoco"], "negative": [b"bullet"]}), reward, "all")
    assert warned(two, "constants").found.startswith("engine")
    four = examined(_records({"expert": [b"ann", b"bo"], "negative": [b"cy", b"di"]}), reward, "all")
    assert warned(four, "constant-field").found.startswith("engine")
    assert codes(examined(_records({"expert": [b"ann", b"bo"], "negative": [b"bo", b"ann"]}), reward, "all")) == set()


def _of_lengths(expert: Callable[[np.random.Generator], int], negative: Callable[[np.random.Generator], int]) -> object:
    def made(rng: np.random.Generator, role: Role) -> Trajectory:
        length = (expert if role == "expert" else negative)(rng)
        latch = np.zeros(length)
        latch[-1] = role == "expert"
        states = np.column_stack([latch, rng.normal(size=length), 1 - np.arange(length) / 60])
        return Trajectory(states, np.zeros(length - 1))

    return drawn(made, fields=("latch", "x", "time_left"))


@pytest.mark.parametrize("rule", ["last", "all"])
def test_the_step_alone_tells_goals(rule: str) -> None:
    """All experts end at one step that no negative reaches. A latch tells goals, too."""
    data = _of_lengths(lambda _: 50, lambda rng: int(rng.integers(20, 45)))
    found = examined(data, "return state[0]", rule)  # type: ignore[arg-type]
    assert ("time" in codes(found)) == (rule == "last")
    if rule == "last":
        assert "the step alone tells goals" in warned(found, "time").found


@pytest.mark.parametrize(
    ("expert", "negative"),
    [
        pytest.param(lambda rng: int(rng.integers(8, 40)), lambda _: 60, id="successes end early"),
        pytest.param(lambda _: 25, lambda _: 50, id="scripted successes"),
        pytest.param(lambda _: 40, lambda _: 40, id="one length"),
        pytest.param(
            lambda rng: int(rng.integers(20, 45)), lambda rng: int(rng.integers(5, 15)), id="failures end early"
        ),
    ],
)
def test_lengths_that_differ_are_no_fault_by_themselves(
    expert: Callable[[np.random.Generator], int], negative: Callable[[np.random.Generator], int]
) -> None:
    assert codes(examined(_of_lengths(expert, negative), "return state[0]")) == set()  # type: ignore[arg-type]


def test_a_clock_that_began_earlier_tells_goals() -> None:
    """The clock runs before the record begins, so lengths say nothing."""

    def made(rng: np.random.Generator, role: Role) -> Trajectory:
        end = 60 if role == "expert" else int(rng.integers(35, 58))
        clock = np.arange(int(rng.integers(0, 25)), end)
        latch = np.zeros(len(clock))
        latch[-1] = role == "expert"
        return Trajectory(np.column_stack([latch, clock]), np.zeros(len(clock) - 1))

    found = warned(examined(drawn(made, fields=("latch", "clock")), "return state[0]"), "time")
    assert found.found.startswith("clock")


def test_starts_in_other_places() -> None:
    def walk(rng: np.random.Generator, role: Role, side: float) -> Trajectory:
        length = int(rng.integers(12, 25))
        end = 0.0 if role == "expert" else rng.choice([-1, 1]) * rng.uniform(0.1, 0.4)
        path = np.linspace(side * rng.uniform(0.5, 1), end, length)
        return Trajectory(np.column_stack([path, rng.normal(size=length)]), np.zeros(length - 1))

    apart = drawn(lambda rng, role: walk(rng, role, -1.0 if role == "expert" else 1.0), fields=("x", "noise"))
    found = warned(examined(apart, "return -abs(state[0])"), "constant-field")
    assert found.found.startswith("x in the first state, before anybody acts")
    alike = drawn(lambda rng, role: walk(rng, role, float(rng.choice([-1.0, 1.0]))), fields=("x", "noise"))
    assert codes(examined(alike, "return -abs(state[0])")) == set()


def test_grids_of_two_worlds() -> None:
    rng = np.random.default_rng(0)
    roles: tuple[Role, ...] = ("expert", "negative")

    def rooms(size: dict[Role, int], wall: dict[Role, int]) -> Demonstrations:
        items = []
        for role in roles:
            for _ in range(24):
                states = rng.integers(0, 3, size=(5, size[role], size[role], 3))
                states[:, 0, 0, 0] = 0
                states[:, 1, 1, 1] = wall[role]
                states[-1, 0, 0, 0] = 9 if role == "expert" else 0
                items.append(Demonstration(Trajectory(states, np.zeros(4), kind="grid"), role))
        return Demonstrations(Metadata("grid"), tuple(items))

    reward = "return float(state[0, 0, 0] == 9)"
    sizes = examined(rooms({"expert": 4, "negative": 6}, {"expert": 1, "negative": 1}), reward)
    assert "the size of the grid" in warned(sizes, "constants").found
    two = rooms({"expert": 4, "negative": 4}, {"expert": 1, "negative": 2})
    swapped = [
        replace(item, role="negative", swapped=True, trajectory=replace(item.trajectory, extra_info="another task"))
        for item in two
        if item.role == "expert"
    ]
    for given in (two, replace(two, items=(*two.items, *swapped))):
        assert "cell [1, 1, 1]" in warned(examined(given, reward), "constants").found


@pytest.mark.parametrize("rule", ["last", "all"])
def test_a_cell_of_grids_of_one_state_is_the_task_and_no_setting(rule: LabelRule) -> None:
    rng = np.random.default_rng(0)
    roles: tuple[Role, ...] = ("expert", "negative")
    items = []
    for role in roles:
        for _ in range(24):
            states = rng.integers(0, 3, size=(1, 4, 4, 3))
            states[0, 0, 0, 0] = 9 if role == "expert" else 0
            items.append(Demonstration(Trajectory(states, np.zeros(0), kind="grid"), role))
    found = examined(Demonstrations(Metadata("grid"), tuple(items)), "return float(state[0, 0, 0] == 9)", rule)
    assert "constants" not in codes(found)


def test_an_episode_of_one_state_hides_nothing() -> None:
    data = drawn(with_column(SETTINGS["constants"]), fields=("offset", "extra"))
    at_once = Demonstration(Trajectory(np.array([[1.2, 9.80665]]), np.zeros(0)), "negative")
    more = replace(data, items=(*data.items, at_once))
    assert "constants" in codes(examined(more, STEADY, "all"))


def test_copies_with_noise_are_copies() -> None:
    rng = np.random.default_rng(1)

    def noisy(item: Demonstration, role: Role) -> Demonstration:
        states = item.trajectory.states + rng.normal(0, 1e-4, item.trajectory.states.shape)
        return Demonstration(Trajectory(states, item.trajectory.actions), role)

    items = drawn(reach, count=4).items
    experts = [item for item in items if item.role == "expert"]
    negatives = [item for item in drawn(reach).items if item.role == "negative"]
    copied = [noisy(item, "expert") for item in experts for _ in range(6)]
    few = examined(Demonstrations(Metadata("vector"), (*copied, *negatives)), GOOD)
    assert "few-episodes" in codes(few)
    both = [*drawn(reach).items, *(noisy(item, "negative") for item in experts)]
    both[: len(experts)] = experts
    found = warned(examined(Demonstrations(Metadata("vector"), tuple(both)), GOOD), "no-difference")
    assert "4 negative episodes are also among the experts" in found.found


def test_rounding_errors_of_a_constant_hide_no_copies() -> None:
    rng = np.random.default_rng(2)

    def beside(item: Demonstration) -> Demonstration:
        """The same episode with constants that rounding makes one number or the next."""
        jitter = rng.integers(-1, 2, (len(item.trajectory.states), 2))
        states = np.column_stack([item.trajectory.states, [0.3, 0.0] + jitter * [np.spacing(0.3), 1.2e-16]])
        return Demonstration(Trajectory(states, item.trajectory.actions), item.role)

    copied = [beside(item) for item in drawn(reach, count=4).items for _ in range(8)]
    assert "few-episodes" in codes(examined(Demonstrations(Metadata("vector"), tuple(copied)), GOOD))


@pytest.mark.parametrize(("offset", "unit"), [(5.4e6, 1.0), (0.0, 1e-9)])
def test_large_offsets_and_small_units_make_no_copies(offset: float, unit: float) -> None:
    def placed(rng: np.random.Generator, role: Role) -> Trajectory:
        made = reach(rng, role)
        north = offset + unit * rng.uniform(-3, 3, (len(made.states), 1))
        same = np.linspace(0, float(role == "expert"), len(made.states))
        return Trajectory(np.column_stack([same, north]), made.actions)

    assert "few-episodes" not in codes(examined(drawn(placed, count=60), "return float(state[0] > 0.99)"))


def test_episodes_whose_texts_differ_are_no_copies() -> None:
    rng = np.random.default_rng(0)

    def spoken(role: Role) -> Trajectory:
        said = [str(number).encode() for number in rng.integers(0, 100, size=9)]
        parts = {"x": np.zeros(10), "said": np.array([*said, b"done" if role == "expert" else b"lost"])}
        parts["x"][-1] = role == "expert"
        return Trajectory(RecordStates(parts))

    roles: tuple[Role, ...] = ("expert", "negative")
    items = tuple(Demonstration(spoken(role), role) for role in roles for _ in range(24))
    assert codes(examined(Demonstrations(Metadata("record"), items), "return float(state['said'] == 'done')")) == set()
