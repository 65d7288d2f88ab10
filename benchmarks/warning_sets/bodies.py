"""Simulated bodies that the data sets are recorded from: points, arms, carts with poles, runners, cars and tanks.

Every function draws one episode from a NumPy generator and returns arrays with one row per state.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Rng = np.random.Generator


def glide(rng: Rng, start: Floats, goal: Floats, speed: float = 0.1, tolerance: float = 0.03) -> Floats:
    """Positions `(T+1, n)` of a point that moves to `goal` by at most `speed` per step, until it is within `tolerance`.

    The start must be further away than `tolerance`.
    """
    path = [start]
    while np.linalg.norm(goal - path[-1]) >= tolerance:
        gap = goal - path[-1]
        step = gap * min(1.0, speed / float(np.linalg.norm(gap)))
        path.append(path[-1] + step + rng.normal(0, 0.005, len(goal)))
    return np.stack(path)


def apart(rng: Rng, away: list[Floats], low: float, high: float, size: int, distance: float = 0.3) -> Floats:
    """A uniform point of `size` numbers that is at least `distance` from each point of `away`."""
    while True:
        point = rng.uniform(low, high, size)
        if all(np.linalg.norm(point - other) >= distance for other in away):
            return point


def fingertip(joints: Floats) -> Floats:
    """Position `(..., 2)` of the tip of an arm with two links of length 0.5, from its two joint angles."""
    shoulder, both = joints[..., 0], joints[..., 0] + joints[..., 1]
    return np.stack([0.5 * np.cos(shoulder) + 0.5 * np.cos(both), 0.5 * np.sin(shoulder) + 0.5 * np.sin(both)], -1)


def cart_pole(rng: Rng, steps: int, force: Callable[[Floats], float]) -> tuple[Floats, Floats]:
    """States `(steps+1, 5)` and forces `(steps, 1)` of a cart with a pole that starts almost upright.

    A state is the cart's place and speed, the cosine and sine of the pole's angle, and the angle's speed. A pole that
    falls goes on to swing below the cart. `force` is given place, speed, angle and angular speed.
    """
    body = np.array([*rng.uniform(-0.3, 0.3, 2), *rng.uniform(-0.12, 0.12, 2)])
    rows, forces = [body], []
    for _ in range(steps):
        push = float(np.clip(force(body), -12, 12))
        place, speed, angle, turning = body
        cos, sin = np.cos(angle), np.sin(angle)
        drag = (push + 0.05 * turning**2 * sin - 0.5 * speed) / 1.1
        spin = (9.8 * sin - cos * drag) / (0.5 * (4 / 3 - 0.1 * cos**2 / 1.1)) - 0.1 * turning
        body = np.array(
            [place + 0.02 * speed, speed + 0.02 * (drag - 0.045 * spin * cos), angle + 0.02 * turning, turning]
        )
        body[3] = turning + 0.02 * spin
        rows.append(body)
        forces.append([push])
    place, speed, angle, turning = np.stack(rows).T
    return np.stack([place, speed, np.cos(angle), np.sin(angle), turning], 1), np.array(forces)


def balance(rng: Rng, noise: float) -> Callable[[Floats], float]:
    """A force that keeps the pole upright, with this much noise."""
    gains = np.array([1.5, 3.0, 42.0, 9.0])
    return lambda body: float(gains @ body + rng.normal(0, noise))


def drift(rng: Rng, steps: int, keep: float = 0.9) -> Floats:
    """A slow random signal `(steps,)` of variance 1, whose next value keeps this share of the last one."""
    signal = [rng.normal()]
    for _ in range(steps - 1):
        signal.append(keep * signal[-1] + np.sqrt(1 - keep**2) * rng.normal())
    return np.array(signal)


def runner(rng: Rng, steps: int, effort: float, skill: float) -> tuple[Floats, Floats, Floats]:
    """States `(steps+1, 6)`, torques `(steps, 2)` and rewards `(steps,)` of a body that runs on two legs.

    A state is the torso's height, pitch and forward speed, both hips' angles, and the speed of the pitch. Torques in
    step with the gait push the body forward. The reward is the forward speed less a cost of the torques.

    Args:
        rng: generator of the noise.
        steps: number of steps.
        effort: size of the torques.
        skill: share of the torques that is in step with the gait, 0 to 1. The rest is random.
    """
    speed, pitch, turning, phase = rng.normal(0, 0.1), rng.normal(0, 0.05), 0.0, rng.uniform(0, 2 * np.pi)
    hips = rng.normal(0, 0.1, 2)
    rows, torques, rewards = [], [], []
    for step in range(steps + 1):
        rows.append([1.25 - 0.3 * abs(pitch) + 0.01 * rng.normal(), pitch, speed, *hips, turning])
        if step == steps:
            break
        beat = np.array([np.sin(phase), -np.sin(phase)])
        torque = effort * (skill * beat + (1 - skill) * rng.uniform(-1, 1, 2))
        phase += 0.35
        hips = 0.8 * hips + 0.3 * torque
        push = float(torque @ beat)
        speed = 0.92 * speed + 0.12 * push + 0.02 * rng.normal()
        turning = 0.7 * turning - 0.25 * skill * pitch + 0.08 * float(torque.sum()) + 0.01 * rng.normal()
        pitch = float(np.clip(pitch + 0.5 * turning, -1.2, 1.2))
        torques.append(torque)
        rewards.append(speed - 0.1 * float(torque @ torque))
    return np.array(rows), np.array(torques), np.array(rewards)


def car(rng: Rng, steps: int, grip: float, noise: float) -> Floats:
    """States `(steps+1, 3)` of a car on a straight lane: offset from the middle (m), heading (rad) and speed (m/s).

    Args:
        rng: generator of the start, the speed and the noise.
        steps: number of steps of 0.1 s.
        grip: how strongly the driver steers to the middle; 0 lets the car wander.
        noise: standard deviation of the heading's change in a step.
    """
    offset, heading, speed = rng.normal(0, 0.3), rng.normal(0, 0.02), rng.uniform(18, 24)
    rows = []
    for _ in range(steps + 1):
        rows.append([offset, heading, speed])
        heading += -grip * (0.02 * offset + 0.25 * heading) + rng.normal(0, noise)
        offset += 0.1 * speed * heading
        speed += rng.normal(0, 0.1)
    return np.array(rows)


def tank(rng: Rng, steps: int, setpoint: float, gain: float) -> tuple[Floats, Floats]:
    """Levels and inflows `(steps+1,)` of a tank that leaks.

    With gain 0 the inflow wanders, and nobody looks at the level.
    """
    level, wander = setpoint + rng.uniform(-0.08, 0.08), drift(rng, steps + 1, 0.97)
    levels, inflows = [], []
    for step in range(steps + 1):
        wanted = 0.2 * setpoint + gain * (setpoint - level) if gain else 0.12 + 0.08 * wander[step]
        inflow = float(np.clip(wanted + rng.normal(0, 0.005), 0, 0.5))
        levels.append(level)
        inflows.append(inflow)
        level = float(np.clip(level + 0.5 * (inflow - 0.2 * level) + rng.normal(0, 0.004), 0, 1))
    return np.array(levels), np.array(inflows)
