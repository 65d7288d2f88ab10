"""Ten data sets from which a reward would be wrong, each for one reason."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grace_irl.demos.trajectory import Trajectory
from warning_sets import bodies
from warning_sets.assembly import assembled, babyai, episode
from warning_sets.kinds import WarningSet


def three_arm_episodes() -> WarningSet:
    """An arm that brings its fingertip to a target, three times, and to another place, three times.

    The data are sound: the fingertip is at the target in an expert's last state and nowhere else. But three episodes a
    side are too few. After a part of them is held out, one or two episodes judge the reward, and almost any place or
    pose can pass for the goal by chance.
    """
    rng = np.random.default_rng(101)

    def reach(hit: bool) -> Trajectory:
        start, goal, other = (rng.uniform([-2.0, 0.4], [2.0, 2.2]) for _ in range(3))
        while (
            min(float(np.linalg.norm(bodies.fingertip(goal) - bodies.fingertip(each))) for each in (start, other)) < 0.3
        ):
            start, other = (rng.uniform([-2.0, 0.4], [2.0, 2.2]) for _ in range(2))
        joints = bodies.glide(rng, start, goal if hit else other, 0.15)
        target = np.tile(bodies.fingertip(goal), (len(joints), 1))
        return episode({"arm/joints": joints, "arm/tip": bodies.fingertip(joints), "target": target}, ended=hit)

    experts, negatives = [reach(True) for _ in range(3)], [reach(False) for _ in range(3)]
    return assembled("arm, three episodes", experts, negatives, label="last", expected=["few-episodes"])


def one_controller_twice() -> WarningSet:
    """A cart with a pole. The same controller made the experts and the negatives.

    Nothing that the cart does is better on one side than on the other. A reward that tells the two sides apart has
    learnt the noise of these 60 episodes, so it gets them right in training alone.
    """
    rng = np.random.default_rng(102)

    def ride() -> Trajectory:
        states, forces = bodies.cart_pole(rng, int(rng.integers(90, 150)), bodies.balance(rng, 3.0))
        return episode(states, actions=forces)

    return assembled(
        "cart with a pole, one controller",
        [ride() for _ in range(30)],
        [ride() for _ in range(30)],
        label="all",
        fields=["cart_position", "cart_velocity", "pole_cos", "pole_sin", "pole_velocity"],
        expected=["no-difference", "memorised", "held-out-below"],
    )


def any_bin_will_do() -> WarningSet:
    """A gripper that brings a block to the bin that the instruction names. Negatives never let the block go.

    A negative carries the block low over some bin and stops there, with the block in its grip. So "the grip is open
    and the block lies in a bin" tells experts from negatives without a fault. No episode shows a block in the wrong
    bin, and a reward that pays for it under every instruction fits the data as well as the right one.
    """
    rng = np.random.default_rng(103)
    bins = {"left": -0.4, "middle": 0.0, "right": 0.4}

    def carry(release: bool) -> Trajectory:
        named = str(rng.choice(list(bins)))
        place = bins[named] if release else bins[str(rng.choice(list(bins)))]
        start, goal = np.array([rng.uniform(-0.5, 0.5), 0.3]), np.array([place + rng.uniform(-0.05, 0.05), 0.05])
        above = np.array([goal[0], 0.3])
        over = bodies.glide(rng, start, above, 0.08) if abs(start[0] - above[0]) > 0.04 else start[None]
        path = np.concatenate([over, bodies.glide(rng, above, goal, 0.06)])
        grip = np.zeros((len(path), 1))
        states = np.concatenate([path, path - [0, 0.02], grip], axis=1)
        if release:
            last = states[-1].copy()
            last[3], last[4] = 0.02, 1.0
            states = np.concatenate([states, last[None]])
        return episode(states, instruction=f"put the block into the {named} bin", ended=release)

    return assembled(
        "gripper with three bins",
        [carry(True) for _ in range(32)],
        [carry(False) for _ in range(32)],
        label="last",
        fields=["gripper_x", "gripper_z", "block_x", "block_z", "grip_open"],
        expected=["instruction-ignored"],
    )


def red_ball_alone() -> WarningSet:
    """Rooms with many things, and one instruction in all episodes: "go to the red ball".

    Negatives go to another thing, so the reward has to say which thing counts. But it can only name the red ball: no
    episode shows what another instruction would mean. The reward pays for the red ball whatever the instruction says.
    """
    return babyai(
        "go to the red ball, no other instruction",
        "GoToRedBall",
        seed=104,
        experts=30,
        near=30,
        instruction="go to the red ball",
        expected=["one-instruction", "instruction-ignored"],
    )


def battery_as_clock() -> WarningSet:
    """A drone that flies to a pad and hovers there. Only the last state of an expert is positive.

    Every expert hovers until step 60, and every negative is called off earlier, while it hovers over the same pad. The
    last state of an expert looks like the ones before it, but for the battery, which drains by the same amount in
    every step. "The battery is below 0.41" separates all states. It is a clock, and it says nothing of the flight.
    """
    rng = np.random.default_rng(105)

    def flight(steps: int, expert: bool) -> Trajectory:
        way = bodies.glide(rng, bodies.apart(rng, [np.zeros(2)], -1, 1, 2, 0.4), np.zeros(2), 0.08)[:steps]
        hover = 0.02 * np.stack([bodies.drift(rng, steps + 1 - len(way)) for _ in range(2)], 1)
        places = np.concatenate([way, hover])
        speeds = np.diff(places, axis=0, prepend=places[:1])
        battery = 1.0 - 0.01 * np.arange(steps + 1)[:, None]
        return episode(np.concatenate([places, speeds, battery], axis=1), ended=expert)

    return assembled(
        "drone with a battery",
        [flight(60, True) for _ in range(30)],
        [flight(int(rng.integers(40, 59)), False) for _ in range(30)],
        label="last",
        fields=["x", "z", "velocity_x", "velocity_z", "battery"],
        expected=["time"],
    )


def heavy_payloads_fail() -> WarningSet:
    """A driven pendulum that is held upright. Experts had light payloads, negatives heavy ones.

    The payload is drawn anew for each episode and stays the same in it. It is below 1 kg in all experts and above 1 kg
    in all negatives. Negatives hold the pendulum somewhat less still, but most of their states could be an expert's. So
    the payload is the only number that separates the sides, and it was chosen by whoever recorded the data.
    """
    rng = np.random.default_rng(106)

    def hold(low: float, high: float, noise: float) -> Trajectory:
        payload, angle, speed, rows = rng.uniform(low, high), rng.normal(0, 0.15), rng.normal(0, 0.1), []
        for _ in range(int(rng.integers(40, 60))):
            rows.append((angle, speed))
            speed += 0.05 * (9.8 * np.sin(angle) - 30 * angle - 6 * speed) + rng.normal(0, noise)
            angle += 0.05 * speed
        angles, speeds = np.array(rows).T
        return episode({"pendulum/angle": angles, "pendulum/velocity": speeds, "payload": np.full(len(rows), payload)})

    return assembled(
        "pendulum with a payload",
        [hold(0.4, 0.95, 0.10) for _ in range(28)],
        [hold(1.05, 1.6, 0.13) for _ in range(28)],
        label="all",
        expected=["constant-field"],
    )


def lanes_of_two_simulators() -> WarningSet:
    """A car that keeps its lane. The experts come from one simulator and the negatives from another one.

    The lane is 3.5 m wide in one simulator and 12 feet (3.66 m) in the other, and the wheelbases differ, too. Both
    numbers never change. They separate the two sides without a fault, while the drivers differ little: a reward that
    reads them pays for the simulator.
    """
    rng = np.random.default_rng(107)

    def drive(grip: float, noise: float, lane: float, wheelbase: float) -> Trajectory:
        states = bodies.car(rng, 60, grip, noise)
        return episode(np.concatenate([states, np.tile([lane, wheelbase], (61, 1))], axis=1))

    return assembled(
        "car in two simulators",
        [drive(1.0, 0.006, 3.5, 2.7) for _ in range(30)],
        [drive(0.9, 0.008, 3.6576, 2.89) for _ in range(30)],
        label="all",
        fields=["lane_offset", "heading", "speed", "lane_width", "wheelbase"],
        expected=["constants", "constant-field"],
    )


def flattened_pictures() -> WarningSet:
    """A dot that moves to a ring, as 16 by 16 brightnesses in one row of 256 numbers without names.

    A goal is a picture in which the dot is in the ring, anywhere. A reward that adds up thresholds of single pixels
    cannot say that. It finds pixels that happened to be bright in the last pictures of these experts.
    """
    rng = np.random.default_rng(108)
    rows, columns = np.mgrid[0:16, 0:16]

    def picture(dot: bodies.Floats, ring: bodies.Floats) -> bodies.Floats:
        near, far = (np.hypot(columns - 15 * each[0], rows - 15 * each[1]) for each in (dot, ring))
        shades: bodies.Floats = np.clip(np.exp(-(near**2)) + 0.5 * np.exp(-2 * (far - 2) ** 2), 0, 1)
        return shades.ravel()

    def move(hit: bool) -> Trajectory:
        ring = rng.uniform(0.15, 0.85, 2)
        start = bodies.apart(rng, [ring], 0.1, 0.9, 2)
        path = bodies.glide(rng, start, ring if hit else bodies.apart(rng, [ring, start], 0.1, 0.9, 2), 0.07)
        return episode(np.stack([picture(each, ring) for each in path]).astype(np.float32), ended=hit)

    return assembled(
        "dot and ring, flattened",
        [move(True) for _ in range(30)],
        [move(False) for _ in range(30)],
        label="last",
        expected=["pixels"],
    )


def drifting_sensors() -> WarningSet:
    """Runs of a machine, good and bad, with 36 sensors of which two say a little about which is which.

    Every sensor drifts so slowly that a run of 40 states is hardly more than one reading of it. There are 20 runs a
    side and almost twice as many sensors, so a few of them separate the training runs by chance. Two sensors read
    higher by 1.2 deviations in good runs. That is all a reward can know about new runs, and far less than it shows in
    training.
    """
    rng = np.random.default_rng(109)

    def run(good: bool) -> Trajectory:
        readings = np.stack([bodies.drift(rng, 40, 0.995) for _ in range(36)], 1)
        readings[:, [11, 23]] += 1.2 * good
        return episode(readings)

    return assembled(
        "machine with drifting sensors",
        [run(True) for _ in range(20)],
        [run(False) for _ in range(20)],
        label="all",
        fields=[f"sensor_{number:02}" for number in range(36)],
        expected=["memorised", "held-out-below"],
    )


def doors_never_opened() -> WarningSet:
    """A room with four doors, of which the instruction names one. Negatives are random and last 15 steps.

    No negative opens a door in that time: the few that began beside one and opened it are left out. So a reward that
    pays for any door that opens pays no negative, and neither does one that reads the colour. The negatives cannot tell
    these two apart.
    """
    from minigrid.core.constants import OBJECT_TO_IDX, STATE_TO_IDX

    found = babyai(
        "doors, short random negatives",
        "OpenDoorColor",
        seed=110,
        experts=30,
        random=34,
        random_steps=15,
        expected=["negatives-far", "instruction-ignored"],
    )
    door, opened = OBJECT_TO_IDX["door"], STATE_TO_IDX["open"]

    def opens(states: NDArray[Any]) -> bool:
        return bool(((states[..., 0] == door) & (states[..., 2] == opened)).any())

    items = [item for item in found.demonstrations if item.role == "expert" or not opens(item.trajectory.states)]
    return replace(found, demonstrations=replace(found.demonstrations, items=tuple(items)))


FAULTY: tuple[Callable[[], WarningSet], ...] = (
    three_arm_episodes,
    one_controller_twice,
    any_bin_will_do,
    red_ball_alone,
    battery_as_clock,
    heavy_payloads_fail,
    lanes_of_two_simulators,
    flattened_pictures,
    drifting_sensors,
    doors_never_opened,
)
