"""Checks of a resumed run: which settings may change, and whether the demonstrations are those of the run."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import replace
from pathlib import Path

from grace_irl.config import Config
from grace_irl.errors import InputError
from grace_irl.runs.acting import named_data
from grace_irl.runs.config import flat, settings_of
from grace_irl.runs.record import TrajectoryRow
from grace_irl.runs.store import Store

CHANGEABLE = (
    "search.generations",  # this setting and the next five only decide when the search of a method ends
    "policy_evolution.generations",
    "eureka.rounds",
    "forge.rounds",
    "random.programs",
    "revolve.programs",
    "search.reshape",
    "stop.",
    "data.demos",  # the files may have moved; `resume` checks that their content is unchanged
    "data.experts",
    "data.negatives",
    "policy.task",  # the file may have moved; the run keeps its content
    "policy.trainings",
    "policy.train_limit",
    "sandbox.workers",
    "sandbox.allow_weak",
    "expand.trust",
    "model.url",
    "model.prompt_tokens",  # prompts of the first programs may fit, and those with a program to change may not
    "model.concurrency",
    "model.patience",
    "model.timeout",
    "model.price_",
)
"""Settings that may change when a run is resumed. An entry is a whole key or the beginning of keys."""
ENDS_SEARCH = ("search.generations", "search.reshape", "stop.target_accuracy", "stop.plateau")
"""Settings of `CHANGEABLE` that must not change after a run has begun to reshape its best program.

The recorded requests of the reshaping depend on these settings."""


def require_compatible(began: Config, config: Config, store: Store) -> None:
    """Refuse changed settings that would invalidate the results so far.

    Args:
        began: the configuration that the run began with.
        config: the configuration for the resume.
        store: the store of the run.
    """
    require_changeable(began, config)
    before, after = flat(began), flat(config)
    reshaping = any(operator == "reshape" for _, operator in store.requests().values())
    for key, value in after.items():
        if value != before[key] and reshaping and key in ENDS_SEARCH:
            raise InputError(
                f"setting {key!r} was {before[key]!r} and is {value!r} now{_by(key, config)}, but the search has "
                "ended and its best program is being reshaped; expected no change of settings that decide when the "
                "search ends: start a new run"
            )


def require_changeable(began: Config, config: Config) -> None:
    """Refuse a change of a setting that must not change when a run is resumed (`CHANGEABLE`).

    A task's file may move. But a run that began without a task has scores of another kind, and goes on without one.
    """
    before = flat(began)
    for key, value in flat(config).items():
        judge = key == "policy.task" and bool(value) != bool(before.get(key))
        if value != before.get(key) and (judge or not key.startswith(CHANGEABLE)):
            raise InputError(
                f"setting {key!r} was {before.get(key)!r} when the run began and is {value!r} now{_by(key, config)}; "
                "expected only settings such as generations, stop rules and workers to change on --resume: "
                "start a new run"
            )


def _by(key: str, config: Config) -> str:
    """A hint that the setting's environment variable has this value; "" if it has not."""
    setting = settings_of(config.method).get(key)
    given = os.environ.get(setting.variable, "") if setting else ""
    return f" ({setting.variable} is {given!r})" if setting and given == str(flat(config)[key]) else ""


def require_same_demonstrations(
    folder: Path, rows: list[TrajectoryRow], stored: list[TrajectoryRow], began: Config
) -> None:
    """Refuse demonstrations that differ from those of the run, or that have another order.

    Args:
        folder: the run's folder.
        rows: the demonstrations of the resume.
        stored: the demonstrations of the run.
        began: the configuration of the run. Its names of the demonstrations appear in the message about the order.
    """
    if _content(rows) == _content(stored):
        return
    new, old = (Counter((row.digest, row.role, row.task) for row in each) for each in (rows, stored))
    if new == old:
        names = named_data(began)
        named = f": name them in the order of {names}" if names else ": give them in the order of the run"
        raise InputError(
            f"{folder}: the trajectories are those that the run began with, but in another order; expected the same "
            f"order{named}"
        )
    raise InputError(
        f"{folder}: the demonstrations are not those that the run began with ({(old - new).total()} of "
        f"{len(stored)} trajectories are missing, {(new - old).total()} are new); expected the same files, unchanged: "
        "start a new run"
    )


def _content(rows: list[TrajectoryRow]) -> list[TrajectoryRow]:
    """Copies of the rows without labels and file names, to compare the trajectories of two sets."""
    return [replace(row, positives=0, source="") for row in rows]
