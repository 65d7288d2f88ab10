"""Ten data sets from which a careful user would accept a reward, made by somebody who knows the rules of the audit.

Many look suspicious: they have clocks, goals that stay, constants, episodes of unequal length, and bytes.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from grace_irl.demos.trajectory import Demonstration, Demonstrations, Metadata, Trajectory
from grace_irl.rl.collect import collect
from warning_sets.kinds import WarningSet
from warning_sets.seen_material import gathered, record, vector, way


def lane_with_clock() -> WarningSet:
    """Rides that keep the lane, and rides that weave. States have the seconds since the start.

    Rides of both sides have the same lengths, so the clock says nothing. The lane's offset says all, and a reward for
    a small offset and a small yaw is right.
    """
    rng = np.random.default_rng(101)

    def ride(steady: bool) -> Trajectory:
        states = int(rng.integers(40, 60))
        time = 0.1 * np.arange(states)
        weave = 0.0 if steady else rng.uniform(0.9, 1.3)
        phase, pace = rng.uniform(0, 2 * np.pi), rng.uniform(1.0, 2.0)
        offset = weave * np.sin(pace * time + phase) + rng.normal(0, 0.12, states)
        yaw = weave * pace * np.cos(pace * time + phase) / 4 + rng.normal(0, 0.04, states)
        return vector({"seconds": time, "speed": rng.normal(14, 1.5, states), "lane_offset": offset, "yaw": yaw})

    sides = [[ride(steady) for _ in range(36)] for steady in (True, False)]
    found = gathered(*sides, label="all", fields=("seconds", "speed", "lane_offset", "yaw"))
    return WarningSet("lane-with-clock", found, frozenset())


def reaching_goals() -> WarningSet:
    """Reaching in the form of Gymnasium's goal environments. The desired goal stays the same within an episode.

    Goals of both sides come from one distribution, and negatives pass close to theirs without stopping there. A reward
    for a small distance of the achieved from the desired goal is right.
    """
    rng = np.random.default_rng(102)

    def reach(reached: bool) -> Trajectory:
        goal = rng.uniform(-0.5, 0.5, 3)
        away = rng.normal(0, 1, 3)
        away /= np.linalg.norm(away)
        miss = rng.uniform(0.0, 0.015) if reached else rng.uniform(0.07, 0.25)
        before = goal + away * rng.uniform(0.08, 0.12)
        states = int(rng.integers(12, 30))
        hand = way(rng, rng.uniform(-0.8, 0.8, 3), before, states, 0.01)
        hand = np.concatenate([hand, [goal + away * miss]])
        speed = np.diff(hand, axis=0, prepend=hand[:1])
        return record(
            {
                "observation": np.concatenate([hand, speed], axis=1),
                "achieved_goal": hand,
                "desired_goal": np.tile(goal, (len(hand), 1)),
            }
        )

    sides = [[reach(reached) for _ in range(36)] for reached in (True, False)]
    return WarningSet("reaching-goals", gathered(*sides, label="last"), frozenset())


def door_with_time_limit() -> WarningSet:
    """A robot closes a door until it latches. Successes end early, failures run into the limit of 60 steps.

    The lengths of the sides differ, and states count the steps, as in many environments. Yet what parts a goal from all
    else is the latch, and it is one number of the state. A reward for it is right.
    """
    rng = np.random.default_rng(103)

    def close(latched: bool) -> Trajectory:
        states = int(rng.integers(15, 45)) if latched else 61
        angle = np.linspace(rng.uniform(0.8, 1.4), 0.02, states) + rng.normal(0, 0.02, states)
        if not latched:
            angle = np.maximum(angle, rng.uniform(0.03, 0.3)) + 0.1 * np.sin(np.arange(states) / rng.uniform(2, 5))
        latch = np.abs(rng.normal(0.0, 0.02, states))
        if latched:
            latch[-1], angle[-1] = 1.0, 0.0
        columns = {"step": np.arange(states), "angle": angle, "latch": latch, "push": rng.normal(2, 0.5, states)}
        return vector(columns)

    sides = [[close(latched) for _ in range(36)] for latched in (True, False)]
    return WarningSet(
        "door-with-time-limit", gathered(*sides, label="last", fields=("step", "angle", "latch", "push")), frozenset()
    )


def _babyai(level: str, seed: int, count: int) -> Demonstrations:
    """Experts of a level, and half as many random episodes and near misses each."""
    experts = collect(level, "bot", count, "expert", seed=seed)
    random = collect(level, "random", count // 2, "negative", seed=seed + 1)
    near = collect(level, "bot", count // 2, "negative", seed=seed + 2, near_miss=True)
    return replace(experts, items=(*experts.items, *random.items, *near.items))


def local_with_near_misses() -> WarningSet:
    """BabyAI, "go to the blue key" among other things. Half of the negatives go to another thing than they should.

    So the data show that the words matter, and with 40 experts every word of colour and type occurs several times.
    """
    return WarningSet("local-with-near-misses", _babyai("BabyAI-GoToLocalS8N4-v0", 104, 40), frozenset())


def red_or_blue_ball() -> WarningSet:
    """BabyAI, "go to the red ball" or "go to the blue ball", with other things around, and with near misses.

    There are but two instructions, and both occur often on both sides, so a reward that follows them is well tested.
    """
    return WarningSet("red-or-blue-ball", _babyai("BabyAI-GoToRedBlueBall-v0", 105, 32), frozenset())


def docking_in_many_words() -> WarningSet:
    """A capsule docks at the one station that there is. Operators say so in five ways that mean the same.

    Every episode that fulfils one wording fulfils all, so a reward that does not read the words is right. Half of the
    negatives touch the station too fast or out of line, and so come close.
    """
    rng = np.random.default_rng(106)
    wordings = (
        "dock with the station",
        "dock at the station",
        "connect the capsule to the station",
        "join the capsule and the station",
        "complete the docking",
    )

    def approach(docked: bool) -> Trajectory:
        states = int(rng.integers(20, 40))
        touching = docked or rng.random() < 0.5
        reach = np.linspace(rng.uniform(15, 25), 0.6 if touching else rng.uniform(1, 8), states - 1)
        distance = np.append(reach, 0.0 if touching else reach[-1] + 0.2)
        speed = np.linspace(1.0, 0.12, states) + rng.normal(0, 0.01, states)
        angle = np.linspace(rng.uniform(5, 15), 1.0, states) + np.abs(rng.normal(0, 0.3, states))
        if touching and not docked:
            fast = rng.random() < 0.5
            speed[-6:] += rng.uniform(0.4, 0.8) if fast else 0.0
            angle[-6:] += 0.0 if fast else rng.uniform(6, 15)
        return vector({"distance": distance, "closing_speed": speed, "angle": angle}, str(rng.choice(wordings)))

    sides = [[approach(docked) for _ in range(40)] for docked in (True, False)]
    found = gathered(*sides, label="last", fields=("distance", "closing_speed", "angle"))
    return WarningSet("docking-in-many-words", found, frozenset())


def hover_with_many_masses() -> WarningSet:
    """A drone that hovers, and one that swings. Mass and drag are drawn for each episode and stand in the state.

    Both sides draw them in the same way, and gravity is one constant everywhere, so none of the three tells the sides
    apart. A reward for a small tilt and a small speed is right.
    """
    rng = np.random.default_rng(107)

    def hover(calm: bool) -> Trajectory:
        states, size = int(rng.integers(30, 60)), 1.0 if calm else rng.uniform(4, 6)
        columns = {
            "mass": rng.uniform(0.8, 1.4),
            "drag": rng.uniform(0.05, 0.2),
            "gravity": 9.81,
            "tilt": size * np.abs(rng.normal(0, 0.02, states)),
            "speed": size * np.abs(rng.normal(0.05, 0.03, states)),
            "height": rng.normal(2.0, 0.05 * size, states),
        }
        return vector(columns)

    sides = [[hover(calm) for _ in range(36)] for calm in (True, False)]
    fields = ("mass", "drag", "gravity", "tilt", "speed", "height")
    return WarningSet("hover-with-many-masses", gathered(*sides, label="all", fields=fields), frozenset())


def clearing_the_table() -> WarningSet:
    """A robot clears a table. An expert takes one dish at every step of the record, until none is left.

    The number of dishes falls evenly, as a clock does, but it is the task itself. Negatives drop dishes, put some back
    or stop early, and end with dishes on the table. A reward for an empty table is right. What the robot says is text.
    """
    rng = np.random.default_rng(108)

    def clear(cleared: bool) -> Trajectory:
        start = int(rng.integers(6, 14))
        left = np.arange(start, -1, -1)
        if not cleared:
            moves = rng.choice([-1, 0, 1], int(rng.integers(6, 16)), p=[0.6, 0.2, 0.2])
            left = np.maximum(start + np.concatenate([[0], np.cumsum(moves)]), 1)
        said = [f"{count} to go" if count else "done" for count in left.tolist()]
        states = len(left)
        return record(
            {
                "dishes_left": left,
                "arm": rng.uniform(-1, 1, (states, 4)),
                "battery": rng.uniform(0.4, 1.0) - 0.004 * np.arange(states),
                "said": said,
            }
        )

    sides = [[clear(cleared) for _ in range(40)] for cleared in (True, False)]
    return WarningSet("clearing-the-table", gathered(*sides, label="last"), frozenset())


def bytes_of_a_motor() -> WarningSet:
    """Telemetry of a motor, 24 bytes of 0 to 255 as its bus sends them. Experts drive gently, negatives harshly.

    The bytes are no picture: each is one measured quantity. Harsh driving shows in current, heat and vibration. All
    other bytes are alike. A reward for low values of the three is right.
    """
    rng = np.random.default_rng(109)
    fields = ("current", "heat", "vibration", *(f"channel_{number}" for number in range(21)))

    def drive(gentle: bool) -> Trajectory:
        states = int(rng.integers(30, 60))
        found = rng.integers(0, 256, (states, 24)).astype(np.float64)
        means = np.array([70.0, 80.0, 40.0]) + (0.0 if gentle else 1.0) * np.array([55.0, 50.0, 60.0])
        found[:, :3] = np.clip(np.rint(rng.normal(means, 15.0, (states, 3))), 0, 255)
        return Trajectory(found)

    sides = [[drive(gentle) for _ in range(36)] for gentle in (True, False)]
    return WarningSet("bytes-of-a-motor", gathered(*sides, label="all", fields=fields), frozenset())


def parking_and_waiting() -> WarningSet:
    """A car parks, and waits in the bay. All states in which it stands in the bay in line are marked as goals.

    Episodes are long and short on both sides. Negatives stop in the bay askew, stop beside it, or drive through it. A
    reward for standing in the bay in line is right.
    """
    rng = np.random.default_rng(110)

    def drive(parked: bool) -> Demonstration:
        moving, waiting = int(rng.integers(8, 50)), int(rng.integers(3, 15))
        fault = "" if parked else str(rng.choice(["askew", "beside", "through"]))
        end = rng.normal(0, 0.05, 2) + (rng.choice([-1, 1]) * rng.uniform(1.2, 2.0) if fault == "beside" else 0.0)
        place = way(rng, rng.uniform(-8, 8, 2), end, moving, 0.1)
        place = np.concatenate([place, np.repeat(place[-1:], waiting, axis=0)])
        askew = rng.uniform(0.4, 0.8) if fault == "askew" else rng.uniform(0.0, 0.05)
        heading = np.concatenate([np.linspace(rng.uniform(0.5, 1.5), askew, moving), np.full(waiting, askew)])
        speed = np.concatenate([rng.uniform(0.8, 2.5, moving), np.zeros(waiting)])
        if fault == "through":
            speed[moving:] = rng.uniform(0.8, 1.5, waiting)
            place[moving:] += np.outer(np.arange(waiting) * 0.8, [0.0, 1.0])
        states = np.column_stack([place, heading, speed])
        goals = tuple(range(moving, moving + waiting)) if parked else None
        return Demonstration(Trajectory(states), "expert" if parked else "negative", goals=goals)

    items = tuple(drive(parked) for parked in (True, False) for _ in range(40))
    fields = ("bay_x", "bay_y", "heading_error", "speed")
    found = Demonstrations(Metadata("vector", fields, label="goal"), items)
    return WarningSet("parking-and-waiting", found, frozenset())


SOUND = (
    lane_with_clock,
    reaching_goals,
    door_with_time_limit,
    local_with_near_misses,
    red_or_blue_ball,
    docking_in_many_words,
    hover_with_many_masses,
    clearing_the_table,
    bytes_of_a_motor,
    parking_and_waiting,
)
