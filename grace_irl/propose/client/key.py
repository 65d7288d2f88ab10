"""The API key: from the environment alone, never stored, never shown."""

from __future__ import annotations

import os
from collections.abc import Callable

from grace_irl.errors import InputError

VARIABLES = ("GRACE_IRL_API_KEY", "OPENAI_API_KEY")
LONGEST_QUOTE = 300


def key_variable() -> str:
    """The environment variable that holds the key, or ""."""
    return next((name for name in VARIABLES if os.environ.get(name, "").strip()), "")


def api_key() -> str:
    """The key, or "" where the environment has none (a local server needs none).

    Raises:
        InputError: for a key that no HTTP header can carry; it is not shown.
    """
    name = key_variable()
    key = os.environ.get(name, "").strip() if name else ""
    if not (key.isascii() and key.isprintable() and " " not in key):
        raise InputError(f"{name} is no key: it holds spaces, line breaks or letters outside ASCII")
    return key


def redactor(key: str) -> Callable[[str], str]:
    """From what a server said to one line that can be shown: short, printable, without the key."""

    def redacted(text: str) -> str:
        shown = text.replace(key, "[key]") if key else text
        line = " ".join("".join(sign if sign.isprintable() else " " for sign in shown).split())
        return line if len(line) <= LONGEST_QUOTE else f"{line[: LONGEST_QUOTE - 1]}…"

    return redacted
