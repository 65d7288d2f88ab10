"""Screens: states that are the XML of a user interface, in UTF-8."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grace_irl.states.kind import Census, PartLayout, Scrambler, StateKind, States
from grace_irl.states.texts import pack, text

MARKED = range(0x300, 0x20000)
"""Range of code points that holds Unicode's marks (categories `M`), except the rare variation selectors."""

NAMES = frozenset({"text", "content-desc", "hint", "resource-id", "class", "package"})
"""Attributes whose value is text, even if it is "true" or "false"."""

TRUTHS = ("true", "false")


class ScreenKind(StateKind):
    """Screens: `(T+1,)` texts of dtype `S`. Programs receive a `str`. Files and headers call the kind `ui`."""

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
        """Accept all screens. The XML parser refuses invalid screens later, including empty texts."""

    def type_name(self, states: States) -> str:
        """See `StateKind`."""
        return "str"

    def identity(self, states: States) -> tuple[object, object]:
        """See `StateKind`. The dtype is left out, because its width depends on the longest screen of the array."""
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
        """See `StateKind`. The spelling is that of `markup.write`."""
        from grace_irl.states.ui import markup

        return markup.write(markup.parse(text, where))

    def with_status_of(self, states: States, others: States) -> States | None:
        """See `StateKind`."""
        from grace_irl.states.ui import status_bar

        screens = status_bar.exchange(*([text(state) for state in each.tolist()] for each in (states, others)))
        return None if screens is None else pack(screens)

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
    """Scrambler that replaces the words of screens and instructions, so that knowledge of Android does not help.

    A word is a run of letters and their marks, split before a capital that follows a lower-case letter ("alarmTab",
    "FrameLayout"). The scrambler replaces words in texts, descriptions, hints, ids, classes, packages and all other
    attributes. Words of the instruction get the same replacements, so equal words stay equal. Numbers, punctuation,
    booleans ("true", "false"), bounds, attribute names and the tree stay, because a method must find the relations
    between them.
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
        """See `Scrambler`. The result is empty, because `grace_irl.demos.scramble.ScrambleMap` stores all words."""
        return {}


def in_other_words(text: str, word: Callable[[str], str]) -> str:
    """The text with each word replaced. The new words are capitalised like the old ones.

    Args:
        text: the original text.
        word: function from a lower-case word to its replacement.
    """
    return word_pattern().sub(lambda match: _spelled_like(match[0], word(match[0].lower())), text)


@cache
def word_pattern() -> re.Pattern[str]:
    """Pattern of one word. A run of letters beyond ASCII is a separate word.

    Marks belong to the word before them. In many scripts, such as that of Hindi, vowels within a word are marks.
    Python's regular expressions have no class for marks, so this function builds one. This takes time, so only the
    first call does it.
    """
    marks = [code for code in MARKED if unicodedata.category(chr(code)).startswith("M")]
    # In a run of consecutive code points, the code point minus its index in the list is constant.
    runs = [[code for _, code in run] for _, run in groupby(enumerate(marks), lambda each: each[1] - each[0])]
    mark = "".join(f"{chr(run[0])}-{chr(run[-1])}" for run in runs)
    return re.compile(rf"(?:[A-Z]+(?![a-z])|[A-Z]?[a-z]+)[{mark}]*|[^\W\d_a-zA-Z](?:[^\W\d_a-zA-Z]|[{mark}])*")


def disguised(state: str, word: Callable[[str], str]) -> str:
    """The XML of a screen with its words replaced.

    Raises:
        InputError: an invalid screen.
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
