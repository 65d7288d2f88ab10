"""Translation of error messages for callers in Python: keywords of functions replace flags of the command line."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from inspect import signature
from typing import ParamSpec, TypeVar

from grace_irl.errors import GraceError

P = ParamSpec("P")
R = TypeVar("R")

FLAG = re.compile(r"(?<![\w-])--([a-z][a-z-]*)(?: ([^\s,;:()]+))?")
VALUE = re.compile(r"[A-Z]+…?|[\d.]+[kKMGT]?|'.*'|\S*/\S*|\S+\.\w+")
"""Pattern of the value of a flag: a placeholder, a number or a size, a quoted text, a path, or the name of a file."""

COMMAND = re.compile(r"grace-irl [^;,]*")
"""Pattern of a whole command in a message. `keyworded` leaves commands unchanged."""


def keyworded(message: str, keywords: Mapping[str, Sequence[str]]) -> str:
    """Replace the flags in a message by keywords.

    For example, `--negatives` becomes `negatives=`, `--label last` becomes `label='last'`, and `--no-repair` becomes
    `repair=False`.

    Args:
        message: the message.
        keywords: the keywords of a function, each with its choices; () for a keyword without fixed choices.
    """

    def word(found: re.Match[str]) -> str:
        message = found.string
        name, value = found[1].replace("-", "_"), found[2]
        if name not in keywords and f"{name}s" in keywords:  # a flag that may be repeated, such as --set
            name = f"{name}s"
        if name.startswith("no_") and name[3:] in keywords:
            return f"{name[3:]}=False" + (f" {value}" if value else "")
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
    """Decorate a function so that its error messages name keywords instead of flags.

    Args:
        keywords: function that returns the argument `keywords` of `keyworded`. The result may omit parameters of the
            decorated function that have no fixed choices. `keywords` is called only after an error.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def told(*args: P.args, **kwargs: P.kwargs) -> R:
            try:
                return function(*args, **kwargs)
            except GraceError as error:
                known = {**dict.fromkeys(signature(function).parameters, ()), **keywords()}
                error.args = (keyworded(str(error), known), *error.args[1:])
                raise

        return told

    return decorate
