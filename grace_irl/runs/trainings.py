"""Reading of the trainings of policies in a run's folder, to record or replay the run."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from grace_irl.config import Config
from grace_irl.contents import require_no_links
from grace_irl.errors import InputError
from grace_irl.methods.trained import TASK_FILE, PolicyConfig
from grace_irl.runs.record import Record
from grace_irl.runs.store import Store
from grace_irl.tasks.recorded import (
    FULL,
    LONGEST,
    RecordedFailure,
    RecordedTraining,
    RecordedTrainings,
    digests_of,
    names,
)
from grace_irl.toml import MAX_BYTES

_PROGRAM = re.compile(r"[0-9a-f]{16}")
_UNTRIED = ("ok", "rejected")  # statuses that are not failures; a program with status "rejected" never ran


def policies_of(config: Config) -> PolicyConfig | None:
    """The settings of the policies that judge programs; None if the method has no such policies."""
    found = getattr(config, "policy", None)
    return found if isinstance(found, PolicyConfig) else None


def trainings_of(store: Store, config: Config) -> RecordedTrainings:
    """The finished trainings of a run, and its programs that failed.

    There are none if the method trains no policies, or if the run itself took its scores from a recording.

    Raises:
        InputError: the file of the task, a training or a program is damaged, or the run's folder contains links.
    """
    policies = policies_of(config)
    if policies is None or not (store.folder / TASK_FILE).exists():
        return RecordedTrainings(str(store.folder))
    from grace_irl.tasks.training import TRAININGS, seeds_of

    require_no_links(store.folder)
    content = _task(store.folder / TASK_FILE)
    if policies.recorded_scores:
        return RecordedTrainings(str(store.folder), digests_of(content))
    place = store.folder / TRAININGS
    seeds = seeds_of(config.seed, policies.train_seeds)
    planned = [
        (
            name,
            seeds[at],
            (policies.train_steps or content["steps"]) if name.startswith(FULL) else content["short_steps"],
        )
        for name, at in names(policies.train_seeds, short=bool(content["short_steps"]))
    ]
    trainings, failures = list[RecordedTraining](), list[RecordedFailure]()
    for record in store.records().values():
        if not _PROGRAM.fullmatch(record.program.id):  # the id becomes the name of a folder
            raise InputError(f"{store.folder}: a program without a valid id; expected the run as fit wrote it")
        if record.evaluation.status not in _UNTRIED:
            failures.append(_failure(record))
        elif record.evaluation.valid:
            trainings += _finished(place / record.program.id, planned)
    return RecordedTrainings(str(store.folder), digests_of(content), tuple(trainings), tuple(failures))


def _task(path: Path) -> dict[str, Any]:
    """The content of a run's task file, which includes the numbers of steps of the run's trainings."""
    try:
        with path.open("rb") as file:
            found = json.loads(file.read(MAX_BYTES))
        digests_of(found)
        if not all(type(found[key]) is int for key in ("steps", "short_steps")):
            raise ValueError("steps without a number")
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        said = f"{type(error).__name__}: {error}".splitlines()[0][:200]
        raise InputError(f"{path}: damaged ({said}); expected what fit wrote at the start of the run") from None
    return dict(found)


def _failure(record: Record) -> RecordedFailure:
    found = RecordedFailure(record.program.id, record.evaluation.status, record.evaluation.message[:LONGEST])
    try:
        found.require_sound()
    except ValueError as error:
        raise InputError(f"program {found.program}: {error}; expected the run as fit wrote it") from None
    return found


def _finished(folder: Path, planned: list[tuple[str, int, int]]) -> list[RecordedTraining]:
    """The finished trainings of a program.

    Args:
        folder: folder of the program's trainings.
        planned: name, seed and steps of each possible training.
    """
    from grace_irl.tasks.training import RESULT, result_of

    found = []
    for name, seed, steps in planned:
        curve = result_of(folder / name)
        if curve is None:
            continue
        training = RecordedTraining(folder.name, name, seed, steps, curve)
        try:
            training.require_sound()
        except ValueError as error:
            raise InputError(
                f"{folder / name / RESULT}: damaged ({error}); expected what a training wrote: delete its folder"
            ) from None
        found.append(training)
    return found
