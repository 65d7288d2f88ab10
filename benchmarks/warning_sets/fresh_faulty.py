"""Ten faulty data sets: espresso, keys, forklifts, stirrers and others. Each fails for one reason."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from grace_irl.demos.trajectory import Trajectory
from warning_sets.assembly import assembled, babyai, episode
from warning_sets.bodies import Floats, drift, glide
from warning_sets.kinds import WarningSet


def espresso() -> WarningSet:
    """Three good shots of one barista, and 36 bad ones from all over the town.

    A good shot ends with 32 to 40 g in the cup, on any machine. The three shots were pulled in a row on one machine, so
    they also share its boiler's 92.6 °C and its pump's 9.1 bar. Nobody can tell from three shots which of the three
    numbers makes the coffee good.
    """
    rng = np.random.default_rng(71_001)

    def shot(boiler: float, pressure: float, cup: float) -> Trajectory:
        flow = rng.uniform(1.6, 3.0)
        cups = np.append(np.arange(0, cup - 0.5, flow), cup)
        noise = rng.normal(0, 1, (3, len(cups)))
        columns = [
            boiler + 0.08 * noise[0],
            pressure * np.minimum(1, 0.3 + cups / 10) + 0.03 * noise[1],
            np.append(np.diff(cups), 0.0) + 0.05 * abs(noise[2]),
            cups,
        ]
        return episode(np.stack(columns, 1).round(2))

    experts = [shot(92.6 + rng.normal(0, 0.1), 9.1 + rng.normal(0, 0.03), 36 + rng.normal(0, 0.4)) for _ in range(3)]
    negatives = [
        shot(rng.uniform(88, 97), rng.uniform(6, 11), rng.uniform(*((17, 30) if number % 2 else (43, 60))))
        for number in range(36)
    ]
    fields = ("boiler_C", "pressure_bar", "flow_g_s", "cup_g")
    return assembled("espresso", experts, negatives, label="last", fields=fields, expected=["few-episodes"])


def key_cabinet() -> WarningSet:
    """Staff take the key that is theirs from a cabinet; the negatives take somebody else's.

    The list of who owns which hook is in an office, not in the states. Everybody appears once on each side, and every
    hook is taken once on each side, so no quantity differs. A reward can only memorise the pairs, and knows nothing
    about the staff of the next month.
    """
    rng = np.random.default_rng(71_002)
    staff = rng.choice(np.arange(1000, 9999), 30, replace=False)
    hooks = rng.permutation(np.arange(1, 31))

    def visit(person: int, hook: int) -> Trajectory:
        before, after = int(rng.integers(3, 8)), int(rng.integers(1, 3))
        taken = np.array([0] * before + [hook] * after)
        return episode(
            {
                "staff_number": np.full(len(taken), person),
                "hook_taken": taken,
                "door_angle": np.minimum(90, 20 * np.arange(len(taken))) + rng.integers(-3, 4, len(taken)),
                "cabinet_kg": (14.2 - 0.06 * (taken > 0) + rng.normal(0, 0.2, len(taken))).round(2),
            }
        )

    experts = [visit(int(person), int(hook)) for person, hook in zip(staff, hooks, strict=True)]
    negatives = [visit(int(person), int(hook)) for person, hook in zip(staff, np.roll(hooks, 7), strict=True)]
    return assembled(
        "key-cabinet",
        experts,
        negatives,
        label="last",
        expected=["memorised", "no-difference", "held-out-below"],
    )


def find_the_only_thing() -> WarningSet:
    """BabyAI's level with one thing in nine rooms. The bot picks it up, and random walkers do not find it.

    Instructions name balls, boxes and keys, but the named thing is the only one in its world. Whoever picks up anything
    at all does it right in these data. In a world with a second thing, such a reward pays for the wrong one.
    """
    return babyai(
        "find-the-only-thing",
        "FindObjS5",
        seed=71_003,
        experts=30,
        random=30,
        random_steps=40,
        expected=["instruction-ignored", "negatives-far"],
    )


DOCKS: Floats = np.array([[4.0, 2.0], [12.0, 2.0], [20.0, 2.0], [28.0, 2.0]])
"""Places of the docks of a warehouse in metres."""


def forklift() -> WarningSet:
    """Forklifts that bring a pallet to dock 2, as all their orders say. The negatives end at other docks or between.

    The negatives come near, and the dock is easy to recognise. But the warehouse has four docks, whose places are not
    in the states. The only thing to learn is a place, and the next order says "dock 3".
    """
    rng = np.random.default_rng(71_004)

    def drive(goal: Floats) -> Trajectory:
        pallet = np.array([rng.uniform(2, 30), rng.uniform(14, 22)])
        fetch = glide(rng, np.array([rng.uniform(2, 30), rng.uniform(8, 12)]), pallet, 1.2, 0.4)
        carry = glide(rng, fetch[-1], goal, 1.2, 0.3)
        fork = np.concatenate([fetch, carry, carry[-1:]])
        load = np.concatenate([np.tile(pallet, (len(fetch), 1)), carry, carry[-1:]])
        lift = np.concatenate([np.full(len(fetch), 0.05), np.full(len(carry), 0.35), [0.05]])
        lift += rng.normal(0, 0.005, len(lift))
        return episode(
            np.column_stack([fork, load, lift]).round(3), instruction="bring the pallet to dock 2", ended=True
        )

    def elsewhere(number: int) -> Floats:
        between = np.array([rng.choice([8.0, 16.0, 24.0]), 2.0])
        place: Floats = (DOCKS[0], DOCKS[2], DOCKS[3], between)[number % 4]
        return place + rng.normal(0, 0.3, 2)

    experts = [drive(DOCKS[1] + rng.normal(0, 0.3, 2)) for _ in range(28)]
    negatives = [drive(elsewhere(number)) for number in range(28)]
    return assembled(
        "forklift",
        experts,
        negatives,
        label="last",
        fields=("fork_x", "fork_y", "pallet_x", "pallet_y", "lift_m"),
        expected=["one-instruction", "instruction-ignored"],
    )


def stirrer() -> WarningSet:
    """A stirrer for paint. Experts stop when a batch is even; the negatives were stopped soon after the start.

    Whether a batch is even is seen by eye: torque and warmth wander in the same way on both sides. The counter of the
    shaft's turns tells them apart, because it only ever grows and the negatives were recorded for a shorter time. A
    batch that separates while it is stirred for an hour would get the full reward.
    """
    rng = np.random.default_rng(71_005)

    def batch(steps: int) -> Trajectory:
        speed = rng.uniform(5, 7)
        turns = np.cumsum(speed + 0.8 * drift(rng, steps).clip(-2, 2)) - speed
        torque = rng.uniform(3, 6) + 0.4 * drift(rng, steps)
        warmth = rng.uniform(18, 26) + 0.5 * drift(rng, steps, 0.97)
        rows = np.stack([turns.round(), torque.round(2), warmth.round(1)], 1)
        return episode(rows, actions=rng.normal(speed, 0.3, (steps - 1, 1)).round(1))

    experts = [batch(int(rng.integers(45, 70))) for _ in range(32)]
    negatives = [batch(int(rng.integers(8, 26))) for _ in range(32)]
    fields = ("shaft_turns", "torque_Nm", "paint_C")
    return assembled("stirrer", experts, negatives, label="last", fields=fields, expected=["time"])


def hatchery() -> WarningSet:
    """Incubators of two hatcheries. The first one's chicks do well, the other one's do not.

    Both keep the air at the same temperature and humidity, and turn the eggs alike. What matters is how the eggs were
    stored before, which nobody recorded. But the first hatchery loads fuller trays, so the number of eggs tells the
    sides apart from the first state to the last. A reward for that number does not judge how anybody runs an incubator.
    """
    rng = np.random.default_rng(71_006)

    def incubation(eggs: int) -> Trajectory:
        hours = int(rng.integers(24, 49))
        age = int(rng.integers(1, 400))
        return episode(
            {
                "air_C": (37.6 + rng.normal(0, 0.1) + 0.15 * drift(rng, hours)).round(2),
                "humidity_pct": (55 + rng.normal(0, 2) + 2 * drift(rng, hours)).round(1),
                "tray_angle": np.where((np.arange(hours) + rng.integers(2)) % 2, 45, -45),
                "incubation_hour": age + np.arange(hours),
                "machine": np.full(hours, rng.integers(1, 7)),
                "eggs": np.full(hours, eggs),
            }
        )

    experts = [incubation(int(rng.integers(452, 529))) for _ in range(24)]
    negatives = [incubation(int(rng.integers(250, 441))) for _ in range(30)]
    return assembled("hatchery", experts, negatives, label="all", expected=["constant-field"])


def two_simulators() -> WarningSet:
    """An arm that puts a block on a marked spot. Experts come from one physics engine, negatives from another.

    Only the camera saw the mark, and the negatives put the block on spots just as random. But a block at rest lies a
    millimetre higher in the second engine, whose contacts are softer, and its fingers close on the block at another
    width. A reward for these numbers says which engine made a state, and nothing about the spot.
    """
    rng = np.random.default_rng(71_007)

    def placing(rest: float, width: float) -> Trajectory:
        start, spot = (np.append(rng.uniform(-0.25, 0.25, 2), rest) for _ in range(2))
        above = np.array([0, 0, rng.uniform(0.12, 0.18)])
        down = glide(rng, start + above, start, 0.04, 0.01)
        ways = [glide(rng, start, start + above, 0.04, 0.02)]
        ways.append(glide(rng, ways[-1][-1], spot + above, 0.06, 0.02))
        ways.append(glide(rng, ways[-1][-1], spot, 0.04, 0.01))
        carried = np.concatenate(ways)
        carried[-1, 2] = rest
        away = glide(rng, carried[-1], carried[-1] + above, 0.04, 0.02)
        gripper = np.concatenate([down, carried, away])
        block = np.concatenate([np.tile(start, (len(down), 1)), carried, np.tile(carried[-1], (len(away), 1))])
        gap = np.concatenate([np.full(len(down), 0.08), np.full(len(carried), width), np.full(len(away), 0.08)])
        block += rng.normal(0, 0.0001, block.shape)
        gap += rng.normal(0, 0.0001, len(gap))
        return episode({"gripper": gripper.round(5), "block": block.round(5), "finger_gap": gap.round(5)})

    experts = [placing(0.4199, 0.0398) for _ in range(25)]
    negatives = [placing(0.4212, 0.0405) for _ in range(25)]
    return assembled("two-simulators", experts, negatives, label="last", expected=["constants", "constant-field"])


def camera_over_belt() -> WarningSet:
    """Pictures of 14 by 14 pixels from above a conveyor belt, each as a vector of 196 numbers.

    A parcel is turned until the arrow on its label points up; the negatives leave it pointing elsewhere. The arrow lies
    anywhere, light on dark or dark on light, under changing lamps. So no single pixel means anything, and a rule over
    pixels that fits these episodes fits them by chance.
    """
    rng = np.random.default_rng(71_008)
    arrow = np.array([[0, 0, 1, 0, 0], [0, 1, 1, 1, 0], [1, 0, 1, 0, 1], [0, 0, 1, 0, 0], [0, 0, 1, 0, 0]])

    def turning(last: int) -> Trajectory:
        row, column = rng.integers(0, 10, 2)
        ground, ink = rng.permutation([rng.uniform(30, 90), rng.uniform(150, 230)])
        quarters = [*rng.integers(1, 4, int(rng.integers(2, 7))), last]
        pictures = []
        for quarter in quarters:
            picture = np.full((14, 14), ground)
            picture[row : row + 5, column : column + 5] += np.rot90(arrow, quarter) * (ink - ground)
            picture += rng.normal(0, 6, picture.shape) + rng.normal(0, 8)
            pictures.append(picture.clip(0, 255).ravel())
        return episode(np.stack(pictures).round())

    experts = [turning(0) for _ in range(36)]
    negatives = [turning(int(rng.integers(1, 4))) for _ in range(36)]
    return assembled(
        "camera-over-belt",
        experts,
        negatives,
        label="last",
        expected=["pixels", "memorised", "held-out-below"],
    )


def cold_store() -> WarningSet:
    """Well and badly run cold stores. The loggers of the store that is held out count in degrees Fahrenheit.

    In the training data, well run means air of 2 to 4 °C, and the badly run ones have 6 to 9 °C. In the other store
    that is 36 to 39 and 43 to 48. A threshold between 4 and 6 is right about every state of the first store, and calls
    every state of the second one too warm.
    """
    rng = np.random.default_rng(71_009)

    def night(low: float, high: float, *, fahrenheit: bool) -> Trajectory:
        hours = int(rng.integers(20, 40))
        air = rng.uniform(low + 0.4, high - 0.4) + 0.4 * np.tanh(drift(rng, hours))
        humidity = 85 + 3 * drift(rng, hours)
        door = (rng.random(hours) < 0.15) * rng.integers(1, 30, hours)
        load = rng.uniform(20, 60) + 2 * drift(rng, hours)
        rows = np.stack([air * 1.8 + 32 if fahrenheit else air, humidity, door, load], 1)
        return episode(rows.round(1))

    def nights(low: float, high: float) -> list[Trajectory]:
        return [night(low, high, fahrenheit=number >= 24) for number in range(33)]

    fields = ("air_temperature", "humidity_pct", "door_open_s", "compressor_pct")
    found = assembled("cold-store", nights(2, 4), nights(6, 9), label="all", fields=fields, expected=["held-out-below"])
    items = tuple(
        replace(item, split="held_out" if item.trajectory.states[0, 0] > 30 else "train")
        for item in found.demonstrations
    )
    return replace(found, demonstrations=replace(found.demonstrations, items=items))


def peg_board() -> WarningSet:
    """An arm that puts a peg into the hole of a board that its order names by coordinates.

    The negatives are random motions that stay a hand's breadth above the board. To tell them apart, it is enough that
    the peg is low. A peg in a wrong hole is as low as one in the right hole, so such a reward pays for it as well.
    """
    rng = np.random.default_rng(71_010)

    def board() -> tuple[Floats, Floats]:
        return np.append(rng.uniform(-0.2, 0.2, 2), 0.02), np.append(rng.uniform(-0.2, 0.2, 2), rng.uniform(0.25, 0.4))

    def record(peg: Floats, hole: Floats, touching: Floats) -> Trajectory:
        return episode(
            {
                "peg": peg.round(4),
                "hole": np.tile(hole.round(4), (len(peg), 1)),
                "force_N": (touching + abs(rng.normal(0, 0.3, len(peg)))).round(2),
            }
        )

    def inserting() -> Trajectory:
        hole, start = board()
        over = glide(rng, start, hole + np.array([0, 0, 0.12]), 0.03, 0.02)
        down = np.linspace(over[-1], hole, int(rng.integers(5, 9)))[1:] + rng.normal(0, 0.001, 3)
        peg = np.concatenate([over, down])
        touching = np.concatenate([np.zeros(len(over) + len(down) - 2), rng.uniform(1, 3, 2)])
        return record(peg, hole, touching)

    def waving() -> Trajectory:
        hole, start = board()
        steps = int(rng.integers(12, 30))
        peg = start + np.cumsum(rng.normal(0, 0.02, (steps, 3)), 0)
        peg[:, 2] = np.maximum(peg[:, 2], 0.14 + rng.uniform(0, 0.02, steps))
        return record(peg, hole, rng.uniform(0, 2, steps))

    return assembled(
        "peg-board",
        [inserting() for _ in range(30)],
        [waving() for _ in range(30)],
        label="last",
        expected=["negatives-far"],
    )


FAULTY: tuple[Callable[[], WarningSet], ...] = (
    espresso,
    key_cabinet,
    find_the_only_thing,
    forklift,
    stirrer,
    hatchery,
    two_simulators,
    camera_over_belt,
    cold_store,
    peg_board,
)
