"""Tasks of public simulators: Gymnasium's Reacher-v5, and FetchReach-v4 of Gymnasium-Robotics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import numpy as np
from numpy.random import Generator

from grace_irl.errors import InputError

from .world import Bools, Numbers, State, World, apart, beside, clipped, drift, length, wrapped

LINKS = (0.1, 0.11)
"""Lengths of Reacher's links."""


@cache
def _simulator(name: str) -> Any:
    import gymnasium

    if name.startswith("Fetch"):
        try:
            import gymnasium_robotics  # type: ignore[import-not-found, unused-ignore]
        except ImportError:
            raise InputError(
                f"{name}: gymnasium_robotics is not installed; expected a Python with gymnasium-robotics and "
                "mujoco 3.3.0: run this set there"
            ) from None
        gymnasium.register_envs(gymnasium_robotics)
    return gymnasium.make(name).unwrapped


def _bent(place: Numbers, side: float) -> Numbers:
    """Angles of Reacher's joints with the fingertip at a place, or nearest to it."""
    near, far = LINKS
    cosine = np.clip((place @ place - near**2 - far**2) / (2 * near * far), -1, 1)
    elbow = side * np.arccos(cosine)
    shoulder = np.arctan2(place[1], place[0]) - np.arctan2(far * np.sin(elbow), near + far * np.cos(elbow))
    return np.array([shoulder, elbow])


def _reacher(rng: Generator, intent: str) -> Iterator[State]:
    simulator = _simulator("Reacher-v5")
    simulator.reset(seed=int(rng.integers(2**31)))
    joints = np.array([rng.uniform(-np.pi, np.pi), rng.uniform(-2.5, 2.5)])
    place = np.array([9.0, 9.0])
    while not 0.04 < length(place) < 0.19:
        place = rng.uniform(-0.2, 0.2, 2)
    simulator.set_state(np.concatenate([joints, place]), np.concatenate([rng.normal(0, 0.5, 2), np.zeros(2)]))
    aim = place
    if intent == "elsewhere":
        aim = apart(rng, -0.14 * np.ones(2), 0.14, [place], 0.07)
    if intent == "short":
        aim = beside(rng, place, 0.03, 0.05)
    wish, noise = _bent(aim, rng.choice([-1.0, 1.0])), drift(rng, 2)
    stiff, pace = rng.uniform(0.5, 1.0), rng.uniform(2.0, 5.0)
    while True:
        seen, angles = simulator._get_obs(), simulator.data.qpos[:2]
        yield {
            "cosines": seen[:2],
            "sines": seen[2:4],
            "target": seen[4:6],
            "velocities": seen[6:8],
            "to_target": seen[8:],
        }
        gap = np.array([wrapped(wish[0] - angles[0]), wish[1] - angles[1]])
        speed = np.clip(6.0 * gap, -pace, pace) + 0.5 * next(noise)
        action = stiff * 0.1 * (speed - seen[6:8]) if intent != "random" else 0.15 * next(noise)
        simulator.step(np.clip(action, -1, 1))


REACHER = World(
    "the fingertip is within 2 cm of the target",
    "vector",
    {"elsewhere": 0, "short": 0},
    _reacher,
    lambda parts: (length(parts["to_target"]) <= 0.02,),
)


def _fetch_reach(rng: Generator, intent: str) -> Iterator[State]:
    simulator = _simulator("FetchReach-v4")
    seen = simulator.reset(seed=int(rng.integers(2**31)))[0]
    noise = drift(rng, 4)
    for _ in range(rng.integers(20)):
        seen = simulator.step(next(noise))[0]
    middle = simulator.initial_gripper_xpos
    goal = apart(rng, middle - 0.15, middle + 0.15, [seen["achieved_goal"]], 0.11)
    simulator.goal, aim = goal, goal
    if intent == "elsewhere":
        aim = apart(rng, middle - 0.15, middle + 0.15, [goal], 0.1)
    if intent == "short":
        aim = beside(rng, goal, 0.065, 0.09)
    pace = rng.uniform(0.25, 0.5)
    while True:
        seen = {**seen, "desired_goal": goal}
        yield seen
        action = next(noise)
        if intent != "random":
            action = 0.12 * action
            action[:3] += clipped(8.0 * (aim - seen["achieved_goal"]), pace)
        seen = simulator.step(np.clip(action, -1, 1))[0]


def _near_goal(parts: Mapping[str, Numbers]) -> tuple[Bools, ...]:
    return (length(parts["achieved_goal"] - parts["desired_goal"]) <= 0.05,)


FETCH_REACH = World(
    "the gripper is within 5 cm of the desired goal", "record", {"elsewhere": 0, "short": 0}, _fetch_reach, _near_goal
)
