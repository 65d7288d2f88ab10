"""Fenced code in a model's answer, found by its looks."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

_OPENING = re.compile(r"^[ \t]*(?:[-*>][ \t]+)?(?P<mark>`{3,}|~{3,})[ \t]*(?P<language>[\w+-]*)[^`\n]*$")
_OPENING_LATE = re.compile(r"(?P<mark>`{3,}|~{3,})[ \t]*(?P<language>python3?|py)[ \t]*$")
_NO_PROGRAM = frozenset({"json", "text", "txt", "bash", "sh", "console", "markdown", "md", "diff", "yaml", "output"})
_ELIDED = re.compile(
    r"^[ \t]*(?:\.\.\.[ \t]*$|#[ \t]*(?:\.\.\.|\(?(?:the )?rest (?:of|is|as|unchanged)|same as (?:before|above)"
    r"|unchanged\b"
    r"|(?:existing|previous|other) (?:code|methods?|helpers?) (?:here|unchanged|as)))",
    re.MULTILINE | re.IGNORECASE,
)
# Of assignments only constants: a block that shows how to use the program assigns names in lower case.
_DEFINED = re.compile(r"^(?:class|def|async def)[ \t]+(\w+)|^([A-Z_]\w*)[ \t]*(?::[^=\n]*)?=(?!=)", re.MULTILINE)
_WORD = re.compile(r"[A-Za-z_]\w*")
_IMPORTED = re.compile(r"^(?:from[ \t]+[\w.]+[ \t]+)?import[ \t]+([^#\n]+)", re.MULTILINE)

MAX_BLOCKS = 64
"""Blocks that are looked at, from the beginning."""

_MAX_LINE = 500  # characters of a line with a fence
_MAX_DOCSTRING = 400  # lines between a fence within a docstring and the one that closes the block


@dataclass(frozen=True)
class Block:
    """A fenced block.

    Attributes:
        language: what stands behind the opening fence, lower case; "" for nothing.
        text: what is in it, its common indentation removed, with a line's end.
        closed: False where the answer ended before the fence did.
        start, stop: lines of the answer that it takes, fences included.
    """

    language: str
    text: str
    closed: bool
    start: int
    stop: int


def blocks(text: str) -> list[Block]:
    """Every fenced block, in order: backticks or tildes, any length from three, indented or not."""
    lines = text.split("\n")
    found: list[Block] = []
    at = 0
    while at < len(lines) and len(found) < MAX_BLOCKS:
        line = lines[at]
        opening = (_OPENING.match(line) or _OPENING_LATE.search(line)) if len(line) <= _MAX_LINE else None
        if opening is None:
            at += 1
            continue
        end, last = _closing(lines, at + 1, opening["mark"])
        body = lines[at + 1 : end]
        if last is not None:
            body.append(last)
        content = textwrap.dedent("\n".join(body)).strip("\n")
        found.append(Block(opening["language"].lower(), f"{content}\n", end < len(lines), at, min(end + 1, len(lines))))
        at = end + 1
    return found


def _closing(lines: Sequence[str], start: int, mark: str) -> tuple[int, str | None]:
    """The line that closes a block, and the code before the fence on that line, if any.

    A fence inside a docstring does not close its block, unless nothing else does.
    """
    first: tuple[int, str | None] | None = None
    quotes = 0
    for at in range(start, len(lines)):
        line = lines[at].rstrip()
        ended = len(line.lstrip()) >= len(mark) and set(line.lstrip()) == {mark[0]}
        glued = not ended and line.endswith(mark) and not _OPENING.match(line)
        if ended or glued:
            found = (at, line[: -len(mark)] if glued else None)
            if quotes % 2 == 0:
                return found
            first = first or found
        if first and at > first[0] + _MAX_DOCSTRING:
            return first
        quotes += line.count('"""') + line.count("'''")
    return first or (len(lines), None)


def joined(parts: Sequence[Block], wanted: re.Pattern[str]) -> str:
    """The program among blocks: the last whole one that matches, with what it needs from the others; "" for none.

    Models put imports and helpers into blocks of their own, show an earlier version first, or repeat a part
    with "rest unchanged". A block joins where it defines a name that the program uses and lacks.
    """
    programs = [part for part in parts if part.language not in _NO_PROGRAM and not part.text.startswith("{")]
    candidates = [part for part in programs if wanted.search(part.text)]
    if not candidates:
        return ""
    ranked = [part for part in candidates if "def reward_fn" in part.text] or candidates
    ranked = [part for part in ranked if not _ELIDED.search(part.text)] or [max(ranked, key=lambda p: len(p.text))]
    chosen, others = [ranked[-1]], [part for part in programs if part not in candidates]
    defined = {part.start: _names(part.text) for part in programs}
    used = {part.start: set(_WORD.findall(part.text)) for part in programs}
    while True:
        known = {name for part in chosen for name in defined[part.start]}
        lacking = {"debug"}.union(*(used[part.start] for part in chosen)) - known
        new = [part for part in others if lacking & defined[part.start]]
        if not new:
            return "\n\n".join(part.text for part in sorted(chosen, key=lambda part: part.start))
        chosen += new
        others = [part for part in others if part not in new]


def _names(code: str) -> set[str]:
    """Names that a piece of code defines at its top level, by its looks."""
    names = {one or two for one, two in _DEFINED.findall(code)}
    for listed in _IMPORTED.findall(code):
        for entry in listed.strip("() ").split(","):
            words = entry.split()
            if words:
                names.add(words[-1].partition(".")[0] if len(words) == 1 else words[-1])
    return names
