"""What counts as memory. A program that is said to have none gives equal states equal rewards, whatever came before."""

from __future__ import annotations

import ast
import types
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grace_irl.programs.stateless import memory_of
from tests.programs.forgetful import FORGETS, STATES, method
from tests.programs.mindful import REMEMBERS


@pytest.mark.parametrize("name", FORGETS)
def test_usual_programs_have_none(name: str) -> None:
    assert memory_of(ast.parse(FORGETS[name])) == ""
    assert forgets(FORGETS[name], STATES * 3)


@pytest.mark.parametrize("name", REMEMBERS)
def test_memory_is_found(name: str) -> None:
    assert memory_of(ast.parse(REMEMBERS[name])) != ""


def rewards(source: str, states: tuple[str, ...]) -> list[Any]:
    module = types.ModuleType("reward")
    exec(compile(source, "reward.py", "exec"), module.__dict__)
    reward = module.Reward("mon 8:25")
    found: list[Any] = []
    for state in states:
        try:
            found.append(reward.reward_fn(state))
        except Exception as error:
            found.append(type(error).__name__)
    return found


def forgets(source: str, states: tuple[str, ...]) -> bool:
    """Whether every state has the reward that it has alone."""
    return rewards(source, states) == [rewards(source, (state,))[0] for state in states]


PLACES = ("self.a", "self.b", "SHARED", "Reward.c", "local", "other", "param")
VALUES = (
    *(
        "[]",
        "[0]",
        "{}",
        "set()",
        "0",
        "0.0",
        "''",
        "self.a",
        "self.b",
        "SHARED",
        "local",
        "other",
        "param",
        "Reward.c",
    ),
    *(
        "list(self.a)",
        "self.a or []",
        "iter([1, 2])",
        "zip([1], [2])",
        "len(state)",
        "dict(x=self.b)",
        "(self.a, 1)[0]",
    ),
    *("self.a.append", "self.give", "(lambda: SHARED)", "make(self.a)", "self.give()", "[x for x in [self.a]][0]"),
)
CHANGES = (
    *("{place} = {value}", "{place} += [1]", "{place} += 1", "{place}.append(1)", "{place}[0] = 1", "{place}['k'] = 1"),
    *("{place}.update(k=len({place}))", "{place}.add(len({place}))", "{place}()", "next({place})", "list({place})"),
    *(
        "for x in [{place}]: x.append(1)",
        "x = {place}; x += [2]",
        "make({place}).append(1)",
        "{place}.setdefault('q', []).append(1)",
    ),
    *(
        "{place}, y = {value}, 1",
        "del {place}[0]",
        "setattr(self, 'a', {value})",
        "[x for x in {place}]",
        "sum({place})",
    ),
    *(
        "def inner(): {place}.append(1)\n    inner()",
        "f = lambda: {place}.append(1)\n    f()",
        "{place}.sort()",
        "Reward.c = {value}",
    ),
)
statements = st.builds(
    lambda template, place, value: template.format(place=place, value=value),
    st.sampled_from(CHANGES),
    st.sampled_from(PLACES),
    st.sampled_from(VALUES),
)
blocks = st.lists(statements, max_size=3)


def assembled(init: list[str], helper: list[str], body: list[str], calls: bool) -> str:
    """A program of such statements, each of which may fail without ending it."""

    def guarded(lines: list[str], depth: int) -> str:
        pad = "    " * depth
        text = "".join(
            f"{pad}try:\n{pad}    "
            + line.replace("\n    ", f"\n{pad}    ")
            + f"\n{pad}except Exception:\n{pad}    pass\n"
            for line in lines
        )
        return text + f"{pad}pass\n"

    look = "len(str([self.a, self.b, SHARED, Reward.c, local, other, param]))"
    return (
        "SHARED = []\n\ndef make(x):\n    return x\n\nclass Reward:\n    c = []\n"
        "    def __init__(self, extra_info=None):\n        self.a = []\n        self.b = {}\n"
        "        local = []\n        other = {}\n        param = []\n"
        f"{guarded(init, 2)}        self.assist([], 'x')\n"
        "    def give(self):\n        return self.a\n"
        "    def assist(self, param, state):\n        local = []\n        other = {}\n"
        f"{guarded(helper, 2)}        return 0\n"
        "    def reward_fn(self, state, param=[]):\n        local = []\n        other = {}\n"
        f"{guarded(body, 2)}" + ("        self.assist(param, state)\n" if calls else "") + f"        return {look}\n"
    )


@settings(max_examples=400, deadline=None)
@given(blocks, blocks, blocks, st.booleans())
def test_what_is_said_to_forget_forgets(init: list[str], helper: list[str], body: list[str], calls: bool) -> None:
    source = assembled(init, helper, body, calls)
    try:
        tree = ast.parse(source)
        compile(source, "reward.py", "exec")
    except SyntaxError:
        return
    if memory_of(tree) == "":
        assert forgets(source, (*STATES, *STATES, *STATES[::-1])), source


def test_deep_sources_are_in_doubt() -> None:
    deep = "return " + "-" * 50 + "1.0"
    assert memory_of(ast.parse(method(deep))) == ""


def test_the_programs_above_are_not_all_in_doubt() -> None:
    """Otherwise the test before says nothing."""
    for init, body in ((["self.a.append(1)"], ["local.append(1)"]), (["self.b['x'] = SHARED"], ["other['k'] = 1"])):
        assert memory_of(ast.parse(assembled(init, [], body, True))) == ""
