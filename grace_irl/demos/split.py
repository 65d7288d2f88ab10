"""The held-out split: whole trajectories, per task and role, by a seed."""

from __future__ import annotations

import zlib
from dataclasses import replace

import numpy as np

from grace_irl.demos.trajectory import Demonstrations
from grace_irl.errors import InputError


def split(demonstrations: Demonstrations, held_out: float, seed: int) -> Demonstrations:
    """Holds a share of every task's expert and of its negative trajectories out, chosen by chance.

    The draw of one task does not depend on the others, so that adding a task moves nothing. Trajectories that
    are held out already stay so and count towards the share. At least one trajectory of each group is held
    out, and at least one stays for training.

    Args:
        demonstrations: the set.
        held_out: share of trajectories, 0 <= held_out < 1; 0 leaves the set as it is.
        seed: of the draw.

    Raises:
        InputError: a share outside its range, or a task with a single trajectory of a role.
    """
    if not 0 <= held_out < 1:
        raise InputError(f"--held-out {held_out}; expected a share of at least 0 and below 1, such as 0.3")
    if held_out == 0:
        return demonstrations
    splits = [item.split for item in demonstrations]
    groups: dict[tuple[str, str], list[int]] = {}
    for index, item in enumerate(demonstrations):
        groups.setdefault((item.task, item.role), []).append(index)
    for (task, role), members in groups.items():
        if len(members) == 1:
            raise InputError(
                f"task {task!r}: one {role} trajectory ({demonstrations[members[0]].trajectory.source}), "
                "which cannot be "
                "split; expected at least two: add some, or fit without a held-out set (--held-out 0)"
            )
        free = [index for index in members if splits[index] != "held_out"]
        wanted = min(max(round(held_out * len(members)), 1), len(members) - 1) - (len(members) - len(free))
        if wanted > 0:
            draw = np.random.default_rng([seed, zlib.crc32(f"{task}\0{role}".encode())])
            for index in draw.choice(free, size=wanted, replace=False):
                splits[index] = "held_out"
        if all(splits[index] == "held_out" for index in members):
            raise InputError(
                f"task {task!r}: all {len(members)} {role} trajectories are held out; expected some for "
                "training: "
                "add some, or mark some as train"
            )
    items = tuple(replace(item, split=mark) for item, mark in zip(demonstrations, splits, strict=True))
    return replace(demonstrations, items=items)
