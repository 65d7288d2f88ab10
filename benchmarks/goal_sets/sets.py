"""Sets of demonstrations by name: an expert's last state reaches the goal, and no other state of a set does.

    from benchmarks.goal_sets.sets import episodes, reached

    data = episodes("valve", seed=0, experts=8, negatives=8)
    reached("valve", data[0].trajectory.states)

Half of the negatives are random behaviour. The others are near misses: a controller goes to another place, or fulfils
all conditions of the goal but one.
"""

from __future__ import annotations

from collections.abc import Mapping
from zlib import crc32

import numpy as np

from grace_irl.demos.trajectory import Demonstration, Demonstrations, Role, Trajectory
from grace_irl.errors import GraceError, InputError

from .arm import ARM
from .aside import CRANE, DRONE, HEAT, PEG
from .plane import HOLD, MAZE_POINT, TWO_FIELDS
from .process import TANK, VALVE
from .robots import FETCH_REACH, REACHER
from .world import LONGEST, SHORTEST, Bools, World

SHOWN: Mapping[str, World] = {
    "reacher": REACHER,
    "fetch_reach": FETCH_REACH,
    "arm60": ARM,
    "maze_point": MAZE_POINT,
    "valve": VALVE,
    "hold": HOLD,
    "two_fields": TWO_FIELDS,
    "tank": TANK,
}
KEPT: Mapping[str, World] = {"drone": DRONE, "crane": CRANE, "peg": PEG, "heat": HEAT}
WORLDS: Mapping[str, World] = {**SHOWN, **KEPT}
NAMES = {name: world.goal for name, world in WORLDS.items()}
"""The true goal of each set, in words."""
ASIDE = tuple(KEPT)
"""Sets that only judge a method, and never help to make it."""
NEAR_MISS = 40
"""Least number of states of a near miss, so that its controller has time to arrive."""
DRAWS = 500


def episodes(name: str, seed: int, experts: int, negatives: int) -> Demonstrations:
    """Draw a set: experts first. Of the negatives, the odd ones are near misses.

    Episode number n of a role does not depend on the numbers of episodes.

    Raises:
        InputError: no set has this name, or a package that its simulator needs is missing.
        GraceError: the controllers miss the goal, or negative episodes reach it, in too many draws.
    """
    world = _world(name)
    drawn = [_episode(name, world, seed, "expert", number) for number in range(experts)]
    drawn += [_episode(name, world, seed, "negative", number) for number in range(negatives)]
    return Demonstrations(world.metadata, tuple(drawn))


def reached(name: str, states: object) -> Bools:
    """In which of an episode's states the true goal is reached.

    Raises:
        InputError: no set has this name.
    """
    return _world(name).reached(states)


def _world(name: str) -> World:
    if name not in WORLDS:
        raise InputError(f"set {name!r}; expected one of {', '.join(WORLDS)}")
    return WORLDS[name]


def _episode(name: str, world: World, seed: int, role: Role, number: int) -> Demonstration:
    """Draw an episode, and draw again if it is not what it should be."""
    rng = np.random.default_rng([seed, crc32(name.encode()), role == "expert", number])
    near, misses = role == "negative" and number % 2 == 1, list(world.misses)
    intent = misses[number // 2 % len(misses)] if near else "expert" if role == "expert" else "random"
    source = f"{name} seed {seed}, {role} {number}, {intent}"
    least = LONGEST if role == "expert" else NEAR_MISS if near else SHORTEST
    for _ in range(DRAWS):
        states = world.states(rng, intent, int(rng.integers(least, LONGEST + 1)))
        hits = np.flatnonzero(world.reached(states))
        if role == "expert" and len(hits) and hits[0] + 1 >= SHORTEST:
            return Demonstration(Trajectory(states[: hits[0] + 1], source=source, terminated=True), role, name)
        if role == "negative" and not len(hits) and (not near or world.fails_alone(states, world.misses[intent]).any()):
            return Demonstration(Trajectory(states, source=source, truncated=True), role, name)
    raise GraceError(f"{name}: none of {DRAWS} episodes of intent {intent!r} is a good {role}; expected one")
