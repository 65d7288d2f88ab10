"""A draw of a few demonstrations out of a set, by a seed and by content."""

from __future__ import annotations

import zlib
from dataclasses import replace

import numpy as np

from grace_irl.demos.trajectory import Demonstration, Demonstrations, Role
from grace_irl.errors import InputError


def draw(demonstrations: Demonstrations, count: int, seed: int) -> Demonstrations:
    """Draws expert and negative trajectories of each task, without replacement.

    The draw depends on what the trajectories are, never on their order in files, and for each task and role on those
    alone. Trajectories whose split is stated as held out stay, and do not count.

    Args:
        demonstrations: the set.
        count: trajectories to draw of each task and role; at least 1.
        seed: of the draw.

    Returns:
        The drawn ones in the order of the set.

    Raises:
        InputError: a task with fewer trajectories of a role.
    """
    groups: dict[tuple[str, Role], list[Demonstration]] = {}
    for item in demonstrations:
        if item.split != "held_out":
            groups.setdefault((item.task, item.role), []).append(item)
    drawn = {id(item) for item in demonstrations if item.split == "held_out"}
    for (task, role), members in groups.items():
        if len(members) < count:
            raise InputError(
                f"--draw-demos {count}: task {task!r} has {len(members)} {role} trajectories; expected at least "
                f"{count} to draw from: add some, or draw fewer"
            )
        members.sort(key=lambda item: item.trajectory.digest)
        generator = np.random.default_rng([seed, zlib.crc32(f"draw\0{task}\0{role}".encode())])
        drawn |= {id(members[number]) for number in generator.permutation(len(members))[:count]}
    return replace(demonstrations, items=tuple(item for item in demonstrations if id(item) in drawn))
