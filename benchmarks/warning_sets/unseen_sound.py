"""Ten data sets from which a careful user would accept a reward without complaint."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from grace_irl.demos.trajectory import Trajectory
from warning_sets import bodies
from warning_sets.assembly import assembled, babyai, episode
from warning_sets.kinds import WarningSet


def go_to_named_things() -> WarningSet:
    """A room with eight things. Experts go to the one that the instruction names; negatives to another, or at random.

    Instructions vary in type and colour. Half of the negatives do what another instruction would ask for, and often
    share the type or the colour with the right thing. So a reward has to read the instruction.
    """
    return babyai("go to a named thing", "GoToLocalS8N7", seed=201, experts=32, random=16, near=16)


def open_named_doors() -> WarningSet:
    """A room with four doors. Experts open the one that the instruction names; negatives open another one.

    Negatives come as near as possible: they open a door, of the wrong colour. Their episodes are as long as experts'.
    """
    return babyai("open a named door", "OpenDoorColor", seed=202, experts=30, near=30)


def runner_with_rewards() -> WarningSet:
    """A two-legged body that runs, with true rewards. Every state of an expert is positive.

    Experts run fast and upright. Negatives move their hips at random and get nowhere. All episodes have 60 steps, and
    there is no instruction, no goal and no constant. The first states of both sides look alike, as they should.
    """
    rng = np.random.default_rng(203)

    def run(effort: float, skill: float) -> Trajectory:
        states, torques, rewards = bodies.runner(rng, 60, effort, skill)
        return episode(states, actions=torques, rewards=rewards)

    return assembled(
        "runner",
        [run(rng.uniform(0.8, 1.0), 0.9) for _ in range(24)],
        [run(rng.uniform(0.3, 1.0), 0.0) for _ in range(24)],
        label="all",
        fields=["torso_height", "torso_pitch", "forward_velocity", "left_hip", "right_hip", "pitch_velocity"],
    )


def pole_kept_upright() -> WarningSet:
    """A cart with a pole. Experts keep it upright; negatives push at random, and the pole falls and swings.

    Episodes are cut after 40 to 90 steps, drawn alike for both sides, so that their length says nothing. Every state of
    an expert is positive. Both sides start upright, so the first states of negatives are good ones, too.
    """
    rng = np.random.default_rng(204)

    def ride(expert: bool) -> Trajectory:
        force = bodies.balance(rng, 2.0) if expert else lambda _: float(rng.uniform(-10, 10))
        states, forces = bodies.cart_pole(rng, int(rng.integers(40, 91)), force)
        return episode(states, actions=forces)

    return assembled(
        "cart with a pole, two controllers",
        [ride(True) for _ in range(30)],
        [ride(False) for _ in range(30)],
        label="all",
        fields=["cart_position", "cart_velocity", "pole_cos", "pole_sin", "pole_velocity"],
    )


def hand_to_goal() -> WarningSet:
    """A hand that moves to a goal, as records with `achieved_goal` and `desired_goal`.

    Goals are drawn alike on both sides. They stay the same within an episode, but tell no side from the other.
    Negatives go to a wrong place on ways of the same lengths.
    """
    rng = np.random.default_rng(205)

    def move(hit: bool) -> Trajectory:
        goal = rng.uniform(-0.8, 0.8, 3)
        start = bodies.apart(rng, [goal], -0.8, 0.8, 3)
        hand = bodies.glide(rng, start, goal if hit else bodies.apart(rng, [goal, start], -0.8, 0.8, 3), 0.12)
        speed = np.diff(hand, axis=0, prepend=hand[:1])
        states = {
            "observation": np.concatenate([hand, speed], axis=1),
            "achieved_goal": hand,
            "desired_goal": np.tile(goal, (len(hand), 1)),
        }
        return episode(states, ended=hit)

    return assembled("hand to a goal", [move(True) for _ in range(36)], [move(False) for _ in range(36)], label="last")


def vehicle_with_a_clock() -> WarningSet:
    """A vehicle that parks at a spot. Each state has the number of its step.

    Ways have all lengths from 4 to 40 steps on both sides, and many negatives are longer than most experts. So the
    clock cannot tell a goal. The offset to the spot can: it is zero in an expert's last state alone.
    """
    rng = np.random.default_rng(206)

    def park(hit: bool) -> Trajectory:
        spot = rng.uniform(-1, 1, 2)
        start = bodies.apart(rng, [spot], -1, 1, 2)
        path = bodies.glide(
            rng, start, spot if hit else bodies.apart(rng, [spot, start], -1, 1, 2), rng.uniform(0.05, 0.12)
        )
        wait = np.repeat(path[:1], int(rng.integers(0, 12)), axis=0) + rng.normal(0, 0.003, 2)
        path = np.concatenate([wait, path])
        clock = np.arange(len(path), dtype=float)[:, None]
        return episode(np.concatenate([path, spot - path, clock], axis=1), ended=hit)

    return assembled(
        "vehicle with a clock",
        [park(True) for _ in range(40)],
        [park(False) for _ in range(40)],
        label="last",
        fields=["x", "y", "spot_offset_x", "spot_offset_y", "step"],
    )


def touch_a_named_block() -> WarningSet:
    """A gripper over four coloured blocks. The instruction names one, and the state holds the offset to it.

    Negatives touch another block than the named one. The reward need not read the text, because the state says where
    the named block is: a zero offset is right under every instruction, and negatives show wrong blocks touched.
    """
    rng = np.random.default_rng(207)
    colours = ["red", "green", "blue", "yellow"]

    def touch(hit: bool) -> Trajectory:
        named, other = rng.choice(4, 2, replace=False)
        blocks: list[bodies.Floats] = []
        for _ in colours:
            blocks.append(bodies.apart(rng, blocks, -0.5, 0.5, 2, 0.2))
        ground = [np.array([*block, 0.02]) for block in blocks]
        start = np.array([*rng.uniform(-0.5, 0.5, 2), 0.4])
        path = bodies.glide(rng, start, ground[named] if hit else ground[other], 0.08)
        return episode(
            np.concatenate([path, ground[named] - path], axis=1),
            instruction=f"touch the {colours[named]} block",
            ended=hit,
        )

    return assembled(
        "touch a named block",
        [touch(True) for _ in range(32)],
        [touch(False) for _ in range(32)],
        label="last",
        fields=["gripper_x", "gripper_y", "gripper_z", "target_offset_x", "target_offset_y", "target_offset_z"],
    )


def arm_to_target() -> WarningSet:
    """An arm of two links that brings its fingertip to a target, as records.

    Poses and targets are drawn alike on both sides, and episodes vary in length alike. Negatives reach for another
    place than the target. Only the distance between fingertip and target matters.
    """
    rng = np.random.default_rng(208)

    def reach(hit: bool) -> Trajectory:
        while True:
            start, goal, other = (rng.uniform([-2.0, 0.4], [2.0, 2.2]) for _ in range(3))
            tips = [bodies.fingertip(each) for each in (start, goal, other)]
            if min(float(np.linalg.norm(tips[1] - tips[each])) for each in (0, 2)) >= 0.25:
                break
        joints = bodies.glide(rng, start, goal if hit else other, rng.uniform(0.12, 0.25))
        tip = bodies.fingertip(joints)
        return episode({"joints": joints, "fingertip": tip, "target": np.tile(tips[1], (len(tip), 1))}, ended=hit)

    return assembled(
        "arm to a target", [reach(True) for _ in range(40)], [reach(False) for _ in range(40)], label="last"
    )


def car_in_its_lane() -> WarningSet:
    """A car on a lane. Experts keep to the middle, negatives wander off. Every state of an expert is positive.

    Both sides drive at the same speeds on lanes of the same widths, and start near the middle. Lengths are drawn alike.
    The lane's width stays the same within an episode and tells no side from the other.
    """
    rng = np.random.default_rng(209)

    def drive(grip: float, noise: float) -> Trajectory:
        states = bodies.car(rng, int(rng.integers(50, 100)), grip, noise)
        width = np.full((len(states), 1), rng.choice([3.25, 3.5, 3.75]))
        return episode(np.concatenate([states, width], axis=1))

    return assembled(
        "car in its lane",
        [drive(1.0, 0.003) for _ in range(30)],
        [drive(0.0, 0.012) for _ in range(30)],
        label="all",
        fields=["lane_offset", "heading", "speed", "lane_width"],
    )


def tank_at_its_setpoint() -> WarningSet:
    """A leaking tank, as records with a text. Experts hold the level at the setpoint; negatives let the inflow wander.

    Setpoints are drawn alike on both sides and stay the same within an episode. The pump's text says whether much water
    flows in, by one rule for both sides. Every state of an expert is positive.
    """
    rng = np.random.default_rng(210)

    def hold(gain: float) -> Trajectory:
        setpoint, steps = rng.uniform(0.4, 0.8), int(rng.integers(50, 80))
        level, inflow = bodies.tank(rng, steps, setpoint, gain)
        pump = np.where(inflow > 0.1, b"running", b"idle")
        states = {
            "tank/level": level,
            "tank/inflow": inflow,
            "tank/error": level - setpoint,
            "setpoint": np.full(steps + 1, setpoint),
            "pump": pump,
        }
        return episode(states)

    return assembled(
        "tank at its setpoint", [hold(0.8) for _ in range(30)], [hold(0.0) for _ in range(30)], label="all"
    )


SOUND: tuple[Callable[[], WarningSet], ...] = (
    go_to_named_things,
    open_named_doors,
    runner_with_rewards,
    pole_kept_upright,
    hand_to_goal,
    vehicle_with_a_clock,
    touch_a_named_block,
    arm_to_target,
    car_in_its_lane,
    tank_at_its_setpoint,
)
