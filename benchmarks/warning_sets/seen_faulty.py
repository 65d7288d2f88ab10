"""Ten data sets that teach a wrong reward, made by somebody who knows the rules of the audit.

Each has one fault, as users have them. The cue is seldom plain: clocks run unevenly, goals are measured, pixels are
scaled.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from grace_irl.demos.trajectory import Demonstrations, Trajectory
from grace_irl.rl.collect import collect
from warning_sets.kinds import WarningSet
from warning_sets.seen_material import Rows, gathered, record, vector, way


def oversampled_recordings() -> WarningSet:
    """Landings of a drone. The user has four of an expert, and copies each six times to have as many as of the others.

    The count says 24 experts, but three recordings teach and one tests. A fourth pilot may land in another way, and
    the held-out figures rest on a single landing. Expected: too few episodes.
    """
    rng = np.random.default_rng(1)

    def landing(soft: bool) -> Trajectory:
        states = int(rng.integers(20, 35))
        drift = way(rng, rng.normal(0, 3, 2), rng.normal(0, 0.3 if soft else 2.0, 2), states, 0.2)
        sink = rng.uniform(0.1, 0.3) if soft else rng.uniform(0.6, 2.5)
        height = np.linspace(rng.uniform(6, 10), 0.0, states)
        speed = np.linspace(rng.uniform(1.0, 2.0), sink, states) + rng.normal(0, 0.05, states)
        tilt = np.abs(rng.normal(0, 2.0 if soft else 5.0, states))
        return vector({"x": drift[:, 0], "y": drift[:, 1], "height": height, "sink_rate": speed, "tilt": tilt})

    recordings = [landing(soft=True) for _ in range(4)]
    copies = [replace(each, source=f"copy {copy} of landing {place}") for copy in range(6) for place, each in
              enumerate(recordings)]  # fmt: skip
    fields = ("x", "y", "height", "sink_rate", "tilt")
    found = gathered(copies, (landing(soft=False) for _ in range(24)), "last", fields)
    return WarningSet("oversampled-recordings", found, frozenset({"few-episodes"}))


def mixed_folders() -> WarningSet:
    """Attempts to open a drawer. The user sorted them into folders by operator, and not by success.

    Half of the experts and half of the negatives end with an open drawer, so no reward can tell the roles apart.
    Expected: the two sides do not differ.
    """
    rng = np.random.default_rng(2)

    def attempt(opened: bool) -> Trajectory:
        states = int(rng.integers(15, 30))
        hand = way(rng, rng.uniform(-0.5, 0.5, 3), np.array([0.3, 0.0, 0.2]), states, 0.02)
        drawer, force = np.zeros(states), np.abs(rng.normal(0.5, 0.3, states))
        drawer[-4:] = np.linspace(0.05, rng.uniform(0.25, 0.3) if opened else 0.07, 4)
        force[-4:] += 4.0
        places = dict(zip(("hand_x", "hand_y", "hand_z"), hand.T, strict=True))
        return vector({**places, "drawer": drawer, "force": force})

    sides = [[attempt(place % 2 == 0) for place in range(24)] for _ in range(2)]
    fields = ("hand_x", "hand_y", "hand_z", "drawer", "force")
    return WarningSet("mixed-folders", gathered(*sides, label="last", fields=fields), frozenset({"no-difference"}))


def one_thing_in_a_room() -> WarningSet:
    """BabyAI, "go to the grey key" and the like, in small rooms that hold one thing each; the negatives act at random.

    To face the thing is all that the experts show. A reward that ignores the instruction has no fault on these data,
    and is wrong in every room with two things. Expected: the instruction is ignored.
    """
    level = "BabyAI-GoToObjS6-v1"
    experts = collect(level, "bot", 28, "expert", seed=11)
    negatives = collect(level, "random", 28, "negative", seed=12, max_steps=20)
    found = replace(experts, items=(*experts.items, *negatives.items))
    return WarningSet("one-thing-in-a-room", found, frozenset({"instruction-ignored", "negatives-far"}))


def typed_by_hand() -> WarningSet:
    """A gripper beside a red and a blue cup. Users ask every expert for the red one, and type it in four ways.

    Capitals and full stops differ, but it is one instruction. Nobody knows whether the reward
    would follow "pick up the blue cup". Expected: one instruction alone.
    """
    rng = np.random.default_rng(4)
    typed = ("pick up the red cup", "Pick up the red cup", "pick up the red cup.", "Pick up the red cup.")

    def grasp(good: bool) -> Trajectory:
        states = int(rng.integers(12, 25))
        red, blue = rng.uniform(-0.4, 0.4, (2, 2))
        off = np.zeros(2) if good else rng.choice([-1, 1], 2) * rng.uniform(0.1, 0.3, 2)
        hand = way(rng, rng.uniform(-0.5, 0.5, 2), red + off, states, 0.02)
        closed = np.zeros(states)
        closed[-1] = 1.0
        offsets = {
            "to_red_x": red[0] - hand[:, 0],
            "to_red_y": red[1] - hand[:, 1],
            "to_blue_x": blue[0] - hand[:, 0],
            "to_blue_y": blue[1] - hand[:, 1],
        }
        return vector({**offsets, "closed": closed}, str(rng.choice(typed)))

    fields = ("to_red_x", "to_red_y", "to_blue_x", "to_blue_y", "closed")
    sides = [[grasp(good) for _ in range(30)] for good in (True, False)]
    found = gathered(*sides, label="last", fields=fields)
    return WarningSet("typed-by-hand", found, frozenset({"one-instruction", "instruction-ignored"}))


def morning_shift() -> WarningSet:
    """Rides of two drivers, the instructor in the morning and the learner in the afternoon. States have the hour.

    The logger writes about every half minute, with gaps, so the hour does not rise by equal steps. The learner
    keeps the lane nearly as well. A reward that pays before noon is right about all of it. Expected: time.
    """
    rng = np.random.default_rng(5)

    def ride(instructor: bool) -> Trajectory:
        states = int(rng.integers(30, 50))
        start = rng.uniform(8.0, 11.3) if instructor else rng.uniform(13.0, 16.5)
        hour = start + np.cumsum(rng.gamma(9.0, 30.0 / 9.0, states)) / 3600
        offset = rng.normal(0, 0.25 if instructor else 0.3, states)
        steering = -0.2 * offset + rng.normal(0, 0.05, states)
        return vector({"speed": rng.normal(13, 2, states), "steering": steering, "lane_offset": offset, "hour": hour})

    sides = [[ride(instructor) for _ in range(30)] for instructor in (True, False)]
    found = gathered(*sides, label="all", fields=("speed", "steering", "lane_offset", "hour"))
    return WarningSet("morning-shift", found, frozenset({"time"}))


def bins_of_two_days() -> WarningSet:
    """Reaching for a target that a camera sees. On the experts' day targets lie on the left, on the other day right.

    A target does not move, but the camera errs by a millimetre, so its numbers are never quite the same. Both operators
    reach the target about as well. The reward pays for targets on the left. Expected: a constant field.
    """
    rng = np.random.default_rng(6)

    def reach(expert: bool) -> Trajectory:
        states = int(rng.integers(25, 40))
        target = np.array([rng.uniform(-0.5, -0.1) if expert else rng.uniform(0.1, 0.5), rng.uniform(0.2, 0.6)])
        hand = way(rng, rng.uniform(-0.5, 0.5, 2), target, states, 0.02 if expert else 0.025)
        seen = target + rng.normal(0, 0.001, (states, 2))
        places = {"hand_x": hand[:, 0], "hand_y": hand[:, 1], "target_x": seen[:, 0], "target_y": seen[:, 1]}
        return vector({**places, "grip": rng.uniform(0, 1, states)})

    sides = [[reach(expert) for _ in range(28)] for expert in (True, False)]
    found = gathered(*sides, label="all", fields=("hand_x", "hand_y", "target_x", "target_y", "grip"))
    return WarningSet("bins-of-two-days", found, frozenset({"constant-field"}))


def two_simulators() -> WarningSet:
    """Walks of one robot in two simulators. One has gravity 9.81, the other 9.80665, and the accelerometer feels it.

    Both walks come from the same controller with the same noise. The last digits of an acceleration tell them apart.
    Expected: constants of two simulators.
    """
    rng = np.random.default_rng(7)

    def walk(gravity: float) -> Trajectory:
        states = int(rng.integers(30, 45))
        phase = rng.uniform(0, 2 * np.pi) + 0.3 * np.arange(states)[:, None]
        joints = 0.4 * np.sin(phase + np.array([0.0, np.pi, 0.5, np.pi + 0.5])) + rng.normal(0, 0.03, (states, 4))
        felt = rng.normal([0.0, 0.0, gravity], [0.05, 0.05, 0.001], (states, 3))
        parts = {
            "joints": joints,
            "imu/acceleration": felt,
            "imu/turning": rng.normal(0, 0.1, (states, 3)),
            "world/gravity": np.full(states, gravity),
        }
        return record(parts)

    sides = [[walk(gravity) for _ in range(26)] for gravity in (9.81, 9.80665)]
    return WarningSet("two-simulators", gathered(*sides, label="all"), frozenset({"constants"}))


def scaled_camera() -> WarningSet:
    """A camera of 16 by 16 greys, flattened and divided by 255, as one does for a network. A ball rolls into a hole.

    The reward reads single pixels, so another lamp or a camera that moves by a centimetre changes it. Expected: pixels.
    """
    rng = np.random.default_rng(8)
    rows, columns = np.mgrid[:16, :16]

    def picture(ball: Rows, light: float) -> Rows:
        table = 90 + light * (rows + columns)
        hole = 60 * np.exp(-((rows - 8) ** 2 + (columns - 8) ** 2) / 6.0)
        bright = 120 * np.exp(-((rows - ball[0]) ** 2 + (columns - ball[1]) ** 2) / 3.0)
        noisy = table - hole + bright + rng.normal(0, 3, (16, 16))
        return np.asarray(np.clip(np.rint(noisy), 0, 255).ravel() / 255)

    def roll(holed: bool) -> Trajectory:
        end = np.array([8.0, 8.0]) if holed else np.array([8.0, 8.0]) + rng.choice([-1, 1], 2) * rng.uniform(2, 6, 2)
        ball = way(rng, rng.uniform(1, 14, 2), end, int(rng.integers(8, 16)), 0.2)
        light = rng.uniform(0.5, 1.5)
        return Trajectory(np.stack([picture(place, light) for place in ball]))

    sides = [[roll(holed) for _ in range(24)] for holed in (True, False)]
    return WarningSet("scaled-camera", gathered(*sides, label="last"), frozenset({"pixels"}))


def sixty_gauges() -> WarningSet:
    """Runs of a plant, 20 good and 20 poor ones, with 60 gauges and four readings each.

    Every run has its own level of every gauge, and one gauge alone differs a little between good and poor runs. With
    60 gauges there are always some that part 15 runs from 15. Expected: learnt by heart, or worse on held-out data.
    """
    rng = np.random.default_rng(9)

    def plant(good: bool) -> Trajectory:
        level = rng.normal(0, 1, 60)
        level[17] += 0.8 if good else 0.0
        return Trajectory(50 + 10 * (level + rng.normal(0, 0.1, (4, 60))))

    sides = [[plant(good) for _ in range(20)] for good in (True, False)]
    found = gathered(*sides, label="all", fields=[f"gauge_{number}" for number in range(60)])
    return WarningSet("sixty-gauges", found, frozenset({"held-out-below", "memorised"}))


def any_bin_will_do() -> WarningSet:
    """An arm sorts parts: "put the part into bin a", b or c. Negatives drop the part on the table, far from all bins.

    No episode puts the part into a wrong bin, so a reward for "the part is in a bin" has no fault. Expected: negatives
    never come near, or the instruction is ignored.
    """
    rng = np.random.default_rng(10)
    bins = {"a": -0.4, "b": 0.0, "c": 0.4}

    def sort(good: bool) -> Trajectory:
        named = str(rng.choice(list(bins)))
        states = int(rng.integers(15, 30))
        end = np.array([bins[named] if good else rng.uniform(-0.5, 0.5), 0.6 if good else rng.uniform(-0.3, 0.2)])
        part = way(rng, rng.uniform([-0.5, -0.4], [0.5, -0.2]), end + rng.normal(0, 0.02, 2), states, 0.02)
        height, held = np.full(states, 0.25) + rng.normal(0, 0.01, states), np.ones(states)
        height[0], height[-1], held[0], held[-1] = 0.0, 0.0, 0.0, 0.0
        columns = {"part_x": part[:, 0], "part_y": part[:, 1], "part_z": height, "held": held}
        return vector(columns, f"put the part into bin {named}")

    sides = [[sort(good) for _ in range(30)] for good in (True, False)]
    found: Demonstrations = gathered(*sides, label="last", fields=("part_x", "part_y", "part_z", "held"))
    return WarningSet("any-bin-will-do", found, frozenset({"negatives-far", "instruction-ignored"}))


FAULTY = (
    oversampled_recordings,
    mixed_folders,
    one_thing_in_a_room,
    typed_by_hand,
    morning_shift,
    bins_of_two_days,
    two_simulators,
    scaled_camera,
    sixty_gauges,
    any_bin_will_do,
)
