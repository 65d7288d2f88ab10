"""Ten later data sets with nothing to complain about: a simple reward exists, and the data suffice to find it.

Where only the last state of an expert is a goal, no earlier one fulfils it, and no negative ever does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from grace_irl.demos.trajectory import Trajectory
from warning_sets.assembly import assembled, babyai, episode
from warning_sets.bodies import Floats, Rng, apart, drift
from warning_sets.kinds import WarningSet

S = TypeVar("S", Floats, Mapping[str, Floats])


def _drawn(make: Callable[[], S], goal: Callable[[S], NDArray[np.bool_]], *, expert: bool) -> S:
    """States of an episode in which the goal is reached in the last state alone (an expert), or in none."""
    while True:
        states = make()
        reached = goal(states)
        if bool(reached[-1]) == expert and not reached[:-1].any():
            return states


def bowed(rng: Rng, start: Floats, goal: Floats, stride: float, bow: float) -> Floats:
    """Positions `(T+1, n)` on a bowed way from `start` to `goal` in steps of about `stride`."""
    count = max(4, int(np.ceil(np.linalg.norm(goal - start) / stride)))
    share = np.linspace(0, 1, count + 1)[:, None]
    hump = np.sin(np.pi * share)
    return (
        start + share * (goal - start) + hump * (rng.normal(0, bow, len(goal)) + rng.normal(0, bow / 8, (count + 1, 1)))
    )


def around(rng: Rng, centre: Floats, low: float, high: float) -> Floats:
    """A point of the plane whose distance from `centre` is between `low` and `high`."""
    angle = rng.uniform(0, 2 * np.pi)
    return centre + rng.uniform(low, high) * np.array([np.cos(angle), np.sin(angle)])


def _lengths(rows: Floats) -> Floats:
    """The norm of each row."""
    norms: Floats = np.linalg.norm(rows, axis=1)
    return norms


def tug_at_berth() -> WarningSet:
    """Harbour tugs that moor at a berth, whose place is in the state.

    The true goal is a tug within 9 m of its berth at less than 0.6 knots. Negatives pass the berth without a stop,
    or stop somewhere else, many of them only a little too far away. Tugs on both sides also wait in open water.
    """
    rng = np.random.default_rng(91_011)

    def moored(states: Floats) -> NDArray[np.bool_]:
        return (_lengths(states[:, :2] - states[:, 2:4]) < 9) & (states[:, 4] < 0.6)

    def leg(start: Floats, end: Floats) -> Floats:
        way = bowed(rng, start, end, rng.uniform(6, 11), 4)
        knots = _lengths(np.diff(way, axis=0)) / 5.14 + rng.normal(0, 0.05, len(way) - 1)
        return np.column_stack([way, np.append(np.maximum(knots, 0.8), rng.uniform(0, 0.4))])

    def voyage(kind: str) -> Floats:
        berth = rng.uniform(-100, 100, 2)
        start = around(rng, berth, 90, 190)
        ends = {
            "moors": around(rng, berth, 0, 6.5),
            "short": around(rng, berth, 12, 35),
            "away": around(rng, berth, 35, 90),
            "passes": berth + (berth - start) * rng.uniform(0.15, 0.5) + rng.normal(0, 2, 2),
        }
        stop = [around(rng, (start + berth) / 2, 0, 15)] if rng.random() < 0.4 else []
        points = [start, *stop, ends[kind]]
        parts = [leg(a, b) for a, b in pairwise(points)]
        rows = np.concatenate(parts)
        wind = np.abs(7 + 2 * drift(rng, len(rows)))
        berths = np.broadcast_to(berth, (len(rows), 2))
        return np.column_stack([rows[:, :2].round(1), berths.round(1), rows[:, 2].round(2), wind.round(1)])

    def recorded(kind: str) -> Trajectory:
        return episode(_drawn(lambda: voyage(kind), moored, expert=kind == "moors"))

    return assembled(
        "later tug at berth",
        [recorded("moors") for _ in range(36)],
        [recorded(kind) for kind in ("short", "passes", "away", "passes", "short", "passes") * 6],
        label="last",
        fields=("tug_x", "tug_y", "berth_x", "berth_y", "speed_kn", "wind_ms"),
    )


def cup_to_place() -> WarningSet:
    """A kitchen robot that carries a cup to the sink, the stove or the shelf.

    The true goal is the cup within 5 cm of the place that the instruction names. Negatives carry it to another place
    or set it down a little beside the right one, and experts come by other places on their ways.
    """
    rng = np.random.default_rng(91_012)
    places = ("sink", "stove", "shelf")

    def carry(named: str, kind: str) -> Mapping[str, Floats]:
        spots: list[Floats] = []
        while len(spots) < 4:
            spots.append(apart(rng, spots, 0, 1, 2))
        where = dict(zip(places, spots, strict=False))
        wrong = [place for place in places if place != named][int(rng.integers(2))]
        end = {
            "right": around(rng, where[named], 0, 0.03),
            "beside": around(rng, where[named], 0.075, 0.22),
            "wrong": around(rng, where[wrong], 0, 0.03),
        }[kind]
        other = around(rng, where[wrong], 0, 0.03)
        via = [other] if kind != "wrong" and rng.random() < 0.4 else []
        points = [spots[3], *via, end]
        stride = rng.uniform(0.09, 0.13)
        parts = [bowed(rng, a, b, stride, 0.02) for a, b in pairwise(points)]
        cup = np.concatenate(parts)
        grip = 0.07 + 0.004 * drift(rng, len(cup))
        fixed = {name: np.broadcast_to(spot, cup.shape).round(3) for name, spot in where.items()}
        return {"cup": cup.round(3), **fixed, "grip_m": grip.round(3)}

    def recorded(number: int, kind: str) -> Trajectory:
        named = places[number % 3]

        def there(states: Mapping[str, Floats]) -> NDArray[np.bool_]:
            return _lengths(states["cup"] - states[named]) < 0.05

        states = _drawn(lambda: carry(named, kind), there, expert=kind == "right")
        return episode(states, instruction=f"carry the cup to the {named}")

    return assembled(
        "later cup to place",
        [recorded(number, "right") for number in range(45)],
        [recorded(number, "wrong" if number // 3 % 2 else "beside") for number in range(48)],
        label="last",
    )


def low_forks() -> WarningSet:
    """Forklifts that drive through a warehouse.

    The true goal is a style: the forks stay below 0.31 m while driving. In the negatives they are higher, by
    centimetres or by a metre. All else is the same on both sides.
    """
    rng = np.random.default_rng(91_013)

    def drive(low: bool) -> Trajectory:
        count = int(rng.integers(20, 50))
        if low:
            height = np.clip(0.17 + 0.06 * drift(rng, count, 0.8), 0.04, 0.29)
        else:
            height = np.clip(0.33 + rng.uniform(0.05, 0.5) * np.abs(drift(rng, count, 0.8)), 0.33, 1.8)
        return episode(
            np.column_stack(
                [
                    (2 + 0.7 * drift(rng, count)).round(2),
                    (12 * drift(rng, count, 0.8)).round(0),
                    height.round(3),
                    (2 + 1.5 * drift(rng, count)).round(1),
                    np.abs(6 + 3 * drift(rng, count)).round(1),
                ]
            )
        )

    return assembled(
        "later low forks",
        [drive(True) for _ in range(32)],
        [drive(False) for _ in range(32)],
        label="all",
        fields=("speed_ms", "steer_deg", "fork_m", "mast_deg", "front_m"),
    )


def facade_flight() -> WarningSet:
    """Drones that photograph a wavy façade.

    The true goal is a style: the drone keeps 1.5 to 2.5 m from the wall. Negatives fly too near or too far away. The
    wall lies elsewhere in each episode, and in each state.
    """
    rng = np.random.default_rng(91_014)

    def flight(kind: str) -> Trajectory:
        count = int(rng.integers(25, 55))
        along = rng.uniform(-10, 10) + np.cumsum(rng.normal(0, 0.6, count))
        wall = rng.uniform(-15, 15) + 1.2 * np.sin(along / 3 + rng.uniform(0, 6))
        swing = drift(rng, count, 0.8)
        gap = {
            "keeps": np.clip(2 + 0.25 * swing, 1.56, 2.44),
            "near": np.clip(1.44 - rng.uniform(0.1, 0.5) * np.abs(swing), 0.3, 1.44),
            "far": np.clip(2.56 + rng.uniform(0.1, 1.5) * np.abs(swing), 2.56, 6),
        }[kind]
        height = 14 + 3 * drift(rng, count)
        tilt = np.abs(6 + 3 * drift(rng, count, 0.6))
        return episode(np.column_stack([wall - gap, along, height, wall, tilt]).round(2))

    return assembled(
        "later facade flight",
        [flight("keeps") for _ in range(36)],
        [flight(kind) for kind in ("near", "far") * 18],
        label="all",
        fields=("drone_x", "drone_y", "drone_z", "wall_x", "tilt_deg"),
    )


def titration() -> WarningSet:
    """A titrator in a chemistry lab that brings a solution to a target pH, from below or from above.

    The true goal is a pH within 0.2 of the target with the burette shut (a rate below 0.05 ml/s). Negatives stop
    before the target or behind it, or reach it with the burette open. Both sides also have pauses with it shut.
    """
    rng = np.random.default_rng(91_015)

    def settled(states: Floats) -> NDArray[np.bool_]:
        return (np.abs(states[:, 0] - states[:, 1]) < 0.2) & (states[:, 2] < 0.05)

    def run(kind: str) -> Floats:
        target, side = round(rng.uniform(5, 9), 1), rng.choice([-1.0, 1.0])
        end = {
            "hits": rng.uniform(-0.13, 0.13),
            "before": side * rng.uniform(0.28, 1.3),
            "behind": -side * rng.uniform(0.28, 1.3),
            "open": rng.uniform(-0.15, 0.15),
        }[kind]
        count = int(rng.integers(10, 26))
        fall = np.append(np.sort(rng.uniform(0, 1, count - 2))[::-1], [0, 0])
        gap = np.append(end + side * rng.uniform(2, 3.5) * np.r_[1, fall[:-1]], end)
        rate = rng.uniform(0.1, 0.6, count + 1)
        rate[rng.random(count + 1) < 0.2] = 0
        rate[-1] = rng.uniform(0.1, 0.6) if kind == "open" else 0
        ph = target + gap + rng.normal(0, 0.01, count + 1)
        bath = 22 + 0.8 * drift(rng, count + 1)
        stir = 400 + 15 * drift(rng, count + 1, 0.5)
        goal = np.full(count + 1, target)
        return np.column_stack([ph.round(2), goal, rate.round(2), bath.round(1), stir.round(0)])

    def recorded(kind: str) -> Trajectory:
        return episode(_drawn(lambda: run(kind), settled, expert=kind == "hits"))

    return assembled(
        "later titration",
        [recorded("hits") for _ in range(36)],
        [recorded(kind) for kind in ("before", "behind", "open") * 12],
        label="last",
        fields=("ph", "target_ph", "rate_mls", "bath_c", "stir_rpm"),
    )


def lantern_at_flag() -> WarningSet:
    """A cave game in which a player must stand at the flag with the lantern lit.

    The true goal is a player within 1 of the flag and a lantern above 0.5. Players light it on the way or at the
    flag. Negatives stand at the flag in the dark, or stop with the lantern lit a little before the flag or far off.
    """
    rng = np.random.default_rng(91_016)

    def won(states: Mapping[str, Floats]) -> NDArray[np.bool_]:
        return (_lengths(states["player"] - states["flag"]) < 1) & (states["lantern"] > 0.5)

    def game(kind: str) -> Mapping[str, Floats]:
        flag = rng.uniform(-15, 15, 2)
        start = around(rng, flag, 12, 28)
        end = {
            "wins": around(rng, flag, 0, 0.7),
            "dark": around(rng, flag, 0, 0.7),
            "short": around(rng, flag, 1.4, 4),
            "away": around(rng, flag, 4, 15),
        }[kind]
        player = bowed(rng, start, end, rng.uniform(1.6, 2.2), 1.2)
        wait = int(rng.integers(1, 6))
        player = np.concatenate([player, player[-1] + rng.normal(0, 0.05, (wait, 2))])
        count = len(player)
        light = rng.uniform(0.65, 1, count)
        dim = rng.uniform(0, 0.35, count)
        lantern = dim
        if kind == "wins" and rng.random() < 0.5:
            lantern[-1] = light[-1]
        elif kind == "wins":
            player, count = player[:-wait], count - wait
            lit = int(rng.integers(2, count - 1))
            lantern = np.r_[dim[:lit], light[lit:count]]
        elif kind == "dark":
            lit = int(rng.integers(0, count // 3))
            lantern[lit : lit + int(rng.integers(0, count // 3))] = 0.8
        else:
            lit = int(rng.integers(2, count))
            lantern = np.r_[dim[:lit], light[lit:]]
        stamina = np.clip(0.6 + 0.2 * drift(rng, count, 0.8), 0, 1)
        return {
            "player": player.round(2),
            "flag": np.broadcast_to(flag, player.shape).round(2),
            "lantern": lantern.round(2),
            "stamina": stamina.round(2),
        }

    def recorded(kind: str) -> Trajectory:
        return episode(_drawn(lambda: game(kind), won, expert=kind == "wins"))

    return assembled(
        "later lantern at flag",
        [recorded("wins") for _ in range(40)],
        [recorded(kind) for kind in ("dark", "short", "dark", "away") * 10],
        label="last",
    )


def calm_hook() -> WarningSet:
    """A ship's crane that sets a load on a deck that heaves.

    The true goal is a hook within 0.4 m of the deck and a sway of less than 1.5 degrees (the norm of both angles).
    Experts come down with a calm load, or hover over the deck until it is calm. Negatives stop above or below the
    deck's height with a calm load, or hover there with one that still sways.
    """
    rng = np.random.default_rng(91_017)

    def landed(states: Floats) -> NDArray[np.bool_]:
        return (_lengths(states[:, :2]) < 1.5) & (np.abs(states[:, 2] - states[:, 3]) < 0.4)

    def lift(kind: str) -> Floats:
        count = int(rng.integers(14, 34))
        deck = rng.uniform(2, 5) + 0.5 * drift(rng, count)
        down = np.linspace(1, 0, count) ** rng.uniform(0.8, 1.2)
        hover = np.clip(np.linspace(1.6, -1, count), 0, 1)
        fall = rng.uniform(9, 15)
        gap = {
            "lands": fall * down + rng.normal(0, 0.08, count),
            "waits": fall * hover + rng.normal(0, 0.1, count),
            "stops": fall * down + rng.choice([-1, 1, 1]) * rng.uniform(0.6, 2.5),
            "sways": fall * hover + rng.normal(0, 0.1, count),
        }[kind]
        calm = rng.uniform(0.2, 1.2, count)
        wild = rng.uniform(1.9, 3) + np.abs(2 * drift(rng, count)) + 2 * np.linspace(1, 0, count)
        size = calm if kind in ("lands", "stops") else wild
        if kind == "waits":
            size[-1] = calm[-1]
        angle = rng.uniform(0, 2 * np.pi) + 0.9 * np.arange(count)
        sway = np.column_stack([size * np.cos(angle), size * np.sin(angle)])
        wind = np.abs(6 + 2 * drift(rng, count))
        return np.column_stack([sway.round(2), (deck + gap).round(2), deck.round(2), wind.round(1)])

    def recorded(kind: str) -> Trajectory:
        return episode(_drawn(lambda: lift(kind), landed, expert=kind in ("lands", "waits")))

    return assembled(
        "later calm hook",
        [recorded(kind) for kind in ("lands", "waits") * 20],
        [recorded(kind) for kind in ("stops", "sways") * 22],
        label="last",
        fields=("sway_x_deg", "sway_y_deg", "hook_m", "deck_m", "wind_ms"),
    )


def sit_to_stand() -> WarningSet:
    """Patients with wearable sensors who practise to rise from a chair.

    The true goal is a hip more than 0.35 m above the knee and a trunk that leans by less than 15 degrees. Experts
    rise at once or after attempts. Negatives rise halfway, stand bent forward, or sink back into the chair.
    """
    rng = np.random.default_rng(91_018)

    def upright(states: Floats) -> NDArray[np.bool_]:
        return (states[:, 0] - states[:, 1] > 0.35) & (states[:, 2] < 15)

    def rise(kind: str) -> Floats:
        tall = rng.uniform(0.39, 0.48)
        top = tall if kind in ("stands", "bent") else rng.uniform(0.14, 0.31)
        attempt = [0.03, rng.uniform(0.1, 0.3)] if rng.random() < 0.5 else []
        knots = [0.03, top, 0.03] if kind == "sinks" else [*attempt, 0.03, top]
        steps = [int(rng.integers(6, 12)) for _ in knots[1:]]
        lifts = [np.linspace(a, b, step) for a, b, step in zip(knots[:-1], knots[1:], steps, strict=True)]
        hip = np.concatenate(lifts) + rng.normal(0, 0.006, sum(steps))
        count = len(hip)
        lean = 8 + 90 * np.clip(hip, 0, 0.45) + 3 * drift(rng, count, 0.7)
        if kind in ("stands", "half"):
            lean[-1] = rng.uniform(2, 12)
        if kind == "bent":
            lean[-1] = rng.uniform(18, 45)
        knee = rng.uniform(0.44, 0.55) + rng.normal(0, 0.005, count)
        wrist = knee + 0.25 + 0.08 * drift(rng, count)
        pulse = 88 + 9 * drift(rng, count)
        return np.column_stack([(knee + hip).round(3), knee.round(3), lean.round(1), wrist.round(3), pulse.round(0)])

    def recorded(kind: str) -> Trajectory:
        return episode(_drawn(lambda: rise(kind), upright, expert=kind == "stands"))

    return assembled(
        "later sit to stand",
        [recorded("stands") for _ in range(36)],
        [recorded(kind) for kind in ("half", "bent", "sinks", "bent") * 9],
        label="last",
        fields=("hip_z", "knee_z", "lean_deg", "wrist_z", "pulse_bpm"),
    )


def go_to_named() -> WarningSet:
    """A room with eight things, and an agent that is asked to go to one of them by colour and type.

    The true goal is to face the named thing from the next cell. Negatives go to another thing, or move at random.
    """
    return babyai("later go to named", "GoToLocal", seed=91_019, experts=60, random=20, random_steps=7, near=40)


def open_named_door() -> WarningSet:
    """A room with four doors of different colours, and an agent that is asked to open one by its colour.

    The true goal is that the named door is open. Negatives open another door, or move at random.
    """
    return babyai(
        "later open named door", "OpenDoorColor", seed=91_020, experts=48, random=16, random_steps=10, near=40
    )


SOUND: tuple[Callable[[], WarningSet], ...] = (
    tug_at_berth,
    cup_to_place,
    low_forks,
    facade_flight,
    titration,
    lantern_at_flag,
    calm_hook,
    sit_to_stand,
    go_to_named,
    open_named_door,
)
"""Builders of the sound sets."""
