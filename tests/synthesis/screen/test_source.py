"""Programs as people read them."""

from __future__ import annotations

import ast

import pytest

from grace_irl.programs.check import read
from grace_irl.synthesis.screen.pattern import NodePattern
from grace_irl.synthesis.screen.reading import Around, Condition, ScreenReading, Spoken, Test
from grace_irl.synthesis.screen.sketcher import quote, write_source
from tests.synthesis.screen.phone import node, screen

HOSTILE = ('"""', "'; import os #", "a\nb", "\u202eabc", "{x}", "\\", "é 淘店", "]" * 200)
CONDITIONS: list[Condition] = [
    Test(NodePattern(name="onoff", kind="Switch", flag="checked", shows="time")),
    Test(NodePattern(package="com.a", says="Pause"), 0),
    Test(NodePattern(name="row"), 3),
    Test(NodePattern(name="volume", bound=">=", limit=71.5)),
    Test(NodePattern(flag="unchecked", shows="quote", aside=True)),
    Test(NodePattern(name="days", chosen=("Saturday", "Sunday"))),
    Around("clock", (NodePattern(name="clock", shows="number"), NodePattern(word="alarm"), NodePattern(shows="name"))),
    Spoken(("stopwatch",)),
    Spoken(("run", "start")),
]


def run(source: str, state: str, said: str = "") -> float:
    space: dict[str, object] = {}
    exec(source, space)
    return float(space["Reward"](said).reward_fn(state))  # type: ignore[operator]


@pytest.mark.parametrize("condition", CONDITIONS, ids=lambda one: type(one).__name__)
def test_every_condition_is_a_program(condition: Condition) -> None:
    reading = ScreenReading(((condition,), (condition, *CONDITIONS[:3])))
    assert ScreenReading.of(reading.text()) == reading
    source = write_source(reading, system=False)
    assert read(source).problems == ()
    assert 0.0 <= run(source, screen(node(text="8:25")), "a stopwatch") <= 1.0
    assert max(map(len, source.splitlines())) <= 120


def test_only_what_is_needed_is_quoted() -> None:
    source = write_source(ScreenReading(((Test(NodePattern(name="onoff", flag="checked")),),)), system=False)
    assert "times" not in source
    assert "import re" not in source
    assert "extra_info" in source
    assert len(source.splitlines()) < 45
    timed = write_source(ScreenReading(((Test(NodePattern(shows="time")),),)), system=True)
    assert "def times" in timed
    assert "all_nodes(state)" in timed
    assert "SYSTEM" not in timed


def test_a_readable_program() -> None:
    reading = ScreenReading(((Test(NodePattern(name="onoff", flag="checked")), Test(NodePattern(name="loading"), 0)),))
    reward = write_source(reading, system=False).partition("class Reward")[2]
    assert (
        reward
        == """\
:
    def __init__(self, extra_info: str = "") -> None:
        pass  # the screen alone decides

    def reward_fn(self, state: str) -> float:
        screen = nodes(state)
        return graded(
            [
                any(name(n) == "onoff" and n.get("checked") == "true" for n in screen),
                not any(name(n) == "loading" for n in screen),
            ]
        )
"""
    )


@pytest.mark.parametrize("text", HOSTILE)
def test_texts_of_screens_stay_texts(text: str) -> None:
    """Whatever an app writes on its screens, in a program it is a literal."""
    patterns = [NodePattern(name=text), NodePattern(says=text), NodePattern(chosen=(text,)), NodePattern(package=text)]
    clause = (*(Test(pattern) for pattern in patterns), Around(text, tuple(patterns)), Spoken((text,)))
    source = write_source(ScreenReading((clause,)), system=False)
    assert read(source).problems == ()
    tree = ast.parse(source)
    strings = {one.value for one in ast.walk(tree) if isinstance(one, ast.Constant) and isinstance(one.value, str)}
    assert text in strings
    assert run(source, screen(node())) == 0.0


def test_one_clause_is_enough_and_the_reward_rises_toward_it() -> None:
    a, b, c = (Test(NodePattern(says=text)) for text in "abc")
    source = write_source(ScreenReading(((a, b), (c,))), system=False)
    values = [run(source, screen(*(node(text=t) for t in texts))) for texts in ("", "a", "ab", "c", "bc")]
    assert values == [0.0, 0.25, 1.0, 1.0, 1.0]


def test_a_word_of_the_instruction_opens_its_clause_only() -> None:
    goals = (
        (Spoken(("run",)), Test(NodePattern(says="Pause"))),
        (Spoken(("stop", "halt")), Test(NodePattern(says="Start"))),
    )
    source = write_source(ScreenReading(goals), system=False)
    pause = screen(node(text="Pause"))
    assert run(source, pause, "Run it") == 1.0
    assert run(source, pause, "Stop it") < 1.0


def test_functions_are_quoted_with_what_they_use() -> None:
    imports, definitions = quote(["mentions"])
    assert [text.split("(")[0] for text in definitions] == ["def words", "def mentions", "def phrases"]
    assert imports == ["import re", "from collections.abc import Iterable"]
