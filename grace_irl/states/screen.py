"""Screens: the XML of one user interface per state, in UTF-8."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grace_irl.states.kind import Census, PartLayout, Scrambler, StateKind, States
from grace_irl.states.texts import pack, text

WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_a-zA-Z]+")
"""A word; letters beyond ASCII stand by themselves."""

NAMES = frozenset({"text", "content-desc", "hint", "resource-id", "class", "package"})
"""Attributes in which "true" is a word like others."""

TRUTHS = ("true", "false")


class ScreenKind(StateKind):
    """`(T+1,)` texts, dtype `S`; programs are handed a `str`. Files and headers call the kind `ui`."""

    name = "ui"
    plural = "screens"
    label = "last"
    expected = "screens (T+1,) in UTF-8 bytes"
    shows_actions = False
    heavy = True
    parsed = True
    annotated = True
    view = "uiautomator"
    stored_as = "text: the XML of a screen"

    def recognises(self, states: States) -> bool:
        """See `StateKind`."""
        return getattr(states, "ndim", 0) == 1 and states.dtype.kind == "S"

    def recognises_state(self, state: Any) -> bool:
        """See `StateKind`."""
        return isinstance(state, str | bytes)

    def check(self, states: States, where: str) -> None:
        """See `StateKind`: a text of no bytes is refused where it is parsed."""

    def type_name(self, states: States) -> str:
        """See `StateKind`."""
        return "str"

    def identity(self, states: States) -> tuple[object, object]:
        """See `StateKind`. The padding says only what else was stored beside a screen."""
        return states.shape, self.name

    def feed(self, digest: Any, states: States) -> None:
        """See `StateKind`."""
        for screen in states.tolist():
            digest.update(b"%d " % len(screen))
            digest.update(screen)

    def recognises_parts(self, parts: Sequence[PartLayout]) -> bool:
        """See `StateKind`."""
        return [(part.name, part.is_text) for part in parts] == [("", True)]

    def stores(self, part: PartLayout) -> bool:
        """See `StateKind`."""
        return not part.name and part.is_text

    def canonical(self, text: str, where: str) -> str:
        """See `StateKind`: the XML as `markup.write` has it."""
        from grace_irl.states.ui import markup

        return markup.write(markup.parse(text, where))

    def as_state(self, state: Any) -> str:
        """See `StateKind`."""
        return state.decode() if isinstance(state, bytes) else str(state)

    def separated(self, state: Any) -> Mapping[str, Any]:
        """See `StateKind`."""
        return {"": self.as_state(state)}

    def online(self, states: Sequence[Any]) -> States:
        """See `StateKind`."""
        return pack([self.as_state(state) for state in states])

    def copied(self, state: Any) -> str:
        """See `StateKind`."""
        return self.as_state(state)

    def census(self, states: States) -> Census:
        """See `StateKind`."""
        from grace_irl.states.ui.census import ScreenCensus

        return ScreenCensus()

    def draw_scrambler(self, states: States, seed: int) -> Scrambler:
        """See `StateKind`."""
        return ScreenScrambler()

    def read_scrambler(self, about: Mapping[str, Any], seed: int) -> Scrambler:
        """See `StateKind`."""
        return ScreenScrambler()


class ScreenScrambler(Scrambler):
    """Puts screens and instructions in other words: everything that says what a node is to somebody who knows Android.

    Words are runs of letters, cut where lower case turns to upper ("alarmTab", "FrameLayout"). They are replaced in
    texts, descriptions, hints, ids, classes, packages and whatever else is written in letters, and in the instruction
    alike, so that what agrees still agrees. Numbers, punctuation, truths ("true", "false"), bounds, the names of
    attributes and the tree stay: how they hang together is what a method has to find out.
    """

    def states(self, states: NDArray[Any], word: Callable[[str], str], where: str) -> NDArray[np.bytes_]:
        """See `Scrambler`."""
        screens = states.tolist()
        known = {state: disguised(text(state), word) for state in dict.fromkeys(screens)}
        return pack([known[state] for state in screens])

    def text(self, text: str, word: Callable[[str], str]) -> str:
        """See `Scrambler`."""
        return in_other_words(text, word)

    def to_json(self) -> dict[str, Any]:
        """See `Scrambler`: words are kept beside it."""
        return {}


def in_other_words(text: str, word: Callable[[str], str]) -> str:
    """A text whose words are replaced; capitals stay where they are.

    Args:
        word: from a word in lower case to another.
    """
    return WORD.sub(lambda match: _spelled_like(match[0], word(match[0].lower())), text)


def disguised(state: str, word: Callable[[str], str]) -> str:
    """A screen in other words.

    Raises:
        InputError: not a screen.
    """
    from grace_irl.states.ui import markup

    root = markup.parse(state)
    for node in root.iter("node"):
        for name, value in node.attrib.items():
            if name != "bounds" and (name in NAMES or value not in TRUTHS):
                node.set(name, in_other_words(value, word))
    return markup.write(root)


def _spelled_like(old: str, new: str) -> str:
    if len(old) > 1 and old.isupper():
        return new.upper()
    return new.capitalize() if old[:1].isupper() else new


SCREEN = ScreenKind()
