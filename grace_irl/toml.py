"""Reading of untrusted TOML and JSON."""

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
"""Maximum size of a file in bytes. Settings need a few thousand bytes, goal states a few hundred thousand."""

MAX_DEPTH = 16
"""Maximum nesting depth of tables and lists. The files of this project have a depth of three."""


def read_toml(path: str | Path, expected: str) -> dict[str, Any]:
    """The content of a TOML file.

    Args:
        path: the file.
        expected: description of the expected file, for messages.

    Raises:
        InputError: the file is unreadable, not UTF-8, not TOML, too long, or nested too deep.
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
    except ValueError as error:  # invalid TOML, or a number with more digits than Python accepts
        raise InputError(f"{path}: not TOML ({str(error)[:200]}); expected {expected}") from None
    if deeper(tree, MAX_DEPTH):  # `tomllib` does not limit the nesting of dotted keys, and later code is recursive.
        raise InputError(f"{path}: nested too deep; expected {expected}")
    return tree


def deeper(tree: Any, depth: int) -> bool:
    """Whether tables and lists are nested deeper than `depth`."""
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
    """A dataclass object from JSON. Unknown keys are ignored.

    Args:
        kind: the dataclass, or a container type such as `list[Record]` for a dataclass `Record`.
        text: JSON in the form of `json.dumps(dataclasses.asdict(record))`.

    Raises:
        ValueError: the JSON is invalid, or a field has the wrong type. The message is one line and names the field.
    """
    from pydantic import ValidationError

    try:
        found: T = _adapter(cast(Hashable, kind)).validate_json(text, strict=True)
    except ValidationError as error:
        raise ValueError(problem(error)) from None
    return found


def problem(error: ValidationError) -> str:
    """The first problem that pydantic found, as one line without the value."""
    first = error.errors(include_url=False, include_input=False)[0]
    place = ".".join(str(part) for part in first["loc"])[:200]
    return f"{place}: {first['msg'][:300]}" if place else str(first["msg"])[:300]


@cache
def _adapter(kind: Hashable) -> TypeAdapter[Any]:
    from pydantic import TypeAdapter

    return TypeAdapter(cast(Any, kind))
