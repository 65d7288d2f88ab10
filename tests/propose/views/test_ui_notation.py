"""Screens in prompts: the notation says what the XML says, whatever that is."""

from __future__ import annotations

import ast
import re
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from lxml import etree

from grace_irl.propose.tokens import estimate
from grace_irl.propose.views.outline import ScreenOutline
from grace_irl.propose.views.ui import STATE
from grace_irl.states.ui import markup
from tests.propose.screens import APP, node, screen
from tests.propose.views.outlines import lines, raw, trees, view


def attributes(line: str) -> dict[str, str]:
    """What the notation says of a node, read as `about` explains it."""
    found: dict[str, str] = {}
    rest = line.strip()
    kind, _, rest = rest.partition(" ")
    found |= {"class": kind.removesuffix("*"), "clickable": str(kind.endswith("*")).lower()}
    literal = r"('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")"
    if text := re.match(literal, rest):
        found["text"] = ast.literal_eval(text[0])
    if name := re.search(r"(?:^| )#([\w$.-]+)", rest):
        found["resource-id"] = f"{APP}:id/{name[1]}"
    if desc := re.search(rf"(?:^| )desc {literal}", rest):
        found["content-desc"] = ast.literal_eval(desc[1])
    elif rest.endswith("desc=text") or " desc=text " in rest:
        found["content-desc"] = found["text"]
    return found


words = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=12).map(markup.rinse)


@given(words, words, st.from_regex(r"[a-z_]{1,8}", fullmatch=True), st.booleans())
@settings(max_examples=200)
def test_a_program_can_match_what_it_reads(text: str, desc: str, name: str, clickable: bool) -> None:
    """Text, description, id and class of an outline are those of the XML, character by character."""
    xml = screen(node("Thing", text, desc=desc, name=name, clickable=clickable))
    (element,) = etree.fromstring(xml).iter("node")
    told = lines(node("Thing", text, desc=desc, name=name, clickable=clickable)) if text or desc or clickable else []
    for line in told:
        read = attributes(line)
        assert element.get("class", "").endswith(f".{read.pop('class')}")
        assert all(element.get(key) == value for key, value in read.items())
        assert ("text" in read) == bool(text)
        assert ("content-desc" in read) == bool(desc)


@given(st.lists(trees, max_size=3), st.lists(trees, max_size=3), st.sampled_from([24, 40, 77, STATE]))
@example([], [({"text": "\u202e" + "long " * 4000}, ())], 24)
@example([({"class": "c" * 5000, "resource-id": "i" * 5000, "package": "p" * 5000, "text": "t"}, ())], [], 24)
@settings(max_examples=150)
def test_odd_trees(one: list[Any], two: list[Any], tokens: int) -> None:
    """Nothing raises, limits are kept to the token, and the same data give the same text."""
    before, after = raw(*one), raw(*two)
    seen, again = view(before, after, tokens=tokens), view(before, after, tokens=tokens)
    for text in (seen.state(before.encode()), seen.state(after.encode()), seen.change(before.encode(), after.encode())):
        assert text
        assert estimate(text) <= max(tokens, 24)
        assert all(line.startswith("  ") for line in text.split("\n")[1:])
    assert seen.state(before.encode()) == again.state(before.encode())
    assert seen.change(after.encode(), before.encode()) == again.change(after.encode(), before.encode())
    alike = [item.key for item in ScreenOutline.of(before).items] == [
        item.key for item in ScreenOutline.of(after).items
    ]
    assert (seen.change(before.encode(), after.encode()) == "no change") == alike
    assert estimate(seen.legend(500)) <= 500 + 300
    assert isinstance(seen.words(300), str)


@pytest.mark.parametrize("state", [b"", b"<", b"not XML", b"<html/>", b"\xff\xfe", b"<hierarchy><a/></hierarchy>"])
def test_what_is_no_screen_is_said_to_be_none(state: bytes) -> None:
    seen = view()
    assert seen.state(state).startswith("not the XML of a screen: ")
    assert "\n" not in seen.state(state)
    assert estimate(seen.state(state)) <= STATE
    assert seen.change(state, state) == "no change"
    assert "in full:" in seen.change(state, screen(node("TextView", "x")).encode())


def test_thousands_of_nodes_are_one_short_text() -> None:
    states = [screen(*[node("TextView", f"{name} {n}") for n in range(3000)]).encode() for name in "ab"]
    seen = view()
    assert estimate(seen.state(states[0])) <= STATE
    assert seen.change(*states).startswith("in full: ")
