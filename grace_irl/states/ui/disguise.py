"""Screens in other words: everything that says what a node is to somebody who knows Android, replaced word by word.

Words are runs of letters, cut where lower case turns to upper ("alarmTab", "FrameLayout"); they are replaced in
texts, descriptions, hints, ids, classes, packages and whatever else is written in letters, and in the instruction
alike, so that what agrees still agrees. Numbers, punctuation, truths ("true", "false"), bounds, the names of attributes
and the tree stay: how they hang together is what a method has to find out.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from grace_irl.states.ui import markup

WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_a-zA-Z]+")
"""A word; letters beyond ASCII stand by themselves."""

NAMES = frozenset({"text", "content-desc", "hint", "resource-id", "class", "package"})
"""Attributes in which "true" is a word like others."""

TRUTHS = ("true", "false")


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
