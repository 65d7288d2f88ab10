"""The training of a policy on one reward program, as a job in a separate process."""

from __future__ import annotations

import json
import os
import threading
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np

from grace_irl.atomic import write_atomically
from grace_irl.errors import InputError
from grace_irl.programs.source_id import source_id
from grace_irl.rewards.file import read_reward
from grace_irl.rl import TRAINING_IMPORTS
from grace_irl.rl.curve import Point, from_json, to_json
from grace_irl.rl.environments import code_of, find_code
from grace_irl.sandbox.protocol import Limits
from grace_irl.tasks.recorded import require_scored
from grace_irl.tasks.task import Task
from grace_irl.work.executor import Job, Tell

TRAININGS = "trainings"
"""Name of the folder of all trainings, in the folder of a run. Each training has a subfolder PROGRAM/TRAINING."""
RESULT = "result.json"
"""Name of the file with the learning curve of a finished training."""
REWARD = "reward.py"
"""Name of the file with the reward program of a training."""
LATE = "late"
"""Message that a training sends when it reaches its time limit. The process of the training then ends."""


def job(
    task: Task,
    folder: Path,
    source: str,
    seed: int,
    steps: int,
    evaluations: int,
    *,
    limit: float = 0.0,
    allow_weak: bool = False,
    limits: Limits = Limits(),
) -> Job:
    """The job of a training.

    Args:
        task: the task.
        folder: folder of the training. If it holds an interrupted training, this training continues.
        source: the reward program; "" for the environment's own reward. If the folder has the program already, with
            other comments or another layout, its text there stays: an interrupted training continues only with the
            same text.
        seed: seed of the training.
        steps: environment steps.
        evaluations: number of evaluations, but at most one per rollout of PPO.
        limit: time limit in seconds, without the wait for a free worker; 0: no limit. At the limit, the process of the
            training ends.
        allow_weak: whether to accept a sandbox that does not protect the user's files (docs/sandbox.md).
        limits: limits of the program in the sandbox.

    Raises:
        InputError: the environment is registered with a function, which another process cannot import; or the folder
            has another program.
    """
    folder.mkdir(parents=True, exist_ok=True)
    kept = folder / REWARD
    if source and not kept.exists():
        write_atomically(kept, source)
    elif source and source_id(read_reward(kept)) != source_id(source):
        raise InputError(f"{kept}: another program than that of this training; expected it unchanged: delete {folder}")
    return Job(
        "grace_irl.tasks.training:train",
        {
            "task": _plain(task),
            "code": code_of(task.env),
            "folder": str(folder.absolute()),
            "native": not source,
            "seed": seed,
            "steps": steps,
            "evaluations": evaluations_of(task, steps, evaluations),
            "limit": limit,
            "allow_weak": allow_weak,
            "limits": asdict(limits),
        },
        log=folder / "log.txt",
        imports=TRAINING_IMPORTS,
    )


def evaluations_of(task: Task, steps: int, evaluations: int) -> int:
    """The number of evaluations of a training: `evaluations`, but at most one per rollout of PPO."""
    return max(1, min(evaluations, -(-steps // task.settings.rollout)))


def seeds_of(seed: int, count: int) -> list[int]:
    """The seeds of the full trainings of a program. All programs of a run have the same seeds.

    Args:
        seed: seed of the run.
        count: number of full trainings of a program.
    """
    return [int(each >> 1) for each in np.random.SeedSequence((seed, 1)).generate_state(count)]


def result_of(folder: Path) -> tuple[Point, ...] | None:
    """The learning curve of a training; None if the training is not finished.

    Raises:
        InputError: the file `RESULT` is damaged.
    """
    path = folder / RESULT
    if not path.is_file():
        return None
    try:
        found = from_json(path.read_text(encoding="utf-8"))
        require_scored(found)
        return found
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: damaged ({error}); expected what a training wrote: delete its folder") from None


def train(
    tell: Tell,
    *,
    task: dict[str, Any],
    code: dict[str, Any],
    folder: str,
    native: bool,
    seed: int,
    steps: int,
    evaluations: int,
    limit: float,
    allow_weak: bool,
    limits: dict[str, Any],
) -> str:
    """Train a policy, and return its learning curve as JSON. An interrupted training continues.

    Args:
        tell: function for messages. After each evaluation, it gets the number of environment steps so far. At the time
            limit, it gets `LATE`.
        task: the task, as plain data.
        code: the place of the task's code (`grace_irl.rl.environments.code_of`).
        folder: folder of the training.
        native: whether to train on the environment's own reward instead of the program in the folder.
        seed, steps, evaluations, limit, allow_weak: as for `job`.
        limits: the fields of `Limits`.
    """
    from grace_irl.rewards.file import load_reward
    from grace_irl.rl import ppo
    from grace_irl.rl.learning import ProgramPay

    if limit:
        timer = threading.Timer(limit, _end, (tell,))
        timer.daemon = True
        timer.start()
    find_code(**code)
    place, known = Path(folder), Task(**{**task, "fields": tuple(task["fields"])})
    reward = None
    if not native:
        file, within = load_reward(place / REWARD, exported=False), Limits(**limits)
        reward = ProgramPay(file, "raw", allow_weak_sandbox=allow_weak, terms=True, limits=within)
    found = ppo.train(
        known.make,
        steps,
        reward=reward,
        seed=seed,
        settings=known.settings,
        evaluations=evaluations,
        episodes=known.episodes,
        out=place,
        device="cpu",
        progress=lambda point: tell(point.steps),
        score=known.scorer(),
    )
    text = to_json(found.curve)
    write_atomically(place / RESULT, text + "\n")
    return text


def _end(tell: Tell) -> None:
    tell(LATE)
    os._exit(1)


def _plain(task: Task) -> dict[str, Any]:
    names = [each.name for each in fields(Task)]
    whole: dict[str, Any] = json.loads(json.dumps({name: asdict(task)[name] for name in names}))
    return whole
