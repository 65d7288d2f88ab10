"""Prices: which of two things that fit equally well is said."""

from __future__ import annotations

import pytest

from grace_irl.synthesis.screen.parsimony import CLAUSE, Parsimony
from grace_irl.synthesis.screen.pattern import Pattern
from grace_irl.synthesis.screen.reading import Around, Condition, Reading, Spoken, Test

TIME = Pattern(name="clock", shows="time")
PRICES = Parsimony({"alarm", "weekend"}, {TIME}, 1)


@pytest.mark.parametrize(
    ("cheaper", "dearer"),
    [
        (Pattern(name="switch", flag="checked"), Pattern(name="switch")),
        (Pattern(name="switch"), Pattern(kind="Switch")),
        (Pattern(name="switch"), Pattern(says="Switch")),
        (Pattern(name="switch"), Pattern(name="switch", flag="focused")),
        (Pattern(says="Pause"), Pattern(says="Pause at 8:25")),
        (Pattern(says="Pause"), Pattern(word="pause")),
        (Pattern(says="Pause"), Pattern(says="Pause " * 20)),
        (Pattern(says="Weekend"), Pattern(says="Pause")),  # the instruction speaks of it
        (Pattern(name="clock", shows="time"), Pattern(name="clock", says="8:25 AM")),
        (Pattern(name="days", chosen=("Sat", "Sun")), Pattern(name="days", says="Sat, Sun")),
        (Pattern(name="a", shows="name"), Pattern(name="a", shows="word")),
        (Pattern(name="a", shows="name"), Pattern(shows="name")),
    ],
)
def test_what_is_likelier_is_cheaper(cheaper: Pattern, dearer: Pattern) -> None:
    assert PRICES.pattern(cheaper) < PRICES.pattern(dearer)


def test_what_was_asked_for_pays_for_itself_once() -> None:
    other = Pattern(name="days", chosen=("Sat", "Sun"))
    assert PRICES.pattern(TIME) < 0
    assert Parsimony((), (), 1).pattern(TIME) > 0
    once: tuple[Condition, ...] = (Test(TIME), Test(other))
    around: tuple[Condition, ...] = (Around("clock", (TIME, other)),)
    assert PRICES.clause(around) < PRICES.clause(once)
    assert PRICES.clause((Test(TIME), Around("clock", (TIME, other)))) == PRICES.clause(around)
    twice: tuple[Condition, ...] = (Around("clock", (TIME, other)), Around("card", (TIME, other)))
    assert PRICES.clause(around) > PRICES.clause(twice) - 0.2


@pytest.mark.parametrize("condition", [Test(Pattern(name="a"), 0), Test(Pattern(name="a"), 3)])
def test_absence_and_number_cost_more_than_presence(condition: Condition) -> None:
    assert PRICES.condition(condition) > PRICES.condition(Test(Pattern(name="a")))


def test_clauses_are_expected_for_each_task() -> None:
    clauses = ((Test(Pattern(name="a")),), (Spoken(("alarm",)), Test(Pattern(name="b"))))
    one, two = (Parsimony((), (), tasks).reading(Reading(clauses)) for tasks in (1, 2))
    assert one == pytest.approx(two + CLAUSE)
