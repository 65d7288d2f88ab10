"""Ten small data sets from which no reward can be learned that is right on new episodes, each for one reason."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from grace_irl.demos.trajectory import Trajectory
from warning_sets.assembly import assembled, babyai, episode
from warning_sets.bodies import apart, drift, glide
from warning_sets.kinds import WarningSet


def crane() -> WarningSet:
    """Ship-to-shore crane that carries a container to a marked spot and puts it down there.

    The goal is the load on the ground (hook at 0.2 m or less) within 0.3 m of the spot. The negatives are test runs
    with the hook up at 17 m or more, of which some stop above the spot. Nobody ever puts a load down beside the spot,
    so a reward for a low hook fits perfectly, and pays for containers anywhere on the quay.
    """
    rng = np.random.default_rng(93_001)

    def run(lower: bool) -> Trajectory:
        spot, start = rng.uniform([4, 4], [40, 26]), rng.uniform([2, 2], [42, 28])
        goals = [spot] if lower or rng.random() < 0.5 else [rng.uniform([2, 2], [42, 28]), spot + rng.normal(0, 5, 2)]
        legs = [np.stack([start, start])]
        for goal in goals:
            if np.linalg.norm(goal - legs[-1][-1]) > 0.5:
                legs.append(glide(rng, legs[-1][-1], goal, speed=2.2, tolerance=0.15))
        height = rng.uniform(18, 24)
        descent = np.arange(height, 0.9, -rng.uniform(1.4, 2.4)) if lower else np.full(int(rng.integers(6, 14)), height)
        ground = [rng.uniform(0, 0.15)] if lower else []
        travel = np.concatenate(legs)
        place = np.concatenate([travel, np.repeat(travel[-1:], len(descent) + len(ground), axis=0)])
        hook = np.concatenate([np.full(len(travel), height), descent, ground])
        hook[: len(hook) - 1] += rng.normal(0, 0.1, len(hook) - 1)
        swing, load = 0.9 * drift(rng, len(hook), 0.7), np.full(len(hook), rng.uniform(4, 28))
        marks = np.repeat(spot[None], len(hook), axis=0)
        rows = np.column_stack([place + rng.normal(0, 0.02, place.shape), hook, swing, marks, load])
        return episode(rows.round(2))

    experts, negatives = [run(True) for _ in range(30)], [run(False) for _ in range(30)]
    fields = ("trolley_m", "gantry_m", "hook_m", "swing_deg", "spot_x_m", "spot_y_m", "load_t")
    return assembled("blind crane", experts, negatives, label="last", fields=fields, expected=("negatives-far",))


def sails_down() -> WarningSet:
    """Dinghy that sails along the course that the coach calls, recorded at 0.2 Hz.

    Good sailing is a boat within 8 degrees of the course at 3 knots or more, and all states of an expert count. The
    negatives are boats that lie at anchor or drift with the sails down. A reward for speed alone fits perfectly, and
    pays for fast boats that sail anywhere.
    """
    rng = np.random.default_rng(93_002)

    def sail(under_way: bool) -> Trajectory:
        steps = int(rng.integers(25, 46))
        wind = rng.uniform(7, 15) + 1.2 * drift(rng, steps, 0.8)
        if under_way:
            error, speed = 3.5 * np.tanh(drift(rng, steps)), 4.8 + 0.6 * np.tanh(drift(rng, steps)) + 0.05 * (wind - 11)
            heel, rudder = 14 + 3 * drift(rng, steps), 2.5 * drift(rng, steps, 0.5)
        else:
            turns = rng.uniform(-180, 180) + 25 * np.cumsum(0.3 * drift(rng, steps))
            error, speed = (turns + 180) % 360 - 180, 0.3 + 0.12 * np.tanh(drift(rng, steps))
            heel, rudder = 3 * drift(rng, steps), 4 * drift(rng, steps, 0.5)
        return episode(np.column_stack([error, speed, heel, wind, rudder]).round(1))

    experts, negatives = [sail(True) for _ in range(26)], [sail(False) for _ in range(26)]
    fields = ("course_error_deg", "speed_kn", "heel_deg", "wind_kn", "rudder_deg")
    return assembled("blind sails down", experts, negatives, label="all", fields=fields, expected=("negatives-far",))


def juice() -> WarningSet:
    """Bar robot that takes a bottle and pours a glass of the juice that the guest names.

    The goal is 200 ml from the bottle of the named juice (1 apple, 2 orange, 3 cherry). In all negatives the robot
    takes the right bottle and stops pouring too early. Nobody pours another juice, so a reward for a full glass fits
    perfectly, and pays for orange juice where cherry juice was ordered.
    """
    rng = np.random.default_rng(93_003)
    juices = ("apple", "orange", "cherry")

    def pour(number: int, full: bool) -> Trajectory:
        bottle, rate = number % 3, rng.uniform(9, 17)
        aim = rng.uniform(200, 206) if full else rng.uniform(70, 190)
        volume, volumes = 0.0, [0.0] * int(rng.integers(3, 9))
        empty = len(volumes)
        while volume < aim:
            volume += min(rate * rng.uniform(0.7, 1.2), aim - volume + 0.5)
            volumes.append(volume)
        pouring = len(volumes)
        volumes += [] if full else [volume] * int(rng.integers(2, 9))
        clock = np.arange(len(volumes))
        taken = np.where(clock >= 2, bottle + 1, 0)
        tilt = np.where((clock >= empty - 1) & (clock < pouring), 70.0, 8.0) + rng.normal(0, 2.5, len(clock))
        flow = np.diff(volumes, prepend=0.0) + rng.normal(0, 0.2, len(clock))
        warmth = rng.uniform(5, 14) + 0.3 * drift(rng, len(clock))
        rows = np.column_stack([taken, np.array(volumes), flow, tilt, warmth])
        return episode(rows.round(1), instruction=f"pour a glass of {juices[bottle]} juice")

    experts, negatives = [pour(number, True) for number in range(30)], [pour(number, False) for number in range(33)]
    fields = ("bottle", "volume_ml", "flow_ml", "tilt_deg", "juice_c")
    return assembled("blind juice", experts, negatives, label="last", fields=fields, expected=("instruction-ignored",))


def knee_raises() -> WarningSet:
    """Knee raises in a physiotherapy practice, one state for each second.

    The goal is ten raises above 90 degrees. The practice keeps a session as an expert's if the patient did not give
    up, so experts last 50 to 60 seconds and negatives 26 to 48, and all raise the knee in the same way. A reward for
    the elapsed seconds fits perfectly, and pays for a minute on the chair.
    """
    rng = np.random.default_rng(93_004)

    def session(low: int, high: int) -> Trajectory:
        steps = int(rng.integers(low, high))
        phase = rng.uniform(0, 2 * np.pi) + np.cumsum(rng.normal(1.1, 0.15, steps))
        knee = 50 + rng.uniform(36, 48) * np.sin(phase) + rng.normal(0, 2, steps)
        hip = 78 + 9 * np.sin(phase + 0.4) + 3 * drift(rng, steps)
        seat = rng.uniform(280, 420) - 40 * np.sin(phase) + rng.normal(0, 8, steps)
        pulse = rng.uniform(78, 112) + 3 * drift(rng, steps)
        return episode(np.column_stack([np.arange(steps), knee, hip, seat, pulse]).round(0))

    experts, negatives = [session(50, 61) for _ in range(28)], [session(26, 49) for _ in range(28)]
    fields = ("elapsed_s", "knee_deg", "hip_deg", "seat_n", "pulse_bpm")
    return assembled("blind knee raises", experts, negatives, label="last", fields=fields, expected=("time",))


def two_orchards() -> WarningSet:
    """Orchard robot that reaches for an apple and closes its gripper around it.

    The goal is a ripe apple in the gripper. Ripeness is not recorded. All experts picked ripe apples in an orchard
    whose rows are 3.2 to 3.6 m apart, all negatives picked unripe ones where they are 3.9 to 4.4 m apart. A reward
    that asks for narrow rows fits perfectly, and says nothing about apples.
    """
    rng = np.random.default_rng(93_005)

    def pick(low: float, high: float) -> Trajectory:
        fruit = rng.uniform([-0.5, 0.6, 0.8], [0.5, 1.1, 2.2])
        path = glide(rng, apart(rng, [fruit], 0.0, 1.5, 3), fruit, speed=0.09, tolerance=0.02)
        grip = np.concatenate([np.full(len(path), 0.2), [1.5, 3.2], [rng.uniform(5, 7)]])
        hand = np.concatenate([path, np.repeat(path[-1:], 3, axis=0)])
        states = {
            "gripper": (hand + rng.normal(0, 0.002, hand.shape)).round(3),
            "apple": np.repeat(fruit[None].round(3), len(hand), axis=0),
            "grip_n": (grip + rng.normal(0, 0.1, len(grip))).round(1),
            "row_spacing_m": np.full(len(hand), rng.uniform(low, high)).round(2),
        }
        return episode(states)

    experts, negatives = [pick(3.2, 3.6) for _ in range(28)], [pick(3.9, 4.4) for _ in range(28)]
    return assembled("blind two orchards", experts, negatives, label="last", expected=("constant-field",))


def ski_lift() -> WarningSet:
    """Chairlift in two simulators, whose operator keeps the cable calm in the wind.

    A calm cable is the goal, and all states of an expert count. The experts come from a simulator with a gravity of
    9.81 m/s² and a rope of 6.1 kg/m, the negatives from one with 9.807 m/s² and 5.9 kg/m, while the cables move much
    the same in both. A reward for the first simulator's constants fits perfectly, and is blind to the cable.
    """
    rng = np.random.default_rng(93_006)

    def ride(gravity: float, rope: float, restless: float) -> Trajectory:
        steps = int(rng.integers(20, 41))
        states = {
            "cable_mps": (2.5 + 0.12 * restless * drift(rng, steps)).round(2),
            "sag_m": (3.1 + 0.2 * restless * drift(rng, steps)).round(2),
            "chair": np.column_stack([drift(rng, steps), drift(rng, steps)]).round(2),
            "wind_mps": np.abs(4 + 2 * drift(rng, steps)).round(1),
            "physics": np.repeat([[gravity, rope]], steps, axis=0),
        }
        return episode(states)

    experts = [ride(9.81, 6.1, 1.0) for _ in range(26)]
    negatives = [ride(9.807, 5.9, 1.2) for _ in range(26)]
    return assembled("blind ski lift", experts, negatives, label="all", expected=("constants", "constant-field"))


def three_firings() -> WarningSet:
    """Kiln firings of a potter: three that went well, and two that were stopped.

    The goal is 1220 °C with less than 2 % oxygen. Five firings cannot tell whether heat, oxygen, gas, pressure or any
    mixture of them matters: many rewards fit all five, and most are wrong on a sixth.
    """
    rng = np.random.default_rng(93_007)

    def fire(top: float, oxygen: float) -> Trajectory:
        steps = int(rng.integers(18, 27))
        share = np.linspace(0, 1, steps) ** rng.uniform(0.7, 0.9)
        heat = 20 + (top - 20) * share + np.append(rng.normal(0, 4, steps - 1), 0)
        air = 12 + (oxygen - 12) * share + rng.normal(0, 0.2, steps)
        gas = rng.uniform(24, 30) + 14 * share + rng.normal(0, 1, steps)
        return episode(np.column_stack([heat, air, gas, 8 + 2 * drift(rng, steps)]).round(1))

    experts = [fire(rng.uniform(1222, 1232), rng.uniform(1.0, 1.7)) for _ in range(3)]
    negatives = [fire(rng.uniform(960, 1100), rng.uniform(3.0, 5.0)) for _ in range(2)]
    fields = ("heat_c", "oxygen_pct", "gas_lpm", "chamber_pa")
    return assembled("blind three firings", experts, negatives, label="last", fields=fields, expected=("few-episodes",))


def booked_bays() -> WarningSet:
    """Car park in which every car has a booked bay, and a camera that records the cars alone.

    The goal is a car at rest in its own bay. Nobody recorded the bookings: experts park in their bays, negatives in
    bays of others, and both are spread over the same 24 bays. A reward that tells them apart has learned single
    episodes by heart, and guesses on the next car.
    """
    rng = np.random.default_rng(93_008)

    def park() -> Trajectory:
        bay, row = 6.0 + 2.6 * rng.integers(12), rng.choice([-1.0, 1.0])
        start = np.array([-2.0, rng.normal(0, 0.3)])
        lane = glide(rng, start, np.array([bay - 1.5, rng.normal(0, 0.2)]), speed=rng.uniform(1.6, 2.6), tolerance=0.3)
        into = glide(rng, lane[-1], np.array([bay, 5.2 * row]), speed=0.9, tolerance=0.15)[1:]
        path = np.concatenate([lane, into, into[-1:]]) + rng.normal(0, 0.03, (len(lane) + len(into) + 1, 2))
        turn = np.concatenate([np.zeros(len(lane)), np.linspace(15, 90, len(into)), [90]]) * row
        speed = np.append(np.linalg.norm(np.diff(path, axis=0), axis=1), 0.0)
        return episode(np.column_stack([path, turn + rng.normal(0, 1.5, len(turn)), speed]).round(2))

    experts, negatives = [park() for _ in range(26)], [park() for _ in range(26)]
    return assembled(
        "blind booked bays",
        experts,
        negatives,
        label="last",
        fields=("x_m", "y_m", "heading_deg", "speed_m"),
        expected=("memorised", "held-out-below", "no-difference"),
    )


def one_ball() -> WarningSet:
    """BabyAI rooms with a red or a blue ball, of which only the episodes with "go to the red ball" are kept.

    The goal is the ball that the instruction names. Nobody is ever sent to the blue ball, so a reward for the red ball
    fits perfectly, and never pays in the other half of this world.
    """
    return babyai(
        "blind one ball",
        "GoToRedBlueBall",
        seed=93_009,
        experts=26,
        random=12,
        random_steps=12,
        near=16,
        instruction="go to the red ball",
        expected=("one-instruction",),
    )


def any_door() -> WarningSet:
    """BabyAI rooms with four doors, of which the instruction names one by its colour.

    The goal is the agent in front of the named door. The negatives are short random walks that never face any door. A
    reward for any door fits perfectly, and pays for the green door where the red one was named.
    """
    return babyai(
        "blind any door",
        "GoToDoor",
        seed=93_026,
        experts=30,
        random=26,
        random_steps=7,
        expected=("instruction-ignored", "negatives-far"),
    )


FAULTY: tuple[Callable[[], WarningSet], ...] = (
    crane,
    sails_down,
    juice,
    knee_raises,
    two_orchards,
    ski_lift,
    three_firings,
    booked_bays,
    one_ball,
    any_door,
)
"""The builders of the faulty sets."""
