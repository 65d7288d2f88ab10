"""TOML that nobody vouches for: a table, or one line."""

from __future__ import annotations

import tomllib
from collections.abc import Hashable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from grace_irl.errors import InputError

if TYPE_CHECKING:
    from pydantic import TypeAdapter, ValidationError


MAX_BYTES = 4 * 1024 * 1024
"""Longest file. A recipe has some thousand bytes, a file of goal states some hundred thousand."""

MAX_DEPTH = 16
"""Most tables and lists within each other. Ours have three."""


def read_toml(path: str | Path, expected: str) -> dict[str, Any]:
    """The content of a TOML file.

    Args:
        path: of the file.
        expected: what it should be, for messages.

    Raises:
        InputError: not readable, not UTF-8, not TOML, too long, or nested too deep.
    """
    try:
        with Path(path).open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); expected {expected}") from None
    if len(data) > MAX_BYTES:
        raise InputError(f"{path}: longer than {MAX_BYTES:,} bytes; expected {expected}")
    try:
        tree = tomllib.loads(data.decode())
    except UnicodeDecodeError:
        raise InputError(f"{path}: not a text in UTF-8; expected {expected}") from None
    except RecursionError:
        raise InputError(f"{path}: nested too deep; expected {expected}") from None
    except ValueError as error:  # besides what is no TOML, a number of more digits than Python takes
        raise InputError(f"{path}: not TOML ({str(error)[:200]}); expected {expected}") from None
    if deeper(tree, MAX_DEPTH):  # dotted keys nest without end: what reads them later would recurse
        raise InputError(f"{path}: nested too deep; expected {expected}")
    return tree


def deeper(tree: Any, depth: int) -> bool:
    """Whether there are more tables and lists within each other than this."""
    level = [tree]
    for _ in range(depth):
        level = [
            part
            for each in level
            for part in (each.values() if isinstance(each, dict) else each)
            if isinstance(part, dict | list)
        ]
    return bool(level)


T = TypeVar("T")


def from_json(kind: type[T], text: str | bytes) -> T:
    """A dataclass from what `json.dumps(asdict(record))` wrote of it. Keys that it has not are passed over.

    Args:
        kind: the dataclass, or a container of such.
        text: JSON.

    Raises:
        ValueError: another text, or a field of another type; says which, in one line.
    """
    from pydantic import ValidationError

    try:
        found: T = _adapter(cast(Hashable, kind)).validate_json(text, strict=True)
    except ValidationError as error:
        raise ValueError(problem(error)) from None
    return found


def problem(error: ValidationError) -> str:
    """The first problem that pydantic found, in one line, without the value."""
    first = error.errors(include_url=False, include_input=False)[0]
    place = ".".join(str(part) for part in first["loc"])[:200]
    return f"{place}: {first['msg'][:300]}" if place else str(first["msg"])[:300]


@cache
def _adapter(kind: Hashable) -> TypeAdapter[Any]:
    from pydantic import TypeAdapter

    return TypeAdapter(cast(Any, kind))
