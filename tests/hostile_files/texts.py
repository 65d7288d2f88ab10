"""Texts of hostile files, and the way to tell that nothing of them got through."""

from __future__ import annotations

import re

HOSTILE = "a\x1b]0;owned\x07\x1b[2J\u202e[/b][red][link=file:x]:skull:\r\x9b31m\u200d\u2028\x7fz"
"""Sets a title, clears the screen, turns the writing round, closes and opens markup, goes back on its line."""

SHOWN = r"a\x1b]0;owned\x07\x1b[2J\u202e[/b][red][link=file:x]:skull:"
"""What a reader sees of its beginning."""

ID = HOSTILE.replace(":", "")
"""The same for the name of an environment: what stands before a colon is a module there."""

NAME = "n\x1b[2J\u202e[b]\x9b31m.parquet"
"""The same for the name of a file."""

OF_RICH = re.compile(r"\x1b\[(?:[0-9;]*m|\?25[lh]|[0-9]*[AK]|[12]?K)|\r")
"""Colours, the cursor off and on, a line up, a line cleared."""


def is_harmless(text: str) -> bool:
    return all(sign.isprintable() or sign == "\n" for sign in text)
