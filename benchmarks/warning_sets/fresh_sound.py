"""Ten sound data sets: greenhouses, lifts, ferries, tills and others. A reward from each judges new episodes well."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from grace_irl.demos.trajectory import Trajectory
from warning_sets.assembly import assembled, babyai, episode
from warning_sets.bodies import Rng, apart, drift, glide
from warning_sets.kinds import WarningSet


def greenhouse() -> WarningSet:
    """Greenhouses whose air should follow a wanted temperature through day and night.

    Good ones stay within a degree of it; the negatives are at least a degree and a half off, too warm or too cold. The
    wanted temperature differs between houses and hours, and every hour, every bay and every wanted temperature appears
    on both sides. The distance to the wanted temperature is in every state, so a reward for it carries over.
    """
    rng = np.random.default_rng(72_001)
    return assembled(
        "greenhouse",
        [_greenhouse(rng, good=True) for _ in range(26)],
        [_greenhouse(rng, good=False) for _ in range(26)],
        label="all",
    )


def _greenhouse(rng: Rng, *, good: bool) -> Trajectory:
    hours = (rng.integers(24) + np.arange(rng.integers(24, 60))) % 24
    wanted = rng.uniform(15, 22) - 2 * np.cos(2 * np.pi * (hours - 2) / 24)
    wander = np.tanh(drift(rng, len(hours)))
    off = 0.9 * wander if good else rng.choice([-1, 1]) * rng.uniform(2.2, 5) + 0.5 * wander
    return episode(
        {
            "air_C": (wanted + off).round(2),
            "wanted_C": wanted.round(2),
            "humidity_pct": (70 + 8 * drift(rng, len(hours))).round(1),
            "vent_pct": (50 + 20 * drift(rng, len(hours))).clip(0, 100).round(),
            "hour": hours,
            "bay": np.full(len(hours), rng.integers(1, 9)),
            "glass_m2": np.full(len(hours), 420),
        }
    )


def lift_levelling() -> WarningSet:
    """A lift that stops level with the ordered floor and opens its doors.

    The negatives open their doors at another floor, or a hand's breadth above or below the right one, or stand level
    with doors that jam. The ordered floor's height is in every state and varies on both sides. Height, order and doors
    say all that matters.
    """
    rng = np.random.default_rng(72_002)
    return assembled(
        "lift-levelling",
        [_lift(rng, "level") for _ in range(30)],
        [_lift(rng, ("other floor", "uneven", "jammed")[number % 3]) for number in range(30)],
        label="last",
    )


def _lift(rng: Rng, outcome: str) -> Trajectory:
    """One ride that ends "level", at an "other floor", "uneven", or with doors "jammed"."""
    floors = 3.2 * np.arange(10)
    start, ordered, other = rng.choice(10, 3, replace=False)
    stop = float(floors[other if outcome == "other floor" else ordered]) + float(rng.normal(0, 0.003))
    if outcome == "uneven":
        stop += float(rng.choice([-1, 1]) * rng.uniform(0.08, 0.3))
    height, speed = float(floors[start]), 0.0
    rows = [(height, speed, 0.0)]
    while abs(stop - height) > 0.004:
        speed = float(np.clip(0.6 * (stop - height), max(-1.6, speed - 0.5), min(1.6, speed + 0.5)))
        height += speed
        rows.append((height, speed, 0.0))
    doors = np.linspace(0.25, 1, 4) * (rng.uniform(0.1, 0.5) if outcome == "jammed" else 1.0)
    rows += [(height, 0.0, float(door)) for door in doors]
    heights, speeds, opened = np.array(rows).T
    return episode(
        {
            "cabin_m": (heights + rng.normal(0, 0.001, len(rows))).round(3),
            "ordered_m": np.full(len(rows), floors[ordered].round(1)),
            "speed": (speeds + rng.normal(0, 0.005, len(rows))).round(3),
            "door_open": opened.round(2),
            "load_kg": np.full(len(rows), rng.integers(60, 600)),
        },
        ended=outcome == "level",
    )


def tray_loading() -> WarningSet:
    """A robot arm that lays a part on the tray that the order names, and lets go of it.

    The negatives lay the part on the other tray or beside the right one, or still hold it above the tray. Both trays
    lie elsewhere in each episode and are in every state. Success is a small distance from part to tray, with open
    fingers.
    """
    rng = np.random.default_rng(72_003)
    return assembled(
        "tray-loading",
        [_loading(rng, "laid") for _ in range(30)],
        [_loading(rng, ("other tray", "beside", "held")[number % 3]) for number in range(33)],
        label="last",
    )


def _loading(rng: Rng, outcome: str) -> Trajectory:
    """One run that ends with the part "laid" on the tray, on the "other tray", "beside" it, or "held" above it."""
    part = rng.uniform(-0.4, 0.4, 2)
    tray = apart(rng, [part], -0.4, 0.4, 2, 0.15)
    other = apart(rng, [part, tray], -0.4, 0.4, 2, 0.15)
    goal = other if outcome == "other tray" else tray
    if outcome == "beside":
        angle = rng.uniform(0, 2 * np.pi)
        goal = tray + rng.uniform(0.06, 0.14) * np.array([np.cos(angle), np.sin(angle)])
    lay, hover = 0.02, rng.uniform(0.1, 0.16)
    places = [np.append(part, lay), np.append(part, hover), np.append(goal, hover)]
    if outcome != "held":
        places.append(np.append(goal, lay))
    fetch = glide(rng, np.append(rng.uniform(-0.4, 0.4, 2), 0.3), places[0], 0.06, 0.012)
    carried = fetch[-1:]
    for place in places[1:]:
        carried = np.concatenate([carried, glide(rng, carried[-1], place, 0.05, 0.012)])
    released = outcome != "held"
    rest = carried[-1:] + np.array([0, 0, 0.04 * released])
    steps = len(fetch) + len(carried) + 1
    gap = np.full(steps, 0.012)
    gap[: len(fetch)] = 0.08
    if released:
        gap[-1] = 0.08
    return episode(
        {
            "gripper": np.concatenate([fetch, carried, rest]).round(4),
            "part": np.concatenate([np.tile(places[0], (len(fetch), 1)), carried, carried[-1:]]).round(4),
            "tray": np.tile(np.append(tray, lay).round(4), (steps, 1)),
            "other_tray": np.tile(np.append(other, lay).round(4), (steps, 1)),
            "finger_gap": (gap + rng.normal(0, 0.001, steps)).round(4),
        }
    )


def dosing() -> WarningSet:
    """A valve that doses the ordered mass of powder and closes.

    The negatives close too early or too late, some by a few grams only, and miss the order by more than the tolerance
    of 2 g. Orders range widely on both sides. Dosed mass, order and flow say all that matters; the shift's clock and
    the hopper's filling run on both sides alike.
    """
    rng = np.random.default_rng(72_004)
    misses = [rng.choice([-1, 1]) * rng.uniform(*((6, 14), (14, 70))[number % 2]) for number in range(32)]
    return assembled(
        "dosing",
        [_dosing(rng, rng.uniform(-1.2, 1.2)) for _ in range(32)],
        [_dosing(rng, float(miss)) for miss in misses],
        label="last",
        fields=("ordered_g", "dosed_g", "flow_g_s", "valve_pct", "hopper_kg", "shift_s"),
    )


def _dosing(rng: Rng, miss: float) -> Trajectory:
    """One dosing that ends `miss` grams above the order."""
    ordered = float(rng.integers(180, 900))
    end, dosed, rows = ordered + miss, 0.0, []
    clock, hopper = float(rng.integers(0, 28_000)), rng.uniform(5, 40)
    while True:
        left = end - dosed
        valve = 0.0 if left < 0.3 else float(np.clip(left / 1.5, 4, 80))
        flow = min(valve * rng.uniform(0.95, 1.05), left) if valve else 0.0
        rows.append([ordered, dosed, flow, valve, hopper - dosed / 1000, clock])
        if not valve:
            return episode(np.array(rows).round(2))
        dosed += flow
        clock += 1


def supermarket_tills() -> WarningSet:
    """Supermarkets that open as many tills as the customers need.

    Good ones keep the wait below two minutes and the tills busy for most of the time. The negatives open too few tills,
    so that customers wait for minutes, or too many, so that half of the cashiers sit idle. Busy and quiet hours, and
    any number of tills, appear on both sides. Two thresholds carry over.
    """
    rng = np.random.default_rng(72_005)
    return assembled(
        "supermarket-tills",
        [_tills(rng, 0.62, 0.82) for _ in range(28)],
        [_tills(rng, *((0.25, 0.48), (0.92, 0.97))[number % 2]) for number in range(28)],
        label="all",
        fields=("wait_s", "idle_share", "open_tills", "customers_per_min", "minute_of_day"),
    )


def _tills(rng: Rng, low: float, high: float) -> Trajectory:
    """Some hours in which the cashiers are busy for a share of the time between `low` and `high`."""
    steps = int(rng.integers(20, 50))
    busy = (low + high) / 2 + (high - low) / 2 * np.tanh(drift(rng, steps))
    tills = np.repeat(rng.integers(2, 9, 5), 10)[:steps]
    wait = 25 * busy / (1 - busy) * rng.uniform(0.9, 1.1, steps)
    idle = 1 - busy + rng.normal(0, 0.01, steps)
    minute = rng.integers(480, 1000) + 5 * np.arange(steps)
    return episode(np.stack([wait.round(), idle.round(3), tills, (busy * tills / 1.2).round(2), minute], 1))


def ferry() -> WarningSet:
    """A ferry that comes to rest at its berth.

    The negatives come to rest at another berth or some metres off, or reach the berth too fast and ram it. There are
    four berths, each the right one in some episodes of both sides, and its place is in every state. Distance and speed
    tell the sides apart, and the heading does not.
    """
    rng = np.random.default_rng(72_006)
    return assembled(
        "ferry",
        [_crossing(rng, "moored") for _ in range(32)],
        [_crossing(rng, ("other berth", "off", "rammed")[number % 3]) for number in range(33)],
        label="last",
        fields=("x_m", "y_m", "berth_x_m", "berth_y_m", "speed_kn", "heading_deg", "fuel_pct"),
    )


def _crossing(rng: Rng, outcome: str) -> Trajectory:
    """One crossing that ends "moored", at an "other berth", some metres "off", or with the berth "rammed"."""
    berths = np.array([[0.0, 0.0], [40.0, 5.0], [80.0, 5.0], [120.0, -10.0]])
    right, wrong = rng.choice(4, 2, replace=False)
    goal = berths[wrong if outcome == "other berth" else right] + rng.uniform(-1, 1, 2)
    if outcome == "off":
        angle = rng.uniform(0, np.pi)
        goal = goal + rng.uniform(6, 18) * np.array([np.cos(angle), np.sin(angle)])
    place = np.array([rng.uniform(-40, 160), rng.uniform(150, 260)])
    rows: list[list[float]] = []
    fuel, slowest = rng.uniform(30, 95), rng.uniform(1.2, 3) if outcome == "rammed" else 0.05
    while True:
        gap = goal - place
        distance = float(np.linalg.norm(gap))
        speed = float(np.clip(0.12 * distance, slowest, 9)) * rng.uniform(0.95, 1.05)
        heading = np.degrees(np.arctan2(gap[0], gap[1])) % 360 if distance > 5 else rows[-1][5] + rng.normal(0, 3)
        rows.append([*place, *berths[right], speed, heading, fuel])
        if distance < 0.6:
            return episode(np.array(rows).round(2))
        place = place + gap / distance * min(distance, max(2 * speed, 0.3))
        fuel -= 0.02 * speed


def irrigation() -> WarningSet:
    """Fields of several soils that are watered well, too little or too much.

    A plant does well between its soil's wilting point and the soil's field capacity; both are in every state and vary
    on both sides. The negatives stay below the one or above the other, some of them only just. What is wet for sand is
    dry for clay, so the two distances count, and they carry over to any soil between these.
    """
    rng = np.random.default_rng(72_007)
    return assembled(
        "irrigation",
        [_watering(rng, "well") for _ in range(30)],
        [_watering(rng, ("dry", "soaked")[number % 2]) for number in range(30)],
        label="all",
    )


def _watering(rng: Rng, care: str) -> Trajectory:
    """Days of a field that is watered "well", or kept "dry" or "soaked"."""
    days = int(rng.integers(15, 45))
    wilting, span, wander = rng.uniform(0.08, 0.2), rng.uniform(0.12, 0.2), np.tanh(drift(rng, days))
    if care == "well":
        moisture = wilting + span * (0.5 + 0.38 * wander)
    elif care == "dry":
        moisture = wilting - rng.uniform(0.03, 0.06) + 0.015 * wander
    else:
        moisture = wilting + span + rng.uniform(0.03, 0.1) + 0.015 * wander
    return episode(
        {
            "moisture": moisture.round(3),
            "wilting_point": np.full(days, np.round(wilting, 3)),
            "field_capacity": np.full(days, np.round(wilting + span, 3)),
            "soil_C": (17 + 2 * drift(rng, days)).round(1),
            "day": rng.integers(90, 220) + np.arange(days),
        }
    )


def pick_up_the_named() -> WarningSet:
    """BabyAI's bot picks up the thing that the instruction names by colour, by type or by both, among five things.

    The negatives pick up another thing of the same room, or walk at random. The named thing is gone from the floor
    after an expert's episode, and lies there after a negative one.
    """
    return babyai("pick-up-the-named", "PickupDist", seed=72_008, experts=40, random=14, random_steps=30, near=30)


def open_the_named_door() -> WarningSet:
    """BabyAI's bot opens the door of the colour that the instruction names, in a maze of nine rooms.

    The negatives open a door of another colour, or walk at random. All six colours are named on both sides, and an open
    door of the named colour is the goal.
    """
    return babyai("open-the-named-door", "OpenDoorColor", seed=72_009, experts=36, random=12, random_steps=40, near=28)


def put_beside() -> WarningSet:
    """BabyAI's bot puts one named thing beside another.

    The negatives put another thing there, or the right one beside another, or walk at random. Near misses in which the
    two things change roles are left out, because both then lie beside each other in the end, as they should. The cells
    of the two named things say all that matters.
    """
    found = babyai("put-beside", "PutNextLocalS6N4", seed=72_010, experts=36, random=12, random_steps=40, near=70)
    items = tuple(item for item in found.demonstrations if "exchanged: " not in item.trajectory.source)
    return replace(found, demonstrations=replace(found.demonstrations, items=items))


SOUND: tuple[Callable[[], WarningSet], ...] = (
    greenhouse,
    lift_levelling,
    tray_loading,
    dosing,
    supermarket_tills,
    ferry,
    irrigation,
    pick_up_the_named,
    open_the_named_door,
    put_beside,
)
