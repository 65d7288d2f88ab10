"""Functions that make a `WarningSet` of arrays, or of episodes of BabyAI."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grace_irl.demos.trajectory import Demonstration, Demonstrations, LabelRule, Metadata, Role, Trajectory
from grace_irl.states.record import RecordStates
from warning_sets.kinds import Reason, WarningSet


def episode(
    states: NDArray[Any] | Mapping[str, NDArray[Any]],
    *,
    instruction: str = "",
    actions: NDArray[Any] | None = None,
    rewards: NDArray[np.float64] | None = None,
    ended: bool = False,
) -> Trajectory:
    """One episode of vectors `(T+1, n)`, or of a record's parts by name, each `(T+1, ...)`.

    Args:
        states: the states in order.
        instruction: the instruction.
        actions: `(T, ...)`, or None.
        rewards: `(T,)`, or None.
        ended: whether the environment ended the episode. Otherwise a time limit did.
    """
    return Trajectory(
        RecordStates(states) if isinstance(states, Mapping) else states,
        actions,
        instruction,
        rewards=rewards,
        terminated=ended,
        truncated=not ended,
    )


def assembled(
    name: str,
    experts: Sequence[Trajectory],
    negatives: Sequence[Trajectory],
    *,
    label: LabelRule,
    fields: Sequence[str] = (),
    expected: Sequence[Reason] = (),
) -> WarningSet:
    """A set of these experts and negatives, with names for the fields of vectors."""
    roles: tuple[tuple[Role, Sequence[Trajectory]], ...] = (("expert", experts), ("negative", negatives))
    items = [
        Demonstration(replace(trajectory, source=f"{name}, {role} {number}"), role)
        for role, trajectories in roles
        for number, trajectory in enumerate(trajectories)
    ]
    metadata = Metadata(items[0].trajectory.kind, fields=tuple(fields), label=label)
    return WarningSet(name, Demonstrations(metadata, tuple(items)), frozenset(expected))


def babyai(
    name: str,
    level: str,
    *,
    seed: int,
    experts: int,
    random: int = 0,
    random_steps: int | None = None,
    near: int = 0,
    instruction: str = "",
    expected: Sequence[Reason] = (),
) -> WarningSet:
    """A set of BabyAI's bot as expert, with random episodes and near misses as negatives. The label rule is "last".

    Args:
        name: name of the set.
        level: name of the level, without "BabyAI-" and version.
        seed: seed of all episodes.
        experts: number of expert episodes.
        random: number of random episodes.
        random_steps: time limit of a random episode in steps; None keeps the level's own.
        near: number of near misses.
        instruction: the only instruction to keep; "" keeps all.
        expected: reasons for a warning.
    """
    from grace_irl.rl.collect import collect  # loads MiniGrid

    def draw(count: int, policy: str, role: Role, seed: int, **options: Any) -> Demonstrations:
        surplus = 4 if instruction else 1
        found = collect(f"BabyAI-{level}-v0", policy, surplus * count, role, seed, **options)
        kept = [item for item in found if instruction in ("", item.trajectory.extra_info)][:count]
        if len(kept) < count:
            raise ValueError(f"{len(kept)} episodes of {level} with {instruction!r}; expected {count}: another seed")
        return replace(found, items=tuple(kept))

    found = draw(experts, "bot", "expert", seed)
    items = found.items
    if random:
        items += draw(random, "random", "negative", seed + 1, max_steps=random_steps).items
    if near:
        items += draw(near, "bot", "negative", seed + 2, near_miss=True).items
    demonstrations = replace(found, metadata=replace(found.metadata, label="last"), items=items)
    return WarningSet(name, demonstrations, frozenset(expected))
