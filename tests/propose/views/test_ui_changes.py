"""Screens in prompts: what a change between two of them is."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from typing import Any

import numpy as np
import pytest

from grace_irl.demos.labels import Labelled
from grace_irl.demos.trajectory import Demonstration, Metadata, Trajectory
from grace_irl.propose.views.trajectory import Shown, write
from grace_irl.propose.views.ui import UiView
from grace_irl.states.texts import pack
from tests.propose.screens import bar, node, screen, things
from tests.propose.views.outlines import view


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
