"""Functions for programs over screens.

`sketcher.quote` copies the source of these functions into programs. The search calls most of them, too, so that a
program and the search compute the same. Times are in seconds, for times of day and for durations. A time with several
interpretations, such as "8:25", has several values.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from lxml import etree

SYSTEM = "com.android.systemui"
Node = Any  # an element of lxml

CLOCK = re.compile(
    r"(?<![\d.,:])(\d{1,2})(?:\.(\d\d)|:(\d\d)(?::(\d\d))?)(?![.:]?\d)(?:\s*([ap])\.?m\b)?", re.IGNORECASE
)
HOUR = re.compile(r"(?<![\d.,:])(\d{1,2})\s*(?:([ap])\.?m\b|o'clock)", re.IGNORECASE)
DURATION = re.compile(
    r"(?<![\w.,:])(?=\d)(?:(\d{1,6}(?:\.\d+)?)[\s-]?h(?:(?:ou)?rs?)?\.?(?![a-z]))?(?:[\s,]|and)*"
    r"(?:(\d{1,6}(?:\.\d+)?)[\s-]?m(?:in(?:ute)?s?)?\.?(?![a-z]))?(?:[\s,]|and)*"
    r"(?:(\d{1,6}(?:\.\d+)?)[\s-]?s(?:ec(?:ond)?s?)?\.?(?![a-z]))?",
    re.IGNORECASE,
)
QUOTED = re.compile(
    r"[\"\u201c\u201d\u00ab\u201e]([^\"\u201c\u201d\u00bb]+)[\"\u201c\u201d\u00bb]|\B['\u2018]([^\u2019]+?)['\u2019]\B"
)
NUMBER = re.compile(
    r"(?<![\w.,])([-\u2212]?)"
    r"([0-9]{1,3}(?:[,'\u2019 ][0-9]{3})+(?![0-9])|[0-9]{1,3}(?:\.[0-9]{3})+(?=,[0-9])|[0-9]{1,15})"
    r"(?:[.,]([0-9]{1,9}))?(?![.,]?\d)"
)


def nodes(state: str) -> list[Node]:
    """All nodes of a screen, without the status bar."""
    root = etree.fromstring(state)
    for window in root.findall("node"):
        if window.get("package") == SYSTEM:
            root.remove(window)
    return list(root.iter("node"))


def all_nodes(state: str) -> list[Node]:
    """All nodes of a screen."""
    return list(etree.fromstring(state).iter("node"))


def name(node: Node) -> str:
    """The node's id without its package."""
    return str(node.get("resource-id", "").rpartition("/")[2])


def kind(node: Node) -> str:
    """The node's class without its package."""
    return str(node.get("class", "").rpartition(".")[2])


def plain(text: str) -> str:
    """The text in plain letters, with single spaces."""
    return " ".join(unicodedata.normalize("NFKC", text).split())


def says(node: Node) -> tuple[str, str]:
    """The node's text and its description."""
    return plain(node.get("text", "")), plain(node.get("content-desc", ""))


def beside(node: Node) -> list[str]:
    """The texts beside a node: those in the smallest part of the screen around it that has any."""
    for part in node.iterancestors():
        texts = [text for other in part.iter("node") if other is not node for text in says(other) if text]
        if texts:
            return texts
    return []


def chosen(node: Node) -> set[str]:
    """The labels of the node's children that are checked or selected."""
    on = (child for child in node if "true" in (child.get("checked"), child.get("selected")))
    return {desc or text for text, desc in map(says, on)}


def words(*texts: str) -> list[str]:
    """The words of the texts, in lower case."""
    return re.findall(r"[^\W_]+", " ".join(texts).casefold())


def mentions(instruction: str, texts: Iterable[str]) -> bool:
    """Whether the instruction contains one of the texts, word for word. Texts of one character do not count."""
    return any(len(said) > 1 and f" {said} " in f" {instruction} " for said in phrases(texts))


def quotes(instruction: str) -> set[str]:
    """The quotations in the instruction, each as words in lower case."""
    return {" ".join(words(first or last)) for first, last in QUOTED.findall(instruction)} - {""}


def phrases(texts: Iterable[str]) -> set[str]:
    """The texts, each as words in lower case."""
    return {" ".join(words(text)) for text in texts}


def echoes(instruction: str, texts: Iterable[str]) -> bool:
    """Whether the texts and the instruction share a word of four letters or more."""
    return any(len(word) > 3 and f" {word} " in f" {instruction} " for word in words(*texts))


def times(*texts: str) -> set[float]:
    """All times in the texts, in seconds: "8:25 AM", "20:25", "8.25", "8 am", "00:05:00", "1 hr 5 min"."""
    found: set[float] = set()
    for text in texts:
        for hour, dotted, minute, second, half in CLOCK.findall(text):
            if second:
                found.add(3600.0 * int(hour) + 60 * int(minute) + int(second))
                continue
            found |= times_of_day(hour, dotted or minute, half)
            if minute and not half:  # or minutes and seconds
                found.add(60.0 * int(hour) + int(minute))
        for hour, half in HOUR.findall(text):
            found |= times_of_day(hour, "0", half)
        for parts in DURATION.findall(text):
            if any(parts):
                found.add(sum(float(part or 0) * unit for part, unit in zip(parts, (3600, 60, 1), strict=True)))
    return found


def times_of_day(hour: str, minute: str, half: str) -> set[float]:
    """The meanings of a time on a clock: "8:25" is morning or evening; "08:25", "20:25", "8:25 pm" are one of them."""
    if int(hour) > 23 or int(minute) > 59:
        return set()
    morning = 3600.0 * (int(hour) % 12) + 60 * int(minute)
    if half:
        return {morning + 43200 * (half in "pP")}
    if hour[0] == "0" or int(hour) > 12:
        return {3600.0 * int(hour) + 60 * int(minute)}
    return {morning, morning + 43200}


def numbers(*texts: str) -> set[float]:
    """All numbers in the texts: "5", "-0.5", "0,5", "1,234.5", "1.234,5"."""
    found = set()
    for text in texts:
        for sign, whole, part in NUMBER.findall(text):
            value = float(f"{re.sub(r'[^0-9]', '', whole)}.{part or 0}")
            found.add(-value if sign else value)
    return found


def items(screen: list[Node], anchor: str) -> Iterator[list[Node]]:
    """For each node with this id, all nodes of its item: the largest part of the screen without another such node."""
    anchors = [node for node in screen if name(node) == anchor]
    held = Counter(part for node in anchors for part in (node, *node.iterancestors()))
    for node in anchors:
        alone = [part for part in node.iterancestors() if held[part] == 1]
        yield list([node, *alone][-1].iter("node"))


def best(items: Iterable[list[Node]], tests: Callable[[list[Node]], list[bool]]) -> list[bool]:
    """The test results of the item that passes the most tests; [False] without items."""
    return max((tests(item) for item in items), key=sum, default=[False])


def graded(tests: list[bool]) -> float:
    """1.0 if all tests hold, else half the share of those that do."""
    return 1.0 if all(tests) else sum(tests) / len(tests) / 2
