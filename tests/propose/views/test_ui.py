"""Screens in prompts: what a line says, what is left out first, what a change is."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from grace_irl.demos.labels import Labelled
from grace_irl.demos.trajectory import Demonstration, Metadata, Trajectory
from grace_irl.propose.tokens import estimate
from grace_irl.propose.views import view_of
from grace_irl.propose.views.outline import LONGEST
from grace_irl.propose.views.trajectory import Shown, least, write
from grace_irl.propose.views.ui import ABOUT, COARSEST, STATE, UiView
from grace_irl.states.texts import pack
from tests.propose.screens import bar, node, screen, things
from tests.propose.views.outlines import lines, raw, view


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
