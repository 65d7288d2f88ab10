"""The split of demonstrations into training, validation and held-out trajectories, and random draws of demonstrations.

Whole trajectories are drawn at random within each task and role. The result depends on the seed and on the content of
the trajectories.
"""

from __future__ import annotations

import zlib
from collections.abc import Collection, Iterable
from dataclasses import replace

import numpy as np

from grace_irl.demos.trajectory import Demonstration, Demonstrations, Role, Split
from grace_irl.errors import InputError

Group = list[Demonstration]
"""The demonstrations of one task and role."""


def split(demonstrations: Demonstrations, held_out: float, seed: int) -> Demonstrations:
    """Hold out a random share of the trajectories of each task and role.

    A trajectory with a stated split keeps this split, and counts towards the share if it is held out. The other
    trajectories are assigned at random to one of two sides, training and held-out. If `held_out` is above 0, the draw
    tries to put at least one trajectory of each task and role on each side.

    Equal trajectories (same states, actions and instruction) are drawn together, even across tasks and roles. So the
    random draw holds out no data that also occur in training. Among equal trajectories, some may have a stated split.
    The others then get this split. If the stated splits differ, the others get "train" if a stated split is "train",
    and otherwise the split that is stated last.

    The draw depends on the content of the trajectories and not on their order in files. A new task does not change the
    draws of other tasks, unless the tasks share trajectories.

    Args:
        demonstrations: the set.
        held_out: share of trajectories, 0 <= held_out < 1. With 0, all trajectories without a stated split stay in
            training.
        seed: seed of the draw.

    Returns:
        The set in the same order, with a split for every trajectory.

    Raises:
        InputError: a share outside its range, or trajectories of one task and role that cannot be on both sides.
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
        # A draw also decides for equal trajectories in later groups. Small groups have few choices, so they draw first.
        for name in sorted(groups, key=lambda name: (len(_digests(groups[name])), name)):
            _draw(groups[name], sides, held_out, np.random.default_rng([seed, zlib.crc32("\0".join(name).encode())]))
    items = (replace(d, split=d.split or sides.get(d.trajectory.digest, "train")) for d in demonstrations)
    return replace(demonstrations, items=tuple(items))


def set_aside(demonstrations: Demonstrations, validation: float, seed: int, fewest: int) -> Demonstrations:
    """Set aside a random share of the training trajectories of each task and role for validation.

    The draw tries to leave at least one training trajectory of each task and role. Equal trajectories stay together.
    The set is returned unchanged if some trajectories already have the split "validation", or if fewer than `fewest`
    different trajectories of one role would be set aside. Roles without training trajectories do not count.

    Args:
        demonstrations: a result of `split`.
        validation: share of the training trajectories, 0 <= validation < 1.
        seed: seed of the draw.
        fewest: minimum number of different trajectories to set aside of each role.
    """
    if not validation or demonstrations.select(split="validation"):
        return demonstrations
    groups: dict[tuple[str, Role], Group] = {}
    for item in demonstrations.select(split="train"):
        groups.setdefault((item.task, item.role), []).append(item)
    kept: set[str] = set()  # a draw for one group also decides for equal trajectories in later groups
    aside: set[str] = set()
    for name in sorted(groups, key=lambda name: (len(_digests(groups[name])), name)):
        counts = _digests(groups[name])
        wanted = round(validation * sum(counts.values())) - sum(counts[each] for each in counts if each in aside)
        free = [digest for digest in counts if digest not in kept | aside]
        left = len(counts.keys() - aside)
        generator = np.random.default_rng([seed, zlib.crc32("\0".join(("validation", *name)).encode())])
        for digest in (free[place] for place in generator.permutation(len(free))):
            taken = counts[digest] <= wanted and left > 1
            (aside if taken else kept).add(digest)
            wanted -= counts[digest] if taken else 0
            left -= taken
    of_role: dict[Role, set[str]] = {}
    for (_, role), members in groups.items():
        of_role.setdefault(role, set()).update(aside & _digests(members).keys())
    if not aside or min(map(len, of_role.values())) < fewest:
        return demonstrations
    items = (
        replace(each, split="validation") if each.side == "train" and each.trajectory.digest in aside else each
        for each in demonstrations
    )
    return replace(demonstrations, items=tuple(items))


def _digests(members: Iterable[Demonstration]) -> dict[str, int]:
    """Number of trajectories for each digest (a hash of the content). The digests are sorted."""
    counts: dict[str, int] = {}
    for item in members:
        counts[item.trajectory.digest] = counts.get(item.trajectory.digest, 0) + 1
    return dict(sorted(counts.items()))


def _stated(demonstrations: Demonstrations) -> dict[str, Split]:
    """Map from digest to stated split.

    If equal trajectories state different splits, "train" counts if it is one of them. Otherwise, the last one counts.
    """
    sides: dict[str, Split] = {}
    for item in demonstrations:
        if item.split is not None and sides.get(item.trajectory.digest) != "train":
            sides[item.trajectory.digest] = item.split
    return sides


def _draw(members: Group, sides: dict[str, Split], share: float, rng: np.random.Generator) -> None:
    """For each digest of the group that is missing in `sides`, draw a side and add it to `sides`."""
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
        # Each set of equal trajectories is larger than the wanted number, so the smallest set is held out.
        sides[min(order, key=counts.__getitem__)] = "held_out"


def has_two_sides(stated: Collection[Split | None], *, differ: bool) -> bool:
    """Whether the trajectories of one task and role can be split into training and held-out trajectories.

    Args:
        stated: the different splits that the trajectories state; None for trajectories that state none.
        differ: whether at least two of the trajectories differ.
    """
    return len(stated) > 1 or (differ and None in stated)


def _require_two_sides(members: Group, task: str, role: Role) -> None:
    """Check that the trajectories of one task and role can be split into training and held-out trajectories.

    Raises:
        InputError: there is only one trajectory; all trajectories are equal, and none states a split; or all
            trajectories state the same split.
    """
    stated = {item.split for item in members}
    if has_two_sides(stated, differ=len(_digests(members)) > 1):
        return
    if len(members) > 1 and len(stated) == 1 and None not in stated:
        (side,) = stated
        other: Split = "train" if side == "held_out" else "held_out"
        kept = ", or use only the splits that the data state (--held-out 0)" if side == "train" else ""
        raise InputError(
            f"{task}: all {len(members)} {role} trajectories state the split {side!r}; expected some of {other!r} "
            f"or without a split: mark some{kept}"
        )
    found = "one" if len(members) == 1 else f"{len(members)} equal"
    raise InputError(
        f"{task}: {found} {role} {'trajectory' if len(members) == 1 else 'trajectories'} "
        f"({members[0].trajectory.source}), which cannot be split; expected at least two that differ: "
        "add some, or fit without a held-out set (--held-out 0)"
    )


def draw(demonstrations: Demonstrations, count: int, seed: int) -> Demonstrations:
    """Draw `count` trajectories of each task and role, without replacement.

    The draw depends on the content of the trajectories and not on their order in files. Each task and role has an
    independent draw. All trajectories with the stated split "held_out" are kept, in addition to `count`.

    Args:
        demonstrations: the set.
        count: number of trajectories to draw per task and role, at least 1.
        seed: seed of the draw.

    Returns:
        The drawn trajectories in the order of the set.

    Raises:
        InputError: a task and role with fewer than `count` trajectories that are not held out.
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
