"""Screens in prompts: what a line says, what is left out first, what a change is."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from lxml import etree

from grace_irl.demos.labels import Labelled
from grace_irl.demos.screens import pack
from grace_irl.demos.trajectory import Demonstration, Metadata, Trajectory
from grace_irl.demos.ui import markup
from grace_irl.propose.tokens import estimate
from grace_irl.propose.views import view_of
from grace_irl.propose.views.outline import LONGEST, Outline
from grace_irl.propose.views.trajectory import Shown, least, write
from grace_irl.propose.views.ui import ABOUT, COARSEST, STATE, UiView
from tests.propose.screens import APP, bar, node, screen, things


def view(*screens: str, tokens: int = STATE) -> UiView:
    """A view that has seen these screens; few enough for none to be background."""
    states = pack(screens or (screen(),))
    item = Labelled(Demonstration(Trajectory(states), "expert"), np.zeros(len(states), dtype=np.bool_))
    return UiView([item], Metadata("ui"), tokens)


def lines(*specs: Any) -> list[str]:
    """The lines of a screen of the app, below that of its package."""
    head, *rest = view().state(screen(*specs).encode()).splitlines()
    assert head == f"{APP}:"
    return [line[3:] for line in rest]


@pytest.mark.parametrize(
    ("spec", "line"),
    [
        (node("TextView", "Hello"), "TextView 'Hello'"),
        (node("Button", "OK", clickable=True), "Button* 'OK'"),
        (node("TextView", "a\u200ab\n'c'", name="x"), "TextView \"a\\u200ab\\n'c'\" #x"),
        (node("TextView", "same", desc="same"), "TextView 'same' desc=text"),
        (node("Image", desc="Full"), "Image desc 'Full'"),
        (node("EditText", hint="name", focused=True, clickable=True), "EditText* hint 'name' focused"),
        (node("EditText", "name", hint="name"), "EditText 'name'"),
        (node("CheckBox", "S", checkable=True), "CheckBox 'S' unchecked"),
        (node("CheckBox", "S", checkable=True, checked=True), "CheckBox 'S' checked"),
        (node("View", "S", checked=True), "View 'S' checked"),
        (node("Tab", "S", selected=True, enabled=False), "Tab 'S' selected disabled"),
        (node("List", name="all", scrollable=True), "List #all scrollable"),
        (node("View", name="x", long_clickable=True), "View #x long-clickable"),
        (node("EditText", name="x", password=True), "EditText #x password"),
        (node("Button", "OK", id="android:id/ok"), "Button 'OK' id 'android:id/ok'"),
        (node("Button", "OK", id="tag with spaces"), "Button 'OK' id 'tag with spaces'"),
        (node("Button", clickable=True), "Button* [0,0][100,40]"),
        (node("odd class", "x"), "node class 'android.widget.odd class' 'x'"),
        (node("TextView", "x" * (LONGEST + 7)), f"TextView '{'x' * LONGEST}'…7"),
        (node("TextView", "שלום \u200fעולם 🎉"), "TextView 'שלום \\u200fעולם 🎉'"),
        (node("TextView", "null"), "TextView 'null'"),
    ],
)
def test_lines(spec: Any, line: str) -> None:
    assert lines(spec) == [line]


@pytest.mark.parametrize(
    "spec",
    [
        node("FrameLayout"),
        node("FrameLayout", name="content", focusable=True),
        node("TextView", "hidden", visible_to_user=False),
        node("TextView", "flat", bounds="[0,0][0,40]"),
        node("FrameLayout", "", node("TextView", "inside"), visible_to_user=False),
    ],
)
def test_what_says_nothing_or_cannot_be_seen_is_left_out(spec: Any) -> None:
    assert lines(node("TextView", "Hello"), spec) == ["TextView 'Hello'"]


def test_containers_hand_their_state_down() -> None:
    inner = node("View", "", node("TextView", "Alarm", selected=True), selected=True, name="icon")
    assert lines(node("FrameLayout", "", inner, selected=True, clickable=True, name="tab")) == [
        "FrameLayout* #tab selected",
        " TextView 'Alarm' selected",
    ]


def test_rows_stay_and_other_containers_do_not() -> None:
    rows = [node("Row", "", node("Box", "", node("TextView", n), node("TextView", "on"))) for n in "ab"]
    told = [["Row", f" TextView '{name}'", " TextView 'on'"] for name in "ab"]
    assert lines(node("List", "", *rows)) == [*told[0], *told[1]]
    assert lines(node("List", "", rows[0])) == ["TextView 'a'", "TextView 'on'"]


def test_packages_stand_above_their_nodes() -> None:
    text = view().state(screen(bar("9:41"), node("TextView", "x")).encode())
    assert text.splitlines() == [
        "org.acme.bar:",
        "   TextView '9:41' #time",
        "   ImageView #charge desc 'Full'",
        "  org.acme.vessel:",
        "   TextView 'x'",
    ]


def test_nodes_without_class_or_package() -> None:
    bare = view().state(raw(({"text": "a", "package": ""}, ()), ({"text": "b", "class": "x.Y"}, ())).encode())
    assert bare.splitlines() == ["no package:", "   node 'a'", "   Y 'b'"]


def test_sources_without_bounds_are_visible() -> None:
    assert lines(node("TextView", "a", bounds="[0,0][0,0]")) == ["TextView 'a'"]


def test_what_nearly_all_screens_have_is_said_once() -> None:
    usual = [things({"a": (n, False)}) for n in range(9)]
    odd = screen(node("TextView", "Things", name="head"))
    seen = view(*usual, odd)
    legend = seen.legend(2000)
    assert "ImageView #charge desc 'Full'" in legend  # on 9 of 10
    assert "'9:41'" in legend
    first = seen.state(usual[0].encode())
    assert "Full" not in first
    assert "without" not in first
    assert seen.state(odd.encode()).splitlines()[0] == "only what nearly all screens have"
    missing = seen.state(odd.encode()).splitlines()[1]
    assert missing.startswith("  without ")
    assert "ImageView #charge desc 'Full'" in missing
    other = seen.state(screen(node("TextView", "elsewhere")).encode())
    assert other.endswith("\n  without any of what nearly all screens have")


def change(one: Sequence[Any], two: Sequence[Any]) -> list[str]:
    # Long enough for a change to be shorter than the screen.
    rest = [node("TextView", f"unchanged number {n}") for n in range(20)]
    before, after = screen(*rest, *one).encode(), screen(*rest, *two).encode()
    return [line.strip() for line in view().change(before, after).splitlines()]


def switches(*states: bool, mark: int = -1) -> list[Any]:
    return [
        node(
            "List",
            "",
            *[
                node(
                    "Row",
                    "",
                    node("TextView", f"row {n}"),
                    node("Switch", name="on", checkable=True, checked=state),
                    *([node("Image", desc="Chosen", name="mark")] if mark == n else []),
                )
                for n, state in enumerate(states)
            ],
        )
    ]


@pytest.mark.parametrize(
    ("one", "two", "expected"),
    [
        ([], [], ["no change"]),
        (
            [node("CheckBox", "S", checkable=True)],
            [node("CheckBox", "S", checkable=True, checked=True)],
            ["~ CheckBox 'S': unchecked -> checked"],
        ),
        (
            [node("TextView", "8:25", name="time")],
            [node("TextView", "8:30", name="time")],
            ["~ TextView #time: '8:25' -> '8:30'"],
        ),
        (
            [node("TextView", "8:25", desc="8:25", name="time")],
            [node("TextView", "8:30", desc="8:30", name="time")],
            ["~ TextView #time: '8:25' -> '8:30'; desc=text"],
        ),
        ([node("Tab", "A", selected=True)], [node("Tab", "A")], ["~ Tab 'A': no longer selected"]),
        ([node("Tab", "A")], [node("Tab", "A", selected=True)], ["~ Tab 'A': now selected"]),
        ([node("TextView", "old")], [node("TextView", "new")], ["- TextView 'old'", "+ TextView 'new'"]),
        (
            [],
            [node("Box", "", node("TextView", "b"), clickable=True, name="x")],
            ["+ Box* #x", "+  TextView 'b'"],
        ),
        (
            switches(False, False),
            switches(False, True),
            ["~ Switch #on: unchecked -> checked (2 of 2, beside 'row 1')"],
        ),
        (
            switches(False, False, mark=0),
            switches(False, False, mark=1),
            ["~ Image #mark desc 'Chosen': beside 'row 0' -> beside 'row 1'"],
        ),
        (switches(False, False), switches(False, False, mark=1), ["+ Image #mark desc 'Chosen' (beside 'row 1')"]),
        (
            [node("TextView", "a"), node("Button", "b")],
            [node("Button", "b"), node("TextView", "a")],
            ["the same nodes in another order"],
        ),
        (
            [],
            [bar("9:41")],
            ["+ org.acme.bar: TextView '9:41' #time", "+ org.acme.bar: ImageView #charge desc 'Full'"],
        ),
    ],
)
def test_changes(one: Sequence[Any], two: Sequence[Any], expected: list[str]) -> None:
    assert change(one, two) == expected


@pytest.mark.parametrize("count", [2, 3, 5])
def test_a_mark_that_moves_is_told_with_its_new_row(count: int) -> None:
    for one, two in permutations(range(count), 2):
        told = change(switches(*[False] * count, mark=one), switches(*[False] * count, mark=two))
        assert any(f"row {two}" in line and "#mark" in line for line in told)


def test_another_screen_is_written_in_full() -> None:
    before, after = (screen(*[node("TextView", f"{name} {n}") for n in range(5)]).encode() for name in "ab")
    assert view().change(before, after) == f"in full: {view().state(after)}"


def test_a_state_that_was_there_before_is_told_by_its_number() -> None:
    one = things({f"thing {n}": (n, False) for n in range(5)})
    two = screen(node("TextView", "something else altogether, which is not short " * 3))
    three = things({f"thing {n}": (n, n == 3) for n in range(5)})
    item = Labelled(
        Demonstration(Trajectory(pack([one, two, one, two, three])), "negative"), np.zeros(5, dtype=np.bool_)
    )
    told = write(UiView([item], Metadata("ui")), Shown(item)).splitlines()
    assert [line for line in told if line[0].isdigit()][2:] == [
        "3: as 1",
        "4: as 2",
        "5: since 3: ~ Switch* #onoff: unchecked -> checked (4 of 5, beside 'thing 3')",
    ]


@pytest.mark.parametrize("tokens", [STATE, 200, 100, COARSEST, 30])
def test_the_longest_texts_are_cut_first_then_what_says_least_goes(tokens: int) -> None:
    long = node("TextView", "word " * 200, name="story")
    boxes = [node("CheckBox", f"box {n}", checkable=True, checked=n == 3) for n in range(30)]
    plain = [node("View", name=f"plain{n}", clickable=True) for n in range(30)]
    state = screen(long, *plain, *boxes).encode()
    text = view(tokens=tokens).state(state)
    assert estimate(text) <= tokens
    if tokens < STATE:
        shown = text.count("CheckBox") + text.count("View* #plain") + text.count("#story")
        assert int(re.findall(r"… (\d+) more nodes?", text)[0]) + shown == 61
        assert "#plain" not in text or text.count("CheckBox") == 30


def test_a_text_is_cut_before_a_node_is_left_out() -> None:
    long = node("TextView", "word " * 200, name="story")
    boxes = [node("CheckBox", f"box {n}", checkable=True) for n in range(60)]
    told = view().state(screen(long, *boxes).encode())
    assert told.count("CheckBox") == 60
    assert re.search(r"'…(880|940) #story", told)
    assert "more node" not in told


def test_what_the_data_point_at_goes_last() -> None:
    """Of a goal screen the number that was asked for stays, and not what all screens have."""
    rows = {f"thing {n}": (n, False) for n in range(30)}
    experts = []
    for number in (71, 83, 92):
        goal = things({**rows, "wanted": (number, True)}, f"10:{number - 50}")
        trajectory = Trajectory(pack([things(rows), goal]), extra_info=f"warm it to {number}")
        experts.append(Labelled(Demonstration(trajectory, "expert"), np.array([False, True])))
    seen = UiView(experts, Metadata("ui"), COARSEST)
    told = seen.state(experts[0].trajectory.states[1])
    assert "Switch* #onoff checked" in told
    assert "'71\\u200a°' #value" in told
    assert "10:21" not in told


def test_coarser_views_take_less_and_end() -> None:
    state = things({f"thing {n}": (n, n % 2 == 0) for n in range(40)}).encode()
    sizes, one = [], view()
    while one is not None:
        sizes.append(estimate(one.state(state)))
        one = one.coarser
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] < 2 * COARSEST < sizes[0] / 4


def test_trajectories_shrink_below_their_least_in_full() -> None:
    states = [things({f"thing {n} {step}": (n, False) for n in range(40)}) for step in range(6)]
    item = Labelled(Demonstration(Trajectory(pack(states)), "negative"), np.zeros(6, dtype=np.bool_))
    seen = UiView([item], Metadata("ui"))
    whole = estimate(write(seen, Shown(item)))
    assert least(seen, Shown(item)) < whole / 8
    for tokens in (whole, 2000, 1000, least(seen, Shown(item))):
        assert estimate(write(seen, Shown(item), tokens)) <= tokens


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
@settings(max_examples=200, deadline=None)
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


NAMES = ("text", "content-desc", "resource-id", "class", "package", "bounds", "checked", "enabled", "selected", "hint")
values = st.sampled_from(
    ["", "null", "None", "true", "false", "x", "[0,0][9,9]", "[9,9][0,0]", "[-5,0][1", "a.b.C", "a:id/b", "🎉" * 9]
) | st.text(max_size=30).map(markup.rinse)
trees = st.recursive(
    st.tuples(st.dictionaries(st.sampled_from(NAMES), values, max_size=6), st.just(())),
    lambda children: st.tuples(
        st.dictionaries(st.sampled_from(NAMES), values, max_size=6), st.lists(children, max_size=4).map(tuple)
    ),
    max_leaves=12,
)


def raw(*specs: Any) -> str:
    """A screen whose nodes have only these attributes."""
    root = markup.hierarchy()

    def add(parent: Any, about: dict[str, str], children: Any) -> None:
        element = etree.SubElement(parent, "node", about)
        for child in children:
            add(element, *child)

    for spec in specs:
        add(root, *spec)
    return markup.write(root)


@given(st.lists(trees, max_size=3), st.lists(trees, max_size=3), st.sampled_from([24, 40, 77, STATE]))
@example([], [({"text": "\u202e" + "long " * 4000}, ())], 24)
@example([({"class": "c" * 5000, "resource-id": "i" * 5000, "package": "p" * 5000, "text": "t"}, ())], [], 24)
@settings(max_examples=150, deadline=None)
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
    alike = [item.key for item in Outline.of(before).items] == [item.key for item in Outline.of(after).items]
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


def test_about_explains_every_sign() -> None:
    for sign in ("*", "#", "desc=text", "…25", "\\u200a", "unchecked", "disabled", "hint", "colon", "[0,0][9,9]"):
        assert sign in ABOUT
    assert (
        view_of(
            [Labelled(Demonstration(Trajectory(pack([screen()])), "expert"), np.ones(1, dtype=np.bool_))],
            Metadata("ui"),
        ).about
        == ABOUT
    )
