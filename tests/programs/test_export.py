"""Exported rewards: self-contained, with provenance and calibration."""

from __future__ import annotations

import ast
from typing import Any

import pytest

from grace_irl.programs.export import calibration_of, export_source

PROGRAM = '''"""Rewards the door.

Second paragraph.
"""

from __future__ import annotations

import math


class Reward:
    def __init__(self, extra_info=None):
        self.extra_info = extra_info

    def reward_fn(self, state):
        return math.exp(-state[0])
'''


def exported(source: str = PROGRAM, facts: tuple[tuple[str, str], ...] = (("fitness", "-0.5"),)) -> str:
    return export_source(source, title="A title.", facts=facts, scale=2.5, offset=-1.0)


def load(text: str) -> dict[str, Any]:
    space: dict[str, Any] = {}
    exec(compile(text, "reward.py", "exec"), space)
    return space


def test_it_runs_as_the_program_does_and_carries_the_calibration() -> None:
    space = load(exported())
    assert space["Reward"]("").reward_fn([0.0]) == 1.0
    assert (space["SCALE"], space["OFFSET"]) == (2.5, -1.0)
    assert space["discriminator_logit"](2.0) == 2.5 * 2.0 - 1.0
    assert space["discriminator_logit"](2.0, log_pi=-3.0) == 2.5 * 2.0 - 1.0 + 3.0
    assert calibration_of(exported()) == (2.5, -1.0)


def test_the_docstring_holds_provenance_and_the_programs_own_words() -> None:
    said = ast.get_docstring(ast.parse(exported())) or ""
    assert said.startswith("A title.")
    assert "fitness: -0.5" in said
    assert said.endswith("Rewards the door.\n\nSecond paragraph.")


@pytest.mark.parametrize(
    "head",
    [
        "",
        "# a comment\n",
        "'''One line.'''\n",
        "'''One line.'''; import math\n",
        '"two " "parts"\n',
        "r'''raw \\d'''\n",
        "# a comment\n'''Then a docstring.'''\n# another\n",
        "x = '''no docstring'''\n",
        "f'no docstring'\n",
        "'é ünï'; y = 1\n",
        "\n\n'''Late.'''\n",
    ],
)
def test_any_head_gives_a_module_that_runs(head: str) -> None:
    source = f"{head}class Reward:\n    def reward_fn(self, state):\n        return state[0]\n"
    own = ast.get_docstring(ast.parse(source))
    text = exported(source)
    assert load(text)["Reward"]().reward_fn([7.0]) == 7.0
    said = ast.get_docstring(ast.parse(text)) or ""
    assert own is None or own.replace("\\", "/") in said
    names = {node.id for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Name)}
    assert names <= {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}


def test_facts_cannot_break_out_of_the_docstring() -> None:
    facts = (("demos", 'a """ b \\" \\N{x} \x00 c\nd'), ("quote", 'ends with "'))
    said = ast.get_docstring(ast.parse(exported(facts=facts))) or ""
    assert "ends with '" in said
    assert "\x00" not in said


@pytest.mark.parametrize("line", ["SCALE = 10.0", "def discriminator_logit(x):\n    return x", "OFFSET: float = 3.0"])
def test_a_program_that_uses_our_names_keeps_them(line: str) -> None:
    use = "SCALE" if "SCALE" in line else "OFFSET" if "OFFSET" in line else "discriminator_logit(10.0)"
    source = f"{line}\n\n\nclass Reward:\n    def reward_fn(self, state):\n        return state[0] * {use}\n"
    space = load(exported(source))
    expected = load(source)["Reward"]().reward_fn([2.0])
    assert space["Reward"]().reward_fn([2.0]) == expected
    assert space["CALIBRATION_SCALE"] == 2.5
    assert space["calibrated_logit"](1.0) == 1.5
    assert calibration_of(exported(source)) == (2.5, -1.0)


def test_exporting_an_exported_file_keeps_its_own_calibration_apart() -> None:
    again = export_source(exported(), title="Again.", facts=(), scale=7.0, offset=0.0)
    space = load(again)
    assert (space["SCALE"], space["CALIBRATION_SCALE"]) == (2.5, 7.0)
    assert calibration_of(again) == (7.0, 0.0)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (PROGRAM, None),
        ("SCALE = 1.0\n", None),
        ("SCALE = 1e-06\nOFFSET = -2.5e+3\n", (1e-6, -2500.0)),
        ("SCALE = -1.0\nOFFSET = 0.0\n", None),
        ("SCALE = 1.e.5\nOFFSET = 0.0\n", None),
        ("SCALE = 1e999\nOFFSET = 0.0\n", None),
        ("OFFSET = 3\nSCALE = 2\nOFFSET = 1.0\nx = 1\n", (2.0, 1.0)),
        ("SCALE = __import__('os')\nOFFSET = 0.0\n", None),
        ("    SCALE = 1.0\n    OFFSET = 0.0\n", None),
    ],
)
def test_calibration_is_read_without_running_anything(text: str, expected: tuple[float, float] | None) -> None:
    assert calibration_of(text) == expected


def test_carriage_returns_are_harmless() -> None:
    assert load(exported(PROGRAM.replace("\n", "\r\n")))["Reward"]("").reward_fn([0.0]) == 1.0
