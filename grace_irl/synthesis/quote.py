"""Text from the data inside a program: always a literal, whatever it holds."""

from __future__ import annotations

import json
from collections.abc import Sequence

from grace_irl.text import SELECTORS, escaped, harmless


def quoted(text: str) -> str:
    """A Python string literal in double quotes on one line, with nothing in it that ends it or hides in it."""
    inside = json.dumps(text, ensure_ascii=False)[1:-1]
    # What cannot be seen, or not be written to a file, is spelt out: control and direction marks, lone surrogates.
    plain = SELECTORS.sub(lambda found: escaped(found[0]), inside)
    return f'"{harmless(plain)}"'


def packed(entries: Sequence[str], width: int, indent: str = "    ") -> list[str]:
    """Lines of entries, each with its comma, as many to a line as fit."""
    lines: list[str] = []
    for entry in entries:
        if lines and len(lines[-1]) + len(entry) + 2 <= width:
            lines[-1] += f" {entry},"
        else:
            lines.append(f"{indent}{entry},")
    return lines
