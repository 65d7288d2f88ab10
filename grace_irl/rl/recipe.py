"""Recipes: TOML files that say how the files of a demo set are collected."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import get_args

from grace_irl.demos.files import save
from grace_irl.demos.trajectory import Role
from grace_irl.errors import InputError
from grace_irl.rl.collect import Tally, collect


@dataclass(frozen=True)
class FileRecipe:
    """How one file is collected: a `[[file]]` table.

    Attributes:
        out: the file, relative to the recipe.
        env: Gymnasium id.
        policy: "bot", "random", or a checkpoint's path.
        role: of every episode.
        episodes: how many to keep.
        seed: of the first environment.
        max_steps: time limit in steps; 0 keeps the environment's.
        keep_successes: keep negatives that reached the goal.
    """

    out: str
    env: str
    policy: str
    role: Role
    episodes: int
    seed: int = 0
    max_steps: int = 0
    keep_successes: bool = False


def read_recipe(path: str | Path) -> tuple[FileRecipe, ...]:
    """The files that a recipe makes.

    Raises:
        InputError: not TOML, or keys that are unknown, missing or of another type.
    """
    try:
        document = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InputError(f"{path}: not readable as TOML ({error}); expected a recipe with [[file]] tables") from None
    tables = document.get("file")
    if not isinstance(tables, list) or not tables or set(document) != {"file"}:
        raise InputError(f"{path}: keys {', '.join(document) or 'none'}; expected [[file]] tables and nothing else")
    return tuple(_file(table, f"{path}, file {number}") for number, table in enumerate(tables, 1))


def run_recipe(path: str | Path) -> Iterator[tuple[Path, Tally]]:
    """Collects and writes each file of a recipe; yields it with what became of its episodes."""
    for recipe in read_recipe(path):
        tally = Tally()
        demonstrations = collect(
            recipe.env,
            recipe.policy,
            recipe.episodes,
            recipe.role,
            recipe.seed,
            max_steps=recipe.max_steps or None,
            keep_successes=recipe.keep_successes,
            tally=tally,
        )
        out = Path(path).parent / recipe.out
        save(demonstrations, out)
        yield out, tally


def _file(table: object, where: str) -> FileRecipe:
    if not isinstance(table, dict):
        raise InputError(f"{where}: {table!r}; expected a table")
    types = {"str": str, "Role": str, "int": int, "bool": bool}
    known = {field.name: types[str(field.type)] for field in fields(FileRecipe)}
    for key, value in table.items():
        if key not in known or type(value) is not known[key]:
            raise InputError(
                f"{where}: {key} = {value!r}; expected the keys "
                + ", ".join(f"{name} ({kind.__name__})" for name, kind in known.items())
            )
    missing = [name for name in ("out", "env", "policy", "role", "episodes") if name not in table]
    if missing:
        raise InputError(f"{where}: no {missing[0]!r}; expected out, env, policy, role and episodes")
    if table["role"] not in get_args(Role):
        raise InputError(f"{where}: role {table['role']!r}; expected 'expert' or 'negative'")
    return FileRecipe(**table)
