"""A search's view of screens: each node's look, and the looks that make up a screen or an item of one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from lxml import etree

from grace_irl.demos.ui import markup
from grace_irl.synthesis.screen import functions

FLAGS = {
    "checked": {"checked": "true"},
    "unchecked": {"checkable": "true", "checked": "false"},
    "selected": {"selected": "true"},
    "focused": {"focused": "true"},
    "disabled": {"enabled": "false"},
    "hidden": {"visible-to-user": "false"},
}
"""What a node may be, and the attributes that say so."""
ON_OR_OFF = frozenset({"checked", "unchecked", "selected"})
"""Flags of nodes of which it matters what stands beside them."""


@dataclass(frozen=True)
class Look:
    """All that a test can ask of one node.

    Attributes:
        name: its id without the package.
        kind: its class without the package.
        package: the app it belongs to.
        says: its text and its description.
        flags: those of `FLAGS` that it has.
        chosen: the labels of its children that are on, sorted, where some are and all of these have labels; or None.
        beside: the texts beside it (`functions.beside`), where it is on or off.
    """

    name: str
    kind: str
    package: str
    says: tuple[str, str]
    flags: frozenset[str]
    chosen: tuple[str, ...] | None = None
    beside: tuple[str, ...] = ()

    @cached_property
    def numbers(self) -> frozenset[float]:
        return frozenset(functions.numbers(*self.says))

    @cached_property
    def speaks(self) -> bool:
        """Whether there is a text in it or beside it, which an instruction may be about."""
        return any(self.says) or bool(self.beside)

    @classmethod
    def of(cls, node: etree._Element) -> Look:
        chosen = functions.chosen(node)
        return cls(
            functions.name(node),
            functions.kind(node),
            node.get("package", ""),
            functions.says(node),
            _flags(node),
            tuple(sorted(chosen)) if chosen and "" not in chosen else None,
            tuple(sorted(set(functions.beside(node)))) if _flags(node) & ON_OR_OFF else (),
        )


def _flags(node: etree._Element) -> frozenset[str]:
    """What a node is."""
    return frozenset(flag for flag, said in FLAGS.items() if all(node.get(key) == said[key] for key in said))


@dataclass(frozen=True)
class Said:
    """All that a test can ask of an instruction."""

    text: str

    @cached_property
    def words(self) -> str:
        """Its words, with single spaces, in small letters."""
        return " ".join(functions.words(functions.plain(self.text)))

    @cached_property
    def times(self) -> frozenset[float]:
        return frozenset(functions.times(functions.plain(self.text)))

    @cached_property
    def numbers(self) -> frozenset[float]:
        return frozenset(functions.numbers(functions.plain(self.text)))

    @cached_property
    def quotes(self) -> frozenset[str]:
        return frozenset(functions.quotes(functions.plain(self.text)))


class Looks:
    """Looks by number: screens hold few that no other screen holds."""

    def __init__(self) -> None:
        self.all: list[Look] = []
        self._numbers: dict[Look, int] = {}
        self._seen: dict[tuple[str, ...], int] = {}

    def number(self, node: etree._Element) -> int:
        """The number of a node's look."""
        if len(node) or _flags(node) & ON_OR_OFF:  # then what is around it counts, too
            return self._of(Look.of(node))
        key = tuple(
            part for pair in node.items() if pair[0] not in ("index", "bounds", "drawing-order") for part in pair
        )
        if key not in self._seen:
            self._seen[key] = self._of(Look.of(node))
        return self._seen[key]

    def _of(self, look: Look) -> int:
        if look not in self._numbers:
            self._numbers[look] = len(self.all)
            self.all.append(look)
        return self._numbers[look]


@dataclass(frozen=True)
class Sight:
    """One screen.

    Attributes:
        looks: number of the look of each node, in document order.
        items: for each id that stands there more than once or that has the whole screen to itself, the first and
            one past the last node of the items around them (`functions.items`).
    """

    looks: tuple[int, ...]
    items: dict[str, tuple[tuple[int, int], ...]]

    @classmethod
    def of(cls, state: bytes, looks: Looks, *, system: bool) -> Sight:
        """A screen from its XML, with the status bar or without."""
        root = markup.parse(state, "a state")
        if not system:
            for window in root.findall("node"):
                if window.get("package") == functions.SYSTEM:
                    root.remove(window)
        screen = list(root.iter("node"))
        numbers = tuple(looks.number(node) for node in screen)
        places = {node: place for place, node in enumerate(screen)}
        anchors: dict[str, list[etree._Element]] = {}
        for node, number in zip(screen, numbers, strict=True):
            if name := looks.all[number].name:
                anchors.setdefault(name, []).append(node)
        items = {name: tuple(_items(found, places)) for name, found in anchors.items()}
        return cls(numbers, items)

    def within(self, span: tuple[int, int]) -> tuple[int, ...]:
        """The looks of an item."""
        return self.looks[slice(*span)]


def _items(anchors: list[etree._Element], places: dict[etree._Element, int]) -> Iterator[tuple[int, int]]:
    """First and one past the last node of the item around each anchor."""
    if len(anchors) == 1:
        yield 0, len(places)
        return
    held = Counter(part for node in anchors for part in (node, *node.iterancestors()))
    for node in anchors:
        alone = [node, *(part for part in node.iterancestors() if held[part] == 1)][-1]
        yield places[alone], places[alone] + sum(1 for _ in alone.iter("node"))
