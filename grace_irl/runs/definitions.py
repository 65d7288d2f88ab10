"""Functions and classes of programs as rows of the store."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, get_args

from grace_irl.programs.definition import Definition, Within
from grace_irl.programs.library import segment
from grace_irl.programs.program import Program

DEFINITION_COLUMNS = "program, digest, name, within, calls, first, last"


def definition_rows(program: Program) -> list[tuple[object, ...]]:
    """What the table `definitions` holds of a program."""
    return [
        (program.id, place, each.digest, each.name, each.within, each.calls, each.first, each.last)
        for place, each in enumerate(program.functions)
    ]


def function_rows(program: Program) -> list[tuple[object, ...]]:
    """What the table `functions` would hold, were this program the first with each of its functions."""
    return [(each.digest, each.name, program.id, segment(program.source, each)) for each in program.functions]


def definitions(rows: Iterable[tuple[Any, ...]]) -> dict[str, tuple[Definition, ...]]:
    """Functions by program, from rows of `DEFINITION_COLUMNS` in order."""
    found: dict[str, list[Definition]] = {}
    for program, digest, name, within, calls, first, last in rows:
        if within not in get_args(Within):
            raise ValueError(f"{within!r} is none of {', '.join(get_args(Within))}")
        found.setdefault(program, []).append(Definition(name, digest, within, calls, first, last))
    return {program: tuple(each) for program, each in found.items()}
