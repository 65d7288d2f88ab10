"""Names of components on one line of an export: any name comes back, and an unreadable line is an error."""

from __future__ import annotations

import re

import pytest

from grace_irl.errors import InputError
from grace_irl.programs.components import names_of, numbered
from grace_irl.programs.export import export_source, fields_of

PROGRAM = "class Reward:\n    def reward_fn(self, state):\n        return state[0]\n"


@pytest.mark.parametrize(
    "names",
    [
        ('say "hi"', "back\\slash", "it's"),
        ("\x1b[31mred\x1b[0m", "two\nlines", "evil\u202e", "\x00"),
        ("speed, x1 fast", "y"),
        ('"quoted"', '", x1 "', " room ", "", "名前", "a,", "x3 b"),
        ("y, x1", "a, b"),
    ],
)
def test_names_come_back_from_an_export(names: tuple[str, ...]) -> None:
    text = export_source(PROGRAM, title="T.", facts=[("states", "v"), ("fields", numbered(names)), ("method", "m")])
    compile(text, "reward.py", "exec")
    assert fields_of(text) == names


def test_ordinary_names_are_written_as_they_are() -> None:
    assert numbered(("height", "it's, x", "humidity 50%")) == "x0 height, x1 it's, x, x2 humidity 50%"


@pytest.mark.parametrize("text", ["x0 speed, x1 fast, x1 y", "height, speed", "x1 a, x0 b", 'x0 "\\q"', "x0 a, x2 b"])
def test_a_line_that_cannot_be_read_is_an_error(text: str) -> None:
    with pytest.raises(InputError, match=f"{re.escape(repr(text))}, cannot be read; expected"):
        fields_of(f'"""T.\n\nfields: {text.replace(chr(92), chr(92) * 2)}\n"""\n{PROGRAM}')
    assert names_of("") == ()


def test_a_line_of_an_earlier_version_is_read() -> None:
    assert names_of("x0 'a' b, x1 back/slash") == ("'a' b", "back/slash")
    assert names_of('x0 say "hi", x1 b') == ('say "hi"', "b")  # in run.db
