"""A test of one node: whether it has this id, says this, is checked, shows what the instruction names, …"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Literal

from grace_irl.propose.synthesis.quote import quoted
from grace_irl.propose.synthesis.ui import functions
from grace_irl.propose.synthesis.ui.look import FLAGS, Look, Said

Shows = Literal["", "time", "number", "quote", "name", "word"]
"""What of an instruction a node shows: a time or a number in it, all that it has in quotes, words of it and nothing
else, or some longer word of it."""
MAX_WORDS = 8
"""Texts with more words than this are not taken apart."""


@dataclass(frozen=True)
class Pattern:
    """What a node must be; what is empty is left open.

    Attributes:
        name: its id, without the package.
        kind: its class, without the package.
        package: its app.
        says: its whole text or description.
        word: a word of its text or description, in small letters.
        shows: what of the instruction it shows.
        flag: what it is (`FLAGS`).
        chosen: the labels of its children that are on, and no others.
        bound: whether a number in its text is ">=" or "<=" the limit.
        limit: of the bound.
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

    def implies(self, other: Pattern) -> bool:
        """Whether every node that fits this pattern fits the other one."""
        standard = Pattern()
        asked = ((getattr(other, field), getattr(self, field), getattr(standard, field)) for field in FIELDS)
        return all(value in (own, open_) for value, own, open_ in asked)

    @property
    def key(self) -> str:
        """What patterns are sorted by."""
        return repr(self)

    def expression(self, node: str = "n") -> list[str]:
        """Python expressions that hold together where a node fits, cheap ones first."""
        parts = []
        if self.name:
            parts.append(f"name({node}) == {quoted(self.name)}")
        if self.kind:
            parts.append(f"kind({node}) == {quoted(self.kind)}")
        if self.package:
            parts.append(f'{node}.get("package") == {quoted(self.package)}')
        if self.flag:
            attribute, value = FLAGS[self.flag]
            parts.append(f'{node}.get("{attribute}") == "{value}"')
        if self.says:
            parts.append(f"{quoted(self.says)} in says({node})")
        if self.word:
            parts.append(f"{quoted(self.word)} in words(*says({node}))")
        if self.chosen is not None:
            labels = ", ".join(map(quoted, self.chosen))
            parts.append(f"chosen({node}) == " + (f"{{{labels}}}" if labels else "set()"))
        if self.bound:
            parts.append(f"any(value {self.bound} {self.limit:g} for value in numbers(*says({node})))")
        if self.shows:
            parts.append(
                {
                    "time": f"times(*says({node})) & self.times",
                    "number": f"numbers(*says({node})) & self.numbers",
                    "quote": f"phrases({node}) & self.quotes",
                    "name": f"mentions(self.words, says({node}))",
                    "word": f"echoes(self.words, says({node}))",
                }[self.shows]
            )
        return parts

    def phrase(self) -> str:
        """What it asks for, in words: "a Switch onoff that is checked"."""
        what = " ".join(filter(None, [self.kind, self.name])) or "a node"
        which = []
        if self.package:
            which.append(f"is of {self.package}")
        if self.says:
            which.append(f"says {quoted(self.says)}")
        if self.word:
            which.append(f"says the word {quoted(self.word)}")
        if self.shows:
            shown = {
                "time": "shows a time of the instruction",
                "number": "shows a number of the instruction",
                "quote": "says what the instruction has in quotes",
                "name": "is named in the instruction",
                "word": "shares a word with the instruction",
            }
            which.append(shown[self.shows])
        if self.flag:
            which.append(f"is {self.flag}")
        if self.chosen is not None:
            which.append(f"has {', '.join(self.chosen) or 'nothing'} chosen")
        if self.bound:
            which.append(f"shows a number {self.bound} {self.limit:g}")
        return what + (f" that {' and '.join(which)}" if which else "")


FIELDS = tuple(field.name for field in fields(Pattern))


def plain_patterns(look: Look) -> Iterator[Pattern]:
    """All patterns that a node fits, whatever the instruction."""
    texts = sorted({text for text in look.says if text})
    taken_apart = [found for found in map(functions.words, texts) if len(found) <= MAX_WORDS]
    words = {word for found in taken_apart for word in found if len(word) > 2 and not word.isdecimal()}
    if look.package:
        yield Pattern(package=look.package)
    names = ("", look.name) if look.name else ("",)
    for flag in ("", *sorted(look.flags)):
        if look.kind:
            yield Pattern(kind=look.kind, flag=flag)
        for name in names:
            if name:
                yield Pattern(name=name, flag=flag)
            for text in texts:
                yield Pattern(name=name, says=text, flag=flag)
    for name in names:
        for word in sorted(words):
            yield Pattern(name=name, word=word)
    if look.chosen is not None and look.name:
        yield Pattern(name=look.name, chosen=look.chosen)


def told_patterns(look: Look, said: Said) -> Iterator[Pattern]:
    """All patterns that a node fits because of the instruction."""
    texts = [text for text in look.says if text]
    if not texts or not said.text:
        return
    shown: list[Shows] = []
    if look.times & said.times:
        shown.append("time")
    if look.numbers & said.numbers:
        shown.append("number")
    if look.phrases & said.quotes:
        shown.append("quote")
    if functions.mentions(said.words, texts):
        shown.append("name")
    if look.name and functions.echoes(said.words, texts):
        shown.append("word")
    for shows in shown:
        for flag in ("", *sorted(look.flags)):
            for name in ("", look.name) if look.name and shows != "word" else (look.name,):
                yield Pattern(name=name, shows=shows, flag=flag)
