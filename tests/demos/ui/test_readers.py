"""Every reader of screens on the real data, against what the files themselves say."""

from __future__ import annotations

import ast
import gzip
import json
import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from lxml import etree

from grace_irl.demos import iter_trajectories, load
from grace_irl.demos.files import expand, open_source
from grace_irl.demos.trajectory import Demonstration, Metadata
from grace_irl.states.texts import text
from grace_irl.states.ui import markup
from grace_irl.states.ui.screen import Node, Screen
from tests.demos.ui.data import ALARM, ANDROID, DUMPS, ELEMENTS, HISTORIES, RECORDS, needs_android

pytestmark = needs_android


def read(path: Path) -> Demonstration:
    """The one episode of a file; its states are canonical, and come a second time as they came first."""
    source = open_source(path)
    assert source.header.metadata == Metadata("ui", view="uiautomator")
    (found,) = source.demonstrations("negative", np.empty)
    (again,) = source.demonstrations("negative", np.empty)
    assert found.trajectory.digest == again.trajectory.digest
    for state in found.trajectory.states:
        assert markup.write(markup.parse(bytes(state))) == text(state)
    return found


def nodes(demonstration: Demonstration) -> list[tuple[Node, ...]]:
    return [Screen.parse(bytes(state)).nodes for state in demonstration.trajectory.states]


def test_a_folder_of_dumps_is_one_episode() -> None:
    found = read(ALARM)
    assert found.trajectory.extra_info == (
        "Set a weekend alarm for 8:25 a.m. with the ringtone beebeep and vibration off."
    )
    assert [text(state) for state in found.trajectory.states] == [
        markup.write(markup.parse(dump.read_bytes())) for dump in DUMPS
    ]
    assert found.trajectory.screenshots == ()
    assert not found.trajectory.terminated
    bare = read(ALARM / "hierarchy")
    np.testing.assert_array_equal(bare.trajectory.states, found.trajectory.states)
    assert bare.trajectory.extra_info == ""


def test_a_dump_alone_is_an_episode_of_one_state() -> None:
    found = read(DUMPS[4])
    expected = [dict(node.attrib) for node in etree.parse(DUMPS[4]).getroot().iter()]
    assert [dict(node.attrib) for node in markup.parse(bytes(found.trajectory.states[0])).iter()] == expected


@pytest.mark.parametrize("path", HISTORIES, ids=lambda path: path.stem)
def test_a_history_has_the_elements_of_every_step(path: Path) -> None:
    steps = json.loads(gzip.decompress(path.read_bytes()))
    found = read(path)
    assert found.trajectory.extra_info == steps[0]["task_goal"]
    assert not found.trajectory.terminated
    assert open_source(path).header.role == "negative"  # all failed
    for screen, step in zip(nodes(found), steps, strict=True):
        for node, element in zip(screen, step["ui_description"], strict=True):
            said = element["ui_description"]
            assert node.depth == 0
            assert node.clickable == ('"is_clickable": True' in said)
            assert node.long_clickable == ('"is_long_clickable": True' in said)
            assert node.selected == ('"is_selected": True' in said)
            assert node.checked == ('"is_checked": True' in said)
            assert node.scrollable == ('"is_scrollable": True' in said)
            assert (f'"text": "{node.text}"' in said) if node.text else '"text"' not in said
            assert (f'"content_description": "{node.content_desc}"' in said) == bool(node.content_desc)
            assert (f'"hint_text": "{node.hint}"' in said) == bool(node.hint)
            left, right, top, bottom = element["ui_bbox"]
            assert node.bounds == (left, top, right, bottom)


@pytest.mark.parametrize("path", ELEMENTS, ids=lambda path: path.stem)
def test_an_element_list_has_every_field(path: Path) -> None:
    (screen,) = nodes(read(path))
    lines = path.read_text().splitlines()
    for node, line in zip(screen, lines, strict=True):
        call = ast.parse(line, mode="eval").body
        assert isinstance(call, ast.Call)
        said = {word.arg: word.value for word in call.keywords}
        plain = {str(name): ast.literal_eval(value) for name, value in said.items() if not isinstance(value, ast.Call)}
        assert node.text == (plain["text"] or "")
        assert node.content_desc == (plain["content_description"] or "")
        assert node.class_name == plain["class_name"]
        assert node.package == plain["package_name"]
        assert node.resource_id == (plain["resource_id"] or "")
        for flag in ("checked", "checkable", "clickable", "enabled", "focused", "focusable", "scrollable", "selected"):
            assert getattr(node, flag) == bool(plain[f"is_{flag}"])
        box = said["bbox_pixels"]
        assert isinstance(box, ast.Call)
        limits = {word.arg: ast.literal_eval(word.value) for word in box.keywords}
        assert node.bounds == tuple(limits[side] for side in ("x_min", "y_min", "x_max", "y_max"))


def walk(node: Mapping[str, Any], depth: int = 0) -> Iterator[tuple[Mapping[str, Any], int]]:
    yield node, depth
    for child in node.get("children", []):
        yield from walk(child, depth + 1)


def test_accessibility_trees_have_every_node(calendar: Path) -> None:
    files = expand(calendar)
    assert len(files) == 83  # and none of the hundred descriptions in YAML
    for path in files[::5]:
        said = json.loads(Path(path).read_text())
        (screen,) = nodes(read(Path(path)))
        for node, (element, depth) in zip(screen, walk(said["trailblazeNodeTree"]), strict=True):
            detail = element["driverDetail"]
            assert node.depth == depth
            assert node.text == detail.get("text", "")
            assert node.content_desc == detail.get("contentDescription", "")
            assert node.class_name == detail["className"]
            assert node.package == detail["packageName"]
            assert node.resource_id == detail.get("resourceId", "")
            assert node.hint == detail.get("hintText", "")
            assert node.clickable == detail.get("isClickable", False)
            assert node.enabled == detail.get("isEnabled", True)
            assert node.checked == detail.get("isChecked", False)
            assert node.bounds == tuple(element["bounds"][side] for side in ("left", "top", "right", "bottom"))
            if not detail.get("isVisibleToUser", True):
                assert not node.visible


def test_a_plainer_tree_of_the_same_screen_says_the_same(calendar: Path, tmp_path: Path) -> None:
    """The captures hold each screen twice; the plain one lacks the package and a few nodes that are not visible."""
    said = json.loads((calendar / "calendar_android_event_detail.example.json").read_text())
    del said["trailblazeNodeTree"]
    (tmp_path / "plain.json").write_text(json.dumps(said))
    (plain,) = nodes(read(tmp_path / "plain.json"))
    (full,) = nodes(read(calendar / "calendar_android_event_detail.example.json"))
    assert len(plain) == len(full) == 37

    def key(node: Node) -> tuple[object, ...]:
        return node.class_name, node.text, node.content_desc, node.resource_id, node.bounds, node.depth

    assert [key(node) for node in plain] == [key(node) for node in full]


COUNTS = {"calendar_utg": 72, "clock_utg": 34, "notes_utg": 43}


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.stem)
def test_records_have_every_element(path: Path) -> None:
    found = read(path)
    goal = "add the holiday of united kingdom, create the event of 'visit parents' on christmas"
    assert found.trajectory.extra_info == (goal if path.stem == "calendar_utg" else "")
    screens = nodes(found)
    assert len(screens) == COUNTS[path.stem]
    raw = path.read_text()
    classes = [node.short_class for screen in screens for node in screen]
    for tag, name in (("button", "Button"), ("checkbox", "CheckBox"), ("input", "EditText"), ("p", "TextView")):
        # YAML folds long lines, in tags too
        assert classes.count(name) == len(re.findall(rf"</{tag}>", raw))
    boxes = [node for screen in screens for node in screen if node.short_class == "CheckBox"]
    assert 0 < sum(node.checked for node in boxes) < len(boxes)


def test_fields_of_records() -> None:
    first = nodes(read(ANDROID / "utg" / "clock_utg.yaml"))[0]
    assert [(node.index, node.short_class, node.text, node.content_desc) for node in first] == [
        (0, "Button", "", "More apps from us"),
        (1, "Button", "", "Settings"),
        (2, "Button", "", "About"),
        (3, "Button", "05:00", ""),
        (4, "Button", "", "New Timer"),
        (5, "Button", "Clock", ""),
        (6, "Button", "Alarm", ""),
        (7, "Button", "Stopwatch", ""),
        (8, "TextView", "Timer", ""),
        (9, "Button", "go back", ""),
    ]
    assert all(node.visible and node.bounds is None for node in first)
    second = nodes(read(ANDROID / "utg" / "clock_utg.yaml"))[1]
    assert second[9].text == "Max reminder duration\n5 minutes"
    assert second[6].checked
    assert second[6].checkable


@pytest.mark.slow
def test_a_set_of_everything(tmp_path: Path) -> None:
    shutil.copytree(ALARM, tmp_path / "expert-alarm")
    shutil.copytree(ALARM / "hierarchy", tmp_path / "negative-alarm")
    found = load([tmp_path], [ANDROID / "androidworld", ANDROID / "utg"])
    assert [item.role for item in found].count("expert") == 1
    assert len(found) == 2 + len(HISTORIES) + len(ELEMENTS) + len(RECORDS)
    assert found.metadata == Metadata("ui", view="uiautomator")
    assert not any(item.trajectory.states.flags.writeable for item in found)
    one_by_one = list(iter_trajectories(ANDROID / "androidworld", role="negative"))
    assert [item.trajectory.digest for item in one_by_one] == [
        item.trajectory.digest for item in found[2 : 2 + len(one_by_one)]
    ]
    assert len(expand(ANDROID / "androidworld")) == len(one_by_one)
