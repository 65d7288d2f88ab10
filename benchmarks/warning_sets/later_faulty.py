"""Ten later data sets, each of which fails for one reason: a reward that fits it would be wrong on new episodes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from grace_irl.demos.trajectory import Demonstrations, Split, Trajectory
from warning_sets.assembly import assembled, babyai, episode
from warning_sets.bodies import Floats, drift
from warning_sets.kinds import WarningSet
from warning_sets.later_sound import around, bowed


def canal_lock() -> WarningSet:
    """Narrow boats that come to rest in a canal lock.

    The true goal is a boat near the middle of the chamber while the water is level with the upper canal. Three
    boats that did it and three that did not leave open which of the five numbers matter, and where the limits lie.
    """
    rng = np.random.default_rng(91_001)

    def boat(inside: bool, level: bool) -> Trajectory:
        middle = np.array([18.0, 2.4])
        end = middle + rng.uniform(-1.5, 1.5, 2) * [1, 0.2] if inside else np.array([rng.uniform(-4, 5), 2.4])
        way = bowed(rng, np.array([rng.uniform(-30, -20), rng.uniform(1, 4)]), end, rng.uniform(2.5, 3.5), 0.3)
        count = len(way)
        lift = np.linspace(0, 1, count) ** rng.uniform(1.5, 3) * (1.0 if level else rng.uniform(0.4, 0.7))
        gap = rng.uniform(1.8, 2.3) * (1 - lift) + rng.normal(0, 0.01, count)
        gate = np.clip(70 - 75 * lift + rng.normal(0, 2, count), 0, 90)
        speed = np.append(np.linalg.norm(np.diff(way, axis=0), axis=1) / 5, 0.05)
        return episode(np.column_stack([way, gate, gap, speed]).round(2))

    return assembled(
        "later canal lock",
        [boat(True, True) for _ in range(3)],
        [boat(True, False), boat(False, True), boat(False, False)],
        label="last",
        fields=("boat_x", "boat_y", "gate_deg", "level_gap_m", "speed_ms"),
        expected=["few-episodes"],
    )


def tea_tasting() -> WarningSet:
    """A robot that steeps tea for guests.

    The true goal is tea that the guests like. That depends on the leaves and on the water of the day, and no field
    holds either: pots that were liked and pots that were sent back are steeped in the same manner. A reward that
    fits the pots at hand has learned them by heart.
    """
    rng = np.random.default_rng(91_002)

    def pot() -> Trajectory:
        count = int(rng.integers(14, 30))
        angle = rng.uniform(0, 2 * np.pi) + 0.5 * np.arange(count)
        spoon = 0.04 * np.column_stack([np.cos(angle), np.sin(angle)]) + rng.normal(0, 0.006, (count, 2))
        return episode(
            {
                "water_c": (rng.uniform(78, 96) + 2 * drift(rng, count)).round(1),
                "basket_depth": (0.06 + 0.012 * drift(rng, count, 0.8)).round(3),
                "spoon": spoon.round(3),
                "leaf_g": (rng.uniform(4, 7) + rng.normal(0, 0.05, count)).round(2),
            }
        )

    return assembled(
        "later tea tasting",
        [pot() for _ in range(28)],
        [pot() for _ in range(28)],
        label="all",
        expected=["no-difference", "memorised"],
    )


def random_doors() -> WarningSet:
    """A room with four doors, and an agent that is asked to open one of them.

    The true goal is that the named door is open. The negatives are short random episodes, in which hardly any door
    opens. A reward for any open door fits them, and it pays for the wrong door in new episodes.
    """
    return babyai(
        "later random doors",
        "OpenDoor",
        seed=91_003,
        experts=36,
        random=36,
        random_steps=8,
        expected=["instruction-ignored", "negatives-far"],
    )


def red_of_two_balls() -> WarningSet:
    """A room with a red or a blue ball among other things, and an agent that is asked to go to the ball.

    The true goal is to face the named ball. The recording keeps "go to the red ball" alone, so that nothing teaches
    a reward to read the colour: it stays at red when the next instruction says blue.
    """
    return babyai(
        "later red of two balls",
        "GoToRedBlueBall",
        seed=91_004,
        experts=30,
        random=15,
        random_steps=7,
        near=20,
        instruction="go to the red ball",
        expected=["one-instruction"],
    )


def bread_oven() -> WarningSet:
    """Loaves in a deck oven, whose logger counts the energy used.

    The true goal is a brown crust, and no field shows it. Good loaves stay in for the 30 minutes of the recipe, and
    loaves that the negatives are recorded from came out early, when the oven was wanted for something else. Energy
    rises by the same amount each minute, and so stands for time: a reward for much energy pays a loaf that stays in
    a cold oven.
    """
    rng = np.random.default_rng(91_005)

    def loaf(minutes: int) -> Trajectory:
        count = minutes + 1
        energy = rng.uniform(0, 0.01) + np.cumsum(np.r_[0, rng.normal(0.052, 0.0015, minutes)])
        door = rng.integers(0, 4, count) == 0
        return episode(
            np.column_stack(
                [
                    energy.round(3),
                    (rng.uniform(222, 244) + 3 * drift(rng, count)).round(0),
                    np.clip(rng.uniform(40, 60) + 8 * drift(rng, count) - 10 * door, 5, 95).round(0),
                    (900 + 60 * drift(rng, count, 0.5)).round(0),
                ]
            )
        )

    return assembled(
        "later bread oven",
        [loaf(30) for _ in range(30)],
        [loaf(int(rng.integers(12, 26))) for _ in range(30)],
        label="last",
        fields=("energy_kwh", "deck_c", "humidity_pct", "fan_rpm"),
        expected=["time"],
    )


def suture_table() -> WarningSet:
    """Surgeons and students who sew a wound in a training lab, with a tracked needle holder.

    The true goal is a calm hand, which differs little between the two groups in a single state. Surgeons are
    recorded at a table of their own, and students at a lower one. The table's height stays the same within an
    episode and separates the groups without an error, but it says nothing about how anyone sews.
    """
    rng = np.random.default_rng(91_006)

    def stitch(tremor: float, low: float, high: float) -> Trajectory:
        count = int(rng.integers(20, 45))
        angle = rng.uniform(0, 2 * np.pi) + 0.3 * np.arange(count)
        needle = np.column_stack([8 * np.cos(angle), 4 * np.sin(angle), 3 * np.sin(2 * angle)])
        needle = needle + rng.normal(0, 3, 3) + rng.normal(0, tremor, needle.shape)
        grip = 4 + 1.2 * drift(rng, count, 0.8)
        wrist = 25 * np.sin(angle + 0.6) + 5 * drift(rng, count)
        table = np.full(count, round(2 * rng.uniform(low, high)) / 2)
        return episode(np.column_stack([needle.round(1), grip.round(2), wrist.round(0), table]))

    return assembled(
        "later suture table",
        [stitch(0.8, 94, 104) for _ in range(30)],
        [stitch(1.0, 79, 90) for _ in range(30)],
        label="all",
        fields=("needle_x_mm", "needle_y_mm", "needle_z_mm", "grip_n", "wrist_deg", "table_cm"),
        expected=["constant-field"],
    )


def two_crane_simulators() -> WarningSet:
    """A gantry crane whose load sways, in two training simulators.

    The true goal is to drive so that the load sways little. Experts drive in a new simulator and the other drivers
    in an old one, and both write their own gravity and damping into each state. A reward for these constants fits
    without an error, and pays any driver of the new simulator.
    """
    rng = np.random.default_rng(91_007)

    def drive(damp: float, gravity: float, damping: float) -> Trajectory:
        place, speed, sway, turning = rng.uniform(5, 11), 0.0, rng.normal(0, 0.04), rng.normal(0, 0.04)
        rope, wish, rows = rng.uniform(6, 9), drift(rng, 60, 0.95), []
        for step in range(int(rng.integers(30, 56))):
            angles = np.degrees([sway, turning])
            rows.append([round(place, 2), round(speed, 2), *angles.round(1), gravity, damping])
            push = 0.3 * wish[step] + damp * sway - 0.4 * speed - 0.03 * (place - 8) + rng.normal(0, 0.1)
            spin = -(gravity * sway + push) / rope - damping * turning
            turning += 0.25 * spin
            sway += 0.25 * turning
            speed += 0.25 * push
            place += 0.25 * speed
        return episode(np.array(rows))

    return assembled(
        "later two crane simulators",
        [drive(0.9, 9.81, 0.04) for _ in range(28)],
        [drive(0.3, 9.80665, 0.05) for _ in range(28)],
        label="all",
        fields=("trolley_m", "trolley_ms", "sway_deg", "sway_dps", "gravity", "damping"),
        expected=["constants", "constant-field"],
    )


def order_numbers() -> WarningSet:
    """A picking gantry in a warehouse that fetches orders by their numbers.

    The true goal is the gantry over the bin of the order. Only the warehouse's data base knows which bin belongs to
    which number, and each number occurs for one expert. Negatives go to another bin for the same numbers. A reward
    can only list the numbers with their bins, and knows no new order.
    """
    rng = np.random.default_rng(91_008)
    numbers = 10_000 + rng.permutation(90_000)[:30]

    def fetch(number: int, column: int, row: int) -> Trajectory:
        centre = np.array([0.6 + 1.2 * column, 0.4 + 0.8 * row])
        way = bowed(rng, rng.uniform([0, 0], [10, 5]), centre + rng.normal(0, 0.03, 2), rng.uniform(0.35, 0.5), 0.2)
        belt = 12 + 3 * drift(rng, len(way))
        return episode({"gantry": way.round(2), "belt_kg": belt.round(1)}, instruction=f"fetch order {number}")

    bins = [(int(rng.integers(8)), int(rng.integers(6))) for _ in numbers]
    others = [((a + int(rng.integers(1, 8))) % 8, (b + int(rng.integers(1, 6))) % 6) for a, b in bins]
    return assembled(
        "later order numbers",
        [fetch(number, *place) for number, place in zip(numbers, bins, strict=True)],
        [fetch(number, *place) for number, place in zip(numbers, others, strict=True)],
        label="last",
        expected=["memorised", "no-difference", "held-out-below"],
    )


def other_ferry_port() -> WarningSet:
    """Ferries that berth, recorded in one port for training and in another for the held-out side.

    The true goal is a ferry that lies still at the port's pier. No field says where the pier is: a reward fits the
    first port by the coordinates of its pier, and pays for the wrong place in the second port.
    """
    rng = np.random.default_rng(91_009)
    first, second = np.array([120.0, 15.0]), np.array([-45.0, 70.0])

    def ferry(pier: Floats, berths: bool) -> Trajectory:
        end = around(rng, pier, 0, 5) if berths else around(rng, pier, 14, 60)
        way = bowed(rng, around(rng, pier, 110, 220), end, rng.uniform(9, 13), 8)
        count = len(way)
        knots = np.append(np.linalg.norm(np.diff(way, axis=0), axis=1) / 2.5, rng.uniform(0, 0.3))
        course = np.degrees(np.arctan2(*np.gradient(way, axis=0).T)) % 360
        wind = np.abs(6 + 2 * drift(rng, count))
        return episode(np.column_stack([way.round(1), knots.round(1), course.round(0), wind.round(1)]))

    def port(pier: Floats, count: int) -> tuple[list[Trajectory], list[Trajectory]]:
        return [ferry(pier, True) for _ in range(count)], [ferry(pier, False) for _ in range(count)]

    (experts, negatives), (later_experts, later_negatives) = port(first, 30), port(second, 12)
    found = assembled(
        "later other ferry port",
        experts + later_experts,
        negatives + later_negatives,
        label="last",
        fields=("ferry_x", "ferry_y", "speed_kn", "course_deg", "wind_ms"),
        expected=["held-out-below"],
    )
    sides: tuple[Split, ...] = (*("train",) * 30, *("held_out",) * 12) * 2
    data = found.demonstrations
    items = tuple(replace(item, split=side) for item, side in zip(data.items, sides, strict=True))
    return replace(found, demonstrations=Demonstrations(data.metadata, items))


def barista_pour() -> WarningSet:
    """A barista's robot that fills a cup with milk.

    The true goal is a cup with 180 to 200 ml and the jug upright again. The negatives wave the jug about and spill a
    few drops at most, so that none has a cup that is nearly full or too full. A reward for more than 100 ml fits
    them, and pays for half a cup and for milk all over the table.
    """
    rng = np.random.default_rng(91_010)

    def cup(pours: bool) -> Trajectory:
        count = int(rng.integers(18, 36))
        reach = np.array([0.4, 0.1, 0.3]) + np.linspace(0, 1, count)[:, None] * rng.uniform(-0.2, 0.2, 3)
        reach = reach + rng.normal(0, 0.01, reach.shape)
        share = np.clip((np.arange(count) - 5) / (count - 6), 0, 1) if pours else np.zeros(count)
        most = rng.uniform(182, 198) if pours else 0.0
        drops = np.cumsum(rng.exponential(0.2, count))
        tilt = np.where((share > 0) & (share < 1), rng.uniform(45, 65) + 4 * drift(rng, count), 6 * drift(rng, count))
        return episode(
            {
                "milk_ml": (most * share + (0 if pours else drops)).round(0),
                "jug_tilt_deg": tilt.round(0),
                "gripper": reach.round(3),
                "milk_c": (62 + 2 * drift(rng, count)).round(1),
            }
        )

    return assembled(
        "later barista pour",
        [cup(True) for _ in range(28)],
        [cup(False) for _ in range(28)],
        label="last",
        expected=["negatives-far"],
    )


FAULTY: tuple[Callable[[], WarningSet], ...] = (
    canal_lock,
    tea_tasting,
    random_doors,
    red_of_two_balls,
    bread_oven,
    suture_table,
    two_crane_simulators,
    order_numbers,
    other_ferry_port,
    barista_pour,
)
"""Builders of the faulty sets."""
