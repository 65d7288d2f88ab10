"""Outlines: screens of a user interface as text for prompts.

An outline has one line for each informative node of the screen, indented below the node that contains it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from grace_irl.errors import InputError
from grace_irl.propose.tokens import estimate
from grace_irl.states.ui.screen import Node, Screen
from grace_irl.text import harmless

LONGEST = 300
"""Maximum characters of one text, description or id. A longer one is cut and ends with the number of cut characters."""

ANY_TEXT = " with any text"
"""Ending of the lines in `ScreenOutline.told` that stand for a node with any text."""

_PLAIN = re.compile(r"[\w$.-]{1,80}", re.ASCII)
_INDENT = 3  # spaces before the line of an outermost node


@dataclass(frozen=True)
class Item:
    """A node of a screen as one line of an outline.

    Attributes:
        package: package of the node.
        parent: index of the item that contains this one, or -1.
        kind: class name without its package, followed by "*" if the node is clickable.
        text, desc, hint: the node's text, content description and hint, as in the XML of the screen.
        identity: `#name` for a resource-id of the node's own package, `id '…'` for any other resource-id, "" for none.
        states: conditions of the node, such as "checked" or "unchecked", "selected", "disabled", "scrollable".
        place: the bounds, such as `[0,0][9,9]` in pixels, if nothing else identifies the node; otherwise "".
    """

    package: str
    parent: int
    kind: str
    text: str
    desc: str
    hint: str
    identity: str
    states: tuple[str, ...]
    place: str = ""

    @cached_property
    def line(self) -> str:
        """The complete line."""
        return self.written()

    @cached_property
    def key(self) -> str:
        """Package and line of the node. Nodes that look the same in outlines have the same key."""
        return f"{self.package}\n{self.line}"

    @cached_property
    def bare(self) -> str:
        """The line without its states."""
        return self.written(leave_out=("states",))

    @cached_property
    def node(self) -> str:
        """The line without its texts."""
        return self.written(leave_out=("text", "desc", "hint"))

    @cached_property
    def slot(self) -> tuple[str, str, str]:
        """Package, class and id of the node, which do not depend on its text."""
        return self.package, self.kind, self.identity

    def cost(self, longest: int) -> int:
        """Number of tokens of the line, with its line break and two spaces of indentation.

        Args:
            longest: maximum characters of each text.
        """
        return self._cost if len(self.line) <= longest else estimate(f"  {self.written(longest)}\n")

    @cached_property
    def _cost(self) -> int:
        return estimate(f"  {self.line}\n")

    @property
    def label(self) -> str:
        """The text that a user reads on the node."""
        return self.text or self.desc or self.hint

    @cached_property
    def name(self) -> str:
        """Package, class and id of the node. Without an id, the name is `key`, which depends on the node's text."""
        return f"{self.package}\n{self.kind} {self.identity}" if self.identity else self.key

    @property
    def stateful(self) -> bool:
        """Whether the node is checked, unchecked, selected, focused or disabled."""
        return "unchecked" in self.states or any(state in _TELLING for state in self.states)

    @property
    def importance(self) -> int:
        """Importance of the node for a reader, from 0 to 3.

        It is 3 for a rare state (`_TELLING`), 2 for a label or the state "unchecked", 1 for an id, 0 otherwise.
        """
        if any(state in _TELLING for state in self.states):
            return 3
        return 2 if self.label or self.stateful else 1 if self.identity else 0

    def values(self, longest: int = LONGEST) -> dict[str, str]:
        """The parts of the line for text, description and hint, with the keys "text", "desc" and "hint".

        Empty parts are left out. A hint that repeats the text or the description is left out, too.
        """
        found = {"text": quoted(self.text, longest)} if self.text else {}
        if self.desc:
            found["desc"] = "desc=text" if self.desc == self.text else f"desc {quoted(self.desc, longest)}"
        if self.hint and self.hint not in (self.text, self.desc):
            found["hint"] = f"hint {quoted(self.hint, longest)}"
        return found

    def written(self, longest: int = LONGEST, leave_out: Collection[str] = ()) -> str:
        """Write the line, complete or in part.

        Args:
            longest: maximum characters of each text.
            leave_out: parts to omit: "text", "desc", "hint", "states".
        """
        values = {name: value for name, value in self.values(longest).items() if name not in leave_out}
        text = values.pop("text", "")
        states = () if "states" in leave_out else self.states
        parts = (self.kind, text, shortened(self.identity, longest), *values.values(), *states, self.place)
        return " ".join(part for part in parts if part)


_TELLING = ("checked", "selected", "focused", "disabled")  # rare states of nodes


@dataclass(frozen=True, eq=False)
class ScreenOutline:
    """The items of a screen, in document order.

    Attributes:
        items: the informative nodes.
        fault: the reason why there is no outline; "" if there is one.
    """

    items: tuple[Item, ...]
    fault: str = ""

    @classmethod
    def of(cls, state: bytes | str) -> ScreenOutline:
        """Make the outline of a state, the XML of a screen. If the XML is invalid, the outline has a `fault`."""
        try:
            screen = Screen.parse(state)
        except InputError as error:
            return cls((), str(error))
        return cls(tuple(_items(screen)))

    @cached_property
    def keys(self) -> frozenset[str]:
        """The keys of all items."""
        return frozenset(item.key for item in self.items)

    @cached_property
    def told(self) -> frozenset[tuple[str, str, str]]:
        """For each item, the triple (package, line without texts, complete line), to count lines over many screens.

        An item with a label and an id has a second triple, which stands for the node with any text. The last entry of
        this triple is the line without texts, followed by `ANY_TEXT`.
        """
        lines = {(item.package, item.node, item.line) for item in self.items}
        named = (item for item in self.items if item.label and item.identity)
        return frozenset(lines | {(item.package, item.node, f"{item.node}{ANY_TEXT}") for item in named})

    def write(self, kept: Collection[int], longest: int = LONGEST) -> list[str]:
        """The lines of some items. A line with the name of a package comes before the package's items.

        Args:
            kept: indices of the items to write.
            longest: maximum characters of each text.
        """
        lines: list[str] = []
        depths: dict[int, int] = {}
        package: str | None = None
        for place, item in enumerate(self.items):
            if place not in kept:
                continue
            above = self.above(place, kept)
            depths[place] = depths[above] + 1 if above >= 0 else 0
            if item.package != package:
                package = item.package
                lines.append(f"  {named(package)}:" if lines else f"{named(package)}:")
            lines.append(f"{' ' * (_INDENT + depths[place])}{item.written(longest)}")
        return lines

    def above(self, place: int, kept: Collection[int]) -> int:
        """The index of the innermost item in `kept` that contains the item at `place`, or -1."""
        above = self.items[place].parent
        while above >= 0 and above not in kept:
            above = self.items[above].parent
        return above


def quoted(text: str, longest: int = LONGEST) -> str:
    """A text as a Python literal, so that every character is visible. A long text is cut to `longest` characters.

    For example, `'abc'…25` means that 25 characters are left out.
    """
    return harmless(f"{text[:longest]!r}…{len(text) - longest}" if len(text) > longest else repr(text))


def shortened(word: str, longest: int = LONGEST) -> str:
    """A name cut to `longest` characters, for example `abc…25` if 25 characters are left out."""
    return f"{word[:longest]}…{len(word) - longest}" if len(word) > longest else word


def named(package: str) -> str:
    """A package's name as it is written above the nodes of the package."""
    if not package:
        return "no package"
    return package if _PLAIN.fullmatch(package) else f"package {quoted(package, 80)}"


def _items(screen: Screen) -> list[Item]:
    """Make items of the visible nodes that have a label, can be used, are in a special state, or are rows of a list."""
    # If a screen gives no bounds, every node counts as visible.
    nodes = screen.visible or screen.nodes
    rows = _rows(screen, nodes)
    items: list[Item] = []
    placed: dict[int, int] = {}  # by `Node.order`: index of the node's item, or of the innermost item around the node
    for node in nodes:
        above = placed.get(node.parent, -1)
        if node.order in rows or _says(node, items[above] if above >= 0 else None):
            placed[node.order] = len(items)
            items.append(_item(screen, node, above))
        else:
            placed[node.order] = above
    return items


def _rows(screen: Screen, nodes: Sequence[Node]) -> frozenset[int]:
    """Find the containers that may be rows of a list. Return `Node.order` of each.

    Such a container has a sibling with the same class and id. Both contain at least two nodes that have a label, are
    clickable or are checkable.
    """
    said = [0] * (len(screen.nodes) + 1)
    for node in nodes:
        said[node.order + 1] = bool(node.label or node.clickable or node.checkable)
    below = list(accumulate(said))
    alike: dict[tuple[int, str, str], list[int]] = {}
    for node in nodes:
        if node.parent >= 0 and below[node.end] - below[node.order + 1] >= 2:
            alike.setdefault((node.parent, node.class_name, node.resource_id), []).append(node.order)
    return frozenset(order for orders in alike.values() if len(orders) > 1 for order in orders)


def _says(node: Node, above: Item | None) -> bool:
    if node.label or node.clickable or node.long_clickable or node.checkable or node.scrollable or node.password:
        return True
    # Containers pass on the states "selected" and "disabled" to all nodes inside them.
    inherited = above.states if above else ()
    return (
        node.checked
        or node.focused
        or (node.selected and "selected" not in inherited)
        or (not node.enabled and "disabled" not in inherited)
    )


def _item(screen: Screen, node: Node, above: int) -> Item:
    kind = node.short_class if _PLAIN.fullmatch(node.short_class) else "node"
    if kind == "node" and node.class_name:
        kind = f"node class {quoted(node.class_name, 80)}"
    identity = _identity(node)
    states = (
        *(("checked" if node.checked else "unchecked",) if node.checkable or node.checked else ()),
        *(("selected",) if node.selected else ()),
        *(("focused",) if node.focused else ()),
        *(() if node.enabled else ("disabled",)),
        *(("scrollable",) if node.scrollable else ()),
        *(("long-clickable",) if node.long_clickable and not node.clickable else ()),
        *(("password",) if node.password else ()),
    )
    unnamed = not identity and not node.label and not any(each.label for each in screen.below(node))
    place = "[{},{}][{},{}]".format(*node.bounds) if unnamed and node.bounds else ""
    return Item(
        node.package,
        above,
        f"{kind}*" if node.clickable else kind,
        node.text,
        node.content_desc,
        node.hint,
        identity,
        states,
        place,
    )


def _identity(node: Node) -> str:
    prefix = f"{node.package}:id/"
    name = node.resource_id.removeprefix(prefix)
    if node.package and name != node.resource_id and _PLAIN.fullmatch(name):
        return f"#{name}"
    return f"id {quoted(node.resource_id)}" if node.resource_id else ""
