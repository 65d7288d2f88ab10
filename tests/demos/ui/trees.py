"""Random screens: XML as anybody might write it, and forests as android_env might send them."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from lxml import etree

from grace_irl.demos.ui import forest
from grace_irl.states.ui import markup

NUMBERS = st.integers(-(2**31), 2**31 - 1)
TEXTS = st.text(st.characters(codec="utf-8"), max_size=8)
CLEAN = TEXTS.map(markup.rinse)
KNOWN = (
    *forest.DEFAULTS,
    "bounds",
    "index",
    "NAF",
    "unique-id",
    "actions",
    "clickable-spans",
    "window-bounds",
    "rotation",
)
VALUES = st.one_of(
    st.sampled_from(["true", "false", "0", "-0", "7", "1:Open%20it 16", "[0,0][10,20]", "[0,1][2,99999999999]", "ime"]),
    NUMBERS.map(str),
    CLEAN,
)
NODES = st.tuples(st.dictionaries(st.sampled_from(KNOWN), VALUES, max_size=6), st.integers(0, 30), st.booleans())


@st.composite
def markups(draw: st.DrawFn) -> str:
    """The XML of a screen: any attributes, any values, in any order; a few nodes as uiautomator has them."""
    root = etree.Element("hierarchy")
    root.attrib.update(draw(st.dictionaries(st.sampled_from(["rotation", "width"]), CLEAN, max_size=2)))
    elements = [root]
    for attributes, parent, full in draw(st.lists(NODES, max_size=12)):
        above = elements[parent % len(elements)]
        elements.append(
            markup.add(above, {"index": len(above), **attributes})
            if full
            else etree.SubElement(above, "node", attributes)
        )
    return markup.write(root)


def filled(draw: st.DrawFn, message: Any, skip: tuple[str, ...]) -> Any:
    """A message with something in some of its own fields."""
    message.SetInParent()
    for field in message.DESCRIPTOR.fields:
        if field.name in skip or field.is_repeated or not draw(st.booleans()):
            continue
        if field.type == field.TYPE_BOOL:
            setattr(message, field.name, True)
        elif field.type == field.TYPE_STRING:
            setattr(message, field.name, draw(CLEAN))
        elif field.type == field.TYPE_ENUM:
            setattr(message, field.name, draw(st.integers(0, 9)))
        elif field.type == field.TYPE_MESSAGE:
            filled(draw, getattr(message, field.name), skip)
        else:
            setattr(message, field.name, draw(NUMBERS))
    return message


@st.composite
def forests(draw: st.DrawFn) -> Any:
    """Windows with trees, numbered layer by layer as android_env does, or by numbers of their own."""
    from grace_irl.demos.ui.androidcontrol_pb2 import AndroidAccessibilityForest

    made = AndroidAccessibilityForest()
    for _ in range(draw(st.integers(0, 3))):
        window = filled(draw, made.windows.add(), ("tree",))
        size = draw(st.integers(1, 8))
        # In the order of layers, a node's parent comes before it, and parents follow one another.
        parents = sorted(draw(st.integers(0, max(0, place - 1))) for place in range(1, size))
        parents = [min(parent, place) for place, parent in enumerate(parents)]
        ids = list(range(size))
        if draw(st.booleans()):
            ids = draw(st.lists(NUMBERS, min_size=size, max_size=size, unique=True))
        depths = [0]
        for place in range(size):
            node = filled(draw, window.tree.nodes.add(), ("unique_id", "depth"))
            if place:
                depths.append(depths[parents[place - 1]] + 1)
            node.unique_id, node.depth = ids[place], depths[place]
            node.child_ids.extend(ids[child + 1] for child, parent in enumerate(parents) if parent == place)
            for _ in range(draw(st.integers(0, 2))):
                filled(draw, node.actions.add(), ())
                filled(draw, node.clickable_spans.add(), ())
    return made
