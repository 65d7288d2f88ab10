"""Conversion between AndroidControl's screens (AndroidAccessibilityForest) and uiautomator's XML, in both directions.

A forest holds one tree of nodes per window of the screen. In the XML, the root nodes of all windows are children of
`<hierarchy>`, in the forest's order. The fields of a node become attributes of its element. The fields of a window
become attributes of the window's root nodes; its display id becomes an attribute of all its nodes (see
docs/demonstrations.md, AndroidControl). `residue.py` stores the parts of the XML that a forest cannot represent.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from lxml import etree

from grace_irl.errors import InputError
from grace_irl.states.ui import markup

if TYPE_CHECKING:
    from grace_irl.demos.ui.androidcontrol_pb2 import (
        AndroidAccessibilityForest,
        AndroidAccessibilityNodeInfo,
        AndroidAccessibilityWindowInfo,
    )

MAX_TREE = 4 * 1024 * 1024
"""Maximum size of a serialised forest in bytes, enough for about 20,000 nodes. The parsed forest may need a hundred
times this size in memory."""

# The next six tables map XML attributes to fields of a node or of a window, by the type of the field.
TEXTS = {
    "text": "text",
    "resource-id": "view_id_resource_name",
    "class": "class_name",
    "package": "package_name",
    "content-desc": "content_description",
    "hint": "hint_text",
    "tooltip": "tooltip_text",
}
FLAGS = {
    name: f"is_{name.replace('-', '_')}"
    for name in (
        *("checkable", "checked", "clickable", "enabled", "focusable", "focused", "scrollable", "long-clickable"),
        *("password", "selected", "visible-to-user", "editable"),
    )
}
NUMBERS = {
    "drawing-order": "drawing_order",
    "selection-start": "text_selection_start",
    "selection-end": "text_selection_end",
    "labeled-by": "labeled_by_id",
    "label-for": "label_for_id",
}
WINDOW_TEXTS = {"window-title": "title"}
WINDOW_FLAGS = {
    "window-active": "is_active",
    "window-focused": "is_focused",
    "window-accessibility-focused": "is_accessibility_focused",
    "window-picture-in-picture": "is_in_picture_in_picture_mode",
}
WINDOW_NUMBERS = {"window-id": "id", "window-layer": "layer"}

DEFAULTS = {
    **dict.fromkeys([*TEXTS, *WINDOW_TEXTS], ""),
    **dict.fromkeys([*FLAGS, *WINDOW_FLAGS], "false"),
    **dict.fromkeys([*NUMBERS, *WINDOW_NUMBERS], "0"),
    # -1 is Android's value for "no selection", which nearly all nodes have.
    "selection-start": "-1",
    "selection-end": "-1",
    "display-id": "0",
    "visible-to-user": "true",
    **{name: value for name, value in markup.ATTRIBUTES.items() if name not in ("index", "bounds")},
}
"""Default values of attributes. A node or window has the default of each attribute that is missing in the XML."""

ALWAYS = {*markup.ATTRIBUTES, "visible-to-user"}
"""Attributes that are written for every node. Other attributes are written only if they differ from `DEFAULTS`."""

WINDOW_TYPES = (
    *("unknown", "application", "input-method", "system", "accessibility-overlay", "split-screen-divider"),
    *("magnification-overlay", "window-control"),
)
"""Names of the values of `WindowType`, indexed by number."""

_NUMBER = re.compile(r"-?[1-9]\d{0,18}|0")
_BOUNDS = re.compile(r"\[(-?\d{1,10}),(-?\d{1,10})\]\[(-?\d{1,10}),(-?\d{1,10})\]")
_INT32, _INT64 = 2**31, 2**63


def parse(tree: bytes, where: str) -> AndroidAccessibilityForest:
    """Parse a serialised forest.

    Raises:
        InputError: more than `MAX_TREE` bytes, or not a forest.
    """
    from google.protobuf.message import DecodeError

    from grace_irl.demos.ui.androidcontrol_pb2 import AndroidAccessibilityForest

    if len(tree) > MAX_TREE:
        raise InputError(f"{where}: a tree of {len(tree):,} bytes; expected at most {MAX_TREE:,}: drop the episode")
    try:
        forest: AndroidAccessibilityForest = AndroidAccessibilityForest.FromString(tree)
        return forest
    except DecodeError:
        raise InputError(
            f"{where}: an accessibility tree that cannot be read; expected a serialised AndroidAccessibilityForest"
        ) from None


def hierarchy(forest: AndroidAccessibilityForest, where: str) -> etree._Element:
    """The XML of a forest.

    A window without nodes gives no element. If two nodes name the same child, the child belongs to the node that is
    visited first. Every node without a parent in its window becomes a child of the root. If nodes form a cycle that no
    such node reaches, the first node of the cycle becomes a child of the root.

    Raises:
        InputError: more nodes than `markup.MAX_NODES`, or nesting deeper than `markup.MAX_DEPTH`.
    """
    count = sum(len(window.tree.nodes) for window in forest.windows)
    if count > markup.MAX_NODES:
        raise InputError(f"{where}: a tree of {count:,} nodes; expected at most {markup.MAX_NODES:,}")
    root = markup.hierarchy()
    for window in forest.windows:
        nodes = window.tree.nodes
        by_id = {node.unique_id: place for place, node in reversed(list(enumerate(nodes)))}
        children = [[by_id[child] for child in node.child_ids if child in by_id] for node in nodes]
        below = {child for place, places in enumerate(children) for child in places if child != place}
        seen: set[int] = set()
        for first in [*(place for place in range(len(nodes)) if place not in below), *range(len(nodes))]:
            if first not in seen:
                seen.add(first)
                _add_tree(root, window, children, first, seen, where)
    return root


def _add_tree(
    root: etree._Element,
    window: AndroidAccessibilityWindowInfo,
    children: Sequence[Sequence[int]],
    first: int,
    seen: set[int],
    where: str,
) -> None:
    """Add a node of a window and all its descendants to the root.

    These nodes are numbered from 0, layer by layer, as in the library `android_env`. A node gets the attribute
    `unique-id` only if its id differs from its number.

    Args:
        root: element that receives the node.
        window: window of the node.
        children: for each node of the window, the indices of its children.
        first: index of the node.
        seen: indices of the window's nodes that are already in the XML, including `first`. This function adds the
            indices of the descendants.
        where: file and state, for messages.
    """
    nodes = window.tree.nodes
    element = markup.add(root, {**_node_values(nodes[first], window, 0), **_window_values(window, nodes[first])})
    queue = deque([(first, element, 2)])
    number = 1
    while queue:
        place, element, depth = queue.popleft()
        for child in children[place]:
            if child in seen:
                continue
            if depth >= markup.MAX_DEPTH:
                raise InputError(f"{where}: nodes nested deeper than {markup.MAX_DEPTH}; expected a screen: drop it")
            seen.add(child)
            queue.append((child, markup.add(element, _node_values(nodes[child], window, number)), depth + 1))
            number += 1


def _node_values(
    node: AndroidAccessibilityNodeInfo, window: AndroidAccessibilityWindowInfo, number: int
) -> dict[str, object]:
    values = _values(node, TEXTS, FLAGS, NUMBERS)
    if node.HasField("bounds_in_screen"):
        values["bounds"] = _spelled(node.bounds_in_screen)
    for name, value, default in (
        ("display-id", window.display_id, 0),
        ("unique-id", node.unique_id, number),
        ("node-window-id", node.window_id, window.id),
    ):
        if value != default:
            values[name] = value
    if node.actions:
        values["actions"] = " ".join(
            f"{action.id}:{quote(action.label)}" if action.label else str(action.id) for action in node.actions
        )
    if node.clickable_spans:
        values["clickable-spans"] = " ".join(
            f"{span.start}:{span.source}:{span.node_id}:{quote(span.text)}:{quote(span.url)}"
            for span in node.clickable_spans
        )
    return values


def _window_values(window: AndroidAccessibilityWindowInfo, node: AndroidAccessibilityNodeInfo) -> dict[str, object]:
    values = _values(window, WINDOW_TEXTS, WINDOW_FLAGS, WINDOW_NUMBERS)
    if window.window_type:
        kind = int(window.window_type)
        values["window-type"] = WINDOW_TYPES[kind] if 0 < kind < len(WINDOW_TYPES) else kind
    states, inside = window.HasField("bounds_in_screen"), node.HasField("bounds_in_screen")
    if states != inside or window.bounds_in_screen != node.bounds_in_screen:
        values["window-bounds"] = _spelled(window.bounds_in_screen) if states else ""
    return values


def _values(
    message: Any, texts: Mapping[str, str], flags: Mapping[str, str], numbers: Mapping[str, str]
) -> dict[str, object]:
    """The attributes to write for a node or window: attributes in `ALWAYS`, and values that differ from `DEFAULTS`."""
    values = {name: getattr(message, field) for name, field in texts.items()}
    values |= {name: "true" if getattr(message, field) else "false" for name, field in flags.items()}
    values |= {name: str(getattr(message, field)) for name, field in numbers.items()}
    return {name: value for name, value in values.items() if name in ALWAYS or value != DEFAULTS[name]}


def _spelled(rectangle: Any) -> str:
    return f"[{rectangle.left},{rectangle.top}][{rectangle.right},{rectangle.bottom}]"


def forest_of(root: etree._Element) -> AndroidAccessibilityForest:
    """The forest of a screen. Every child of the root becomes a window.

    If a field cannot hold the value of an attribute, the field gets its default, and `residue.py` keeps the value.

    Args:
        root: result of `markup.parse`.
    """
    from grace_irl.demos.ui.androidcontrol_pb2 import AndroidAccessibilityForest

    forest = AndroidAccessibilityForest()
    for top in root:
        layers = list(_layers(top))
        window = forest.windows.add()
        _fill_window(window, top)
        ids = _ids([element for element, _ in layers])
        number = {element: own for (element, _), own in zip(layers, ids, strict=True)}
        for element, depth in layers:
            node = window.tree.nodes.add()
            _fill_node(node, element, window.id)
            node.unique_id = number[element]
            node.depth = depth
            node.child_ids.extend(number[child] for child in element)
    return forest


def _layers(top: etree._Element) -> Iterator[tuple[etree._Element, int]]:
    """Pairs of a node and its depth, for the node `top` and all its descendants, layer by layer."""
    queue = deque([(top, 0)])
    while queue:
        element, depth = queue.popleft()
        yield element, depth
        queue.extend((child, depth + 1) for child in element)


def _ids(elements: Sequence[etree._Element]) -> Sequence[int]:
    """Ids of the nodes, from the attribute `unique-id`. A node without a valid attribute gets its index as id.

    If two ids would be equal, the ids of all nodes are 0, 1, 2, …
    """
    plain = range(len(elements))
    texts = [element.get("unique-id") for element in elements]
    stated = [_number(text, _INT32, number) for text, number in zip(texts, plain, strict=True)]
    return stated if len(set(stated)) == len(stated) else plain


def _fill_node(node: AndroidAccessibilityNodeInfo, element: etree._Element, window_id: int) -> None:
    _fill(node, element, TEXTS, FLAGS, NUMBERS)
    node.window_id = _number(element.get("node-window-id"), _INT32, window_id)
    _fill_bounds(node.bounds_in_screen, element.get("bounds"))
    for part in element.get("actions", "").split():
        own, _, label = part.partition(":")
        node.actions.add(id=_number(own, _INT32, 0), label=_unquoted(label))
    for part in element.get("clickable-spans", "").split():
        start, source, node_id, text, url = (part.split(":", 4) + [""] * 4)[:5]
        numbers = {"start": start, "source": source, "node_id": node_id}
        node.clickable_spans.add(
            text=_unquoted(text), url=_unquoted(url), **{name: _number(n, _INT32, 0) for name, n in numbers.items()}
        )


def _fill_window(window: AndroidAccessibilityWindowInfo, top: etree._Element) -> None:
    _fill(window, top, WINDOW_TEXTS, WINDOW_FLAGS, WINDOW_NUMBERS)
    window.display_id = _number(top.get("display-id"), _INT32, 0)
    kind = top.get("window-type", WINDOW_TYPES[0])
    named = WINDOW_TYPES.index(kind) if kind in WINDOW_TYPES else _number(kind, _INT32, 0)
    setattr(window, "window_type", named)  # noqa: B010 - for mypy, an int is not a WindowType
    _fill_bounds(window.bounds_in_screen, top.get("window-bounds", top.get("bounds")))


def _fill(
    message: Any,
    element: etree._Element,
    texts: Mapping[str, str],
    flags: Mapping[str, str],
    numbers: Mapping[str, str],
) -> None:
    for name, field in texts.items():
        setattr(message, field, element.get(name, DEFAULTS[name]))
    for name, field in flags.items():
        setattr(message, field, element.get(name, DEFAULTS[name]) == "true")
    for name, field in numbers.items():
        limit = _INT64 if name.startswith("selection") else _INT32
        setattr(message, field, _number(element.get(name), limit, int(DEFAULTS[name])))


def _fill_bounds(rectangle: Any, text: str | None) -> None:
    match = _BOUNDS.fullmatch(text or "")
    numbers = [int(group) for group in match.groups()] if match else []
    if numbers and all(-_INT32 <= number < _INT32 for number in numbers):
        rectangle.SetInParent()  # otherwise a rectangle of zeros would not be stored
        rectangle.left, rectangle.top, rectangle.right, rectangle.bottom = numbers


def _number(text: str | None, limit: int, default: int) -> int:
    """The whole number in a text; `default` if there is no number, or if the number is outside [-limit, limit)."""
    if text is None or not _NUMBER.fullmatch(text) or not -limit <= int(text) < limit:
        return default
    return int(text)


def _unquoted(text: str) -> str:
    return unquote(text, errors="replace")
