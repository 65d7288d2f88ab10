"""The demonstrations as rows, one for each screen under each instruction, and what it costs to be wrong about them.

Three kinds of rows count. A goal state that a program misses; any other state that it takes for one; and a goal state
of one instruction under another, which is rarely a goal there too, so that programs look at the instruction.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from lxml import etree
from numpy.typing import NDArray

from grace_irl.demos.labels import Labelled
from grace_irl.states.ui import markup
from grace_irl.synthesis.screen import functions

FLAGS = {
    "checked": {"checked": "true"},
    "unchecked": {"checkable": "true", "checked": "false"},
    "selected": {"selected": "true"},
    "focused": {"focused": "true"},
    "disabled": {"enabled": "false"},
    "hidden": {"visible-to-user": "false"},
}
"""Flags of a node, and the attributes that show them."""
ON_OR_OFF = frozenset({"checked", "unchecked", "selected"})
"""Flags of nodes of which it matters what stands beside them."""


@dataclass(frozen=True)
class NodeLook:
    """All that a test can ask of one node.

    Attributes:
        name: its id without the package.
        kind: its class without the package.
        package: the app it belongs to.
        says: its text and its description.
        flags: those of `FLAGS` that it has.
        chosen: the labels of its children that are on, sorted, if some are and all of these have labels; or None.
        beside: the texts beside it (`functions.beside`), if it is on or off.
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
    def of(cls, node: etree._Element) -> NodeLook:
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
    """Identity of a node."""
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


class NodeLooks:
    """Looks by number: screens hold few that no other screen holds."""

    def __init__(self) -> None:
        self.all: list[NodeLook] = []
        self._numbers: dict[NodeLook, int] = {}
        self._seen: dict[tuple[str, ...], int] = {}

    def number(self, node: etree._Element) -> int:
        """The number of a node's look."""
        if len(node) or _flags(node) & ON_OR_OFF:  # then what is around it counts, too
            return self._of(NodeLook.of(node))
        key = tuple(
            part for pair in node.items() if pair[0] not in ("index", "bounds", "drawing-order") for part in pair
        )
        if key not in self._seen:
            self._seen[key] = self._of(NodeLook.of(node))
        return self._seen[key]

    def _of(self, look: NodeLook) -> int:
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
    def of(cls, state: bytes, looks: NodeLooks, *, system: bool) -> Sight:
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


MISSED = 12.0
"""All goal states of a trajectory; each its share."""
WRONG = 2.0
"""Another state, once for each trajectory that holds it."""
WRONG_OF_EXPERT = 2.5
"""Another state of an expert: nobody comes nearer to a goal and is not there yet."""
WRONG_ELSEWHERE = 2.0
"""A goal state under all other instructions of a task, be it its own or another one; each its share."""
MAX_WRONG = 6_000
"""Rows that are no goals; of more, an evenly spaced sample."""


@dataclass(frozen=True, eq=False)
class ScreenEvidence:
    """Rows, in no particular order.

    Attributes:
        looks: of all screens.
        sights: the distinct screens.
        said: the distinct instructions; those of experts come first.
        experts: how many of them are experts'.
        pairs: (rows, 2) the screen and the instruction of each row.
        missed: (rows,) nats for a row that is a goal and is not taken for one.
        wrong: (rows,) nats for a row that is taken for a goal and is none.
        task: (rows,) the number of a goal's task, -1 for what is no goal.
        near: (rows,) whether the row is a state of an expert that is no goal.
    """

    looks: NodeLooks
    sights: tuple[Sight, ...]
    said: tuple[Said, ...]
    experts: int
    pairs: NDArray[np.int64]
    missed: NDArray[np.float64]
    wrong: NDArray[np.float64]
    task: NDArray[np.int64]
    near: NDArray[np.bool_]

    @property
    def signed(self) -> NDArray[np.float64]:
        """(rows,) what it costs more to take a row for a goal than not to."""
        return self.wrong - self.missed

    @property
    def tasks(self) -> int:
        """The number of tasks of the goals."""
        return int(self.task.max(initial=-1)) + 1

    def cost(self, hits: NDArray[np.bool_]) -> float:
        """The nats of taking these rows for goals, and no others."""
        return float(self.wrong[hits].sum() + self.missed[~hits].sum())

    @classmethod
    def of(cls, items: Sequence[Labelled], *, system: bool) -> ScreenEvidence:
        """Rows from training demonstrations.

        Args:
            system: whether the system's own windows (the status bar) are looked at.
        """
        states: dict[bytes, int] = {}
        said: dict[str, int] = {}
        for item in sorted(items, key=lambda item: not item.positive.any()):
            said.setdefault(item.trajectory.extra_info, len(said))
        experts = len({item.trajectory.extra_info for item in items if item.positive.any()})
        missed: dict[tuple[int, int], float] = {}
        wrong: dict[tuple[int, int], float] = {}
        near: set[tuple[int, int]] = set()
        tasks: dict[str, int] = {}
        task: dict[tuple[int, int], int] = {}
        for item in items:
            rows = [
                (states.setdefault(state, len(states)), said[item.trajectory.extra_info])
                for state in item.trajectory.states.tolist()
            ]
            goals = [row for row, positive in zip(rows, item.positive.tolist(), strict=True) if positive]
            for row in goals:
                missed[row] = missed.get(row, 0.0) + MISSED / len(goals)
                task[row] = tasks.setdefault(item.task, len(tasks))
            for row in dict.fromkeys(rows):
                if row not in goals:
                    wrong[row] = wrong.get(row, 0.0) + (WRONG_OF_EXPERT if goals else WRONG)
                    if goals:
                        near.add(row)
        asked = [{said for (_, said), of in task.items() if of == number} for number in range(len(tasks))]
        for screen, own in list(missed):
            for others in (instructions - {own} for instructions in asked):
                for other in others:
                    if (screen, other) not in missed:
                        wrong[screen, other] = wrong.get((screen, other), 0.0) + WRONG_ELSEWHERE / len(others)
        goalless = [row for row in wrong if row not in missed]
        kept = [*missed, *(goalless[i] for i in _spread(len(goalless), MAX_WRONG))]
        shown = {screen: place for place, screen in enumerate(dict.fromkeys(screen for screen, _ in kept))}
        texts = list(states)
        looks = NodeLooks()
        return cls(
            looks,
            tuple(Sight.of(texts[screen], looks, system=system) for screen in shown),
            tuple(map(Said, said)),
            experts,
            np.array([(shown[screen], instruction) for screen, instruction in kept], dtype=np.int64).reshape(-1, 2),
            np.array([missed.get(row, 0.0) for row in kept]),
            np.array([wrong.get(row, 0.0) for row in kept]),
            np.array([task.get(row, -1) for row in kept], dtype=np.int64),
            np.array([row in near for row in kept], dtype=np.bool_),
        )


def _spread(count: int, most: int) -> list[int]:
    """At most `most` of the first `count` numbers, evenly spaced."""
    if count <= most:
        return list(range(count))
    return [int(i) for i in np.linspace(0, count - 1, most)]
