"""Files of screens that cannot be used are refused in one line; folders say what is in them."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from grace_irl.demos import load
from grace_irl.demos.convert import convert
from grace_irl.demos.files import expand, passed_over
from grace_irl.demos.formats import open_source
from grace_irl.demos.memory import Memory
from grace_irl.demos.screenshots import FileScreenshot, media_type
from grace_irl.demos.summary import summarise
from grace_irl.demos.ui import episode, texts
from grace_irl.errors import InputError
from grace_irl.states.ui.screen import Screen

DUMP = '<?xml version="1.0" encoding="UTF-8"?>\n<hierarchy rotation="0">\n  <node text="8:25"/>\n</hierarchy>'
NODE = {"className": "android.widget.TextView", "text": "8:25", "bounds": [0, 0, 10, 10]}
STEP: dict[str, Any] = {
    "task_goal": "set an alarm",
    "result": True,
    "ui_description": [
        {
            "ui_description": 'UI element 0: {"index": 0, "text": "say "8:25", \nplease", "is_clickable": True}',
            "ui_bbox": [0, 10, 0, 10],
        }
    ],
}
PNG = b"\x89PNG\r\n\x1a\n and so on"


def described(text: object) -> str:
    return json.dumps([{**STEP, "ui_description": [{"ui_description": text, "ui_bbox": [0, 1, 0, 1]}]}])


def deep(depth: int) -> dict[str, Any]:
    tree: dict[str, Any] = dict(NODE)
    for _ in range(depth):
        tree = {"children": [tree]}
    return tree


REFUSED: dict[str, tuple[str, str | bytes, str]] = {
    "XML of something else": ("robot.xml", "<mujoco/>", "root <mujoco>"),
    "Appium's page source": (
        "a.xml",
        "<hierarchy><android.widget.FrameLayout/></hierarchy>",
        "as in the page source of Appium; expected only <node> in a <hierarchy>: dump the screen by `adb shell uiauto",
    ),
    "a dump that failed": (
        "a.xml",
        "ERROR: could not get idle state.\n",
        "'ERROR: could not get idle state.' instead of a screen, as uiautomator reports a dump that failed",
    ),
    "an entity bomb": ("a.xml", '<!DOCTYPE a [<!ENTITY b "c">]><hierarchy/>', "DOCTYPE"),
    "a dump of 50 MB": ("a.xml", f"<hierarchy>{' ' * 50_000_000}</hierarchy>", "longer than 16,777,216 bytes"),
    "a dump 10,000 deep": (
        "a.xml",
        f"<hierarchy>{'<node>' * 10_000}{'</node>' * 10_000}</hierarchy>",
        "deeper than 256",
    ),
    "a dump of broken UTF-8": ("a.xml", b'<hierarchy text="\xc3"/>', "byte 17 is not UTF-8"),
    "not JSON": ("a.json", "{'a': 1}", "not JSON"),
    "JSON of something else": ("a.json", '{"name": "a card", "text": "b"}', "no screen"),
    "JSON that is a number": ("a.json", "7", "no screen"),
    "an empty list": ("a.json", "[]", "a list"),
    "a list of something else": ("a.json", "[1, 2]", "a list"),
    "broken UTF-8": ("a.json", b'{"text": "\xff"}', "byte 10 is not UTF-8"),
    "a number of 10,000 digits": ("a.json", f'{{"children": [], "x1": {"1" * 10_000}}}', "not JSON"),
    "JSON 100,000 deep": ("a.json", "[" * 100_000, "nested too deep"),
    "a tree too deep": ("a.json", json.dumps(deep(300)), "deeper than 256"),
    "a tree too large": ("a.json", json.dumps({"children": [{}] * 100_001}), "more than 100,000 nodes"),
    "JSON of too many parts": ("a.json", f"[{'[],' * 1_000_000}[]]", "1,000,002 lists and objects"),
    "a tree with a number": ("a.json", '{"children": [7]}', "a node is 7"),
    "gzip that is cut": ("a.json.gz", gzip.compress(json.dumps([STEP] * 9).encode())[:-20], "not readable"),
    "gzip that is none": ("a.json.gz", b"[]", "not readable"),
    "a gzip bomb": ("a.json.gz", gzip.compress(b" " * 100_000_000), "longer than 33,554,432"),
    "two goals": ("a.json", json.dumps([STEP, {**STEP, "task_goal": "another"}]), "several goals"),
    "a result that is a text": ("a.json", json.dumps([{**STEP, "result": "yes"}]), "success 'yes'"),
    "elements that are none": ("a.json", json.dumps([{**STEP, "ui_description": 3}]), "a list of elements"),
    "an element that is a number": ("a.json", json.dumps([{**STEP, "ui_description": [3]}]), "element 0: 3"),
    "an element of another form": ("a.json", described("a button"), "'a button'"),
    "an element cut off": ("a.json", described('UI element 0: {"index": 0, "text": "a'), "UI element 0"),
    "an element with code": ("a.json", described('UI element 0: {"index": 0, "a": __import__("os")}'), "then flags"),
    "Python that is no element": ("a_ui_element.txt", "__import__('os').system('id')", "UIElement("),
    "an element with a call": ("a_ui_element.txt", "UIElement(text=open('a'))", "cannot be read"),
    "an element that is not closed": ("a_ui_element.txt", "UIElement(text='a'", "cannot be read"),
    "an element deep in brackets": ("a_ui_element.txt", "UIElement(text=" + "(" * 100_000, "cannot be read"),
    "an escape beyond Unicode": ("a_ui_element.txt", r"UIElement(text='\Uffffffff')", r"\Uffffffff"),
    "something behind an element": ("a_ui_element.txt", "UIElement(text='a')\nimport os", "'import os'"),
    "too many elements": ("a_ui_element.txt", "UIElement(text='')" * 100_001, "more than 100,000 elements"),
    "no elements": ("a_ui_element.txt", "[]", "UIElement("),
    "long YAML": ("utg.yaml", "#" * 5_000_000, "longer than 4,194,304 bytes"),
    "YAML of something else": ("utg.yaml", "a: 1", "no list 'records'"),
    "YAML that is a text": ("utg.yaml", "a", "no list 'records'"),
    "not YAML": ("utg.yaml", "a: [", "not YAML"),
    "two documents": ("utg.yaml", "--- a\n--- b\n", "2 YAML documents"),
    "a bomb of aliases": ("utg.yaml", "a: &a [1]\nb: [*a, *a]\nrecords: []", "alias *a"),
    "YAML too deep": ("utg.yaml", "records: " + "[" * 20 + "]" * 20, "deeper than 16"),
    "YAML 10,000 deep": ("utg.yaml", "[" * 10_000, "deeper than 16"),
    "no records": ("utg.yaml", "records: []", "no screens"),
    "a record without a state": ("utg.yaml", "records:\n- Choice: 1", "record 0: no text 'State'"),
    "a state of something else": ("utg.yaml", "records:\n- State: <b>a</b>", "'<b>a</b>'"),
    "a state that is not closed": ("utg.yaml", "records:\n- State: <p id=0>a", "is not closed"),
    "a description that is not closed": ("utg.yaml", "records:\n- State: <p id=0 text='a</p>", "is not closed"),
    "an object made by a tag": ("utg.yaml", "records: !!python/object/apply:os.system [id]", "record 0"),
    "another kind of file": ("screens.html", "<html/>", "unknown format '.html'"),
}


@pytest.mark.parametrize(("name", "content", "word"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_used_is_refused_in_one_line(name: str, content: str | bytes, word: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InputError) as caught:
        load([path], role="expert")
    message = str(caught.value)
    assert str(path) in message
    assert word in message
    assert "expected" in message
    assert "\n" not in message
    assert len(message) - len(str(path)) < 400


def test_the_command_line_refuses_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "expert.xml").write_text(
        '<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/hostname">]><hierarchy>&b;</hierarchy>'
    )
    command = [sys.executable, "-m", "grace_irl", "demos", "inspect", str(tmp_path / "expert.xml")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert "DOCTYPE" in done.stderr


def folder(path: Path, files: dict[str, str | bytes]) -> Path:
    """A folder with these files."""
    for name, content in files.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize(
    ("task", "word"),
    [
        ("[]", "not an object"),
        ("{", "not JSON"),
        ('{"task": 3}', "'task' is 3"),
        ('{"role": "master"}', "role 'master'"),
        ('{"success": 1}', "success 1"),
    ],
)
def test_task_files_that_cannot_be_used(task: str, word: str, tmp_path: Path) -> None:
    folder(tmp_path / "expert", {"task.json": task, "hierarchy/1.xml": DUMP})
    with pytest.raises(InputError, match=word) as caught:
        load([tmp_path / "expert"])
    assert "task.json" in str(caught.value)


def test_what_a_task_file_says(tmp_path: Path) -> None:
    task = {"goal": " set an alarm\n", "success": True}
    found = load([folder(tmp_path / "a", {"task.json": json.dumps(task), "1.xml": DUMP})])[0]
    assert (found.trajectory.extra_info, found.trajectory.terminated, found.role) == ("set an alarm", True, "expert")
    task = {"instruction": "a", "success": False}
    assert load([folder(tmp_path / "b", {"task.json": json.dumps(task), "1.xml": DUMP})])[0].role == "negative"
    task = {"task": "a", "success": True, "role": "negative"}
    assert load([folder(tmp_path / "c", {"task.json": json.dumps(task), "1.xml": DUMP})])[0].role == "negative"


def test_steps_are_in_the_order_of_their_numbers_and_have_their_pictures(tmp_path: Path) -> None:
    dumps = {f"hierarchy/step_{n}.xml": DUMP.replace("8:25", str(n)) for n in (1, 2, 10, 9, 100)}
    pictures = {"screenshots/step_2.png": PNG, "hierarchy/step_10.jpg": b"\xff\xd8\xff", "hierarchy/.step_3.xml": ""}
    path = folder(tmp_path / "expert", {**dumps, **pictures, "task.json": "{}"})
    trajectory = load([path])[0].trajectory
    shown = [Screen.parse(bytes(state)).nodes[0].text for state in trajectory.states]
    assert shown == ["1", "2", "9", "10", "100"]
    assert [shot and shot.read() for shot in trajectory.screenshots] == [None, PNG, None, b"\xff\xd8\xff", None]


def test_screenshots_that_cannot_be_used(tmp_path: Path) -> None:
    folder(tmp_path, {"a.png": b"<svg/>", "b.png": PNG, "c.webp": b"RIFF0000WEBPVP8 "})
    with pytest.raises(InputError, match="expected a screenshot in PNG, JPEG or WebP"):
        FileScreenshot(tmp_path / "a.png").read()
    with pytest.raises(InputError, match="no screenshot"):
        FileScreenshot(tmp_path / "gone.png").read()
    assert FileScreenshot(tmp_path / "b.png", length=8).read() == PNG[:8]
    assert media_type(FileScreenshot(tmp_path / "c.webp").read(), "c") == "image/webp"
    packed = folder(tmp_path, {"pack": b"before" + PNG + b"behind"}) / "pack"
    assert FileScreenshot(packed, 6, len(PNG)).read() == PNG


def test_a_capture_names_its_picture_but_none_elsewhere(tmp_path: Path) -> None:
    folder(tmp_path, {"out.png": PNG, "in/a.json": json.dumps({"screenshotFile": "b.png", "children": [NODE]})})
    folder(tmp_path, {"in/b.png": PNG, "in/c.json": json.dumps({"screenshotFile": "../out.png", "children": [NODE]})})
    named, outside = load([tmp_path / "in"], role="expert")
    assert named.trajectory.screenshots == (FileScreenshot(tmp_path / "in" / "b.png"),)
    assert outside.trajectory.screenshots == ()


FOLDERS: dict[str, tuple[list[str], list[str]]] = {
    "dumps alone are one episode": (["1.xml", "2.xml", "1.png"], ["."]),
    "a task file makes an episode": (["task.json", "1.xml"], ["."]),
    "a model beside demonstrations is no screen": (["expert.parquet", "robot.xml"], ["expert.parquet"]),
    "cards beside demonstrations are none": (["expert.parquet", "card.json", "a.yaml"], ["expert.parquet"]),
    "episodes in a folder": (["a/1.xml", "b/task.json", "b/hierarchy/1.xml", "c/d.txt"], ["a", "b"]),
    "episodes beside a recipe": (["a/1.xml", "recipe.json"], ["a"]),
    "histories and lists": (["a.json.gz", "b_ui_element.txt", "c.txt"], ["a.json.gz", "b_ui_element.txt"]),
    "trees, and descriptions of them": (["a.json", "a.waypoint.yaml"], ["a.json"]),
    "records": (["clock_utg.yaml"], ["clock_utg.yaml"]),
}


@pytest.mark.parametrize(("files", "expected"), FOLDERS.values(), ids=FOLDERS)
def test_what_a_folder_stands_for(files: list[str], expected: list[str], tmp_path: Path) -> None:
    path = folder(tmp_path / "set", dict.fromkeys(files, "x"))
    assert [Path(found).relative_to(path) for found in expand(path)] == [Path(name) for name in expected]
    assert episode.is_episode(path) == (expected == ["."])


def test_history_elements_in_every_form(tmp_path: Path) -> None:
    shown = STEP["ui_description"][0]
    printed = 'UIElement(text="it\'s\\n\\u65e5\\\\", bbox_pixels=BoundingBox(x_min=0, x_max=3.0, y_min=1, y_max=2))'
    fields = {"text": "c", "is_checked": True, "bbox_pixels": {"x_min": 0, "x_max": 3, "y_min": 1, "y_max": 2}}
    steps = [
        {**STEP, "ui_description": [shown, printed, fields]},
        {**STEP, "ui_description": f"[{printed}, {printed}]"},
    ]
    (tmp_path / "a.json").write_text(json.dumps(steps))
    item = load([tmp_path / "a.json"])[0]
    assert (item.role, item.trajectory.terminated, item.trajectory.extra_info) == ("expert", True, "set an alarm")
    first, second = (Screen.parse(bytes(state)).nodes for state in item.trajectory.states)
    assert [node.text for node in first] == ['say "8:25", \nplease', "it's\n日\\", "c"]
    assert [node.bounds for node in first] == [(0, 0, 10, 10), (0, 1, 3, 2), (0, 1, 3, 2)]
    assert [node.clickable for node in first] == [True, False, False]
    assert first[2].checked
    assert [node.text for node in second] == ["it's\n日\\"] * 2


@pytest.mark.parametrize(
    "bounds",
    [
        {"bounds": "[1,2][3,4]"},
        {"bounds": [1, 2, 3, 4]},
        {"bounds": [[1, 2], [3, 4]]},
        {"bounds": {"left": 1, "top": 2, "right": 3, "bottom": 4}},
        {"bounds_in_screen": {"left": 1.0, "top": 2.0, "right": 3.0, "bottom": 4.0}},
        {"bounds": {"x": 1, "y": 2, "width": 2, "height": 2}},
        {"x1": 1, "y1": 2, "x2": 3, "y2": 4},
        {"bbox": {"x_min": 1, "y_min": 2, "x_max": 3, "y_max": 4}},
    ],
)
def test_bounds_in_every_spelling(bounds: dict[str, object], tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps({"children": [bounds]}))
    state = load([tmp_path / "a.json"], role="expert")[0].trajectory.states[0]
    assert Screen.parse(bytes(state)).nodes[1].bounds == (1, 2, 3, 4)


@pytest.mark.parametrize(
    "bounds",
    [[1, 2, 3], [1, 2, 3, "4"], [1, 2, 3, float("nan")], [1, 2, 3, 1e30], {"left": 1}, {"x": 1, "y": 2}, 7, "1,2,3,4"],
)
def test_bounds_that_cannot_be_read_are_refused(bounds: object, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps({"children": [{"bounds": bounds}]}))
    with pytest.raises(InputError, match=r"a\.json, node 1: bounds .*; expected '\[left,top\]"):
        load([tmp_path / "a.json"], role="expert")


@pytest.mark.parametrize("bounds", [None, "", [], {}])
def test_bounds_that_say_nothing_are_left_out(bounds: object, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps({"children": [{"bounds": bounds, "text": "a\x00\ud800"}]}))
    state = load([tmp_path / "a.json"], role="expert")[0].trajectory.states[0]
    node = Screen.parse(bytes(state)).nodes[1]
    assert (node.bounds, node.text) == (None, "a\ufffd\ufffd")


@pytest.mark.parametrize(
    ("value", "meant"),
    [
        *((value, True) for value in (True, 1, 1.0, "True", "TRUE", "1")),
        *((value, False) for value in (False, 0, "FALSE", "", None)),
    ],
)
def test_flags_in_every_spelling(value: object, meant: bool, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps({"children": [{"isChecked": value, "text": 1}]}))
    state = load([tmp_path / "a.json"], role="expert")[0].trajectory.states[0]
    node = Screen.parse(bytes(state)).nodes[1]
    assert (node.checked, node.text) == (meant, "1")


@pytest.mark.parametrize("value", [2, -1, "on", "yes"])
def test_other_flags_are_refused(value: object, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps({"children": [{"checked": value}]}))
    with pytest.raises(InputError, match=r"a\.json, node 1: checked is .*; expected true or false \(or 1 or 0\)"):
        load([tmp_path / "a.json"], role="expert")


def test_an_episode_that_would_be_too_large_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(episode, "MAX_BYTES", 1000)
    path = folder(tmp_path / "expert", {f"{n}.xml": DUMP for n in range(20)})
    with pytest.raises(InputError, match="20 screens of up to 55 bytes, which take 1,100; expected at most 1,000"):
        load([path])


def test_files_that_grow_while_they_are_read_are_refused(tmp_path: Path) -> None:
    path = folder(tmp_path / "expert", {"1.xml": DUMP})
    source = open_source(path)
    (path / "1.xml").write_text(DUMP.replace("8:25", "8:25" * 100))
    with pytest.raises(InputError, match="changed while they were read"):
        list(source.demonstrations("expert", np.empty))


@pytest.mark.parametrize("read", [texts.read_text, texts.read_bytes])
def test_a_file_as_long_as_allowed_is_read(read: Callable[[Path, Memory, int], object], tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("a" * 10)
    assert read(tmp_path / "a.json", Memory(), 10) in ("a" * 10, b"a" * 10)
    with pytest.raises(InputError, match="longer than 9 bytes"):
        read(tmp_path / "a.json", Memory(), 9)
    assert read(tmp_path / "a.json", Memory(10 * texts.PARSED), 10)
    with pytest.raises(InputError, match=r"a\.json: a text of 10 bytes or more needs 500 B of memory"):
        read(tmp_path / "a.json", Memory(10 * texts.PARSED - 1), 10)


@pytest.mark.parametrize("name", ["a.json.gz", "a.json.GZ"])
def test_the_case_of_an_ending_does_not_matter(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(gzip.compress(b"[]"))
    assert texts.read_text(tmp_path / name, Memory()) == "[]"


def test_yaml_needs_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)
    (tmp_path / "clock_utg.yaml").write_text("records: []")
    with pytest.raises(InputError, match=r"grace-irl\[android\]"):
        load([tmp_path / "clock_utg.yaml"], role="expert")


def test_data_that_a_folder_passes_over_are_counted(tmp_path: Path) -> None:
    for role in ("expert", "negative"):
        folder(tmp_path / "set" / role, {"1.xml": DUMP, "task.json": json.dumps({"role": role})})
    folder(tmp_path / "set" / "lost", {"task.json": json.dumps({"role": "expert"})})
    folder(tmp_path / "set" / "pictures", {"1.png": ""})
    folder(tmp_path / "set", {"a.json.gz": "", "b.json.gz": "", "c.xml": DUMP, "card.json": "{}", "recipe.yaml": ""})
    line = f"{tmp_path / 'set'}: passed over: 2 .json.gz, 1 .xml, 1 folder without screens; "
    line += "if these are demonstrations, name them, or move them to a folder of their own"
    assert load([tmp_path / "set"]).notes == (line,)
    assert summarise(tmp_path / "set").notes == (line,)
    copied = convert(tmp_path / "set", tmp_path / "copy")
    assert [note for one in copied for note in one.notes] == [line]


def test_cards_beside_episodes_are_passed_over_without_a_word(tmp_path: Path) -> None:
    folder(tmp_path / "set" / "expert", {"1.xml": DUMP})
    folder(tmp_path / "set", {"card.json": "{}", "recipe.yaml": "", "README.md": ""})
    assert passed_over([tmp_path / "set", tmp_path / "set" / "expert", "D4RL/door/human-v2"]) == ()
