"""The held-out split: whole trajectories, per task and role, by a seed and by content."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from grace_irl.demos.trajectory import Demonstration, Demonstrations, Role, Split
from grace_irl.errors import InputError

Group = list[Demonstration]


def split(demonstrations: Demonstrations, held_out: float, seed: int) -> Demonstrations:
    """Holds a share of every task's expert and of its negative trajectories out, chosen by chance.

    A split that is stated is kept; the draw is among trajectories that state none, and stated ones count
    towards the share. At least one trajectory of each task and role is held out, and at least one stays for
    training.

    Equal trajectories (one digest) go to one side together, whatever their tasks and roles: a program that is
    scored on held-out data has not met it in training. Equals of a stated trajectory follow it, those of a
    trajectory that is stated on both sides stay for training.

    The draw depends on what the trajectories are, never on their order in files, and for a task that shares
    no trajectory with others on its own trajectories alone: adding a task moves nothing.

    Args:
        demonstrations: the set.
        held_out: share of trajectories, 0 <= held_out < 1; 0 draws none: what states no split is for training.
        seed: of the draw.

    Returns:
        The set in its order, every split stated.

    Raises:
        InputError: a share outside its range, or a task whose trajectories of a role cannot be on both sides.
    """
    if not 0 <= held_out < 1:
        raise InputError(f"--held-out {held_out}; expected a share of at least 0 and below 1, such as 0.3")
    sides = _stated(demonstrations)
    if held_out > 0:
        groups: dict[tuple[str, Role], Group] = {}
        for item in demonstrations:
            groups.setdefault((item.task, item.role), []).append(item)
        for (task, role), members in groups.items():
            _require_two_sides(members, f"task {task!r}", role)
        # Small groups first: if groups share trajectories, the small one has fewer ways to be on both sides.
        for name in sorted(groups, key=lambda name: (len(_digests(groups[name])), name)):
            _draw(groups[name], sides, held_out, np.random.default_rng([seed, zlib.crc32("\0".join(name).encode())]))
    items = (replace(d, split=d.split or sides.get(d.trajectory.digest, "train")) for d in demonstrations)
    return replace(demonstrations, items=tuple(items))


def _digests(members: Iterable[Demonstration]) -> dict[str, int]:
    """The number of trajectories of each digest, in the order of digests: equals are one, the order of files none."""
    counts: dict[str, int] = {}
    for item in members:
        counts[item.trajectory.digest] = counts.get(item.trajectory.digest, 0) + 1
    return dict(sorted(counts.items()))


def _stated(demonstrations: Demonstrations) -> dict[str, Split]:
    """The side of every trajectory that is stated somewhere in the set; "train" where both are."""
    sides: dict[str, Split] = {}
    for item in demonstrations:
        if item.split is not None and sides.get(item.trajectory.digest) != "train":
            sides[item.trajectory.digest] = item.split
    return sides


def _draw(members: Group, sides: dict[str, Split], share: float, rng: np.random.Generator) -> None:
    """Decides the sides of one group's trajectories that have none yet."""
    counts = _digests(members)
    free = [digest for digest in counts if digest not in sides]
    held = sum((item.split or sides.get(item.trajectory.digest)) == "held_out" for item in members)
    wanted = min(max(round(share * len(members)), 1), len(members) - 1)
    order = [free[place] for place in rng.permutation(len(free))]
    for digest in order:
        taken = held + counts[digest] <= wanted
        sides[digest] = "held_out" if taken else "train"
        held += counts[digest] if taken else 0
    if held == 0 and len(counts) > 1 and order:
        sides[min(order, key=counts.__getitem__)] = "held_out"  # more equals than the share, as few as can be


def _require_two_sides(members: Group, task: str, role: Role) -> None:
    """Refuses trajectories of one task and role that cannot be on both sides.

    Raises:
        InputError: a single one, equal ones only, or all of them stated on one side.
    """
    stated = {item.split for item in members}
    if len(members) > 1 and len(stated) == 1 and None not in stated:
        (side,) = stated
        other: Split = "train" if side == "held_out" else "held_out"
        raise InputError(
            f"{task}: all {len(members)} {role} trajectories state the split {side!r}; expected some of {other!r} "
            f"or without a split: mark some, or fit with what the data state (--held-out 0)"
        )
    if len(stated) == 1 and len(_digests(members)) == 1:
        found = "one" if len(members) == 1 else f"{len(members)} equal"
        raise InputError(
            f"{task}: {found} {role} {'trajectory' if len(members) == 1 else 'trajectories'} "
            f"({members[0].trajectory.source}), which cannot be split; expected at least two that differ: "
            "add some, or fit without a held-out set (--held-out 0)"
        )


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
