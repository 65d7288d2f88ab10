"""Recipes for `grace-irl demos select`: TOML files that define the demonstrations in each file of a set."""

from __future__ import annotations

import difflib
import reprlib
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, get_args

from grace_irl.demos.conditions import Conditions
from grace_irl.demos.select import Selection
from grace_irl.demos.trajectory import LabelRule, Role
from grace_irl.errors import InputError
from grace_irl.toml import read_toml

LISTS = ("package", "not_package")
TYPES: Mapping[str, type] = {
    **dict.fromkeys(("out", "role", "task", "from_role", "from_task", "goal", "not_goal"), str),
    **dict.fromkeys(("sample", "min_states", "max_states"), int),
    **dict.fromkeys(LISTS, list),
    "success": bool,
    "held_out": float,
}
"""Map from a key of a [[file]] table to the type of the value. Each key has the name of an option of `grace-irl demos
select`."""


@dataclass(frozen=True)
class SelectRecipe:
    """The content of a recipe.

    Attributes:
        selections: one selection per output file. File paths are relative to the output folder.
        seed: seed of samples and of held-out shares.
        label: label rule of the chosen data; None keeps the rule from the sources.
    """

    selections: tuple[Selection, ...]
    seed: int = 0
    label: LabelRule | None = None

    def into(self, folder: str | Path) -> tuple[Selection, ...]:
        """The selections, with their output files placed in a folder."""
        return tuple(replace(one, out=str(Path(folder) / one.out)) for one in self.selections)


def read_select_recipe(path: str | Path) -> SelectRecipe:
    """Read a recipe: the keys `seed` and `label`, and a [[file]] table for each output file.

    Raises:
        InputError: not TOML, an unknown or missing key, or a value that is invalid or of the wrong type.
    """
    document = read_toml(path, "a recipe with [[file]] tables")
    tables, seed = document.get("file"), document.get("seed", 0)
    if not isinstance(tables, list) or not tables or not set(document) <= {"file", "seed", "label"}:
        raise InputError(
            f"{path}: keys {', '.join(document)[:200] or 'none'}; expected [[file]] tables, seed, label, nothing else"
        )
    if type(seed) is not int or seed < 0:
        raise InputError(f"{path}: seed = {reprlib.repr(seed)}; expected a whole number of at least 0")
    label = document.get("label")
    if label is not None and label not in get_args(LabelRule):
        raise InputError(f"{path}: label = {reprlib.repr(label)}; expected one of {', '.join(get_args(LabelRule))}")
    selections = tuple(_selection(table, f"{path}, file {number}") for number, table in enumerate(tables, 1))
    return SelectRecipe(selections, seed, label)


def require_keys(table: object, types: Mapping[str, type], where: str) -> dict[str, Any]:
    """Check that all keys of a recipe's table are known and have values of the right type, and return the table.

    The items of lists must be texts. Roles must be "expert" or "negative".

    Args:
        table: the value to check.
        types: map from each known key to its type.
        where: file and table, for messages.

    Raises:
        InputError: not a table, an unknown key, or a value of the wrong type.
    """
    if not isinstance(table, dict):
        raise InputError(f"{where}: {reprlib.repr(table)}; expected a table")
    for key, value in table.items():
        if key not in types or not _is(value, types[key]):
            close = difflib.get_close_matches(key, types, 1) if key not in types else []
            meant = f"did you mean {close[0]}? " if close else ""
            raise InputError(
                f"{where}: {key[:80]} = {reprlib.repr(value)}; {meant}expected the keys "
                + ", ".join(
                    f"{name} ({'list of str' if kind is list else kind.__name__})" for name, kind in types.items()
                )
            )
    for name in ("role", "from_role"):
        if name in table and table[name] not in get_args(Role):
            raise InputError(f"{where}: {name} {reprlib.repr(table[name])}; expected 'expert' or 'negative'")
    return table


def _selection(found: object, where: str) -> Selection:
    table = require_keys(found, TYPES, where)
    require_within(str(table.get("out", "")), where)
    names = {field.name for field in fields(Conditions)}
    about: dict[str, Any] = {key: tuple(value) if key in LISTS else value for key, value in table.items()}
    try:
        conditions = Conditions(**{key: value for key, value in about.items() if key in names})
        return Selection(conditions=conditions, **{key: value for key, value in about.items() if key not in names})
    except InputError as error:  # its message names the option, which is also the name of the key
        raise InputError(f"{where}: {error}") from None


def require_within(out: str, where: str) -> None:
    """Check that the path of an output file is relative, and stays in the output folder.

    Raises:
        InputError: a path outside the folder, or no file name.
    """
    path = Path(out)
    if not path.name or path.is_absolute() or ".." in path.parts or "\0" in out:
        raise InputError(f"{where}: out = {out!r}; expected the name of a file in the set's folder")


def _is(value: object, kind: type) -> bool:
    if kind is list:
        return isinstance(value, list) and all(isinstance(part, str) for part in value)
    return type(value) is kind
