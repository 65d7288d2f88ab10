"""Patterns: what they ask of a node, and that the search and the programs agree about it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grace_irl.synthesis.screen import functions
from grace_irl.synthesis.screen.evidence import NodeLooks, Said, Sight
from grace_irl.synthesis.screen.pattern import NodePattern, plain_patterns, told_patterns
from tests.synthesis.screen import phone as phones
from tests.synthesis.screen.phone import Phone, node, screen

SAID = 'Set the "Tea" timer for 8:25 and 3 eggs, turn on Wi-Fi'


class Told:
    """What programs keep of an instruction."""

    def __init__(self, said: str) -> None:
        self.words = " ".join(functions.words(functions.plain(said)))
        self.times = functions.times(functions.plain(said))
        self.numbers = functions.numbers(functions.plain(said))
        self.quotes = functions.quotes(functions.plain(said))


def fits(pattern: NodePattern, element: Any, said: str) -> bool:
    """Whether a node fits, by the expressions that programs contain."""
    names = {**vars(functions), "self": Told(said), "n": element}
    return all(eval(part, names) for part in pattern.expression())


@pytest.mark.parametrize(
    ("pattern", "there", "elsewhere"),
    [
        (NodePattern(name="fab"), {"id": "fab"}, {"id": "fab2"}),
        (NodePattern(kind="Switch"), {"cls": "Switch"}, {"cls": "SwitchCompat"}),
        (NodePattern(package="com.a"), {"package": "com.a"}, {"package": "com.a.b"}),
        (NodePattern(says="8:30 AM"), {"text": "8:30\u200aAM"}, {"text": "8:30 AM today"}),
        (NodePattern(says="Pause"), {"desc": "Pause"}, {"text": "pause"}),
        (NodePattern(word="cesium"), {"text": "Default (Cesium)"}, {"text": "Caesium"}),
        (NodePattern(flag="checked"), {"checked": True}, {"checked": False}),
        (NodePattern(name="a", flag="unchecked"), {"id": "a", "checkable": True}, {"id": "a", "checked": True}),
        (NodePattern(flag="selected"), {"selected": True}, {}),
        (NodePattern(flag="focused"), {"focused": True}, {}),
        (NodePattern(flag="disabled"), {"enabled": False}, {}),
        (NodePattern(flag="hidden"), {"visible-to-user": False}, {"visible-to-user": True}),
        (NodePattern(name="v", bound=">=", limit=1000.0), {"id": "v", "text": "1,000 m"}, {"id": "v", "text": "999"}),
        (NodePattern(name="v", bound="<=", limit=0.5), {"id": "v", "text": "0.25"}, {"id": "v", "text": "n/a"}),
        (NodePattern(shows="time"), {"text": "08:25"}, {"text": "09:25"}),
        (NodePattern(shows="number"), {"text": "3 pieces"}, {"text": "33"}),
        (NodePattern(shows="quote"), {"text": "tea"}, {"text": "tea time"}),
        (NodePattern(shows="name"), {"text": "Wi-Fi"}, {"text": "Wi-Fi 2"}),
        (NodePattern(name="x", shows="word"), {"id": "x", "text": "Timer 2"}, {"id": "x", "text": "Timers"}),
    ],
)
def test_each_kind_of_pattern(pattern: NodePattern, there: dict[str, Any], elsewhere: dict[str, Any]) -> None:
    one, other = (functions.nodes(screen(node(**values)))[0] for values in (there, elsewhere))
    assert fits(pattern, one, SAID)
    assert not fits(pattern, other, SAID)


def test_a_pattern_about_what_stands_beside() -> None:
    def switch(title: str) -> Any:
        return node(node(text=title), node(cls="Switch", checkable=True, checked=True), cls="LinearLayout")

    wifi, nfc = (
        next(n for n in functions.nodes(screen(node(switch(title)))) if n.get("checked") == "true")
        for title in ("Wi-Fi", "NFC")
    )
    for pattern in (NodePattern(flag="checked", shows="name", aside=True), NodePattern(says="Wi-Fi", aside=True)):
        assert fits(pattern, wifi, SAID)
        assert not fits(pattern, nfc, SAID)


def test_a_pattern_about_what_is_chosen() -> None:
    def days(*on: str) -> Any:
        chips = [node(text=day[0], desc=day, checkable=True, checked=day in on) for day in ("Saturday", "Sunday")]
        return functions.nodes(screen(node(*chips, id="days")))[0]

    weekend = NodePattern(name="days", chosen=("Saturday", "Sunday"))
    assert fits(weekend, days("Sunday", "Saturday"), "")
    assert not fits(weekend, days("Sunday"), "")


@given(st.integers(0, 2**32 - 1))
def test_programs_see_what_the_search_sees(seed: int) -> None:
    """Every pattern that a node offers fits it by the program's expressions, and none that only another one offers."""
    phone = Phone(np.random.default_rng(seed))
    makes = (phones.timer_episode, phones.switch_episode, phones.entry_episode, phones.wandering)
    said, states = makes[int(phone.rng.integers(len(makes)))](phone)
    state = states[int(phone.rng.integers(len(states)))]
    looks = NodeLooks()
    sight = Sight.of(state.encode(), looks, system=False)
    offered = [
        {*plain_patterns(looks.all[number]), *told_patterns(looks.all[number], Said(said))} for number in sight.looks
    ]
    everything = sorted(set().union(*offered), key=repr)
    for pattern in phone.rng.permutation(len(everything))[:25].tolist():
        for element, own in zip(functions.nodes(state), offered, strict=True):
            assert fits(everything[pattern], element, said) is (everything[pattern] in own), everything[pattern]


@pytest.mark.parametrize("field", ["name", "kind", "says", "word", "flag"])
def test_more_implies_less(field: str) -> None:
    more = replace(NodePattern(name="fab", shows="time"), **{field: "x"})
    less = NodePattern(**{field: "x"})  # type: ignore[arg-type]
    assert more.implies(less)
    assert not less.implies(more)
    assert more.implies(more)


def test_texts_beside_a_node_imply_nothing_about_its_own_and_a_limit_nothing_about_another() -> None:
    beside = NodePattern(name="onoff", shows="name", flag="checked", aside=True)
    assert not beside.implies(NodePattern(name="onoff", shows="name"))
    assert beside.implies(NodePattern(name="onoff", flag="checked"))
    limited = NodePattern(name="amount", bound="<=", limit=5.0)
    assert not limited.implies(NodePattern(name="amount", bound="<="))
    assert limited.implies(NodePattern(name="amount"))


@pytest.mark.parametrize("limit", [1234567.0, 12345.67, 12.0, 123456789012.3456])
def test_a_limit_keeps_its_digits_in_a_program(limit: float) -> None:
    (element,) = functions.nodes(f'<hierarchy><node resource-id="a:id/amount" text="{limit!r}"/></hierarchy>')
    for bound in (">=", "<="):
        pattern = NodePattern(name="amount", bound=bound, limit=limit)  # type: ignore[arg-type]
        assert fits(pattern, element, "")
        assert f"{bound} {limit!r}".removesuffix(".0") in pattern.phrase()


def test_every_pattern_can_be_said_in_words() -> None:
    assert NodePattern(name="onoff", flag="checked").phrase() == "onoff is checked"
    assert NodePattern(shows="time").phrase() == "something says a time of the instruction"
    assert NodePattern(kind="Button").phrase() == "some Button is there"
