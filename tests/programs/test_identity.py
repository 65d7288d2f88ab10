"""Identity of programs: what changes it and what does not."""

from __future__ import annotations

import ast
import json
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grace_irl.programs.program import identify, text_id
from tests.frame.tree import ROOT
from tests.programs.recorded_ids import RECORDED

SOURCE = '''
"""A module."""
import numpy as np


class Reward:
    """A class."""

    LIMIT = 1_000

    def __init__(self, extra_info=None):
        """A constructor."""
        self.words = (extra_info or "").split()

    def reward_fn(self, state):
        # the distance
        def near(x):
            return x < 'a'.count("a")
        return float(near(state[0])) + -0.5
'''


def of(source: str) -> str:
    return identify(ast.parse(source)).id


def test_layout_comments_and_docstrings_do_not_count() -> None:
    tree = ast.parse(SOURCE)
    bare = ast.unparse(tree).replace('"""A module."""', "").replace('"""A class."""', "'''Other words.'''")
    bare = bare.replace('"""A constructor."""', "# none").replace("1000", "1_0_0_0")
    assert of(bare) == of(SOURCE)
    assert identify(ast.parse(bare)) == identify(tree)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("x = 1", "x = 2"),
        ("x = 1", "y = 1"),
        ("x = 1", "x = 1.0"),
        ("x = 1", "x = True"),
        ("x = 0.0", "x = -0.0"),
        ("x = 'a'", "x = b'a'"),
        ("x = a + b", "x = b + a"),
        ("x = a - b", "x = a + b"),
        ("x = a < b", "x = a <= b"),
        ("f(a, b)", "f([a, b])"),
        ("f(*a)", "f(a)"),
        ("def f(x): return x", "async def f(x): return x"),
        ("def f(x, y=1): pass", "def f(x, *, y=1): pass"),
        ("def f(a, b, /): pass", "def f(a, b): pass"),
        ("x, y = 1, 2", "x, y = (1, 2), 3"),
        ("if a:\n  b\nelse:\n  c", "if a:\n  b\n  c"),
        ("x = None", "x = 'None'"),
        ("x: int = 1", "x = 1"),
        ("'a'\nx = 'b'", "x = 'a'"),
        ("import a as b", "import a"),
        ("from . import a", "from .. import a"),
        ("f'{x}'", "f'{x!r}'"),
        ("f'{x:}'", "f'{x}'"),
        ("f'{x}'", "f'{x} '"),
        ("f'{x:>{y}}'", "f'{x:{y}}'"),
        ("f'a{x}b'", "f'ab{x}'"),
        ("f''", "''"),
        ("x = '\u00e9'", "x = '\\\\xe9'"),
    ],
)
def test_what_means_something_else_is_something_else(one: str, other: str) -> None:
    assert of(one) != of(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("x = 'a'", 'x = "a"'),
        ("x = u'a'", "x = 'a'"),
        ("x = (a)", "x = a"),
        ("x = 0x10", "x = 16"),
        ("x = 1;y = 2", "x = 1\ny = 2"),
        ("def f():\n  'doc'", "def f():\n  pass"),
        ("f(a,\n  b)", "f(a, b)"),
        ("'doc'\nx = 1", "x = 1"),
        ("x = 'a' 'b'", "x = 'ab'"),
        ("f'a' f'{x}' 'b'", "f'a{x}b'"),
        ("x = '\u00e9'", "x = '\\u00e9'"),
    ],
)
def test_spelling_does_not_count(one: str, other: str) -> None:
    assert of(one) == of(other)


def test_functions_are_told_apart_by_scope() -> None:
    found = identify(ast.parse(SOURCE)).functions
    assert [(each.name, each.within) for each in found] == [
        ("Reward", "module"),
        ("Reward.__init__", "class"),
        ("Reward.reward_fn", "class"),
        ("Reward.reward_fn.near", "function"),
    ]
    assert len({each.digest for each in found}) == 4


def test_lines_of_functions() -> None:
    source = "import a\n\n@a\n@a.b(\n  1)\ndef f(x):\n  return x\n\n\nclass C:\n\n  def g(self): pass\n"
    found = {each.name: (each.first, each.last) for each in identify(ast.parse(source)).functions}
    assert found == {"f": (3, 7), "C": (10, 12), "C.g": (12, 12)}


@pytest.mark.parametrize(
    ("source", "calls"),
    [
        ("def f(): pass\nf()\nf(f())", {"f": 3}),
        ("def f(): f()\ndef g(): f\nf.g()\nx.f()", {"f": 1, "g": 0}),
        (
            "class C:\n def f(self): self.f()\n def g(self): self.f(); f(); C.f(self); cls.g()",
            {"C": 0, "C.f": 3, "C.g": 1},
        ),
        (
            "def f(): pass\nclass C:\n def f(self): f()",
            {"f": 1, "C": 0, "C.f": 0},
        ),  # not C.f: a class's body is no scope
        (
            "class B:\n def f(self): 0\nclass C(B):\n def g(self): self.f(); super().f()",
            {"B": 0, "B.f": 2, "C": 0, "C.g": 0},
        ),
        ("def f():\n def g(): 0\n g()\ndef g(): 0\ng()", {"f": 0, "f.g": 1, "g": 1}),
        ("class C: 0\nC()\nC().f()", {"C": 2}),
    ],
)
def test_calls_by_name(source: str, calls: dict[str, int]) -> None:
    assert {each.name: each.calls for each in identify(ast.parse(source)).functions} == calls


def test_a_helper_keeps_its_digest_wherever_it_stands() -> None:
    helper = "def near(x):\n    return x < 1\n"
    first = identify(ast.parse(helper + "y = 1"))
    second = identify(ast.parse("z = 2\n\n" + helper.replace("x < 1", "x < 1  # close") + "w = 3"))
    assert first.id != second.id
    assert first.functions == second.functions


@given(st.text(max_size=50))
def test_text_ids(text: str) -> None:
    assert len(text_id(text)) == 16
    assert text_id(text) != text_id(text + " ")


def test_constants_of_every_kind_have_an_identity() -> None:
    values = ["1", "1.5", "1j", "'a'", "b'a'", "True", "None", "...", "'\\ud800'"]
    assert len({of(f"x = {value}") for value in values}) == len(values)


@pytest.mark.parametrize("name", RECORDED)
def test_ids_are_those_that_runs_have_recorded(name: str) -> None:
    source, expected = RECORDED[name]
    assert of(source) == expected


@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13", "3.14", "3.15"])
def test_every_python_gives_the_same_ids(version: str) -> None:
    """Python's parsers write different trees of one source: fields that came later, empty texts in f-strings."""
    python = other_python(version)
    if python is None:
        pytest.skip(f"no Python {version} here")
    code = (
        "import ast, json, sys\nfrom grace_irl.programs.program import identify\n"
        "print(json.dumps([identify(ast.parse(source)).id for source in json.load(sys.stdin)]))"
    )
    sources = [source for source, _ in RECORDED.values()]
    done = subprocess.run(
        [python, "-W", "ignore", "-c", code], input=json.dumps(sources), capture_output=True, text=True, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [expected for _, expected in RECORDED.values()]


def other_python(version: str) -> str | None:
    """An interpreter of this version, on the path or where pyenv keeps them, that works."""
    kept = sorted((Path.home() / ".pyenv" / "versions").glob(f"{version}.*/bin/python{version}"))
    for python in (shutil.which(f"python{version}"), *map(str, kept)):
        if python is not None:
            done = subprocess.run([python, "-c", "import sys; print(sys.version)"], capture_output=True, text=True)
            if done.returncode == 0 and done.stdout.startswith(version):
                return python
    return None
