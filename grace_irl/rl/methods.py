"""Finds methods by name: distributions offer them through the entry-point group `grace_irl.baselines`."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from importlib.metadata import EntryPoint, entry_points
from typing import Any, get_type_hints

from pydantic import ConfigDict, TypeAdapter, ValidationError

from grace_irl.errors import InputError
from grace_irl.rl.method import Method

GROUP = "grace_irl.baselines"
"""Each entry point names a frozen dataclass that is a `Method`; its fields are the method's settings."""


def offered() -> tuple[str, ...]:
    """Names of the methods that installed distributions offer, sorted."""
    return tuple(sorted(_points()))


def load_method(name: str, **settings: Any) -> Method:
    """The method that a name stands for.

    Args:
        name: one of `offered()`.
        settings: fields of the method that differ from its defaults.

    Raises:
        InputError: no such method or setting, a value that is not of its type, or packages that it needs are missing.
    """
    points = _points()
    if name not in points:
        raise InputError(
            f"method {name!r}; expected one of {', '.join(sorted(points)) or 'none'}"
            " (GAIL, AIRL, BC and PPO on the true reward come with grace-irl-baselines: docs/baselines.md)"
        )
    try:
        made = points[name].load()
    except ImportError as error:
        raise InputError(
            f"method {name!r}: {error.name or error} is not installed; expected what it imports: docs/baselines.md"
        ) from None
    known = _settings(made)
    for key in settings:
        if key not in known:
            raise InputError(f"method {name!r}: setting {key!r}; expected one of {', '.join(known) or 'none'}")
    types = get_type_hints(made)
    method: Method = made(**{key: _read(name, key, value, types[key]) for key, value in settings.items()})
    return method


def _read(name: str, key: str, value: Any, kind: Any) -> Any:
    """One setting, as a value of its field's type.

    Raises:
        InputError: it is none.
    """
    try:
        return TypeAdapter(kind, config=ConfigDict(arbitrary_types_allowed=True)).validate_python(value)
    except ValidationError as error:
        raise InputError(f"method {name!r}: setting {key}={value!r}: {error.errors()[0]['msg']}") from None


def _points() -> dict[str, EntryPoint]:
    found: Iterable[EntryPoint] = entry_points(group=GROUP)
    return {point.name: point for point in found}


def _settings(made: Any) -> list[str]:
    """The names of a method's settings: its fields, less what every method has."""
    fields = dataclasses.fields(made) if dataclasses.is_dataclass(made) else ()
    return [field.name for field in fields if field.init]
