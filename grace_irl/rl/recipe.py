"""Recipes: TOML files that describe how to collect the files of a demonstration set (`grace-irl collect`)."""

from __future__ import annotations

import reprlib
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path

from grace_irl.contents import require_inside
from grace_irl.demos.files import require_writable, save
from grace_irl.demos.select_recipe import require_keys, require_within
from grace_irl.demos.trajectory import Role
from grace_irl.errors import InputError
from grace_irl.rl.collect import EpisodeTally, collect, prepare
from grace_irl.rl.environments import names_code
from grace_irl.states import KINDS
from grace_irl.toml import read_toml

FILES = (".parquet", ".npz")
NAMED = ("bot", "random")


@dataclass(frozen=True)
class FileRecipe:
    """Settings for one file of demonstrations, from a `[[file]]` table of a recipe.

    Attributes:
        out: the file to write, relative to the folder of the recipe.
        env: a registered Gymnasium id.
        policy: "bot", "random", or a checkpoint's path, relative to the folder of the recipe.
        role: role of every episode, "expert" or "negative".
        episodes: number of episodes to keep.
        seed: seed from which the seeds of all episodes are drawn.
        max_steps: time limit of an episode in steps; 0 keeps the environment's own limit.
        keep_successes: whether to keep negative episodes that reached the goal.
        near_miss: whether the bot does another task than the instruction says (`grace_irl.rl.near_miss`).
        task: task name; "" takes the environment's id.
        kind: name of the states' kind, such as "image"; "" chooses by the values of the states.
    """

    out: str
    env: str
    policy: str
    role: Role
    episodes: int
    seed: int = 0
    max_steps: int = 0
    keep_successes: bool = False
    near_miss: bool = False
    task: str = ""
    kind: str = ""


def read_recipe(path: str | Path) -> tuple[FileRecipe, ...]:
    """Read the settings of all files of a recipe.

    Raises:
        InputError: the recipe is not TOML, a key is unknown or missing, or a value is invalid.
    """
    document = read_toml(path, "a recipe with [[file]] tables")
    tables = document.get("file")
    if not isinstance(tables, list) or not tables or set(document) != {"file"}:
        raise InputError(
            f"{path}: keys {', '.join(document)[:200] or 'none'}; expected [[file]] tables and nothing else"
        )
    return tuple(_file(table, f"{path}, file {number}") for number, table in enumerate(tables, 1))


def run_recipe(path: str | Path, *, force: bool = False) -> Iterator[tuple[Path, EpisodeTally]]:
    """Collect and write each file of a recipe. Yield the file's path and the tally of its episodes.

    Args:
        path: the recipe.
        force: whether to overwrite files.

    Raises:
        InputError: the recipe is invalid, an environment cannot be made or its observations are not of the kind, a
            file cannot be written, or a file to write exists already and `force` is false. No file has been written
            then.
    """
    recipes, folder = read_recipe(path), Path(path).parent
    for each in recipes:
        require_inside((folder / each.out).parent, folder)
        if each.policy not in NAMED:
            require_inside(folder / each.policy, folder)
    taken = next((out for out in (folder / each.out for each in recipes) if out.exists()), None)
    if taken is not None and not force:
        raise InputError(f"{taken}: exists already; expected new files: move it, or overwrite it with --force")
    for recipe in recipes:
        require_writable(folder / recipe.out)
    for env, kind in dict.fromkeys((recipe.env, recipe.kind) for recipe in recipes):
        prepare(env, kind=kind)[0].close()
    for recipe in recipes:
        tally = EpisodeTally()
        demonstrations = collect(
            recipe.env,
            recipe.policy if recipe.policy in NAMED else str(folder / recipe.policy),
            recipe.episodes,
            recipe.role,
            recipe.seed,
            max_steps=recipe.max_steps or None,
            keep_successes=recipe.keep_successes,
            near_miss=recipe.near_miss,
            task=recipe.task or None,
            kind=recipe.kind,
            tally=tally,
        )
        out = folder / recipe.out
        save(demonstrations, out)
        yield out, tally


def _file(found: object, where: str) -> FileRecipe:
    types = {"str": str, "Role": str, "int": int, "bool": bool}
    table = require_keys(found, {field.name: types[str(field.type)] for field in fields(FileRecipe)}, where)
    missing = [name for name in ("out", "env", "policy", "role", "episodes") if name not in table]
    if missing:
        raise InputError(f"{where}: no {missing[0]!r}; expected out, env, policy, role and episodes")
    out, env, policy, kind = table["out"], table["env"], table["policy"], table.get("kind", "")
    require_within(out, where)
    if policy not in NAMED and (Path(policy).is_absolute() or ".." in Path(policy).parts or "\0" in policy):
        raise InputError(f"{where}: policy = {reprlib.repr(policy)}; expected bot, random or a file beside the recipe")
    if kind not in ("", *KINDS):
        raise InputError(f"{where}: kind = {reprlib.repr(kind)}; expected one of {', '.join(KINDS)}")
    if Path(out).suffix not in FILES:
        raise InputError(f"{where}: out = {reprlib.repr(out)}; expected a file that ends in {' or '.join(FILES)}")
    if names_code(env):
        raise InputError(
            f"{where}: env = {reprlib.repr(env)}, which runs code of the recipe's choice; expected a registered "
            "Gymnasium id, or this file collected with --env on the command line"
        )
    return FileRecipe(**table)
