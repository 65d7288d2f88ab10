"""Tasks kept aside, which only judge a method: a drone, a crane, a peg and two heated tanks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from numpy.random import Generator

from .world import Bools, Numbers, State, World, apart, beside, clipped, drift, length


def _drone(rng: Generator, intent: str) -> Iterator[State]:
    pad, course = rng.uniform([-3, -3, 0], [3, 3, 1]), np.append(rng.uniform(-0.8, 0.8, 2), 0.0)
    place = apart(rng, [-5, -5, 2], [5, 5, 6], [pad], 3.0)
    velocity, noise, pace = rng.normal(0.0, 0.5, 3), drift(rng, 12), rng.uniform(1.5, 3.0)
    offset, brake, battery = np.zeros(3), rng.uniform(0.8, 1.6), rng.uniform(0.4, 1.0)
    if intent == "hovers":
        offset = np.array([0, 0, rng.uniform(0.45, 1.2)])
    if intent == "elsewhere":
        offset = np.append(beside(rng, np.zeros(2), 0.8, 3.0), 0.0)
    aim = offset
    while True:
        shake = next(noise)
        yield {
            "rotors": 400 + 30 * shake[:4],
            "velocity": velocity,
            "battery": battery,
            "pad": pad,
            "wind": shake[4:6],
            "place": place,
            "tilt": 0.05 * velocity[:2] + 0.02 * shake[6:8],
            "pad_velocity": course,
        }
        course = clipped(course + np.append(0.03 * shake[8:10], 0.0), 1.0)
        if intent == "random":
            wish = 2.0 * shake[9:]
        elif intent == "too fast":  # it flies through the pad and turns
            gap = pad + aim - place
            if length(gap) < 0.15 or length(gap) > 6.0:
                aim = np.zeros(3) if aim.any() else beside(rng, aim, 1.0, 2.0)
            wish = course + pace * gap / max(float(length(gap)), 1e-9)
        else:
            wish = course + clipped(brake * (pad + aim - place), pace)
        velocity = velocity + 0.6 * (wish - velocity) + 0.05 * shake[9:]
        place, pad = place + 0.1 * velocity, pad + 0.1 * course
        battery -= 0.002


def _landed(parts: Mapping[str, Numbers]) -> tuple[Bools, ...]:
    slip = length(parts["velocity"] - parts["pad_velocity"])
    return length(parts["place"] - parts["pad"]) <= 0.3, slip <= 0.35


DRONE = World(
    "the drone is within 0.3 of the pad, and its velocity within 0.35 of the pad's",
    "vector",
    {"too fast": 1, "elsewhere": 0, "hovers": 0},
    _drone,
    _landed,
)


def _crane(rng: Generator, intent: str) -> Iterator[State]:
    trolley, rope, swing, turn, top = rng.uniform(0, 10), rng.uniform(1, 4), rng.normal(0.0, 0.1), 0.0, 8.0
    site = rng.uniform([1, 0], [9, 3])
    while abs(site[0] - trolley) < 1.5:
        trolley = rng.uniform(0, 10)
    end = site.copy()
    if intent == "high":
        end[1] += rng.uniform(0.2, 1.0)
    if intent == "beside":
        end[0] += rng.choice([-1, 1]) * rng.uniform(0.4, 3.0)
    speed, noise, pace, late = 0.0, drift(rng, 6), rng.uniform(0.25, 0.5), rng.uniform(0.3, 3.0)
    while True:
        shake = next(noise)
        load = np.array([trolley + rope * np.sin(swing), top - rope * np.cos(swing)])
        yield {
            "hook/place": np.array([trolley, top - 0.9 * rope]),
            "hook/speed": speed,
            "load/place": load,
            "load/swing": swing,
            "rope/length": rope,
            "rope/tension": 9.8 * np.cos(swing) + 0.2 * shake[0],
            "site/place": site,
            "wind": 3.0 * shake[1:3],
        }
        wish, pull = 0.35 * shake[3], 0.25 * shake[4]
        if intent != "random":
            wish = float(np.clip(0.3 * (end[0] - load[0]), -pace, pace)) + 0.02 * shake[3]
            pull = float(np.clip(0.4 * (load[1] - end[1]), -0.3, 0.3)) * (abs(end[0] - load[0]) < late)
        before, speed = speed, 0.5 * speed + 0.5 * wish
        turn = 0.75 * turn - 0.15 * np.sin(swing) - 0.5 * (speed - before) / rope
        swing, trolley = swing + turn, float(np.clip(trolley + speed, 0, 10))
        rope = float(np.clip(rope + pull, 0.5, top))


def _lowered(parts: Mapping[str, Numbers]) -> tuple[Bools, ...]:
    across, up = np.abs(parts["load/place"] - parts["site/place"]).T
    return across <= 0.2, up <= 0.1


CRANE = World(
    "the load is within 0.2 of the site across, and within 0.1 of it in height",
    "record",
    {"high": 1, "beside": 0},
    _crane,
    _lowered,
)


def _peg(rng: Generator, intent: str) -> Iterator[State]:
    plate, hole = rng.uniform(-20, 20), rng.uniform(-30, 30, 2)
    other = apart(rng, -30 * np.ones(2), 30, [hole], 15.0)
    tip = np.append(apart(rng, -40 * np.ones(2), 40, [hole, other], 8.0), plate + rng.uniform(10, 40))
    tilt, noise, pace = rng.uniform(-0.3, 0.3, 2), drift(rng, 8), rng.uniform(2.0, 4.0)
    end, depth, lean = hole, rng.uniform(14, 18), np.zeros(2)
    if intent == "other hole":
        end = other
    if intent == "shallow":
        depth = rng.uniform(3, 8)
    if intent == "tilted":
        lean = beside(rng, lean, 0.16, 0.3)
    while True:
        shake = next(noise)
        inside = min(length(tip[:2] - hole), length(tip[:2] - other)) <= 3.0
        touches = tip[2] <= plate
        yield {
            "force_z": 4.0 * touches + 0.2 * shake[0],
            "tip_x": tip[0],
            "tip_y": tip[1],
            "tip_z": tip[2],
            "tilt_x": tilt[0],
            "tilt_y": tilt[1],
            "hole_x": hole[0],
            "hole_y": hole[1],
            "other_hole_x": other[0],
            "other_hole_y": other[1],
            "plate_z": plate,
            "grip": 12.0 + 0.1 * shake[1],
        }
        if intent == "random":
            move, tilt = 3.0 * shake[2:5], tilt + 0.05 * shake[5:7] - 0.1 * tilt
        else:
            over = length(end - tip[:2]) < 1.5
            height = plate - depth if over or (inside and touches) else max(plate + 4, tip[2] - pace / 2)
            move = clipped(0.4 * (np.append(end, height) - tip), pace) + 0.15 * shake[2:5]
            tilt = tilt + 0.12 * (lean - tilt) + 0.008 * shake[5:7]
        moved = tip + move
        sunk = tip[2] < plate
        if sunk and length(moved[:2] - tip[:2]) > 0 and inside:  # the wall of the hole keeps it
            nearest = hole if length(tip[:2] - hole) <= 3.0 else other
            moved[:2] = nearest + clipped(moved[:2] - nearest, 2.5)
        elif not inside:
            moved[2] = max(moved[2], plate)
        tip = moved


def _inserted(parts: Mapping[str, Numbers]) -> tuple[Bools, ...]:
    aside = np.hypot(parts["tip_x"] - parts["hole_x"], parts["tip_y"] - parts["hole_y"])
    deep: Bools = parts["plate_z"] - parts["tip_z"] >= 10.0
    near: Bools = np.asarray(aside <= 3.0)
    upright: Bools = np.asarray(np.hypot(parts["tilt_x"], parts["tilt_y"]) <= 0.1)
    return near, deep, upright


PEG = World(
    "the peg's tip is within 3 mm of the hole and at least 10 mm below the plate, and its tilt is at most 0.1",
    "named",
    {"other hole": 0, "shallow": 1, "tilted": 2},
    _peg,
    _inserted,
)


def _heat(rng: Generator, intent: str) -> Iterator[State]:
    warm = rng.uniform(20, 80, 2)
    while abs(warm[0] - warm[1]) < 8:
        warm = rng.uniform(20, 80, 2)
    common, noise, pace, slope = rng.uniform(25, 75), drift(rng, 8), rng.uniform(0.8, 2.0), np.zeros(2)
    end = np.array([common, common])
    if intent == "unequal":
        end[1] += rng.choice([-1, 1]) * rng.uniform(3.0, 20.0)
    ramp = rng.choice([-1, 1]) * rng.uniform(0.5, 1.0) if intent == "unsteady" else 0.0
    room = rng.uniform(15, 25)
    while True:
        shake = next(noise)
        yield {
            "temperature": warm,
            "heater": 0.05 * (warm - room) + slope + 0.05 * shake[:2],
            "room": room + 0.2 * shake[2],
            "flow": 1.0 + 0.1 * shake[3:5],
            "stirrer": 60.0 + shake[5],
        }
        end = end + ramp
        if not 20 < end[0] < 80:
            ramp = -ramp
        wish = 2.0 * shake[6:] if intent == "random" else np.clip(0.3 * (end - warm) + ramp, -pace, pace)
        slope = 0.4 * slope + 0.6 * wish
        warm = warm + slope + 0.02 * shake[6:]


def _equal(parts: Mapping[str, Numbers]) -> tuple[Bools, ...]:
    warm = parts["temperature"]
    change = np.abs(np.diff(warm, axis=0)).max(axis=1, initial=0.0)
    steady: Bools = np.concatenate([[False], change <= 0.2])
    return np.abs(warm[:, 0] - warm[:, 1]) <= 1.0, steady


HEAT = World(
    "the two temperatures differ by at most 1, and neither has changed by more than 0.2 since the state before",
    "record",
    {"unsteady": 1, "unequal": 0},
    _heat,
    _equal,
)
