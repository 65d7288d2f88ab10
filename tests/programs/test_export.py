"""Exported rewards: self-contained, with provenance and calibration."""

from __future__ import annotations

import ast
from typing import Any

import pytest

from grace_irl.programs.export import calibration_of, export_source, program_of, threshold_of

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


def exported(
    source: str = PROGRAM, facts: tuple[tuple[str, str], ...] = (("fitness", "-0.5"),), threshold: float | None = 0.25
) -> str:
    return export_source(source, title="A title.", facts=facts, scale=2.5, offset=-1.0, threshold=threshold)


def load(text: str) -> dict[str, Any]:
    space: dict[str, Any] = {}
    exec(compile(text, "reward.py", "exec"), space)
    return space


def test_it_runs_as_the_program_does_and_carries_the_calibration() -> None:
    space = load(exported())
    assert space["Reward"]("").reward_fn([0.0]) == 1.0
    assert (space["SCALE"], space["OFFSET"], space["THRESHOLD"]) == (2.5, -1.0, 0.25)
    assert space["discriminator_logit"](2.0) == 2.5 * 2.0 - 1.0
    assert space["discriminator_logit"](2.0, log_pi=-3.0) == 2.5 * 2.0 - 1.0 + 3.0
    assert calibration_of(exported()) == (2.5, -1.0)
    assert threshold_of(exported()) == 0.25


def test_a_file_of_an_older_run_carries_no_threshold() -> None:
    text = exported(threshold=None)
    assert "THRESHOLD" not in text
    assert load(text)["discriminator_logit"](2.0) == 2.5 * 2.0 - 1.0
    assert calibration_of(text) == (2.5, -1.0)
    assert threshold_of(text) is None
    assert program_of(text) == program_of(exported())


def test_the_program_in_a_file_without_calibration() -> None:
    facts = (("task", "mine/line.toml"), ("score", "0.5"), ("program", "4baed41a26530661 (candidate 0)"))
    text = export_source(PROGRAM, title="A reward designed for a task by grace-irl 0.1.0.", facts=facts)
    assert calibration_of(text) is None
    assert program_of(text) == program_of(exported())
    other = export_source(PROGRAM, title="A reward by grace-irl 0.1.0.", facts=facts[:2])
    assert program_of(other) == other  # no id: nothing that this program wrote


@pytest.mark.parametrize("threshold", [0.1 + 0.2, -1e-300, 5e-324, -1.7976931348623157e308, 0.0])
def test_a_threshold_is_exact(threshold: float) -> None:
    assert threshold_of(exported(threshold=threshold)) == threshold


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


@pytest.mark.parametrize(
    "line",
    ["SCALE = 10.0", "def discriminator_logit(x):\n    return x", "OFFSET: float = 3.0", "THRESHOLD = 2.0"],
)
def test_a_program_that_uses_our_names_keeps_them(line: str) -> None:
    use = next((name for name in ("SCALE", "OFFSET", "THRESHOLD") if name in line), "discriminator_logit(10.0)")
    source = f"{line}\n\n\nclass Reward:\n    def reward_fn(self, state):\n        return state[0] * {use}\n"
    space = load(exported(source))
    expected = load(source)["Reward"]().reward_fn([2.0])
    assert space["Reward"]().reward_fn([2.0]) == expected
    assert space["CALIBRATION_SCALE"] == 2.5
    assert space["calibrated_logit"](1.0) == 1.5
    assert space["CALIBRATION_THRESHOLD"] == 0.25
    assert calibration_of(exported(source)) == (2.5, -1.0)
    assert threshold_of(exported(source)) == 0.25
    assert threshold_of(exported(source, threshold=None)) is None


def test_exporting_an_exported_file_keeps_its_own_calibration_apart() -> None:
    again = export_source(exported(), title="Again.", facts=(), scale=7.0, offset=0.0)
    space = load(again)
    assert (space["SCALE"], space["CALIBRATION_SCALE"]) == (2.5, 7.0)
    assert calibration_of(again) == (7.0, 0.0)
    assert threshold_of(again) is None  # its own, and not that of the file in it


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


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (PROGRAM, None),
        ("THRESHOLD = 0.5\n", None),  # a constant of the program
        ("SCALE = 1.0\nOFFSET = 0.0\nTHRESHOLD = -0.5\n", -0.5),
        ("SCALE = 1.0\nOFFSET = 0.0\n# why\n\nTHRESHOLD = 0.5\n", 0.5),
        ("SCALE = 1.0\nOFFSET = 0.0\nx = 1\nTHRESHOLD = 0.5\n", None),
        ("THRESHOLD = 0.5\nSCALE = 1.0\nOFFSET = 0.0\n", None),
        ("THRESHOLD = 0.5\nSCALE = 1.0\nOFFSET = 0.0\nTHRESHOLD = 1e999\n", None),
        ("CALIBRATION_SCALE = 1.0\nCALIBRATION_OFFSET = 0.0\nTHRESHOLD = 0.5\n", None),
        ("CALIBRATION_SCALE = 1.0\nCALIBRATION_OFFSET = 0.0\nCALIBRATION_THRESHOLD = 0.5\n", 0.5),
        ("SCALE = 0.0\nOFFSET = 0.0\nTHRESHOLD = 0.5\n", None),
    ],
)
def test_the_threshold_of_a_file_that_was_written_by_hand(text: str, expected: float | None) -> None:
    assert threshold_of(text) == expected


def test_carriage_returns_are_harmless() -> None:
    assert load(exported(PROGRAM.replace("\n", "\r\n")))["Reward"]("").reward_fn([0.0]) == 1.0
