"""Functions that programs share, and the file that they make."""

from __future__ import annotations

import ast
from typing import Any

import pytest

from grace_irl.programs.library import Known, Usage, dedented, library_source, renamed, reusable, segment, usages
from grace_irl.programs.program import Definition, Program, identify

NEAR = "def near(a, b):\n    return abs(a - b) < LIMIT\n"
ONE = f"""
import numpy as np

LIMIT = 2


{NEAR}

class Reward:
    def total(self, state):
        return np.sum(state)

    def reward_fn(self, state):
        def inner(x):
            return x
        return near(self.total(state), 1) + near(inner(0), 0)
"""
TWO = f"""
import math
import numpy as np

LIMIT = 2


{NEAR}

class Reward:
    def total(self, state):  # of all
        return np.sum(state)

    def reward_fn(self, state):
        return -float(near(self.total(state), 5))
"""
ALONE = """
def near(a, b):
    return a == b


class Reward:
    def reward_fn(self, state):
        return near(0, 1)
"""


def program(name: str, source: str) -> Program:
    found = identify(ast.parse(source))
    return Program(name, source, found.size, functions=found.functions)


def told(*sources: str) -> tuple[dict[str, Program], list[Known]]:
    programs = {name: program(name, source) for name, source in zip("abcdef", sources, strict=False)}
    known: dict[str, Known] = {}
    for each in programs.values():
        for one in each.functions:
            known.setdefault(one.digest, Known(one.digest, one.name, each.id, segment(each.source, one)))
    return programs, list(known.values())


def by_name(uses: list[Usage]) -> dict[str, Usage]:
    return {f"{use.known.name}/{use.known.program}": use for use in uses}


def test_usage_counts_programs_and_calls() -> None:
    programs, known = told(ONE, TWO, ALONE)
    uses = by_name(usages(known, programs, ["b", "a"]))
    near, total, other = uses["near/a"], uses["Reward.total/a"], uses["near/c"]
    assert (near.programs, near.valid, near.calls, near.best) == (2, 2, 3, "b")
    assert (total.programs, total.valid, total.calls) == (2, 2, 2)
    assert (other.programs, other.valid, other.calls, other.best) == (1, 0, 1, "")
    assert set(uses) == {
        *("near/a", "Reward/a", "Reward.total/a", "Reward.reward_fn/a", "Reward.reward_fn.inner/a"),
        *("Reward/b", "Reward.reward_fn/b", "near/c", "Reward/c", "Reward.reward_fn/c"),
    }


def test_the_best_come_first() -> None:
    programs, known = told(ALONE, TWO, ONE)
    order = [use.known.name for use in usages(known, programs, ["b", "c"])]
    assert order[:2] == ["Reward.total", "near"]  # in two programs, the best among them
    assert [use.best for use in usages(known, programs, ["b", "c"])] == ["b"] * 4 + ["c"] * 3 + [""] * 3


def test_what_is_reusable() -> None:
    programs, known = told(ONE, TWO, ALONE)
    names = [use.known.name for use in reusable(usages(known, programs, ["b", "a"]), programs, ["b", "a"])]
    assert names == ["Reward.total", "near"]
    assert reusable(usages(known, programs, ["b"]), programs, ["b"]) == []


def test_parts_that_never_occur_without_their_whole_are_left_out() -> None:
    programs, known = told(ONE, ONE.replace("LIMIT = 2", "LIMIT = 3"))
    order = ["a", "b"]
    assert [use.known.name for use in reusable(usages(known, programs, order), programs, order)] == ["Reward", "near"]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_segments_count_lines_as_python_does(end: str) -> None:
    source = end.join(["x = '\x0c\x1c\u2028'", "def f():", "    return 1", "y = 2"])
    (found,) = identify(ast.parse(source)).functions
    assert segment(source, found) == "def f():\n    return 1"


def test_a_range_that_is_not_there_is_empty() -> None:
    assert segment("a\nb", Definition("f", "0", first=-5, last=-1)) == ""
    assert segment("a\nb", Definition("f", "0", first=7, last=9)) == ""


@pytest.mark.parametrize(
    ("text", "moved"),
    [
        ("def f():\n    pass", "def f():\n    pass"),
        ("    def f(self):\n        pass\n\n        return 1", "def f(self):\n    pass\n\n    return 1"),
        ("    def f():\n  # odd\n        pass", "def f():\n  # odd\n    pass"),
        ('    def f():\n        return """a\n        b"""', 'def f():\n    return """a\n        b"""'),
        ('    def f():\n        """A.\n\n        B.\n        """', 'def f():\n    """A.\n\n    B.\n    """'),
        ('    def f(x):\n        return f"""a\n        {x}"""', 'def f(x):\n    return f"""a\n        {x}"""'),
        ("    @a\n    def f(x,\n          y): pass", "@a\ndef f(x,\n      y): pass"),
    ],
)
def test_methods_move_to_the_margin(text: str, moved: str) -> None:
    assert dedented(text) == moved
    ast.parse(moved)


@pytest.mark.parametrize(
    ("text", "new"),
    [
        ("def f(x): return f(x - 1)", "def f_2(x): return f_2(x - 1)"),
        ("def f(self): return self.f() + x.f + g(f=1)", "def f_2(self): return self.f_2() + x.f + g(f=1)"),
        ("def f(): 'f'  # f", "def f_2(): 'f'  # f"),
        ("def ff(f): pass", "def ff(f_2): pass"),
    ],
)
def test_renaming(text: str, new: str) -> None:
    assert renamed(text, "f", "f_2") == new


def library(*sources: str) -> str:
    """The library of all functions that several of these programs have, the best program first."""
    programs, known = told(*sources)
    order = list(programs)
    uses = reusable(usages(known, programs, order), programs, order)
    return library_source(uses, programs, {}, title="A library.", facts=())


def test_the_file_runs() -> None:
    programs, known = told(ONE, TWO, ALONE, ALONE.replace("(0, 1)", "(2, 3)"))
    order = ["b", "a", "d", "c"]
    uses = reusable(usages(known, programs, order), programs, order)
    text = library_source(uses, programs, {"b": "fitness -0.1"}, title="A library.", facts=['said "so"'])
    space: dict[str, object] = {}
    exec(compile(text, "library.py", "exec"), space)
    assert space["near"](0, 1) is True  # type: ignore[operator]
    assert space["near_2"](0, 1) is False  # type: ignore[operator]
    assert space["total"](None, [1, 2]) == 3  # type: ignore[operator]
    assert text.count("LIMIT = 2") == 1
    assert "import math" not in text
    assert "# near, of a; in 2 valid programs, 2 in all, called at 3 places\n# best in b (fitness -0.1)" in text
    assert "# near_2: near of c; in 2 valid programs" in text


def test_what_a_function_lacks_is_said() -> None:
    first = "LIMIT = 1\n\n\ndef f(x):\n    return g(x) < LIMIT\n\n\ndef g(x):\n    return x\n"
    second = first.replace("return x\n", "return x + 1\n")
    third = "LIMIT = 2\n\n\ndef h(x):\n    return x < LIMIT\n"
    programs, known = told(first, second, third, third + "\nx = 1\n")
    order = ["a", "b", "c", "d"]
    uses = reusable(usages(known, programs, order), programs, order)
    text = library_source(uses, programs, {}, title="A library.", facts=())
    assert [use.known.name for use in uses] == ["f", "h"]
    assert "# it also needs g\ndef f" in text
    assert "# it also needs LIMIT as in c\ndef h" in text
    ast.parse(text)


def test_a_function_calls_the_helper_of_its_own_program() -> None:
    """Even if it has another name in the library. Where a new name could be wrong, a comment names the helper."""
    first = "def near(x):\n    return x < 1\n\n\ndef far(x):\n    return not near(x)\n"
    second = (
        "def near(x):\n    return x < 9\n\n\ndef away(x):\n    return not near(x)\n\n\n"
        "def wide(x, near=2):\n    return x > near\n"
    )
    third = "def near(x):\n    return x < {}\n\n\ndef apart(x):\n    return not near(x)\n"
    text = library(first, first + "\nx = 1\n", second, second + "\nx = 1\n", third.format(5), third.format(6))
    space: dict[str, Any] = {}
    exec(compile(text, "library.py", "exec"), space)
    assert [space["near"](5), space["near_2"](5)] == [False, True]
    assert [space["far"](5), space["away"](5)] == [True, False]
    assert space["wide"](5)
    assert "# it also needs near as in c\ndef wide" in text
    assert "# it also needs near as in e\ndef apart" in text
    assert text.count("it also needs") == 2


def test_a_constant_keeps_the_name_of_a_helper_and_says_so() -> None:
    """Even beside a call that gets the helper's new name. A number goes to no name that a function has already."""
    one = "def near(x):\n    return x < 1\n\n\ndef near_2(x):\n    return 7\n"
    other = "def near(x):\n    return x < 9\n\n\nTESTS = [near]\n\n\ndef away(x):\n    return TESTS[0](x), near(x)\n"
    text = library(one, one + "\nx = 1\n", other, other + "\nx = 1\n")
    space: dict[str, Any] = {}
    exec(compile(text, "library.py", "exec"), space)
    assert (space["near"](5), space["near_2"](5), space["near_3"](5)) == (False, 7, True)
    assert space["away"](5)[1]
    assert "# it also needs near as in c\ndef away" in text


@pytest.mark.parametrize(
    ("definition", "called", "value"),
    [
        ("def away(x, near):\n    return near < x\n", "away(3, near=2)", True),
        ("@dataclass\nclass Away:\n    near: int = 3\n", "Away().near", 3),
        ("class Away:\n    def near(self, x):\n        return x\n", "Away().near(4)", 4),
        ("def away(x):\n    return [near for near in x]\n", "away([5])", [5]),
    ],
)
def test_other_meanings_of_a_helpers_name_stay(definition: str, called: str, value: object) -> None:
    helper = "from dataclasses import dataclass\n\n\ndef near(x):\n    return x < {}\n"
    one, other = helper.format(1), f"{helper.format(9)}\n\n{definition}"
    space: dict[str, Any] = {"__name__": __name__}  # `dataclass` looks its module up
    exec(compile(library(one, one + "\nx = 1\n", other, other + "\nx = 1\n"), "library.py", "exec"), space)
    assert space["near_2"](5)
    assert eval(called, space) == value


def test_imports_in_brackets_come_along() -> None:
    source = "from numpy import (array as arr, zeros as z,)\n\n\ndef f(x):\n    return z(x)\n"
    text = library(source, source + "\nx = 1\n")
    assert "from numpy import (array as arr, zeros as z,)" in text


def test_names_in_f_strings_come_along() -> None:
    source = (
        "import math\n\nWIDTH = 4\nSIGN = 'x'\nWORD = f'{{SIGN}}'\n\n\n"
        'def f(x):\n    return f\'{math.floor(x):{WIDTH}} {{SIGN}} \' rf"""{\n    WORD}"""\n'
    )
    text = library(source, source + "\nx = 1\n")
    space: dict[str, object] = {}
    exec(compile(text, "library.py", "exec"), space)
    assert space["f"](2.5) == "   2 {SIGN} {SIGN}"  # type: ignore[operator]
    assert "SIGN" not in space


def test_a_guarded_import_is_no_constant() -> None:
    """A `try` around an import is not copied for a function that has a `try` of its own."""
    source = (
        "try:\n    import cmath\nexcept ImportError:\n    cmath = None\nelse:\n    pass\nfinally:\n    pass\n\n\n"
        "def f(x):\n    try:\n        return 1 / x\n    except ZeroDivisionError:\n        return 0\n"
        "    else:\n        pass\n    finally:\n        pass\n"
    )
    text = library(source, source + "\nx = 1\n")
    space: dict[str, object] = {}
    exec(compile(text, "library.py", "exec"), space)
    assert space["f"](0) == 0  # type: ignore[operator]
