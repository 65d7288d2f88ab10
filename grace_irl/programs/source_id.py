"""Ids of programs, from their sources alone."""

from __future__ import annotations

from grace_irl.programs.contract import MAX_SOURCE_BYTES
from grace_irl.programs.parsing import canonical, parse
from grace_irl.programs.program import identify, text_id


def source_id(source: str) -> str:
    """The id of a source: that of its program, or `text_id` if it is too long or does not parse.

    A comment or another layout does not change the id of a program.
    """
    if len(source) > MAX_SOURCE_BYTES:
        return text_id(source)
    try:
        return identify(parse(canonical(source))).id
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return text_id(source)
