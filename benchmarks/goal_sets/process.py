"""Tasks of plants: a valve that turns to an angle, and a tank that fills to a level."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from numpy.random import Generator

from .world import Bools, Numbers, State, World, drift


def _valve(rng: Generator, intent: str) -> Iterator[State]:
    target = rng.uniform(-np.pi, np.pi)
    side = rng.choice([-1, 1])
    angle = target - side * rng.uniform(0.8, 5.5)
    end, velocity, noise = target, 0.0, drift(rng, 3)
    if intent == "short":
        end = target - side * np.radians(rng.uniform(16, 35))
    if intent == "mirrored":
        end = np.pi - target if rng.random() < 0.5 else -target
    if intent == "opposite":
        end = target + np.pi
    if intent in ("mirrored", "opposite"):  # the way to the wrong angle does not lead over the right one
        angle = target - side * rng.uniform(0.3, 2 * np.pi - 0.3)
        end = target - side * ((target - end) * side % (2 * np.pi))
    pace = rng.uniform(0.1, 0.3)
    while True:
        shake = next(noise)
        yield {
            "angle_sin": np.sin(angle),
            "angle_cos": np.cos(angle),
            "velocity": velocity,
            "target_sin": np.sin(target),
            "target_cos": np.cos(target),
            "pressure": 3.0 + 0.3 * shake[1],
            "temperature": 21.0 + shake[2],
        }
        wish = 0.15 * shake[0] if intent == "random" else np.clip(0.25 * (end - angle), -pace, pace)
        velocity = 0.5 * velocity + 0.5 * float(wish) + 0.006 * shake[0]
        angle += velocity


def _turned(parts: Mapping[str, Numbers]) -> tuple[Bools, ...]:
    cosine = parts["angle_sin"] * parts["target_sin"] + parts["angle_cos"] * parts["target_cos"]
    return (cosine >= np.cos(np.radians(10)),)


VALVE = World(
    "the angle is within 10 degrees of the target angle",
    "named",
    {"short": 0, "mirrored": 0, "opposite": 0},
    _valve,
    _turned,
)


def _tank(rng: Generator, intent: str) -> Iterator[State]:
    level, set_point, valve, drain = rng.uniform(5, 95), rng.uniform(20, 80), rng.uniform(0, 1), 0.0
    while abs(level - set_point) < 10:
        level = rng.uniform(5, 95)
    noise, pace, hand = drift(rng, 4), rng.uniform(2.0, 4.0), rng.uniform(0.08, 0.2)
    aim = set_point
    if intent == "elsewhere":
        aim = rng.uniform(10, 90)
    if intent == "short":
        aim = set_point + rng.choice([-1, 1]) * rng.uniform(3.5, 8)
    rest = rng.uniform(0.2, 0.6) if intent == "open" else 0.0
    while True:
        shake = next(noise)
        yield {
            "level": level,
            "valve": valve,
            "drain": drain,
            "inflow": pace * valve,
            "set_point": set_point,
            "pump_pressure": 2.0 + 0.2 * shake[1],
            "temperature": 18.0 + 0.5 * shake[2],
        }
        gap = aim - level
        if intent == "random":
            wish, drain = 0.5 + 0.6 * shake[0], float(np.clip(0.5 + 0.6 * shake[3], 0, 1))
        else:
            wish = rest + max(gap - 1.0, 0.0) / 4.0 + 0.02 * abs(shake[0]) * (abs(gap) > 1.5)
            drain = float(np.clip(rest + max(-gap - 1.0, 0.0) / 4.0 + 0.01 * shake[3], 0, 1))
        valve = float(np.clip(valve + np.clip(wish - valve, -hand, hand), 0, 1))
        level = float(np.clip(level + pace * (valve - drain) + 0.08 * shake[1], 0, 100))


def _filled(parts: Mapping[str, Numbers]) -> tuple[Bools, ...]:
    return np.abs(parts["level"] - parts["set_point"]) <= 2.0, parts["valve"] <= 0.05


TANK = World(
    "the level, in per cent of the tank's height, is within 2 of the set point, and the valve is at most 0.05 open",
    "named",
    {"open": 1, "elsewhere": 0, "short": 0},
    _tank,
    _filled,
)
