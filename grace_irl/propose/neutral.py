"""Names that say nothing: what a model knows by heart begins with a name (METHODS: Contamination)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from string import ascii_uppercase

from grace_irl.demos.labels import Labelled


def neutral_names(tasks: Iterable[str]) -> dict[str, str]:
    """A letter for each task, in order of first appearance: A, B, …, Z, AA, AB, …"""
    return {task: _letters(number) for number, task in enumerate(dict.fromkeys(tasks))}


def renamed(items: Sequence[Labelled], names: Mapping[str, str]) -> tuple[Labelled, ...]:
    """The items under other names of their tasks; the trajectories are the same objects."""
    return tuple(replace(item, demonstration=replace(item.demonstration, task=names[item.task])) for item in items)


def _letters(number: int) -> str:
    """The number as a spreadsheet names its columns."""
    text = ""
    number += 1
    while number:
        number, place = divmod(number - 1, len(ascii_uppercase))
        text = ascii_uppercase[place] + text
    return text
