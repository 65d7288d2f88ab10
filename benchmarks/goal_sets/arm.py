"""A task of a made-up arm: 60 numbers without names, of which the goal needs seven."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from numpy.random import Generator

from .world import Bools, Numbers, State, World, apart, clipped, drift, length

TURNS = (2, 1, 2, 1, 2, 1, 2)
"""The axis of each joint: 1 for y, 2 for z."""
LINKS = (0.2, 0.2, 0.2, 0.2, 0.15, 0.1, 0.05)
CAMERA = np.array([1.2, -0.4, 0.9, 0.35, -0.2, 1.57])
TABLE = 0.02
"""Height of things on the table."""


def _hand(angles: Numbers) -> tuple[Numbers, Numbers]:
    """The place of the hand, and its derivative by each joint as columns."""
    turned, place, joints, axes = np.eye(3), np.zeros(3), [], []
    for angle, turn, link in zip(angles, TURNS, LINKS, strict=True):
        joints.append(place)
        axes.append(turned[:, turn])
        c, s = np.cos(angle), np.sin(angle)
        turned = turned @ np.array(
            [[c, -s, 0], [s, c, 0], [0, 0, 1]] if turn == 2 else [[c, 0, s], [0, 1, 0], [-s, 0, c]]
        )
        place = place + link * turned[:, 2]
    return place, np.array([np.cross(axis, place - joint) for axis, joint in zip(axes, joints, strict=True)]).T


def _on_table(rng: Generator, others: list[Numbers], least: float) -> Numbers:
    return apart(rng, [0.2, -0.4, TABLE], [0.6, 0.4, TABLE], others, least)


def _arm(rng: Generator, intent: str) -> Iterator[State]:
    angles = np.array([0.0, 0.7, 0.0, 1.0, 0.0, 0.8, 0.0]) + rng.normal(0.0, 0.25, 7)
    things = [_on_table(rng, [], 0.0)]
    for _ in range(3):
        things.append(_on_table(rng, things, 0.15))
    goal = things.pop()
    velocities, moved, opening, held = np.zeros(7), np.zeros(3), rng.uniform(0.3, 1.0), -1
    noise, ticks, pace = drift(rng, 13), int(rng.integers(50)), rng.uniform(0.03, 0.06)
    wanted = 1 if intent == "other object" else 0
    aim = _on_table(rng, [goal], 0.12) if intent == "elsewhere" else goal + rng.uniform(-0.015, 0.015, 3)
    carried = intent == "only hand"
    wander, until = _on_table(rng, [], 0.0), 0
    while True:
        hand, slopes = _hand(angles)
        shake = next(noise)
        yield {
            "sensors": shake[:5],
            "goal": goal,
            "sines": np.sin(angles),
            "distractor_2": things[2],
            "opening": opening,
            "velocities": velocities,
            "camera": CAMERA,
            "object_velocity": moved,
            "hand": hand,
            "cosines": np.cos(angles),
            "clock": 0.1 * ticks,
            "object": things[0],
            "angles": angles,
            "force": 2.0 * (held >= 0) + 0.1 * shake[5],
            "distractor_1": things[1],
        }
        ticks += 1
        if intent == "random":
            if ticks > until:
                wander, until = rng.uniform([0.2, -0.4, 0.0], [0.6, 0.4, 0.5]), ticks + int(rng.integers(5, 20))
                grip = rng.random() < 0.5
            target, close = wander, grip
        elif held < 0 and not carried:
            target, close = things[wanted], bool(length(hand - things[wanted]) < 0.02)
        else:
            carried = True
            arrived = length(hand - aim) < 0.02
            target = aim + np.array([0, 0, min(0.15, 0.5 * length((hand - aim)[:2]))])
            close = held >= 0 and not (arrived and intent != "never opens")
        velocities = slopes.T @ np.linalg.solve(
            slopes @ slopes.T + 1e-3 * np.eye(3), clipped(0.6 * (target - hand), pace) + 0.004 * shake[6:9]
        )
        velocities = clipped(velocities, 0.5) + 0.01 * rng.normal(size=7)
        angles = angles + velocities
        opening = float(np.clip(opening + (-0.2 if close else 0.15) + 0.02 * shake[9], 0, 1))
        before, place = things[0], _hand(angles)[0]
        if held < 0 and close and opening < 0.3:
            near = [n for n in range(3) if length(things[n] - place) < 0.04]
            held = near[0] if near else -1
        if opening > 0.4:
            held = -1
        for number in range(3):
            fallen = np.maximum(things[number] - [0, 0, 0.05], [-9, -9, TABLE])
            things[number] = place if number == held else fallen
        moved = things[0] - before


def _placed(parts: Mapping[str, Numbers]) -> tuple[Bools, ...]:
    return length(parts["object"] - parts["goal"]) <= 0.05, parts["opening"][:, 0] >= 0.5


ARM = World(
    "the object is within 5 cm of the goal place, and the hand is at least half open",
    "vector",
    {"elsewhere": 0, "never opens": 1, "other object": 0, "only hand": 0},
    _arm,
    _placed,
)
