"""Patterns: conditions on one node of a screen.

For example, a pattern can require that the text of the node contains a time that also occurs in the instruction.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Literal

from grace_irl.synthesis.screen import functions
from grace_irl.synthesis.screen.evidence import FLAGS, ON_OR_OFF, NodeLook, Said
from grace_irl.text import quoted

Shows = Literal["", "time", "number", "quote", "name", "word"]
"""Kinds of content that a text of a node can share with the instruction:

* "time": a time.
* "number": a number.
* "quote": a quotation. The text of the node equals a quotation in the instruction.
* "name": the whole text of the node, which occurs in the instruction and has at least two characters.
* "word": a word with at least four letters.
* "": none. The pattern does not compare the node with the instruction."""
SHOWN = 40
"""Maximum number of characters of a screen's text in the explanation of a program."""


@dataclass(frozen=True)
class NodePattern:
    """Conditions on a node, which must all hold. An empty attribute is no condition.

    Attributes:
        name: id of the node without its package.
        kind: class of the node without its package.
        package: app of the node.
        says: the node's whole text, or its whole description.
        word: a word of the node's text or description, in lower case.
        shows: the part of the instruction that the node's text or description shows.
        flag: a flag of `FLAGS`.
        chosen: exact set of labels of the checked or selected children; None for no condition.
        bound: ">=" or "<=", the relation of a number in the node's text or description to `limit`.
        limit: the limit for `bound`.
        aside: whether `says` or `shows` is about the texts beside the node instead of the node's own texts.
    """

    name: str = ""
    kind: str = ""
    package: str = ""
    says: str = ""
    word: str = ""
    shows: Shows = ""
    flag: str = ""
    chosen: tuple[str, ...] | None = None
    bound: Literal["", ">=", "<="] = ""
    limit: float = 0.0
    aside: bool = False

    def implies(self, other: NodePattern) -> bool:
        """Whether this pattern has all conditions of `other`, so that all nodes that fit this pattern fit `other`."""
        if (other.bound and other.limit != self.limit) or ((other.says or other.shows) and other.aside != self.aside):
            return False
        standard = NodePattern()
        asked = ((getattr(other, field), getattr(self, field), getattr(standard, field)) for field in FIELDS)
        return all(value in (own, open_) for value, own, open_ in asked)

    @property
    def key(self) -> str:
        """Sort key of the pattern."""
        return repr(self)

    def expression(self) -> list[str]:
        """Python expressions over a node `n`, fast ones first. The node fits the pattern if all of them are true."""
        parts = []
        says = f"{'beside' if self.aside else 'says'}(n)"
        if self.name:
            parts.append(f"name(n) == {quoted(self.name)}")
        if self.kind:
            parts.append(f"kind(n) == {quoted(self.kind)}")
        if self.package:
            parts.append(f'n.get("package") == {quoted(self.package)}')
        if self.flag:
            parts += [f'n.get("{attribute}") == "{value}"' for attribute, value in FLAGS[self.flag].items()]
        if self.says:
            parts.append(f"{quoted(self.says)} in {says}")
        if self.word:
            parts.append(f"{quoted(self.word)} in words(*says(n))")
        if self.chosen is not None:
            labels = ", ".join(map(quoted, self.chosen))
            parts.append("chosen(n) == " + (f"{{{labels}}}" if labels else "set()"))
        if self.bound:
            parts.append(f"any(value {self.bound} {_figure(self.limit)} for value in numbers(*says(n)))")
        if self.shows:
            parts.append(
                {
                    "time": f"times(*{says}) & self.times",
                    "number": f"numbers(*{says}) & self.numbers",
                    "quote": f"phrases({says}) & self.quotes",
                    "name": f"mentions(self.words, {says})",
                    "word": f"echoes(self.words, {says})",
                }[self.shows]
            )
        return parts

    def phrase(self) -> str:
        """The conditions in words, such as "onoff is checked"."""
        what = shown(self.name) or (f"some {shown(self.kind)}" if self.kind else "something")
        which = [f"is {self.flag}"] * bool(self.flag)
        if self.package:
            which.append(f"is of {shown(self.package)}")
        says = "stands beside" if self.aside else "says"
        if self.says:
            which.append(f'{says} "{shown(self.says)}"')
        if self.word:
            which.append(f'says the word "{shown(self.word)}"')
        if self.shows:
            told = {
                "time": "a time of the instruction",
                "number": "a number of the instruction",
                "quote": "what the instruction quotes",
                "name": "words of the instruction",
                "word": "a word of the instruction, among others",
            }
            which.append(f"{says} {told[self.shows]}")
        if self.chosen is not None:
            which.append(f"has just {', '.join(map(shown, self.chosen))} chosen")
        if self.bound:
            which.append(f"says a number {self.bound} {_figure(self.limit)}")
        return f"{what} {' and '.join(which) or 'is there'}"


def _figure(number: float) -> str:
    """A number with all of its digits, and without ".0" for a whole one."""
    return repr(float(number)).removesuffix(".0")


FIELDS = tuple(field.name for field in fields(NodePattern))


def shown(text: str) -> str:
    """Prepare a text of a screen for an explanation: one line, at most `SHOWN` characters, safe inside a docstring."""
    return quoted(text if len(text) <= SHOWN else f"{text[: SHOWN - 1]}…")[1:-1]


def plain_patterns(look: NodeLook) -> Iterator[NodePattern]:
    """Generate the patterns that a node fits under every instruction."""
    texts = sorted({text for text in look.says if text})
    words = {word for word in functions.words(*texts) if len(word) > 2 and not word.isdecimal()}
    if look.package:
        yield NodePattern(package=look.package)
    names = ("", look.name) if look.name else ("",)
    for flag in ("", *sorted(look.flags)):
        if look.kind:
            yield NodePattern(kind=look.kind, flag=flag)
        for name in names:
            if name:
                yield NodePattern(name=name, flag=flag)
            for text in texts:
                yield NodePattern(name=name, says=text, flag=flag)
    for name in names:
        for word in sorted(words):
            yield NodePattern(name=name, word=word)
    for flag in sorted(look.flags & ON_OR_OFF):
        for text in look.beside:
            yield NodePattern(says=text, flag=flag, aside=True)
    if look.chosen is not None and look.name:
        yield NodePattern(name=look.name, chosen=look.chosen)


def told_patterns(look: NodeLook, said: Said) -> Iterator[NodePattern]:
    """Generate the patterns that a node fits because it shows a part of the instruction, such as a time."""
    if not said.text:
        return
    for shows in _shown(look.says, said):
        for flag in ("", *sorted(look.flags)):
            # A single word that the node shares with the instruction is weak evidence. So a pattern for such a word
            # must also test the node's id.
            for name in dict.fromkeys((look.name,) if shows == "word" else ("", look.name)):
                if name or shows != "word":
                    yield NodePattern(name=name, shows=shows, flag=flag)
    if look.beside:
        for shows in _shown(look.beside, said):
            for flag in sorted(look.flags & ON_OR_OFF):
                for name in dict.fromkeys(("", look.name)):
                    yield NodePattern(name=name, shows=shows, flag=flag, aside=True)


def _shown(texts: tuple[str, ...], said: Said) -> list[Shows]:
    """The parts of the instruction that these texts show."""
    times, numbers, phrases = _read(texts)
    shown: dict[Shows, bool] = {
        "time": not said.times.isdisjoint(times),
        "number": not said.numbers.isdisjoint(numbers),
        "quote": not said.quotes.isdisjoint(phrases),
        "name": functions.mentions(said.words, texts),
        "word": functions.echoes(said.words, texts),
    }
    return [shows for shows, holds in shown.items() if holds]


@lru_cache(maxsize=100_000)
def _read(texts: tuple[str, ...]) -> tuple[set[float], set[float], set[str]]:
    """Times, numbers and phrases in these texts."""
    return functions.times(*texts), functions.numbers(*texts), functions.phrases(texts)
