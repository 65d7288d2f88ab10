"""One maker of inputs for each reader: a file that is right, and then changed in a few places."""

from __future__ import annotations

import gzip
import io
import json
import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from fuzzing import mutations as m
from fuzzing.draw import Draw

Maker = Callable[[Draw, Path], Path]
"""Writes an input into an empty folder and gives its path."""

DUMP = (
    "<?xml version='1.0' encoding='UTF-8' standalone='yes' ?>\n"
    '<hierarchy rotation="0"><node index="0" text="" resource-id="" class="android.widget.FrameLayout" '
    'package="com.android.deskclock" content-desc="" checkable="false" bounds="[0,0][1080,2400]">'
    '<node index="0" text="8:25&#160;AM" resource-id="com.android.deskclock:id/digital_clock" '
    'class="android.widget.TextView" content-desc="8:25 AM" bounds="[44,300][500,420]"/>'
    '<node index="1" text="" class="android.widget.Switch" checkable="true" checked="true" clickable="true" '
    'bounds="[900,300][1036,420]" hint="" visible-to-user="true"/></node></hierarchy>'
)
STEP = {
    "task_goal": "Set an alarm for 8:25.",
    "result": False,
    "action_output": "Action: click",
    "ui_description": [
        {
            "ui_description": 'UI element 0: {"index": 0, "text": "8:25", "content_description": "an "alarm"", '
            '"hint_text": "h", "is_clickable": True, "is_scrollable": True, "is_checked": False}',
            "ui_bbox": [0, 1080, 0, 2400],
        },
        "UIElement(text='it\\'s', is_checked=True, bbox_pixels=BoundingBox(x_min=0, x_max=9, y_min=0, y_max=9))",
        {"text": "OK", "class_name": "android.widget.Button", "bbox_pixels": {"x_min": 0, "x_max": 3, "y_max": 4}},
    ],
}
TREE = {
    "screenshotFile": "a.webp",
    "deviceWidth": 1080,
    "viewHierarchy": {"x2": 9, "y2": 9, "className": "a.B", "children": [{"nodeId": 2, "text": "t", "x1": 1, "x2": 3}]},
    "trailblazeNodeTree": {
        "nodeId": 1,
        "bounds": {"left": 0, "top": 0, "right": 1080, "bottom": 2400},
        "driverDetail": {"className": "android.widget.FrameLayout", "packageName": "com.a", "actions": ["A"]},
        "children": [
            {"bounds": [1, 2, 3, 4], "driverDetail": {"text": "8:25", "isClickable": True, "isVisibleToUser": False}},
            {"bounds": "[1,2][3,4]", "text": "x", "is_checked": True, "children": []},
        ],
    },
}
LIST = (
    "UIElement(text='8:25', content_description=\"it's\", class_name='android.widget.TextView', "
    "bbox=BoundingBox(x_min=0, x_max=1080, y_min=0, y_max=2274), bbox_pixels=BoundingBox(x_min=0, x_max=1.5, "
    "y_min=-1, y_max=2), hint_text=None, is_checked=False, is_visible=True, package_name='com.a', "
    "resource_id='a:id/b')\n"
)
YAML = (
    "records:\n- Choice: 1\n  Input: 'null'\n  State: '<button id=0 text=''More apps''></button>\n\n"
    "    <checkbox id=1 checked=True>5<br>minutes</checkbox>'\n  state_str:\n  - 8fe6\n- Choice: -1\n"
    '  State: "<p id=0>Timer</p>\\n <input id=1 >La\\xEB\\u2026</input>"\nstep_num: 2\ntask_name: utg\n'
)
RECORDS = {
    "records": [{"State": "<button id=0 text='a'></button>\n<p id=1>b</p>", "Choice": 1}],
    "task_name": "set an alarm",
}

PNG = bytes.fromhex("89504e470d0a1a0a0000000d49484452000000090000000908")

_LIST_TOKEN = re.compile(r"'[^']*'|\"[^\"]*\"|\w+|[=(),]")
_YAML_TOKEN = re.compile(r"[\w.-]+|[<>'\":\[\]{}&*!|-]|\n *")
_YAML_INSERTS = ("&a ", "*a", "!!python/name:os.system ", "? ", "---\n", "...\n", "\t", "|\n", "[", "{", "%YAML 9.9\n")


def dump(rng: Draw) -> bytes:
    """The bytes of one dump."""
    text = DUMP
    for _ in rng.rounds():
        text = m.in_xml(rng, text)
    data = m.encoded(rng, text)
    return m.in_bytes(rng, data) if rng.may(0.15) else data


def xml(rng: Draw, folder: Path) -> Path:
    """A dump, or a folder of some, with a task file that may be changed, too."""
    if rng.random() < 0.7:
        path = folder / "a.xml"
        path.write_bytes(dump(rng))
        return path
    inner = folder / "hierarchy" if rng.random() < 0.5 else folder
    inner.mkdir(exist_ok=True)
    for number in range(rng.choice((1, 1, 2))):
        name = f"step_{rng.choice((number, number, number * 7, '٣', 'x'))}"
        (inner / f"{name}.xml").write_bytes(dump(rng))
        if rng.random() < 0.3:
            (inner / f"{name}.png").write_bytes(m.in_bytes(rng, PNG) if rng.may(0.3) else PNG)
    about: Any = {"task": "Set an alarm", "success": True, "role": "expert"}
    for _ in rng.rounds():
        about = m.in_value(rng, about)
    (folder / "task.json").write_bytes(written(rng, about))
    return folder


def written(rng: Draw, value: Any) -> bytes:
    """A value as JSON; seldom with bytes changed."""
    try:
        text = json.dumps(value, ensure_ascii=rng.random() < 0.5)
    except RecursionError:
        text = "[" * 5000
    data = text.encode("utf-8", "surrogatepass")
    return m.in_bytes(rng, data) if rng.may(0.1) else data


def json_(rng: Draw, folder: Path) -> Path:
    """A history or a tree, at times gzipped."""
    value: Any = rng.choice(([STEP], [STEP, STEP], TREE, {**TREE, "trailblazeNodeTree": None}, TREE["viewHierarchy"]))
    for _ in rng.rounds():
        value = m.in_value(rng, value)
    if rng.random() < 0.3:
        shown: Any = STEP["ui_description"]
        text = m.in_text(rng, shown[0]["ui_description"], _LIST_TOKEN)
        value = [{**STEP, "ui_description": [{**shown[0], "ui_description": text}]}]
    data = written(rng, value)
    if rng.random() < 0.2:
        (folder / "a.webp").write_bytes(PNG)
    if rng.random() < 0.8:
        path = folder / "a.json"
    else:
        path = folder / "a.json.gz"
        data = gzip.compress(data, 1)
        data = m.in_bytes(rng, data) if rng.may(0.5) else data
    path.write_bytes(data)
    return path


def elements(rng: Draw, folder: Path) -> Path:
    """A list of elements as Python prints it."""
    text = LIST * rng.choice((1, 2)) if rng.random() < 0.8 else f"[{LIST.strip()}, {LIST.strip()}]"
    for _ in rng.rounds():
        text = m.in_text(rng, text, _LIST_TOKEN)
    data = text.encode("utf-8", "surrogatepass")
    path = folder / "a_ui_element.txt"
    path.write_bytes(m.in_bytes(rng, data) if rng.may(0.15) else data)
    return path


def yaml(rng: Draw, folder: Path) -> Path:
    """Records in blocks, or as JSON, which is YAML too."""
    if rng.random() < 0.3:
        value: Any = RECORDS
        for _ in rng.rounds():
            value = m.in_value(rng, value)
        data = written(rng, value)
    else:
        text = YAML
        for _ in rng.rounds():
            text = m.in_text(rng, text, _YAML_TOKEN)
            if rng.changed(0.3):
                at = rng.randrange(len(text) + 1)
                text = text[:at] + rng.choice(_YAML_INSERTS) * rng.choice((1, 1, 1, 2000)) + text[at:]
        data = text.encode("utf-8", "surrogatepass")
    path = folder / "a_utg.yaml"
    path.write_bytes(m.in_bytes(rng, data) if rng.may(0.1) else data)
    return path


@cache
def record() -> Any:
    """One episode of AndroidControl, with what we keep beside it."""
    from grace_irl.demos.trajectory import Demonstration, Metadata, Trajectory
    from grace_irl.demos.ui import forest, residue
    from grace_irl.demos.ui.record import About, EpisodeRecord
    from grace_irl.states.texts import pack
    from grace_irl.states.ui import markup

    roots = [markup.parse(DUMP), markup.parse('<hierarchy rotation="1"><node NAF="true" text="a"/></hierarchy>')]
    trajectory = Trajectory(pack([markup.write(root) for root in roots]), np.zeros(1), rewards=np.ones(1))
    forests = [forest.forest_of(root) for root in roots]
    kept = [residue.difference(root, forest.hierarchy(one, "")) for root, one in zip(roots, forests, strict=True)]
    about = json.loads(json.dumps(About.of(Demonstration(trajectory, "expert"), Metadata("ui"), tuple(kept)).to_json()))
    trees = tuple(one.SerializeToString() for one in forests)
    return EpisodeRecord(
        5, "set alarm", trees, ('{"action_type": "click"}',), ("tap",), (PNG, b""), ((9, 9),) * 2, about
    )


def _tree(rng: Draw, tree: bytes) -> bytes:
    """A forest, changed inside."""
    message = m.fields(tree) or []
    for _ in rng.rounds() if rng.random() < 0.4 else ():
        message = m.in_message(rng, message)
    return m.wire(rng, message, 0.01 if rng.changed(0.1) else 0.0)


def tfrecord(rng: Draw, folder: Path) -> Path:
    """A shard of one or two records, its checksums right but for some; mostly not gzipped, which is faster."""
    from grace_irl.demos.tfrecord import write_record

    stream = io.BytesIO()
    rng.calm = rng.random() < 0.25
    for _ in range(rng.choice((1, 1, 1, 2))):
        about = record().about if rng.random() < 0.6 else None
        if about is not None and rng.random() < 0.4:
            for _ in rng.rounds():
                about = m.in_value(rng, about)
        kept = written(rng, about).decode("utf-8", "replace")
        trees = [_tree(rng, tree) for tree in record().trees]
        message = m.fields(replace(record(), about=None, trees=tuple(trees)).serialise()) or []
        if about is not None:
            value = [(1, 2, kept.encode())]
            entry: list[m.Field] = [(1, 2, b"grace_irl"), (2, 2, [(1, 2, value)])]
            message.append((1, 2, [(1, 2, entry)]))
        for _ in rng.rounds() if rng.random() < 0.4 else ():
            message = m.in_message(rng, message)
        data = m.wire(rng, message, 0.02 if rng.changed(0.1) else 0.0)
        write_record(stream, m.in_bytes(rng, data) if rng.may(0.1) else data)
    data = stream.getvalue()
    if rng.may(0.1):
        data = m.in_bytes(rng, data)
    if rng.random() < 0.3:
        data = gzip.compress(data, 1)
        data = m.in_bytes(rng, data) if rng.may(0.2) else data
    path = folder / rng.choice(("android_control-00000-of-00020", "a.tfrecord", "shard", "shard.gz"))
    path.write_bytes(data)
    return path
