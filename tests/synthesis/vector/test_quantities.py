"""Quantities: what they are computed from, how they are found, and that a program computes the same."""

from __future__ import annotations

import ast

import numpy as np
import pytest

from grace_irl.states.record import RecordStates
from grace_irl.synthesis.vector.numbers import RecordNumbers, VectorNumbers
from grace_irl.synthesis.vector.quantities import FUNCTIONS, Form, Quantity, _ratios, distinct, quantities, unique

NAMED = ("hand_x", "hand_y", "goal_x", "goal_y", "turn_cos", "turn_sin", "want_cos", "want_sin")
NONE = np.zeros(8, dtype=bool)


def plane(seed: int, count: int = 6, length: int = 12) -> list[np.ndarray]:
    """Episodes in which a hand comes to a goal, beside a direction and a wanted one, which are constant."""
    rng = np.random.default_rng(seed)
    episodes = []
    for _ in range(count):
        start, goal, angle = rng.normal(size=2), rng.normal(size=2), rng.uniform(-3, 3, 2)
        share = np.linspace(0, 1, length)[:, None]
        hand = start * (1 - share) + goal * share
        directions = [np.cos(angle[0]), np.sin(angle[0]), np.cos(angle[1]), np.sin(angle[1])]
        episodes.append(np.column_stack([hand, np.tile([*goal, *directions], (length, 1))]))
    return episodes


def found(names: tuple[str, ...], seed: int = 0) -> dict[str, Quantity]:
    episodes = plane(seed)
    numbers = VectorNumbers(names)
    return {
        each.name(numbers): each for each in quantities(numbers, episodes, np.stack([e[-1] for e in episodes]), NONE)
    }


def test_names_make_groups() -> None:
    listed = found(NAMED)
    assert listed["distance(hand, goal)"] == Quantity("distance", (0, 1), (2, 3))
    assert listed["norm(hand)"] == Quantity("norm", (0, 1))
    assert listed["turn(turn_cos, turn_sin, want_cos, want_sin)"] == Quantity("turn", (4, 5), (6, 7))


def test_places_are_found_without_names() -> None:
    """Where the two places meet at the end of each episode, both differences are 0."""
    listed = found(tuple(f"x{i}" for i in range(8)))
    assert listed["distance(x0, x1, x2, x3)"] == Quantity("distance", (0, 1), (2, 3))
    assert "angle(x4, x5)" in listed


def test_three_goals_make_no_group() -> None:
    """In few states any difference may be near 0."""
    episodes = plane(0, 3)
    numbers = VectorNumbers(tuple(f"x{i}" for i in range(8)))
    listed = quantities(numbers, episodes, np.stack([e[-1] for e in episodes]), NONE)
    assert not [each for each in listed if each.form in ("distance", "difference")]


@pytest.mark.parametrize(
    ("first", "second", "value"),
    [((1.0, 0.0), (0.0, 1.0), 90.0), ((1.0, 0.0), (-1.0, 0.0), 180.0), ((0.6, 0.8), (0.6, 0.8), 0.0)],
)
def test_the_turn_between_two_directions(first: tuple[float, ...], second: tuple[float, ...], value: float) -> None:
    assert Quantity("turn", (0, 1), (2, 3)).value(np.array([[*first, *second]]))[0] == pytest.approx(value, abs=1e-6)


def test_the_change_since_the_state_before() -> None:
    values = Quantity("change", (0, 1)).value(np.array([[1.0, 1.0], [4.0, 5.0], [4.0, 5.0]]))
    assert values.tolist() == [0.0, 5.0, 0.0]


@pytest.mark.parametrize("kind", ["vector", "record"])
@pytest.mark.parametrize("form", ["number", "difference", "distance", "norm", "angle", "turn"])
def test_programs_compute_the_same(form: Form, kind: str) -> None:
    values = plane(1)[0]
    parts = {"hand": values[:, :2], "goal": values[:, 2:4], "ways": values[:, 4:]}
    states = RecordStates(parts) if kind == "record" else values
    numbers = RecordNumbers.of(states) if isinstance(states, RecordStates) else VectorNumbers(NAMED)
    many = {"number": ((2,), ()), "difference": ((0,), (3,)), "angle": ((4, 5), ()), "turn": ((4, 5), (6, 7))}
    first, second = many.get(form, ((0, 1), (2, 3) if form == "distance" else ()))
    quantity = Quantity(form, first, second)
    space: dict[str, object] = {"np": np}
    exec(FUNCTIONS.get(form, ""), space)
    code = compile(ast.parse(quantity.python(numbers), mode="eval"), "quantity", "eval")
    got = [float(eval(code, {**space, "state": state})) for state in states]
    assert got == pytest.approx(quantity.value(numbers.values(states)).tolist(), abs=1e-9)


def test_numbers_of_several_parts_make_one_vector() -> None:
    """Parts whose names differ in the axis alone are a place, too."""
    states = RecordStates({"hook/x": np.arange(3.0), "hook/y": np.zeros(3), "load/x": np.ones(3), "load/y": np.ones(3)})
    numbers = RecordNumbers.of(states)
    assert numbers.groups() == [(0, 1), (2, 3)]
    assert numbers.group_name((0, 1)) == "hook"
    assert numbers.lookup((0, 1)) == 'np.array([state["hook/x"], state["hook/y"]])'


def test_whole_numbers_are_measured_as_floats() -> None:
    """Programs get uint8 and int64 as they are, whose differences and squares would overflow."""
    at, goal = np.array([[20, 4], [3, 250]], np.uint8), np.array([[250, 4], [3, 3]], np.uint8)
    far = np.array([10**10, 0], np.int64)
    states = RecordStates({"at": at, "goal": goal, "level": np.array([20, 21], np.uint8), "time": far})
    numbers = RecordNumbers.of(states)
    places = {name: i for i, name in enumerate(numbers.names)}
    one, other = (places["at[0]"], places["at[1]"]), (places["goal[0]"], places["goal[1]"])
    listed = [
        Quantity("distance", one, other),
        Quantity("difference", one[:1], other[:1]),
        Quantity("norm", (places["level"], places["time"])),
    ]
    space: dict[str, object] = {"np": np}
    for source in FUNCTIONS.values():
        exec(source, space)
    for quantity in listed:
        got = [float(eval(quantity.python(numbers), {**space, "state": state})) for state in states]
        assert got == pytest.approx(quantity.value(numbers.values(states)).tolist())


def test_rows_of_a_matrix_have_names_of_their_own() -> None:
    states = RecordStates({"m": np.arange(12.0).reshape(2, 2, 3)})
    numbers = RecordNumbers.of(states)
    assert [numbers.group_name((0, 1, 2)), numbers.group_name((3, 4, 5))] == ["m[0, 0:3]", "m[1, 0:3]"]
    assert [numbers.lookup((0, 1)), numbers.lookup((3, 5))] == ['state["m"][0, 0:2]', 'state["m"][1, [0, 2]]']
    assert numbers.part(2) != numbers.part(3)


def test_equal_names_are_told_apart() -> None:
    assert unique(["a", "b", "a", "a", "a (2)"]) == ["a", "b", "a (2)", "a (3)", "a (2) (2)"]
    names = VectorNumbers(("hand", "hand_x", "hand_y"))
    assert names.group_name((1, 2)) != "hand"


def test_equal_quantities_are_listed_once() -> None:
    rows = np.random.default_rng(0).normal(size=(30, 2))
    doubled = np.column_stack([rows, rows[:, 0] + 3.0, -rows[:, 1]])
    listed = distinct([Quantity("number", (i,)) for i in range(4)], doubled)
    assert [each.first for each in listed] == [(0,), (1,)]


def test_numbers_that_are_left_out_are_in_no_quantity() -> None:
    episodes = plane(0)
    left_out = np.arange(8) == 2
    listed = quantities(VectorNumbers(NAMED), episodes, np.stack([e[-1] for e in episodes]), left_out)
    assert listed
    assert not any(2 in (*each.first, *each.second) for each in listed)


def test_many_numbers_that_come_to_rest_make_a_bounded_number_of_quantities() -> None:
    rng = np.random.default_rng(0)
    episodes = [rng.normal(size=(50, 100)) * np.linspace(1.0, 0.02, 50)[:, None] for _ in range(6)]
    numbers = VectorNumbers(tuple(f"x{i}" for i in range(100)))
    listed = quantities(numbers, episodes, np.stack([e[-1] for e in episodes]), np.zeros(100, dtype=bool))
    assert len(listed) < 1_000


def test_a_direction_that_the_first_states_pretend_is_none() -> None:
    """The first states alone may rule a pair out, and never in."""
    angles = np.linspace(0, 9, 2_000)
    rows = np.stack([np.cos(angles), np.sin(angles), np.cos(angles), np.sin(angles)], axis=1)
    rows[-1, 3] += 0.5
    found = quantities(VectorNumbers.of((), 4), [rows], rows[-5:], np.zeros(4, dtype=bool))
    assert [one.first for one in found if one.form == "angle"] == [(0, 1), (1, 2)]


@pytest.mark.parametrize("large", [0.0, 1e7, 1.7e9])
def test_a_large_number_hides_no_difference_of_others(large: float) -> None:
    rng = np.random.default_rng(0)
    goals = rng.normal(size=(40, 1))
    rows = np.column_stack([rng.normal(size=(40, 2)), np.full(40, large)])
    ratios = _ratios(rows, np.column_stack([goals, goals, np.full(40, large)]))
    assert ratios[0, 1] == pytest.approx(0.0, abs=1e-6)
