"""Quantities: what they are computed from, how they are found, and that a program computes the same."""

from __future__ import annotations

import ast

import numpy as np
import pytest

from grace_irl.states.record import RecordStates
from grace_irl.synthesis.vector.numbers import RecordNumbers, VectorNumbers
from grace_irl.synthesis.vector.quantities import FUNCTIONS, Form, Quantity, quantities

NAMED = ("hand_x", "hand_y", "goal_x", "goal_y", "turn_cos", "turn_sin", "want_cos", "want_sin")


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
    return {each.name(numbers): each for each in quantities(numbers, episodes, np.stack([e[-1] for e in episodes]))}


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
    listed = quantities(numbers, episodes, np.stack([e[-1] for e in episodes]))
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
