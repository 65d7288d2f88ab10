"""Demonstrations from Python arguments: paths, arrays, data frames and objects of other libraries."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from grace_irl.demos.components import in_order
from grace_irl.demos.files import expand_all, passed_over
from grace_irl.demos.foreign.columns import Columns
from grace_irl.demos.foreign.objects import are_paths, require_paths, source_of
from grace_irl.demos.formats import open_source
from grace_irl.demos.memory import Memory
from grace_irl.demos.minari.source import instructed_source
from grace_irl.demos.opened import OpenSet
from grace_irl.demos.source import Source
from grace_irl.demos.spelling import spelled, spelled_set
from grace_irl.demos.trajectory import Demonstrations, Role, Trajectory
from grace_irl.errors import InputError

Given = Any
"""A path, a sequence of paths, or any object that `grace_irl.demos.foreign.objects` reads."""


def in_memory(
    demos: Given, experts: Given, negatives: Given, *, kind: str = "", columns: Columns = Columns()
) -> Demonstrations | None:
    """The demonstrations in the arguments of a Python call, such as `fit()`; None if all arguments name files.

    Args:
        demos: demonstrations that state their own roles.
        experts: expert demonstrations.
        negatives: negative demonstrations.
        kind: name of the states' kind, such as "grid"; "" chooses by the values of the states.
        columns: the user's choice of columns, for tables.

    Raises:
        InputError: data that cannot be used.
    """
    given: dict[str, tuple[Given, Role | None]]
    given = {"experts": (experts, "expert"), "demos": (demos, None), "negatives": (negatives, "negative")}
    given = {
        name: (value, role)
        for name, (value, role) in given.items()
        if value is not None and not (isinstance(value, tuple) and not value)
    }
    named = {name: are_paths(value) for name, (value, _) in given.items()}
    for name, (value, _) in given.items():
        if named[name]:
            require_paths(value, name)
        if named[name] and not value and (name == "experts" or not all(named.values())):
            raise InputError(f"{name}: an empty list; expected at least one episode, or a path")
    plain = given.keys() == {"demos"} and columns == Columns()
    if plain and isinstance(demos, Demonstrations) and kind in ("", demos.metadata.kind):
        return spelled_set(demos, "demos")  # keeps the origins, the choice of the kind, and the sample sizes of the set
    if all(named.values()):
        return None
    memory = Memory()
    wanted = [
        (source, role)
        for name, (value, role) in given.items()
        for source in _sources(value, name, memory, kind, columns)
    ]
    if not named.get("demos", True) and any(source.header.role is None for source, role in wanted if role is None):
        raise InputError(
            "demos: episodes without a role; expected the arguments experts and negatives in place of demos, or a role "
            "in each episode: the key 'role' of a dict, the column 'label' of a table"
        )
    paths = [path for name, (value, _) in given.items() if named[name] for path in _paths(value)]
    return OpenSet(wanted, kind, memory, passed_over(paths)).all()


def trajectories_of(value: Given, name: str, fields: Sequence[str] = ()) -> Sequence[Trajectory]:
    """The trajectories of all roles in an object or in files.

    Args:
        value: a path, a sequence of paths, or any object that holds episodes.
        name: name of the argument, for messages.
        fields: names of a vector's components in the required order; () accepts any order.

    Raises:
        InputError: data that cannot be used, or components with names other than `fields`.
    """
    if isinstance(value, list | tuple) and all(isinstance(each, Trajectory) for each in value):
        return [spelled(each, f"{name}: episode {number}") for number, each in enumerate(value)]
    if are_paths(value):
        require_paths(value, name)
    memory = Memory()
    sources = _sources(value, name, memory, "", Columns())
    found = OpenSet([(source, "expert") for source in sources], "", memory).all()
    return [item.trajectory for item in in_order(found, fields, name)]


def _sources(value: Given, name: str, memory: Memory, kind: str, columns: Columns) -> list[Source]:
    if not are_paths(value):
        return [instructed_source(value, memory, kind) or source_of(value, name, columns)]
    paths = _paths(value)
    if not paths:
        raise InputError(f"{name}: an empty list; expected at least one episode, or a path")
    return [open_source(file, memory, kind, columns) for file in expand_all(paths)]


def _paths(value: Given) -> Sequence[str | Path]:
    return [value] if isinstance(value, str | Path) else list(value)
