"""Tasks in the plane: a point in a maze, a point that has to stay, and a boat at its dock."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping

import numpy as np
from numpy.random import Generator

from .world import Bools, Numbers, State, World, apart, beside, clipped, drift, length, wrapped

MAZE = ("..#..", "..#..", ".....", ".#.#.", ".#...")
"""Free cells (".") and walls, each of one metre. Row 0 is the lowest."""
CELLS = [(x, y) for y, row in enumerate(MAZE) for x, cell in enumerate(row) if cell == "."]


def _cell(place: Numbers) -> tuple[int, int]:
    return int(np.floor(place[0])), int(np.floor(place[1]))


def _way(place: Numbers, target: Numbers) -> Numbers:
    """The next point to steer to on a shortest way through the cells."""
    start, end = _cell(target), _cell(place)
    towards = {start: start}
    queue = deque([start])
    while queue and end not in towards:
        x, y = queue.popleft()
        for cell in ((x + 1, y), (x - 1, y), (x, y + 1), (x, y - 1)):
            if cell in CELLS and cell not in towards:
                towards[cell] = (x, y)
                queue.append(cell)
    cell = towards[end]
    return target if start in (cell, end) else np.array(cell) + 0.5


def _maze_point(rng: Generator, intent: str) -> Iterator[State]:
    def somewhere() -> Numbers:
        return np.array(CELLS[rng.integers(len(CELLS))]) + rng.uniform(0.2, 0.8, 2)

    place, target = somewhere(), somewhere()
    while length(place - target) < 1.0:
        place = somewhere()
    velocity, pace, brake, wind = rng.normal(0.0, 0.2, 2), rng.uniform(0.9, 2.0), rng.uniform(2.0, 4.0), drift(rng, 2)
    aims = [target]
    if intent == "elsewhere":
        aims = [somewhere(), somewhere()]
    if intent == "short":
        aims = [beside(rng, target, 0.18, 0.35)]
    if intent == "too fast":
        pace, aims = rng.uniform(0.6, 1.0), [target, *(beside(rng, target, 0.0, 0.7) for _ in range(40))]
        aims[2::2] = [target] * 20
    while True:
        yield {"achieved_goal": place, "desired_goal": target, "velocity": velocity}
        if intent == "random":
            force = 4.0 * next(wind)
        else:
            aim = _way(place, aims[0]) if _cell(aims[0]) in CELLS else aims[0]
            slowly = aim is aims[0] and intent != "too fast"
            wish = clipped((aim - place) * (brake if slowly else 99.0), pace)
            force = 5.0 * (wish - velocity) + 0.6 * next(wind)
            if len(aims) > 1 and length(aims[0] - place) < (0.05 if intent == "too fast" else 0.3):
                aims.pop(0)
        velocity = clipped(velocity + 0.1 * force, 2.5)
        for axis in range(2):
            step = np.where(np.arange(2) == axis, 0.1 * velocity, 0.0)
            if _cell(place + step) in CELLS:
                place = place + step
            else:
                velocity = np.where(np.arange(2) == axis, 0.0, velocity)


def _rests_at_goal(parts: Mapping[str, Numbers]) -> tuple[Bools, ...]:
    return length(parts["achieved_goal"] - parts["desired_goal"]) <= 0.1, length(parts["velocity"]) <= 0.3


MAZE_POINT = World(
    "the point is within 0.1 of the desired goal, and its speed is at most 0.3",
    "record",
    {"elsewhere": 0, "too fast": 1, "short": 0},
    _maze_point,
    _rests_at_goal,
)


def _hold(rng: Generator, intent: str) -> Iterator[State]:
    place, velocity, target = rng.uniform(-2, 2, 2), rng.normal(0.0, 0.1, 2), rng.uniform(-1.5, 1.5, 2)
    wind, pace = drift(rng, 2, 0.8), rng.uniform(0.7, 1.5)
    aim, leaves = target, False
    if intent == "elsewhere":
        aim = apart(rng, -1.8 * np.ones(2), 1.8, [target], 0.8)
    if intent == "beside":
        aim = beside(rng, target, 0.4, 0.6)
    while True:
        air = next(wind)
        yield {
            "wind_x": air[0],
            "pos_x": place[0],
            "pos_y": place[1],
            "vel_x": velocity[0],
            "vel_y": velocity[1],
            "target_x": target[0],
            "target_y": target[1],
            "wind_y": air[1],
        }
        if intent == "random":
            force = 4.0 * air - velocity
        else:
            force = 5.0 * (clipped(1.8 * (aim - place), pace) - velocity) + 0.8 * air
        if intent == "leaves" and leaves != (length(place - target) <= (0.7 if leaves else 0.3)):
            leaves = not leaves
            aim = beside(rng, target, 1.0, 1.5) if leaves else target
        velocity = velocity + 0.1 * force
        place = place + 0.1 * velocity


def _stays(parts: Mapping[str, Numbers]) -> tuple[Bools, ...]:
    inside = np.hypot(parts["pos_x"] - parts["target_x"], parts["pos_y"] - parts["target_y"]) <= 0.25
    padded = np.concatenate([np.zeros(4, bool), inside])
    stays: Bools = np.logical_and.reduce([padded[n : n + len(inside)] for n in range(5)])
    return (stays,)


HOLD = World(
    "the place has been within 0.25 of the target in the last 5 states",
    "named",
    {"leaves": 0, "elsewhere": 0, "beside": 0},
    _hold,
    _stays,
)


def _two_fields(rng: Generator, intent: str) -> Iterator[State]:
    boat, heading, speed = rng.uniform(-5, 5, 2), rng.uniform(-np.pi, np.pi), 0.0
    dock = apart(rng, -4.0 * np.ones(2), 4.0, [boat], 2.0)
    dock_heading = rng.uniform(-2.0, 2.0)
    air, pace, turns = drift(rng, 4), rng.uniform(0.3, 0.5), rng.uniform(0.25, 0.5)
    aim, final = dock, dock_heading
    if intent == "elsewhere":
        aim = apart(rng, -4.0 * np.ones(2), 4.0, [dock], 2.0)
    if intent == "short":
        aim = beside(rng, dock, 0.9, 1.4)
    if intent == "askew":
        final = dock_heading + rng.choice([-1, 1]) * rng.uniform(0.6, 2.5)
    while True:
        noise = next(air)
        yield {
            "boat_x": boat[0],
            "boat_y": boat[1],
            "boat_heading": wrapped(heading),
            "boat_speed": speed,
            "wind_x": noise[2],
            "wind_y": noise[3],
            "dock_x": dock[0],
            "dock_y": dock[1],
            "dock_heading": dock_heading,
        }
        way = aim - boat
        if intent == "random":
            turn, wish = 0.4 * noise[0], 0.4 + 0.2 * noise[1]
        else:
            arrived = length(way) < 0.3
            course = final if arrived else np.arctan2(way[1], way[0])
            bend = wrapped(course - heading)
            turn = np.clip(0.5 * bend, -turns, turns) + 0.03 * noise[0]
            wish = 0.0 if arrived else min(pace, 0.4 * length(way)) * max(np.cos(bend), 0.0)
        heading = heading + turn
        speed = 0.4 * speed + 0.6 * float(wish)
        boat = boat + speed * np.array([np.cos(heading), np.sin(heading)]) + 0.01 * noise[2:]


def _docked(parts: Mapping[str, Numbers]) -> tuple[Bools, ...]:
    off: Numbers = np.hypot(parts["boat_x"] - parts["dock_x"], parts["boat_y"] - parts["dock_y"])
    turned: Numbers = np.abs(wrapped(parts["boat_heading"] - parts["dock_heading"]))
    return off <= 0.5, turned <= np.radians(15)


TWO_FIELDS = World(
    "the boat is within 0.5 of the dock, and its heading within 15 degrees of the dock's",
    "named",
    {"askew": 1, "elsewhere": 0, "short": 0},
    _two_fields,
    _docked,
)
