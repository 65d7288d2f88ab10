"""Records from JSON that nobody vouches for, each field of the type that it declares."""

from __future__ import annotations

from collections.abc import Hashable
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar, cast

if TYPE_CHECKING:  # a tenth of a second, which those who read no record need not wait
    from pydantic import TypeAdapter, ValidationError

T = TypeVar("T")


def from_json(kind: type[T], text: str | bytes) -> T:
    """What `json.dumps(asdict(record))` wrote of a dataclass. Keys that it has not are passed over.

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
