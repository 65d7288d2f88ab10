"""Characters of a source: line ends of one kind, and none that a reader does not see.

What hides in a source or reorders it makes a reader approve another program than the one that runs (CVE-2021-42574),
and steers the terminal that shows it. A scan of the text finds them, so the host may make it, too.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator

from grace_irl.programs.contract import SourceProblem
from grace_irl.text import FILLERS, SELECTORS, escaped

BOM = "\ufeff"
_REFUSED = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_WORDS = {
    "Cc": "a control character",
    "Cs": "half of a character",
    "Co": "a character for private use",
    "Cn": "a character that Unicode does not know",
}
_REPORTED = 20


def canonical(source: str) -> str:
    """The source as it is kept: lines end in LF, as Python's parser has them, and no byte order mark begins it."""
    return source.removeprefix(BOM).replace("\r\n", "\n").replace("\r", "\n")


def unseen(source: str) -> tuple[SourceProblem, ...]:
    """Characters of a canonical source that a reader does not see: each once on a line, the first of them only.

    Refused are control characters but LF and tab, direction marks, characters without width, line and paragraph
    separators, letters and marks that show nothing, and characters that Unicode leaves private or unassigned; also
    variation selectors behind a letter or a digit, if they tell equal names apart. Spaces of other widths stay.
    """
    if source.isascii() and source.replace("\n", "").replace("\t", "").isprintable():
        return ()
    found: dict[tuple[int, str], SourceProblem] = {}
    for place, sign in _refused(source):
        number = source.count("\n", 0, place) + 1
        if (number, sign) not in found:
            column = place - source.rfind("\n", 0, place)
            found[number, sign] = SourceProblem(number, _said(sign, column), "syntax")
            if len(found) == _REPORTED:
                break
    return tuple(found.values())


def seen(text: str) -> str:
    """A text with a space in the place of each character that a source may not hold."""
    signs = list(text)
    for place, _ in _refused(text):
        signs[place] = " "
    return "".join(signs)


def _refused(text: str) -> Iterator[tuple[int, str]]:
    before = ""
    for place, sign in enumerate(text):
        if sign not in "\n\t" and not " " <= sign <= "~":
            hides = sign in FILLERS or unicodedata.category(sign) in _REFUSED
            if hides or (SELECTORS.match(sign) and f"x{before}".isidentifier() and before):
                yield place, sign
        before = sign


def _said(sign: str, column: int) -> str:
    name = unicodedata.name(sign, "") or _WORDS.get(unicodedata.category(sign), "a character without a name")
    return (
        f"U+{ord(sign):04X}, {name}, in column {column}: a reader does not see it; "
        f'leave it out, or write "{escaped(sign)}" in a string'
    )
