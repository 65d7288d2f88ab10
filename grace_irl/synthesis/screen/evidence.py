"""The demonstrations as rows, each with a screen and an instruction, and the costs of a program's mistakes.

There are three kinds of mistakes. A program may miss a goal state. It may mark another state as a goal. Or it may mark
the screen of a goal under another instruction, for which this screen is rarely a goal. Because of the third kind,
programs that read the instruction have lower costs.
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
"""By flag of a node: the XML attributes that show the flag, and their values."""
ON_OR_OFF = frozenset({"checked", "unchecked", "selected"})
"""Flags that show whether a node, such as a switch, is on or off. The texts beside such a node serve as its label."""


@dataclass(frozen=True)
class NodeLook:
    """The features of a node that conditions can test. A node is an element of a screen.

    Attributes:
        name: the node's id without the package, for example "title".
        kind: the node's class without the package, for example "Button".
        package: the package of the app that shows the node.
        says: the node's text and description.
        flags: the flags of `FLAGS` that the node has.
        chosen: sorted labels of the children that are checked or selected; None if there are no such children, or if
            one of them has no label.
        beside: texts beside the node (`functions.beside`), if the node has a flag of `ON_OR_OFF`; else ().
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
        """Whether the node has a text, or a text beside it. Only such nodes can show a part of an instruction."""
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
    """The flags of a node."""
    return frozenset(flag for flag, said in FLAGS.items() if all(node.get(key) == said[key] for key in said))


@dataclass(frozen=True)
class Said:
    """The features of an instruction that conditions can test."""

    text: str

    @cached_property
    def words(self) -> str:
        """The words in lower case, with single spaces."""
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
    """The distinct looks (`NodeLook`) of the nodes of all screens, numbered from 0. Many nodes have the same look."""

    def __init__(self) -> None:
        self.all: list[NodeLook] = []
        self._numbers: dict[NodeLook, int] = {}
        self._seen: dict[tuple[str, ...], int] = {}

    def number(self, node: etree._Element) -> int:
        """The number of a node's look."""
        if len(node) or _flags(node) & ON_OR_OFF:  # the look depends on children or neighbours, too
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
    """The content of a screen.

    Attributes:
        looks: number of the look of each node, in document order.
        items: map from an id to one item for each node with this id. An item is the largest subtree that contains the
            node but no other node with this id, for example a row of a list. If only one node has the id, the item is
            the whole screen. Each item is a pair: the index of its first node, and the index after its last node.
    """

    looks: tuple[int, ...]
    items: dict[str, tuple[tuple[int, int], ...]]

    @classmethod
    def of(cls, state: bytes, looks: NodeLooks, *, system: bool) -> Sight:
        """Parse a screen from its XML. Without `system`, the system's own windows (the status bar) are left out."""
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
        """Numbers of the looks of the nodes in an item, which is a pair as in `items`."""
        return self.looks[slice(*span)]


def _items(anchors: list[etree._Element], places: dict[etree._Element, int]) -> Iterator[tuple[int, int]]:
    """Generate the item around each anchor, as in `Sight.items`.

    Args:
        anchors: all nodes with one id.
        places: index of each node of the screen, in document order.
    """
    if len(anchors) == 1:
        yield 0, len(places)
        return
    held = Counter(part for node in anchors for part in (node, *node.iterancestors()))
    for node in anchors:
        alone = [node, *(part for part in node.iterancestors() if held[part] == 1)][-1]
        yield places[alone], places[alone] + sum(1 for _ in alone.iter("node"))


MISSED = 12.0
"""Cost in nats of missing all goal states of a trajectory, divided evenly among these states."""
WRONG = 2.0
"""Cost in nats of marking a state as a goal by mistake, for each trajectory that contains the state."""
WRONG_OF_EXPERT = 2.5
"""Cost in nats that replaces `WRONG` in expert trajectories, because their states are the most similar to goals."""
WRONG_ELSEWHERE = 2.0
"""Cost in nats of marking the screen of a goal under all instructions of a task except the goal's own. Each of these
instructions has an equal share of the cost. Each task of the demonstrations adds this cost once."""
MAX_WRONG = 6_000
"""Maximum number of rows that are no goals. If there are more, an evenly spaced sample is used."""


@dataclass(frozen=True, eq=False)
class ScreenEvidence:
    """The demonstrations as rows. A row is a screen under an instruction.

    Attributes:
        looks: looks of the nodes of all screens.
        sights: the distinct screens.
        said: the distinct instructions, those of experts first.
        experts: number of instructions in `said` that experts followed.
        pairs: (rows, 2) index of each row's screen in `sights`, and of its instruction in `said`.
        missed: (rows,) cost in nats of not marking the row, if it is a goal; else 0.
        wrong: (rows,) cost in nats of marking the row as a goal.
        task: (rows,) number of the task if the row is a goal, else -1.
        near: (rows,) whether the row is a state of an expert trajectory, but not one of the trajectory's goals.
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
        """For each row, the cost in nats of marking it as a goal minus the cost of not marking it, `(rows,)`."""
        return self.wrong - self.missed

    @property
    def tasks(self) -> int:
        """Number of tasks that have goals."""
        return int(self.task.max(initial=-1)) + 1

    def cost(self, hits: NDArray[np.bool_]) -> float:
        """Cost in nats of marking exactly these rows as goals."""
        return float(self.wrong[hits].sum() + self.missed[~hits].sum())

    @classmethod
    def of(cls, items: Sequence[Labelled], *, system: bool) -> ScreenEvidence:
        """Build the rows from training demonstrations.

        Args:
            items: the demonstrations.
            system: whether screens include the system's own windows (the status bar).
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
    """At most `most` of the integers from 0 to `count` - 1, evenly spaced."""
    if count <= most:
        return list(range(count))
    return [int(i) for i in np.linspace(0, count - 1, most)]
