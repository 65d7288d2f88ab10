"""A parsed screen: its nodes with typed fields, for views in prompts and for the synthesiser."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from lxml import etree

from grace_irl.states.ui import markup

Bounds = tuple[int, int, int, int]
"""Left, top, right and bottom in pixels. The right and bottom edges are exclusive."""

FLAGS = (
    *("checkable", "checked", "clickable", "focusable", "focused", "scrollable", "long_clickable", "password"),
    "selected",
)
"""Boolean fields of a node that are False if the XML does not have the attribute."""

_BOUNDS = re.compile(r"\[(-?\d{1,9}),(-?\d{1,9})\]\[(-?\d{1,9}),(-?\d{1,9})\]")


@dataclass(frozen=True, slots=True)
class Node:
    """One node of a screen. Fields that are not listed below hold XML attributes.

    If an attribute is missing, a text is "", a field of `FLAGS` is False, and `enabled` is True.

    Attributes:
        order: index of the node in the document and in `Screen.nodes`.
        parent: `order` of the parent; -1 for a child of the root.
        children: `order` of each child.
        end: one more than the `order` of the last node inside this node; `order` + 1 if there are no children.
        depth: number of ancestors without the root; 0 for a child of the root.
        index: index among the siblings, as given in the XML.
        bounds: rectangle in pixels; None if it is missing or unreadable in the XML.
        visible: False if the XML marks the node as hidden, or if its rectangle is empty.
    """

    order: int
    parent: int
    children: tuple[int, ...]
    end: int
    depth: int
    index: int
    text: str
    resource_id: str
    content_desc: str
    class_name: str
    package: str
    hint: str
    checkable: bool
    checked: bool
    clickable: bool
    enabled: bool
    focusable: bool
    focused: bool
    scrollable: bool
    long_clickable: bool
    password: bool
    selected: bool
    visible: bool
    bounds: Bounds | None

    @property
    def short_class(self) -> str:
        """The class without its package: "Switch" of "android.widget.Switch"."""
        return self.class_name.rpartition(".")[2]

    @property
    def short_id(self) -> str:
        """The id without its package: "onoff" of "com.google.android.deskclock:id/onoff"."""
        return self.resource_id.rpartition("/")[2]

    @property
    def label(self) -> str:
        """The label for a user: the text, or else the description, or else the hint."""
        return self.text or self.content_desc or self.hint

    @property
    def interactive(self) -> bool:
        """Whether a user can act on the node."""
        return self.clickable or self.long_clickable or self.checkable or self.scrollable or self.focusable

    @property
    def area(self) -> int:
        """Area of the bounds in square pixels; 0 without bounds."""
        if self.bounds is None:
            return 0
        left, top, right, bottom = self.bounds
        return max(0, right - left) * max(0, bottom - top)

    @property
    def name(self) -> str:
        """A short name for messages and comments: the class, the id and the quoted label, if they exist."""
        parts = (self.short_class or "node", self.short_id and f"#{self.short_id}")
        label = " ".join(self.label.split())
        quoted = f' "{label[:40]}{"…" if len(label) > 40 else ""}"' if label else ""
        return "".join(parts) + quoted


@dataclass(frozen=True)
class Screen:
    """The screen of one state, as a tree of nodes.

    Attributes:
        nodes: all nodes, in document order.
        rotation: rotation of the screen in quarter turns, 0 to 3.
    """

    nodes: tuple[Node, ...]
    rotation: int = 0

    @classmethod
    def parse(cls, state: str | bytes, where: str = "") -> Screen:
        """A screen from its XML.

        Raises:
            InputError: see `markup.parse`.
        """
        return cls.of(markup.parse(state, where))

    @classmethod
    def of(cls, root: etree._Element) -> Screen:
        """A screen from the tree that `markup.parse` returned."""
        elements = list(root.iter("node"))
        place = {element: order for order, element in enumerate(elements)}
        ends = list(range(1, len(elements) + 1))
        depths: list[int] = []
        parents = [place.get(element.getparent(), -1) for element in elements]
        children: list[list[int]] = [[] for _ in elements]
        for order, parent in enumerate(parents):
            depths.append(depths[parent] + 1 if parent >= 0 else 0)
            if parent >= 0:
                children[parent].append(order)
        for order in range(len(elements) - 1, -1, -1):
            if children[order]:
                ends[order] = ends[children[order][-1]]
        nodes = tuple(
            _node(element.attrib, order, parents[order], tuple(children[order]), ends[order], depths[order])
            for order, element in enumerate(elements)
        )
        return cls(nodes, _whole(root.get("rotation", "0")))

    @cached_property
    def visible(self) -> tuple[Node, ...]:
        """The visible nodes whose ancestors are all visible."""
        shown: list[bool] = []
        for node in self.nodes:
            shown.append(node.visible and (node.parent < 0 or shown[node.parent]))
        return tuple(node for node, is_shown in zip(self.nodes, shown, strict=True) if is_shown)

    @property
    def labelled(self) -> tuple[Node, ...]:
        """The visible nodes with a text, a description or a hint."""
        return tuple(node for node in self.visible if node.label)

    @cached_property
    def package(self) -> str:
        """The app in the foreground: the package of the largest visible node that names a package; "" if none does.

        If the largest nodes of several packages are equally large, the package with the most visible nodes counts.
        """
        largest: dict[str, int] = {}
        count: dict[str, int] = {}
        for node in self.visible:
            largest[node.package] = max(largest.get(node.package, 0), node.area)
            count[node.package] = count.get(node.package, 0) + 1
        return max(largest, key=lambda package: (package != "", largest[package], count[package]), default="")

    @property
    def size(self) -> tuple[int, int]:
        """Width and height in pixels: the largest right and bottom edges of all nodes."""
        bounds = [node.bounds for node in self.nodes if node.bounds is not None]
        return max((b[2] for b in bounds), default=0), max((b[3] for b in bounds), default=0)

    def children(self, node: Node) -> tuple[Node, ...]:
        """The children of a node, in order."""
        return tuple(self.nodes[order] for order in node.children)

    def parent(self, node: Node) -> Node | None:
        """The parent of a node; None for a child of the root."""
        return self.nodes[node.parent] if node.parent >= 0 else None

    def ancestors(self, node: Node) -> Iterator[Node]:
        """The nodes around a node, from its parent outwards."""
        while node.parent >= 0:
            node = self.nodes[node.parent]
            yield node

    def below(self, node: Node) -> tuple[Node, ...]:
        """All nodes inside a node, in document order."""
        return self.nodes[node.order + 1 : node.end]

    def path(self, node: Node) -> str:
        """The path of a node: the short ids of its ancestors and of the node, joined by "/".

        A node without an id has its short class in the path.
        """
        steps = [node, *self.ancestors(node)]
        return "/".join(step.short_id or step.short_class or "node" for step in reversed(steps))


def bounds_of(text: str) -> Bounds | None:
    """The four numbers of a text "[x0,y0][x1,y1]"; None for any other text."""
    found = _BOUNDS.fullmatch(text)
    if not found:
        return None
    left, top, right, bottom = (int(number) for number in found.groups())
    return left, top, right, bottom


def _whole(text: str) -> int:
    return int(text) if text.isdecimal() and len(text) < 10 else 0


def _node(attributes: etree._Attrib, order: int, parent: int, children: tuple[int, ...], end: int, depth: int) -> Node:
    get = dict(attributes).get
    bounds = bounds_of(get("bounds", ""))
    empty = bounds is not None and (bounds[2] <= bounds[0] or bounds[3] <= bounds[1])
    return Node(
        order=order,
        parent=parent,
        children=children,
        end=end,
        depth=depth,
        index=_whole(get("index", "0")),
        text=get("text", ""),
        resource_id=get("resource-id", ""),
        content_desc=get("content-desc", ""),
        class_name=get("class", ""),
        package=get("package", ""),
        hint=get("hint", ""),
        enabled=get("enabled", "true") == "true",
        **{name: get(name.replace("_", "-")) == "true" for name in FLAGS},
        visible=get("visible-to-user", "true") == "true" and not empty,
        bounds=bounds,
    )
