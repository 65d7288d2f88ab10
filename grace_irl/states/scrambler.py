"""The base class of scramblers, which hide the meaning of states."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any

from grace_irl.states.kind import States

WORD = re.compile(r"\w+")


class Scrambler(ABC):
    """A map that changes states so that nobody can recognise their meaning. Equal states stay equal.

    `grace_irl.demos.scramble` uses it to test what a method learns from the data alone.
    """

    @abstractmethod
    def states(self, states: States, word: Callable[[str], str], where: str) -> States:
        """The scrambled copy of one trajectory's states.

        Args:
            states: states of one trajectory, of the scrambler's kind.
            word: function from a lower-case word to its invented word.
            where: file and episode, for messages.

        Raises:
            InputError: the map does not fit these states.
        """

    def text(self, text: str, word: Callable[[str], str]) -> str:
        """The scrambled instruction: invented words in lower case replace its words."""
        return in_invented_words(text, word)

    @property
    def fields(self) -> tuple[str, ...]:
        """Meaningless names of the features of a scrambled state; () if the features have no names."""
        return ()

    @property
    def old_parts(self) -> Iterable[str]:
        """Names of the parts of a state before scrambling; () if the parts have no names."""
        return ()

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """The map as a dict for JSON."""


def in_invented_words(text: str, word: Callable[[str], str]) -> str:
    """The text with each word replaced by its invented word, in lower case."""
    return WORD.sub(lambda match: word(match[0].lower()), text)
