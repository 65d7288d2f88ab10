"""A parsed screen says what its XML says."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest
from hypothesis import given
from lxml import etree

from grace_irl.errors import InputError
from grace_irl.states.ui import markup
from grace_irl.states.ui.screen import Screen, bounds_of
from tests.demos.ui.data import DUMPS, needs_android
from tests.demos.ui.test_markup import screens

CLOCK = """<hierarchy rotation="1">
  <node index="0" package="com.android.systemui" class="android.widget.FrameLayout" bounds="[0,0][1080,100]">
    <node index="0" package="com.android.systemui" content-desc="Battery 80 percent." bounds="[900,0][1080,100]"/>
  </node>
  <node index="0" package="com.clock" class="android.widget.FrameLayout" bounds="[0,0][1080,2400]">
    <node index="0" package="com.clock" class="android.view.ViewGroup" resource-id="com.clock:id/alarm"
          clickable="true" bounds="[0,100][1080,400]">
      <node index="0" package="com.clock" class="android.widget.TextView" text="8:25" bounds="[0,100][500,400]"/>
      <node index="1" package="com.clock" class="android.widget.Switch" resource-id="com.clock:id/onoff"
            checkable="true" checked="true" clickable="true" focusable="true" bounds="[600,100][1080,400]"/>
    </node>
    <node index="1" package="com.clock" text="hidden" visible-to-user="false" bounds="[0,0][9,9]">
      <node index="0" package="com.clock" text="below it" bounds="[0,0][9,9]"/>
    </node>
    <node index="2" package="com.clock" text="empty" bounds="[5,5][5,50]"/>
    <node index="3" package="com.clock" class="android.widget.EditText" hint="Label" enabled="false" password="true"/>
  </node>
</hierarchy>"""


@pytest.fixture
def clock() -> Screen:
    return Screen.parse(CLOCK)


def test_fields(clock: Screen) -> None:
    switch = clock.nodes[5]
    assert (switch.order, switch.parent, switch.children, switch.end, switch.depth, switch.index) == (5, 3, (), 6, 2, 1)
    assert (switch.class_name, switch.short_class) == ("android.widget.Switch", "Switch")
    assert (switch.resource_id, switch.short_id) == ("com.clock:id/onoff", "onoff")
    assert switch.checkable
    assert switch.checked
    assert switch.interactive
    assert switch.bounds == (600, 100, 1080, 400)
    assert switch.area == 480 * 300
    field = clock.nodes[9]
    assert (field.enabled, field.password, field.bounds, field.area) == (False, True, None, 0)
    assert field.visible  # nothing says otherwise
    assert clock.rotation == 1
    assert clock.size == (1080, 2400)
    with pytest.raises(FrozenInstanceError):
        switch.text = "another"  # type: ignore[misc]


def test_what_is_visible(clock: Screen) -> None:
    assert [node.order for node in clock.visible] == [0, 1, 2, 3, 4, 5, 9]
    assert [node.label for node in clock.labelled] == ["Battery 80 percent.", "8:25", "Label"]


def test_the_app_in_the_foreground(clock: Screen) -> None:
    assert clock.package == "com.clock"
    assert Screen.parse("<hierarchy/>").package == ""
    equal = (
        '<hierarchy><node package="a" text="1"/><node package="b"/><node package="b"/><node/><node/><node/></hierarchy>'
    )
    assert Screen.parse(equal).package == "b"


def test_families(clock: Screen) -> None:
    alarm, time, switch = clock.nodes[3:6]
    assert clock.children(alarm) == (time, switch)
    assert clock.below(alarm) == (time, switch)
    assert clock.below(clock.nodes[2]) == clock.nodes[3:]
    assert clock.parent(time) == alarm
    assert clock.parent(clock.nodes[2]) is None
    assert [node.order for node in clock.ancestors(switch)] == [3, 2]


def test_names_and_paths(clock: Screen) -> None:
    assert clock.nodes[5].name == "Switch#onoff"
    assert clock.nodes[4].name == 'TextView "8:25"'
    assert clock.nodes[1].name == 'node "Battery 80 percent."'
    assert clock.path(clock.nodes[5]) == "FrameLayout/alarm/onoff"
    long = Screen.parse(f'<hierarchy><node text="a&#10;b {"c" * 60}"/></hierarchy>').nodes[0]
    assert long.name == f'node "a b {"c" * 36}…"'


@pytest.mark.parametrize(
    ("text", "bounds"),
    [
        ("[0,1][2,3]", (0, 1, 2, 3)),
        ("[-5,-6][2,3]", (-5, -6, 2, 3)),
        ("", None),
        ("[0,1]", None),
        ("[0,1][2,3]\n", None),
        ("[0,1][2,3] ", None),
        ("[0.5,1][2,3]", None),
        ("[0,1][2,9999999999]", None),
    ],
)
def test_bounds(text: str, bounds: tuple[int, int, int, int] | None) -> None:
    assert bounds_of(text) == bounds


def test_what_is_no_screen_is_refused() -> None:
    with pytest.raises(InputError, match="step 4: root <html>"):
        Screen.parse("<html/>", "step 4")


@needs_android
@pytest.mark.parametrize("path", DUMPS[::4], ids=lambda path: path.stem)
def test_a_real_screen_agrees_with_its_tree(path: Path) -> None:
    elements = list(etree.parse(path).getroot().iter("node"))
    screen = Screen.parse(path.read_bytes())
    agree(screen, elements)
    assert screen.package in {"com.google.android.deskclock", "com.google.android.apps.nexuslauncher"}
    assert all(screen.path(node) for node in screen.nodes)


@given(screens())
def test_any_screen_agrees_with_its_tree(root: etree._Element) -> None:
    agree(Screen.parse(markup.write(root)), list(root.iter("node")))


def agree(screen: Screen, elements: list[etree._Element]) -> None:
    """Every field of every node, against the tree itself."""
    assert len(screen.nodes) == len(elements)
    for order, (node, element) in enumerate(zip(screen.nodes, elements, strict=True)):
        assert node.order == order
        assert node.parent == (elements.index(element.getparent()) if element.getparent().tag == "node" else -1)
        assert [elements[child] for child in node.children] == list(element)
        assert node.end - node.order == len(list(element.iter()))
        assert node.depth == len(list(element.iterancestors("node")))
        for field, attribute in {
            "text": "text",
            "resource_id": "resource-id",
            "content_desc": "content-desc",
            "class_name": "class",
            "package": "package",
            "hint": "hint",
        }.items():
            assert getattr(node, field) == element.get(attribute, "")
        flags = ("checkable", "checked", "clickable", "focusable", "focused", "scrollable", "password", "selected")
        assert all(getattr(node, flag) == (element.get(flag) == "true") for flag in flags)
        assert node.long_clickable == (element.get("long-clickable") == "true")
        assert node.enabled == (element.get("enabled", "true") == "true")
        assert node.bounds == bounds_of(element.get("bounds", ""))
