"""Error messages of the command line, in the words of a caller in Python: keywords in place of flags."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import ParamSpec, TypeVar

from grace_irl.errors import GraceError

P = ParamSpec("P")
R = TypeVar("R")

FLAG = re.compile(r"(?<![\w-])--([a-z][a-z-]*)(?: ([^\s,;:()]+))?")
VALUE = re.compile(r"[A-Z]+…?|[\d.]+|\S*/\S*")
"""A word after a flag that is its value: a placeholder, a number or a path."""

COMMAND = re.compile(r"grace-irl [^;,]*")
"""A whole command in a message, which stays as it is."""


def keyworded(message: str, keywords: Mapping[str, Sequence[str]]) -> str:
    """A message with keywords in place of flags: `--negatives` becomes `negatives=`, `--label last` `label='last'`.

    Args:
        message: the message.
        keywords: the keywords of a function, each with its choices; () for a keyword without fixed choices.
    """

    def word(found: re.Match[str]) -> str:
        message = found.string
        name, value = found[1].replace("-", "_"), found[2]
        if name not in keywords:
            return found[0]
        if value is None:
            return name if message[found.end() : found.end() + 1] == ":" else f"{name}="
        if value in keywords[name]:
            return f"{name}={value!r}"
        return f"{name}={value}" if VALUE.fullmatch(value) else f"{name}= {value}"

    kept = [each.span() for each in COMMAND.finditer(message)]
    told, at = "", 0
    for start, stop in kept:
        told += FLAG.sub(word, message[at:start]) + message[start:stop]
        at = stop
    return told + FLAG.sub(word, message[at:])


def in_keywords(keywords: Callable[[], Mapping[str, Sequence[str]]]) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorate a function so that its errors name its keywords.

    Args:
        keywords: function that returns the argument of `keyworded`. It is called after an error only.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def told(*args: P.args, **kwargs: P.kwargs) -> R:
            try:
                return function(*args, **kwargs)
            except GraceError as error:
                error.args = (keyworded(str(error), keywords()), *error.args[1:])
                raise

        return told

    return decorate
