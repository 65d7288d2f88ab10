"""The view of screens. It writes a screen as an outline, or as changes since another screen.

An outline has one line for each informative node of the screen. A node with its line is an item (`outline.Item`).
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

from grace_irl.demos.labels import Labelled
from grace_irl.demos.trajectory import Metadata
from grace_irl.propose.tokens import cut, estimate
from grace_irl.propose.views.difference import difference
from grace_irl.propose.views.outline import LONGEST, Item, ScreenOutline, named, quoted
from grace_irl.propose.views.screen_words import (
    background,
    name_shares,
    reached,
    sampled,
    shares,
    sharing,
    telling_by_task,
    telling_names,
    telling_table,
    words_table,
)

CUTS = (LONGEST, 120, 60)
"""Maximum characters of each text on a screen. The limits are tried in turn before nodes are left out."""

SHORTEST = 20  # maximum characters of each text if otherwise no node fits
LEAST = 20  # minimum limit of a screen in tokens, enough for the line with the number of omitted nodes


@dataclass(frozen=True)
class ScreenWeights:
    """Statistics of the training screens. They rank the items of a screen by the information that the items give.

    Attributes:
        names: share of the screens that have a node, by `Item.name` (package, class and id). Rare nodes rank higher.
        lines: share of the screens that have a line, by `Item.key` (package and line).
        relevant: names (`Item.name`) of nodes that mark positive screens or share words with instructions.
    """

    names: Mapping[str, float]
    lines: Mapping[str, float]
    relevant: frozenset[str]

    def order(self, item: Item) -> tuple[bool, int, float, float]:
        """The sort key of an item. The most informative items have the smallest keys."""
        rare = self.names.get(item.name, 0.0), self.lines.get(item.key, 0.0)
        return item.name not in self.relevant, -item.importance, *rare


def fitted(outline: ScreenOutline, places: Collection[int], weights: ScreenWeights, tokens: int, ending: str) -> str:
    """Write a screen within a token limit (estimated). If necessary, texts are cut, then nodes are left out.

    Args:
        outline: outline of the screen.
        places: indices of the items to write.
        weights: weights that decide which items are left out first.
        tokens: limit of the whole text, at least `LEAST`.
        ending: text of the last line, or "".
    """
    for longest in CUTS:
        if sum(outline.items[place].cost(longest) for place in places) > tokens + 1:  # the last line has no line break
            continue
        if estimate(text := _text(outline, places, longest, 0, ending)) <= tokens:
            return text
    ranked = sorted(places, key=lambda place: (weights.order(outline.items[place]), place))
    for longest, last in ((CUTS[-1], ending), (SHORTEST, "")):
        count = _count(outline, ranked, longest, tokens)
        while count:
            text = _text(outline, ranked[:count], longest, len(ranked) - count, last)
            excess = estimate(text) - tokens
            if excess <= 0:
                return text
            while count and excess > 0:
                count -= 1
                excess -= outline.items[ranked[count]].cost(longest)
    text = f"{len(ranked)} nodes that do not fit here"
    return text if estimate(text) <= tokens else cut(text, tokens)


def _count(outline: ScreenOutline, ranked: Sequence[int], longest: int, tokens: int) -> int:
    """An upper bound on the number of items that fit. It ignores the lines with names of packages."""
    for count, place in enumerate(ranked):
        tokens -= outline.items[place].cost(longest)
        if tokens < 0:
            return count
    return len(ranked)


def _text(outline: ScreenOutline, places: Collection[int], longest: int, left_out: int, ending: str) -> str:
    lines = outline.write(frozenset(places), longest)
    if left_out:
        lines.append(f"  … {left_out} more node{'s' if left_out > 1 else ''}")
    if ending:
        lines.append(f"  {ending}")
    return "\n".join(lines)


STATE = 640
"""Maximum tokens of one screen."""

COARSEST = 60  # minimum tokens per screen; `coarser` returns no view with fewer
IN_FULL = 4  # tokens of "in full: "
KEPT = 4_096  # maximum number of cached outlines, and of cached texts

Key = TypeVar("Key", bytes, tuple[bytes, ...], tuple[str, int])
Value = TypeVar("Value")

ABOUT = """\
A state is a str: the XML of one screen of a user interface, <hierarchy> with nested <node .../> elements and nothing \
else. root = lxml.etree.fromstring(state) reads it, and xml.etree.ElementTree does. root.iter("node") goes through the \
nodes from top to bottom; node.get("text", "") is an attribute; in lxml node.getparent(), node.iterancestors("node") \
and root.xpath("//node[@checked='true']") work, too. All attributes are strings, any of them may be missing: text, \
content-desc, resource-id, class, package, hint; checkable, checked, clickable, long-clickable, enabled, focusable, \
focused, scrollable, selected, password ("true" or "false"); bounds "[left,top][right,bottom]" in pixels.
Here screens are written as outlines. A line such as
CheckBox* 'S' #day desc 'Sun\\u200aday' checked
is <node class="android.widget.CheckBox" clickable="true" text="S" resource-id="PACKAGE:id/day" \
content-desc="Sun day" checkable="true" checked="true">:
- class without what is before its last dot, or node for none; * where clickable is "true"
- texts in quotes, as a Python program spells them, so that a character that cannot be seen is written as \\u200a; \
'abc'…25: 25 more characters are left out here
- # and the resource-id without "PACKAGE:id/", where PACKAGE is the node's package; an id of another form whole, as \
id 'android:id/title'
- desc: content-desc; desc=text: content-desc is the same as text; hint: hint
- checked, or unchecked where checkable is "true" and checked is not; selected, focused, scrollable, password, \
long-clickable: "true"; disabled: enabled is "false"; [0,0][9,9]: bounds, where nothing else names a node
A line that ends with a colon is the package of the nodes below it. Indented nodes lie in the node above them, not \
always directly: nodes without text, description, state or use are left out, and so are those that cannot be seen \
(visible-to-user "false", or bounds without area), but they are in the XML."""


class UiView:
    """View of screens. A state is written as an outline, and a change as the difference between two outlines.

    The view has no rules for single apps. The nodes that nearly all training screens have (the background) are written
    only once, in the legend.

    Args:
        items: training data.
        metadata: metadata of the set.
        tokens: maximum tokens of one screen.
    """

    modules, tokens_of, helps = "lxml, xml.etree.ElementTree", "texts", False
    recalls = 6

    def __init__(self, items: Sequence[Labelled], metadata: Metadata, tokens: int = STATE) -> None:
        self._metadata = metadata
        self._tokens = max(tokens, LEAST + IN_FULL)
        self._outlines: dict[bytes, ScreenOutline] = {}
        self._texts: dict[tuple[bytes, ...], str] = {}
        self._tables: dict[tuple[str, int], str] = {}
        self._screens = sampled(items, self._outline)
        lines = shares(self._screens)
        self._background = background(self._screens, lines)
        self._telling = telling_by_task(self._screens)
        # If every state of some trajectory is positive, the labels mark no goal screen.
        every = any(item.positive.all() and len(item.positive) > 1 for item in items)
        self._reached = [] if every else reached(items, self._outline)
        self._sharing = sharing(self._reached)
        names = telling_names(self._screens, self._telling) | {each.name for each in self._sharing}
        self._weights = ScreenWeights(name_shares(self._screens), lines, names)

    @property
    def about(self) -> str:
        """See `View`."""
        return ABOUT

    @cached_property
    def coarser(self) -> UiView | None:
        """See `View`."""
        if self._tokens // 2 < COARSEST:
            return None
        half = copy(self)  # with the same statistics
        half._tokens, half._texts = self._tokens // 2, {}
        half.__dict__.pop("coarser", None)
        return half

    def legend(self, tokens: int) -> str:
        """See `View`. The background is never cut, because states are written without it."""
        return _kept(self._tables, ("legend", tokens), lambda: self._legend(tokens))

    def _legend(self, tokens: int) -> str:
        lines = []
        if self._background:
            lines.append(
                "Nearly all screens have these nodes, which are not written again; `without` names those missing:"
            )
            package = ""
            for item in sorted(self._background.values(), key=lambda item: (item.package, item.line)):
                lines += [f" {named(item.package)}:"] if item.package != package else []
                lines.append(f"  {item.line}")
                package = item.package
        lines.append(
            "Later states of a trajectory are written as changes since the state before, or `since 3`, the third, or "
            "in full; `as 3`: nothing of that differs. ~ is a node that changed, what it was -> what it is now; + a "
            "new node; - a node that is gone; (2 of 3): the second of three such nodes from the top; in 'x': it lies "
            "in the node that says x; beside 'x': it lies in one node with it."
        )
        room = tokens - estimate("\n".join(lines))
        texts = [self._packages] if self._packages else []
        texts.append(telling_table(self._screens, self._telling, room - estimate("\n".join(texts)) - 1))
        for text in texts:
            if text and estimate(text) < room:
                lines.append(text)
                room -= estimate(text) + 1
        return "\n".join(lines)

    def figures(self, tokens: int) -> str:
        """See `View`."""
        return cut(self._packages, tokens)

    @property
    def _packages(self) -> str:
        """The packages of the screens, with the number of their nodes; "" without nodes."""
        counted = Counter(item.package for _, _, outline in self._screens for item in outline.items)
        packages = ", ".join(f"{named(name)} ({count} nodes)" for name, count in counted.most_common(8))
        return f"Packages: {packages}{', …' if len(counted) > 8 else ''}" if counted else ""

    def words(self, tokens: int) -> str:
        """See `View`."""
        return _kept(self._tables, ("words", tokens), lambda: words_table(self._reached, self._sharing, tokens))

    def state(self, state: Any) -> str:
        """See `View`. The text has a line for each package, and below it a line for each of its nodes."""
        return _kept(self._texts, (_digest(state),), lambda: self._written(self._outline(state)))

    def events(self, states: Any) -> None:
        """See `View`. The result is None, because screens have no actor."""
        del states

    def change(self, before: Any, after: Any, *, apart: bool = False) -> str:
        """See `View`. The text has a line for each node that differs."""
        del apart
        return _kept(self._texts, (_digest(before), _digest(after)), lambda: self._changed(before, after))

    def _changed(self, before: Any, after: Any) -> str:
        one, two = self._outline(before), self._outline(after)
        if one.fault or two.fault:
            return "no change" if bytes(before) == bytes(after) else f"in full: {self.state(after)}"
        lines = difference(one, two)
        if lines is not None and not lines:
            alike = [item.key for item in one.items] == [item.key for item in two.items]
            return "no change" if alike else "the same nodes in another order"
        text = "\n   ".join(lines or ())
        full = f"in full: {self.state(after)}"
        return text if text and estimate(text) <= min(estimate(full), self._tokens) else full

    def _written(self, outline: ScreenOutline) -> str:
        if outline.fault:
            return cut(f"not the XML of a screen: {quoted(outline.fault, 60)}", self._tokens).partition("\n")[0]
        places = [n for n, item in enumerate(outline.items) if item.key not in self._background]
        missing = [item.line for key, item in self._background.items() if key not in outline.keys]
        ending = f"without {'; '.join(missing)}" if missing else ""
        if missing and len(missing) == len(self._background):
            ending = "without any of what nearly all screens have"
        if not outline.items:
            return "no nodes that say anything"
        if not places:
            text = "\n  ".join(["only what nearly all screens have", *([ending] if ending else [])])
            return text if estimate(text) <= self._tokens - IN_FULL else "only some of what nearly all screens have"
        return fitted(outline, places, self._weights, self._tokens - IN_FULL, ending)

    def _outline(self, state: Any) -> ScreenOutline:
        return _kept(self._outlines, _digest(state), lambda: ScreenOutline.of(bytes(state)))


def _kept(known: dict[Key, Value], key: Key, make: Callable[[], Value]) -> Value:
    """Return the cached value of a key. If there is none, call `make` and cache its value.

    A full cache drops its oldest value.
    """
    if key not in known:
        if len(known) >= KEPT:
            del known[next(iter(known))]
        known[key] = make()
    return known[key]


def _digest(state: Any) -> bytes:
    return hashlib.sha1(state, usedforsecurity=False).digest()
