"""Named numbers: what they are called, and that a program reads what the table holds."""

from __future__ import annotations

import ast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grace_irl.synthesis.grid.scene import perceive
from grace_irl.synthesis.vector.numbers import LONGEST, GridNumbers, Numbers, VectorNumbers, stems
from grace_irl.synthesis.vector.quantities import Measures
from tests.synthesis.worlds import AGENT, FLOOR, KINDS, random_play


def read(numbers: Numbers, used: list[int], states: np.ndarray) -> np.ndarray:
    """What a program finds under these names in these states, (N, used)."""
    space: dict[str, object] = {"np": np}
    exec(numbers.table(dict.fromkeys(used, "0.5, 2.0, -1.0, 3.0")), space)
    fields: dict[str, tuple[object, float, float, float, float]] = space["FIELDS"]  # type: ignore[assignment]
    assert list(fields) == [numbers.names[i] for i in used]
    assert {row[1:] for row in fields.values()} <= {(0.5, 2.0, -1.0, 3.0)}
    reader = compile(numbers.reader(dict.fromkeys(used, "")), "reader", "eval")
    return np.array(
        [[eval(reader, {**space, "state": state, "number": row[0]}) for row in fields.values()] for state in states]
    )


@pytest.mark.parametrize(
    ("fields", "width", "names"),
    [
        (["height", "speed"], 2, ["height", "speed"]),
        ([], 2, ["x0", "x1"]),
        (["height"], 3, ["height", "x1", "x2"]),
        (["height", "speed", "more"], 2, ["height", "speed"]),
        (["height", "height"], 2, ["x0", "x1"]),  # which of the two would be meant?
        (["", "  "], 2, ["x0", "x1"]),
        (["x1", ""], 2, ["x0", "x1"]),  # no name may be another's place
        (["x0", "x1"], 2, ["x0", "x1"]),
        (["x1", "x0"], 2, ["x0", "x1"]),
        (["a \n b", "c\td"], 2, ["a b", "c d"]),
        (["nul\0", "\u202eright"], 2, ["nul", "right"]),
        (["class", "a.b[0]"], 2, ["class", "a.b[0]"]),
        (["y" * 200, "y" * 300], 2, ["x0", "x1"]),
        (["y" * 200, "z"], 2, ["y" * LONGEST, "z"]),
    ],
)
def test_names_of_fields(fields: list[str], width: int, names: list[str]) -> None:
    assert list(VectorNumbers.of(fields, width).names) == names


@settings(max_examples=100, derandomize=True)
@given(st.lists(st.text(st.characters(codec=None, exclude_categories=()), max_size=12), max_size=6))
def test_any_names_make_a_program_that_reads_the_numbers(fields: list[str]) -> None:
    numbers = Measures.plain(VectorNumbers.of(fields, 6))
    assert len(set(numbers.names)) == 6
    assert all(name.isprintable() for name in numbers.names)
    states = np.arange(12.0).reshape(2, 6)
    assert (read(numbers, [5, 0, 3], states) == states[:, [5, 0, 3]]).all()
    assert (numbers.values(states) == states).all()


@pytest.mark.parametrize(
    "name",
    [
        *('a": __import__("os").system("true"), "b', "a\\", '"""', "'''", "{x}", "{{", "%s", "\\N{DASH}", "#"),
        "a\u2028b",
    ],
)
def test_hostile_names_stay_names(name: str) -> None:
    source = Measures.plain(VectorNumbers.of([name], 1)).table({0: ("0", "1")})
    tree = ast.parse(source)
    keys = [k.value for node in ast.walk(tree) if isinstance(node, ast.Dict) for k in node.keys]  # type: ignore[union-attr]
    assert keys == [" ".join(name.replace("\u2028", " ").split())]
    assert {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} == {"FIELDS"}


def test_numbers_of_a_grid() -> None:
    """How many cells hold a code, for codes of which there are not always as many."""
    states = np.full((2, 3, 4, 3), FLOOR)
    states[:, 0, 0, 0] = AGENT
    states[1, 0, 0], states[1, 2, 3] = FLOOR, (AGENT, 7, 50)
    states[:, 1, 1, 0] = states[:, 0, 3, 0] = 14
    states[1, 1, 1, 0] = FLOOR[0]
    numbers = GridNumbers.of([states], None)
    assert numbers.names == ("cells with channel 0 = 3", "cells with channel 0 = 14")
    assert numbers.values(states).tolist() == [[9.0, 2.0], [10.0, 1.0]]


def test_steps_to_the_nearest_cell() -> None:
    states = random_play(np.random.default_rng(3), 40).stack()
    agent = perceive([states]).agent
    assert agent is not None
    numbers = GridNumbers.of([states], agent)
    place = numbers.names.index(f"steps to channel 0 = {KINDS['key']}")
    for state, value in zip(states, numbers.values(states)[:, place], strict=True):
        (here,) = np.argwhere(state[..., 0] == AGENT)
        cells = np.argwhere(state[..., 0] == KINDS["key"])
        expected = min((int(np.abs(cell - here).sum()) for cell in cells), default=sum(state.shape[:2]))
        assert value == expected


@pytest.mark.parametrize("seed", range(4))
def test_programs_read_the_numbers_of_grids(seed: int) -> None:
    states = random_play(np.random.default_rng(seed), 30).stack()
    agent = perceive([states]).agent
    numbers = GridNumbers.of([states], agent)
    used = list(range(len(numbers.names)))
    assert len(set(numbers.names)) == len(used)
    assert any(name.startswith("steps") for name in numbers.names)
    assert (read(numbers, used, states) == numbers.values(states)).all()


def test_a_grid_without_the_agent_is_read_all_the_same() -> None:
    states = random_play(np.random.default_rng(0), 30).stack()
    numbers = GridNumbers.of([states], perceive([states]).agent)
    unseen = states[:1].copy()
    unseen[unseen[..., 0] == AGENT] = FLOOR
    used = list(range(len(numbers.names)))
    found = read(numbers, used, unseen)
    assert (found == numbers.values(unseen)).all()  # what a term is fitted to is what its program reads
    values = dict(zip(numbers.names, found[0].tolist(), strict=True))
    assert {v for name, v in values.items() if name.startswith("steps")} == {float(sum(states.shape[1:3]))}


def test_a_grid_that_never_changes_has_no_numbers() -> None:
    states = np.full((3, 4, 4, 3), 5)
    numbers = GridNumbers.of([states], None)
    assert numbers.names == ()
    assert numbers.values(states).shape == (3, 0)


@pytest.mark.parametrize(
    ("names", "groups"),
    [
        (["hand_x", "hand_y", "goal_x", "goal_y"], {"hand": (0, 1), "goal": (2, 3)}),
        (["x_m", "y_m", "berth_x_m", "berth_y_m"], {"xy_m": (0, 1), "berth_xy_m": (2, 3)}),
        (["x of hand", "y of hand", "z of hand"], {"xyz of hand": (0, 1, 2)}),
        (["goal[0]", "goal[1]", "speed"], {"goal": (0, 1)}),
        (["q1", "q2", "q3"], {"q": (0, 1, 2)}),
        (["joint.1", "joint.2", "gripper"], {"joint": (0, 1)}),
        (["x", "y", "speed"], {"xy": (0, 1)}),
        (["height", "axis", "tax"], {}),
        (["hand_x", "speed", "goal_y"], {}),
    ],
)
def test_names_that_differ_in_the_axis_are_a_group(names: list[str], groups: dict[str, tuple[int, ...]]) -> None:
    assert stems(names) == groups


def test_the_axes_of_all_groups_are_in_one_order() -> None:
    found = stems(("hand_y", "hand_x", "goal_x", "goal_y", "arm[10]", "arm[2]"))
    assert found == {"hand": (1, 0), "goal": (2, 3), "arm": (5, 4)}
