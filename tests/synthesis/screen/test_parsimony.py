"""Prices: which of two things that fit equally well is said."""

from __future__ import annotations

import pytest

from grace_irl.synthesis.screen.pattern import NodePattern
from grace_irl.synthesis.screen.reading import CLAUSE, Around, Condition, ScreenPrices, ScreenReading, Spoken, Test

TIME = NodePattern(name="clock", shows="time")
PRICES = ScreenPrices({"alarm", "weekend"}, {TIME}, 1)


@pytest.mark.parametrize(
    ("cheaper", "dearer"),
    [
        (NodePattern(name="switch", flag="checked"), NodePattern(name="switch")),
        (NodePattern(name="switch"), NodePattern(kind="Switch")),
        (NodePattern(name="switch"), NodePattern(says="Switch")),
        (NodePattern(name="switch"), NodePattern(name="switch", flag="focused")),
        (NodePattern(says="Pause"), NodePattern(says="Pause at 8:25")),
        (NodePattern(says="Pause"), NodePattern(word="pause")),
        (NodePattern(says="Pause"), NodePattern(says="Pause " * 20)),
        (NodePattern(says="Weekend"), NodePattern(says="Pause")),  # the instruction speaks of it
        (NodePattern(name="clock", shows="time"), NodePattern(name="clock", says="8:25 AM")),
        (NodePattern(name="days", chosen=("Sat", "Sun")), NodePattern(name="days", says="Sat, Sun")),
        (NodePattern(name="a", shows="name"), NodePattern(name="a", shows="word")),
        (NodePattern(name="a", shows="name"), NodePattern(shows="name")),
    ],
)
def test_what_is_likelier_is_cheaper(cheaper: NodePattern, dearer: NodePattern) -> None:
    assert PRICES.pattern(cheaper) < PRICES.pattern(dearer)


def test_what_was_asked_for_pays_for_itself_once() -> None:
    other = NodePattern(name="days", chosen=("Sat", "Sun"))
    assert PRICES.pattern(TIME) < 0
    assert ScreenPrices((), (), 1).pattern(TIME) > 0
    once: tuple[Condition, ...] = (Test(TIME), Test(other))
    around: tuple[Condition, ...] = (Around("clock", (TIME, other)),)
    assert PRICES.clause(around) < PRICES.clause(once)
    assert PRICES.clause((Test(TIME), Around("clock", (TIME, other)))) == PRICES.clause(around)
    twice: tuple[Condition, ...] = (Around("clock", (TIME, other)), Around("card", (TIME, other)))
    assert PRICES.clause(around) > PRICES.clause(twice) - 0.2


@pytest.mark.parametrize("condition", [Test(NodePattern(name="a"), 0), Test(NodePattern(name="a"), 3)])
def test_absence_and_number_cost_more_than_presence(condition: Condition) -> None:
    assert PRICES.condition(condition) > PRICES.condition(Test(NodePattern(name="a")))


def test_clauses_are_expected_for_each_task() -> None:
    clauses = ((Test(NodePattern(name="a")),), (Spoken(("alarm",)), Test(NodePattern(name="b"))))
    one, two = (ScreenPrices((), (), tasks).reading(ScreenReading(clauses)) for tasks in (1, 2))
    assert one == pytest.approx(two + CLAUSE)
