"""Forests as uiautomator's XML and back: nothing is lost but what the documentation names."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grace_irl.demos.ui import forest, residue
from grace_irl.errors import InputError
from grace_irl.states.ui import markup
from tests.demos.ui.data import DUMPS, needs_android
from tests.demos.ui.trees import forests, markups

pb2 = pytest.importorskip("grace_irl.demos.ui.androidcontrol_pb2")


def forest_with(nodes: dict[int, list[int]], windows: int = 1) -> Any:
    """Windows with these nodes and their children."""
    made = pb2.AndroidAccessibilityForest()
    for _ in range(windows):
        window = made.windows.add()
        for number, children in nodes.items():
            window.tree.nodes.add(unique_id=number, text=f"node {number}", child_ids=children)
    return made


def shape(root: Any) -> list[Any]:
    """The texts of a tree, nested as it is."""
    return [[node.get("text").removeprefix("node "), *shape(node)] for node in root]


@needs_android
@pytest.mark.parametrize("path", DUMPS, ids=lambda path: path.stem)
def test_real_dumps_lose_what_is_documented(path: Path) -> None:
    """A forest alone holds every node with all it says, but NAF and an index that is not the place."""
    root = markup.parse(path.read_bytes(), path.name)
    plain = forest.hierarchy(forest.forest_of(root), path.name)
    assert len(plain) == len(root)
    for node, other in zip(root.iter("node"), plain.iter("node"), strict=True):
        assert len(node) == len(other)
        said = {**forest.DEFAULTS, **node.attrib}
        found = {**forest.DEFAULTS, **other.attrib}
        lost = {name for name in {*said, *found} if said.get(name) != found.get(name)}
        assert lost <= {"NAF", "index"}
        assert ("NAF" in lost) == ("NAF" in node.attrib)
        assert ("index" in lost) == (node.get("index") != str(node.getparent().index(node)))


@needs_android
def test_real_dumps_come_back_with_their_residue() -> None:
    for path in DUMPS:
        root = markup.parse(path.read_bytes(), path.name)
        text = markup.write(root)
        plain = forest.hierarchy(forest.forest_of(root), path.name)
        kept = residue.difference(root, plain)
        assert kept is not None
        assert markup.write(residue.restore(plain, kept, path.name)) == text
        names = {name for values in kept["values"].values() for name in values}
        assert names <= {"NAF", "index"}  # the rest is in the forest, not beside it


@settings(max_examples=150)
@given(markups())
def test_any_screen_comes_back(text: str) -> None:
    root = markup.parse(text)
    data = forest.forest_of(root).SerializeToString()
    found = forest.parse(data, "screen")
    plain = forest.hierarchy(found, "screen")
    kept = residue.difference(root, plain)
    assert markup.write(plain if kept is None else residue.restore(plain, kept, "screen")) == text


@settings(max_examples=150)
@given(forests())
def test_any_forest_comes_back(made: Any) -> None:
    root = forest.hierarchy(made, "screen")
    assert forest.forest_of(root) == made
    text = markup.write(root)
    again = markup.parse(text)
    assert forest.forest_of(again) == made
    assert residue.difference(again, root) is None


def test_every_field_has_an_attribute() -> None:
    """Goes by the descriptors: a field that a later version adds fails here until it is mapped."""
    made = pb2.AndroidAccessibilityForest()
    fill(made.windows.add(), {"tree"})
    node = made.windows[0].tree.nodes.add()
    fill(node, {"unique_id", "child_ids", "depth"})  # these are the tree
    names = {field.name for field, _ in made.windows[0].ListFields()} | {"tree"}
    assert names == set(made.windows[0].DESCRIPTOR.fields_by_name)
    names = {field.name for field, _ in node.ListFields()} | {"unique_id", "child_ids", "depth"}
    assert names == set(node.DESCRIPTOR.fields_by_name)
    root = forest.hierarchy(made, "screen")
    assert forest.forest_of(root) == made
    assert dict(root[0].attrib) == {
        "index": "0",
        "text": "text",
        "resource-id": "view_id_resource_name",
        "class": "class_name",
        "package": "package_name",
        "content-desc": "content_description",
        **dict.fromkeys(["checkable", "checked", "clickable", "enabled", "focusable", "focused"], "true"),
        **dict.fromkeys(["scrollable", "long-clickable", "password", "selected"], "true"),
        "bounds": "[1,2][3,4]",
        "hint": "hint_text",
        "tooltip": "tooltip_text",
        "visible-to-user": "true",
        "editable": "true",
        "drawing-order": "30",
        "selection-start": "8",
        "selection-end": "9",
        "labeled-by": "28",
        "label-for": "29",
        "display-id": "2",
        "node-window-id": "11",
        "actions": "1:label",
        "clickable-spans": "4:3:5:text:url",
        "window-title": "title",
        "window-active": "true",
        "window-focused": "true",
        "window-accessibility-focused": "true",
        "window-picture-in-picture": "true",
        "window-id": "3",
        "window-layer": "4",
        "window-type": "magnification-overlay",
    }


def fill(message: Any, skip: set[str]) -> None:
    """Puts its number or its name into every field."""
    for field in message.DESCRIPTOR.fields:
        if field.name in skip:
            continue
        if field.type == field.TYPE_MESSAGE:
            below = getattr(message, field.name)
            fill(below.add() if field.is_repeated else below, skip)
        elif field.type == field.TYPE_STRING:
            setattr(message, field.name, field.name)
        else:
            setattr(message, field.name, field.number if field.type != field.TYPE_BOOL else True)


def test_a_node_whose_place_is_not_known_has_no_bounds() -> None:
    made = forest_with({0: [1], 1: []})
    made.windows[0].bounds_in_screen.right = 9
    made.windows[0].tree.nodes[1].bounds_in_screen.SetInParent()
    top = forest.hierarchy(made, "screen")[0]
    assert (top.get("bounds"), top.get("window-bounds"), top[0].get("bounds")) == (None, "[0,0][9,0]", "[0,0][0,0]")
    made.windows[0].ClearField("bounds_in_screen")
    made.windows[0].tree.nodes[0].bounds_in_screen.SetInParent()
    assert forest.hierarchy(made, "screen")[0].get("window-bounds") == ""


def test_windows_stay_in_order_and_say_what_they_are() -> None:
    made = forest_with({0: [1], 1: []}, windows=3)
    made.windows[0].window_type = 3
    made.windows[2].window_type = 2
    del made.windows[1].tree.nodes[:]
    root = forest.hierarchy(made, "screen")
    assert [node.get("window-type") for node in root] == ["system", "input-method"]  # one without nodes has no XML


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        ({0: [1, 2], 1: [3], 2: [], 3: []}, [["0", ["1", ["3"]], ["2"]]]),
        ({0: [2, 1], 1: [], 2: []}, [["0", ["2"], ["1"]]]),
        ({0: [1, 2], 1: [2], 2: []}, [["0", ["1"], ["2"]]]),  # of two parents, the one nearer to the root
        ({0: [1], 1: [0]}, [["0", ["1"]]]),  # a cycle
        ({0: [0, 1], 1: [1]}, [["0", ["1"]]]),  # nodes that are their own children
        ({0: [7, 1], 1: []}, [["0", ["1"]]]),  # a child that is not there
        ({0: [1, 1], 1: []}, [["0", ["1"]]]),
        ({0: [], 5: [6], 6: []}, [["0"], ["5", ["6"]]]),  # without a parent
        ({4: [], 0: [4]}, [["0", ["4"]]]),  # the root is no node's child, wherever it stands
        ({}, []),
    ],
)
def test_graphs(nodes: dict[int, list[int]], expected: list[Any]) -> None:
    assert shape(forest.hierarchy(forest_with(nodes), "screen")) == expected


def test_two_nodes_of_one_number() -> None:
    made = forest_with({0: [1], 1: []})
    made.windows[0].tree.nodes.add(unique_id=1, text="node other")
    assert shape(forest.hierarchy(made, "screen")) == [["0", ["1"]], ["other"]]


def test_characters_that_xml_cannot_hold() -> None:
    made = forest_with({0: []})
    made.windows[0].tree.nodes[0].text = "a\x00b\x1bc\ufffe\n\t\"'<&>"
    text = markup.write(forest.hierarchy(made, "screen"))
    assert markup.parse(text)[0].get("text") == "a\ufffdb\ufffdc\ufffd\n\t\"'<&>"


def test_numbers_that_are_taken_twice_are_given_anew() -> None:
    root = markup.parse('<hierarchy><node unique-id="3"><node unique-id="3"/></node></hierarchy>')
    nodes = forest.forest_of(root).windows[0].tree.nodes
    assert [(node.unique_id, list(node.child_ids), node.depth) for node in nodes] == [(0, [1], 0), (1, [], 1)]


def test_a_chain_is_refused_where_lxml_would_refuse_it() -> None:
    deepest = markup.MAX_DEPTH - 1
    chain = {number: [number + 1] for number in range(deepest)}
    text = markup.write(forest.hierarchy(forest_with(chain), "screen"))
    assert len(list(markup.parse(text).iter("node"))) == deepest
    with pytest.raises(InputError, match="step 4: nodes nested deeper than 256"):
        forest.hierarchy(forest_with({**chain, deepest: []}), "step 4")


def test_sizes_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match=r"step 4: a tree of 4,194,305 bytes; expected at most 4,194,304"):
        forest.parse(b"\n" * (forest.MAX_TREE + 1), "step 4")
    monkeypatch.setattr(markup, "MAX_NODES", 3)
    with pytest.raises(InputError, match="step 4: a tree of 4 nodes; expected at most 3"):
        forest.hierarchy(forest_with({number: [] for number in range(4)}), "step 4")


@pytest.mark.parametrize("data", [b"\xff", b"\n\xff\xff", b"\n\x02\x5a\x09", b"\x0a\x04\x2a\x02\xff\xff"])
def test_what_is_no_forest(data: bytes) -> None:
    with pytest.raises(InputError, match="step 4: an accessibility tree that cannot be read; expected"):
        forest.parse(data, "step 4")


@pytest.mark.parametrize(
    "kept",
    [
        {},
        {"hierarchy": {}, "layouts": [], "layout": [0], "values": {}},
        {"hierarchy": {}, "layouts": [["text"]], "layout": [], "values": {}},
        {"hierarchy": {}, "layouts": [["nowhere"]], "layout": [0], "values": {}},
        {"hierarchy": {}, "layouts": [["a b"]], "layout": [0], "values": {"0": {"a b": ""}}},
        {"hierarchy": {"x": "\x00"}, "layouts": [["text"]], "layout": [0], "values": {}},
        {"hierarchy": 3, "layouts": [["text"]], "layout": [0], "values": {}},
        {"hierarchy": {}, "layouts": [["text"]], "layout": [0], "values": []},
    ],
)
def test_a_residue_of_another_screen(kept: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="step 4: the stored residue does not fit its tree"):
        residue.restore(forest.hierarchy(forest_with({0: []}), "screen"), kept, "step 4")


@settings(max_examples=150)
@given(forests(), st.integers(0, 2**32))
def test_mutated_forests_are_read_or_refused(made: Any, seed: int) -> None:
    rng = random.Random(seed)
    data = bytearray(made.SerializeToString() or b"\n\x00")
    for _ in range(rng.randrange(1, 6)):
        place = rng.randrange(len(data))
        data[place : place + rng.randrange(3)] = rng.randbytes(rng.randrange(4))
        data = data or bytearray(b"\n")
    try:
        found = forest.parse(bytes(data), "screen")
        root = forest.hierarchy(found, "screen")
    except InputError:
        return
    text = markup.write(root)
    assert markup.write(markup.parse(text)) == text
