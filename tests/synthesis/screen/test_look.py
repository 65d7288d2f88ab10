"""Screens as a search sees them."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from grace_irl.synthesis.screen import functions
from grace_irl.synthesis.screen.evidence import NodeLook, NodeLooks, Sight
from tests.synthesis.screen.phone import WORDS, Phone, node, screen


def looks_of(*trees: tuple[dict[str, object], list[object]]) -> list[NodeLook]:
    looks = NodeLooks()
    sight = Sight.of(screen(*trees).encode(), looks, system=True)
    return [looks.all[number] for number in sight.looks]


def test_nodes_that_look_alike_are_one_look() -> None:
    """Where a node is does not matter, what it says does."""
    one, same, other = looks_of(
        node(text="a", bounds="[0,0][1,1]"), node(text="a", bounds="[5,5][9,9]"), node(text="b")
    )
    assert one == same != other
    looks = NodeLooks()
    Sight.of(screen(node(text="a"), node(text="a")).encode(), looks, system=True)
    assert len(looks.all) == 1


def test_what_a_node_looks_like() -> None:
    switch = node(cls="Switch", id="onoff", checkable=True)
    _, title, onoff = looks_of(node(node(text="Wi-Fi\u202f2", desc="net"), switch, package="com.a"))
    assert title.says == ("Wi-Fi 2", "net")
    assert (onoff.name, onoff.kind, onoff.package, onoff.flags) == ("onoff", "Switch", "com.a", {"unchecked"})
    assert onoff.beside == ("Wi-Fi 2", "net")
    assert title.beside == ()  # it is neither on nor off


def test_equal_switches_in_different_places_look_different() -> None:
    rows = [node(node(text=text), node(cls="Switch", checkable=True, checked=True)) for text in ("NFC", "Wi-Fi")]
    found = [look.beside for look in looks_of(node(*rows)) if "checked" in look.flags]
    assert found == [("NFC",), ("Wi-Fi",)]


@given(st.integers(0, 2**32 - 1))
def test_items_are_those_of_programs(seed: int) -> None:
    phone = Phone(np.random.default_rng(seed))
    entries = [str(word) for word in phone.rng.choice(WORDS, int(phone.rng.integers(1, 5)))]
    state = phone.listed(entries, entries[:1]) if phone.rng.random() < 0.5 else phone.settings(["Location"])
    looks = NodeLooks()
    sight = Sight.of(state.encode(), looks, system=False)
    parsed = functions.nodes(state)
    for name, spans in sight.items.items():
        items = [[n for n in item if n.tag == "node"] for item in functions.items(parsed, name)]
        assert [parsed[slice(*span)] == item for span, item in zip(spans, items, strict=True)] == [True] * len(items)
