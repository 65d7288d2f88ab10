"""A run's folder: where it may be made, and that it appears whole or not at all."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from grace_irl.atomic import write_atomically
from grace_irl.demos.labels import Problem
from grace_irl.errors import InputError
from grace_irl.propose.goal_answer import GoalAnswer
from grace_irl.runs import ownership
from grace_irl.runs.acting import plain_acting
from grace_irl.runs.config import Config, to_toml
from grace_irl.runs.paths import RunPaths
from grace_irl.runs.store import Store


def require_absent(folder: Path) -> None:
    """Raises InputError for a folder that exists and holds something, or that cannot be made."""
    try:
        taken = folder.exists() and (not folder.is_dir() or any(folder.iterdir()))
        place = next((parent for parent in folder.absolute().parents if parent.exists()), folder)
    except OSError as error:
        raise _impossible(folder, error.strerror) from None
    if taken:
        raise InputError(
            f"{folder}: exists already; "
            f"expected a new folder for --out: choose another, or go on with {RunPaths(folder).resume}"
        )
    if not place.is_dir():
        raise _impossible(folder, f"{place} is a file")
    if not os.access(place, os.W_OK | os.X_OK):
        raise _impossible(folder, f"{place} cannot be written to")


def _impossible(folder: Path, why: str | None) -> InputError:
    return InputError(f"{folder}: no folder can be made there ({why}); expected a place for --out: choose another")


def create(folder: Path, config: Config, problem: Problem, goals: Sequence[GoalAnswer] = ()) -> None:
    """Makes the run's folder whole or not at all: beside its place, then renamed.

    Args:
        folder: where it goes.
        config: of the run.
        problem: what it is about; without a mark where the goal states are still to be asked for.
        goals: what is known of goal states.

    Raises:
        InputError: it cannot be made there.
    """
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}."))
    except OSError as error:
        raise _impossible(folder, error.strerror) from None
    try:
        temporary.chmod(0o755)
        paths = RunPaths(temporary)
        write_atomically(paths.config, to_toml(config))
        with closing(Store(paths.database, create=True)) as store:
            store.set_problem(problem)
            store.set_meta("label", problem.rule)
            if not config.data.field_names:  # the programs have other names for them
                store.set_meta("fields", ", ".join(f"x{n} {name}" for n, name in enumerate(problem.metadata.fields)))
            store.add_goals(goals)
            own(paths.database, store, config)
        try:
            temporary.rename(folder)
        except OSError:
            require_absent(folder)
            raise
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def own(database: Path, store: Store, config: Config) -> None:
    """Notes that this user answers for the run on this machine, with these settings; anybody else's token goes."""
    token = store.meta("token")
    if ownership.kept(token, database) is None:
        token = ownership.new_token()
        store.set_meta("token", token)
    ownership.keep(token, database, plain_acting(config))
