"""Static checks: what they refuse, with which words and line, and what they let pass."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grace_irl.programs.check import read, too_long
from grace_irl.programs.contract import ALLOWED_MODULES, MAX_SOURCE_BYTES, SourceProblem


def reward(body: str, head: str = "import numpy as np") -> str:
    lines = "\n".join(f"        {line}" for line in body.splitlines())
    return f"{head}\n\nclass Reward:\n    def reward_fn(self, state):\n{lines}\n        return 1.0\n"


def problems(source: str) -> list[str]:
    return [str(problem) for problem in read(source).problems]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("open('x')", "`open`"),
        ("exec('1')", "`exec`"),
        ("eval('1')", "`eval`"),
        ("compile('1', '', 'eval')", "`compile`"),
        ("__import__('os')", "`__import__`"),
        ("globals()", "`globals`"),
        ("vars()", "`vars`"),
        ("input()", "`input`"),
        ("breakpoint()", "`breakpoint`"),
        ("__builtins__['open']", "`__builtins__`"),
        ("f = open\nf('x')", "`open`"),
        ("().__class__.__base__.__subclasses__()", "__subclasses__"),
        ("self.reward_fn.__globals__", "__globals__"),
        ("self.reward_fn.__code__", "__code__"),
        ("state.__reduce__()", "__reduce__"),
        ("(lambda: 0).__closure__", "__closure__"),
        ("x.gi_frame.f_back.f_locals", "f_back"),
        ("e.__traceback__.tb_frame", "tb_frame"),
        ("state.base[0]", "`.base`"),
        ("np.sys.modules", "`.sys`"),
        ("np.os.system('true')", "`.os`"),
        ("np._globals", "np._globals"),
        ("np.load('x')", "numpy.load"),
        ("np.lib.npyio.save('x', state)", "numpy.save"),
        ("np.memmap('x')", "numpy.memmap"),
        ("state.tofile('x')", "tofile"),
        ("np.calls = 1", "changes the module `np`"),
        ("np.calls += 1", "changes the module `np`"),
        ("np.linalg.norm = None", "changes the module `np`"),
        ("del np.mean", "changes the module `np`"),
        ("for np.x in range(3): pass", "changes the module `np`"),
        ("setattr(np, 'x', 1)", "changes the module `np`"),
        ("getattr(state, '__reduce__')()", "__reduce__"),
        ("self.__doc__.split()", "`.__doc__`"),
        ("float(__doc__)", "`__doc__`"),
        ("getattr(self, '__doc__')", "`__doc__`"),
        ("import os", "`import os`"),
        ("import os.path as p", "`import os`"),
        ("from subprocess import run", "`import subprocess`"),
        ("from . import x", "relative import"),
        ("from random import _os", "private"),
        ("from numpy import load", "numpy.load"),
        ("import numpy.f2py", "numpy.f2py"),
        ("from numpy import ctypeslib", "ctypeslib"),
        ("np.random.default_rng().random()", "default_rng()"),
        ("np.random.RandomState()", "RandomState()"),
        ("import random; random.SystemRandom(3).random()", "ignores"),
        ("import datetime as dt; dt.datetime.now(dt.UTC)", "`now()` reads the clock"),
        ("from datetime import date; date.today().year", "`today()` reads the clock"),
        ("import numpy as np; np.datetime64('now')", "reads the clock"),
        ("from numpy import datetime64; datetime64('Today', 'D')", "reads the clock"),
    ],
)
def test_refusals_name_what_and_where(body: str, words: str) -> None:
    found = read(reward(body)).problems
    assert found
    assert all(problem.kind == "rejected" for problem in found)
    assert any(words in problem.text for problem in found)
    assert {problem.line for problem in found} <= {5, 6}


def test_a_star_import_is_refused() -> None:
    """Else the checks would not see what it imports, such as `save` of numpy."""
    said = "line 1: `from numpy import *` hides which names the program uses: import them by name"
    assert problems(reward("save('x', state)", "from numpy import *")) == [said]
    assert problems(reward("sqrt(4.0)", "from math import *")) == []


@pytest.mark.parametrize(
    "body",
    [
        "self.n += 1",
        "self.base = self.os = self.modules = 1",
        "return self.base",
        "self.now(); state.today(); import datetime; datetime.datetime.fromisoformat(state).hour",
        "self._private = self.__class__.__name__",
        "print(state, flush=True)",
        "x = np.random.default_rng(0).random()",
        "x = np.linalg.norm(state); y = state.copy(); y[0] = 1",
        "x: list[int] = [i for i in range(3) if (y := i)]",
        "if isinstance(state, np.ndarray): pass",
        "self.load(); self.save = 1; self.loader = {}.get('load')",
        "data = {'open': 1}; data['open']",
        "opened = 'open the door'; compiled = opened.replace('open', 'close')",
        "from math import sqrt as root; import numpy.linalg as la; root(la.norm(state))",
        "import lxml.etree as etree; etree.fromstring('<a/>')",
        "vars_ = dir(self); getattr(self, 'n', 0); setattr(self, 'n', 1)",
        "nonlocal_ = lambda x: x.real; z = state.T.real.imag",
        "__name__ == '__main__'",
    ],
)
def test_ordinary_code_passes(body: str) -> None:
    assert problems(reward(body)) == []


@pytest.mark.parametrize("module", sorted(ALLOWED_MODULES - {"__future__"}))
def test_allowed_modules_exist_and_pass(module: str) -> None:
    __import__(module)
    assert problems(reward("pass", f"import {module}")) == []


@pytest.mark.parametrize(
    ("source", "words", "line"),
    [
        ("", "no class Reward", 0),
        ("x = 1", "no class Reward", 0),
        ("def reward(state):\n    return 1", "found reward", 0),
        ("class Rewards:\n    pass", "found Rewards", 0),
        ("class Reward:\n    pass", "no method reward_fn", 1),
        ("x = 1\nclass Reward:\n    def reward(self, s): return 1", "no method reward_fn", 2),
        ("class Reward:\n    def reward_fn(self): return 1", "0 arguments", 2),
        ("class Reward:\n    def reward_fn(self, a, b): return 1", "2 arguments", 2),
        ("class Reward:\n    def reward_fn(self, a, b, c, d): return 1", "4 arguments", 2),
        ("class Reward:\n    def reward_fn(self, s, *, a, b=1, c): return 1", "requires a, c by name", 2),
        ("class Reward:\n    async def reward_fn(self, s): return 1", "async", 2),
    ],
)
def test_the_contract(source: str, words: str, line: int) -> None:
    (found,) = read(source).problems
    assert (found.kind, found.line) == ("contract", line)
    assert words in found.text


@pytest.mark.parametrize(
    ("signature", "takes_action"),
    [
        ("self, state", False),
        ("self, state, action=None, next_state=None", False),
        ("self, *args", False),
        ("self, state, **options", False),
        ("self, state, /, *, scale=1", False),
        ("self, state, action, next_state", True),
        ("self, s, a, s2, gamma=0.9", True),
    ],
)
def test_the_signature_says_whether_actions_are_taken(signature: str, takes_action: bool) -> None:
    reading = read(f"class Reward:\n    def reward_fn({signature}):\n        return 1\n")
    assert reading.problems == ()
    assert reading.takes_action is takes_action


def test_a_static_method_has_no_self() -> None:
    source = "class Reward:\n    @staticmethod\n    def reward_fn({}):\n        return 1\n"
    assert not read(source.format("state")).takes_action
    assert read(source.format("s, a, n")).takes_action


def test_inherited_methods_count() -> None:
    source = "class A:\n    def reward_fn(self, s, a, n): return 1\nclass B(A): pass\nclass Reward(B): pass\n"
    assert read(source).takes_action
    assert read("class Reward(Reward): pass").problems[0].kind == "contract"


def test_refusals_come_before_the_contract_and_in_order() -> None:
    found = read("y = open('b')\nx = eval('a')\n").problems
    assert [problem.kind for problem in found] == ["rejected", "rejected", "contract"]
    assert [problem.line for problem in found] == [1, 2, 0]


def test_many_refusals_are_cut() -> None:
    assert len(read(reward("\n".join(["open('x')"] * 200))).problems) == 20


@pytest.mark.parametrize(
    "source", ["def f(:", "x = '", "(" * 5000, "x = 1\n  y = 2", "é = ¬", "return 1", "-" * 60_000 + "1"]
)
def test_what_does_not_parse(source: str) -> None:
    reading = read(source)
    assert reading.problems
    assert reading.problems[0].kind in ("syntax", "contract")
    if reading.tree is None:
        assert reading.problems[0].text.startswith("syntax error")


def test_length() -> None:
    assert too_long(MAX_SOURCE_BYTES) is None
    found = too_long(MAX_SOURCE_BYTES + 1)
    assert found is not None
    assert str(MAX_SOURCE_BYTES + 1) in found.text
    assert read("#" * (MAX_SOURCE_BYTES + 1)).problems == (found,)
    assert read("é" * MAX_SOURCE_BYTES).problems[0].kind == "rejected"


def test_problems_in_words() -> None:
    assert str(SourceProblem(3, "no")) == "line 3: no"
    assert str(SourceProblem(0, "no")) == "no"


@given(st.text(max_size=200))
def test_nothing_that_is_typed_breaks_the_reader(text: str) -> None:
    reading = read(text)
    assert reading.problems or reading.tree is not None
