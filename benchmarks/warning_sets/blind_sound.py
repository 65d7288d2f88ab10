"""Ten small data sets from which a simple reward can be learned, so that every warning about them is a false alarm."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from grace_irl.demos.trajectory import Trajectory
from warning_sets.assembly import assembled, babyai, episode
from warning_sets.bodies import Floats, Rng, drift, glide
from warning_sets.kinds import WarningSet


def _until(rows: Floats, reached: NDArray[np.bool_]) -> Floats:
    """The rows up to the first that reaches the goal. At least one must reach it."""
    if not reached.any():
        raise ValueError("an expert never reaches the goal: another seed")
    return rows[: int(np.argmax(reached)) + 1]


def _approach(rng: Rng, start: float, target: float, share: float, fastest: float, noise: float, steps: int) -> Floats:
    """A signal `(steps,)` that moves to `target` by this share of the gap in a step, by at most `fastest`."""
    value, signal = start, []
    for _ in range(steps):
        signal.append(value)
        value += float(np.clip(share * (target - value), -fastest, fastest)) + rng.normal(0, noise)
    return np.array(signal)


def _between(rng: Rng, low: float, high: float, steps: int, keep: float = 0.85) -> Floats:
    """A slow random signal `(steps,)` that stays between two bounds."""
    return low + (high - low) / (1 + np.exp(-1.3 * drift(rng, steps, keep)))


def printer() -> WarningSet:
    """3-D printer that heats its nozzle and its bed before a print.

    The goal is a nozzle of 200 °C or more and a bed of 60 °C or more. Experts heat the nozzle first, the bed first or
    both at once. Negatives miss one of the two by 2 to 50 degrees, or both.
    """
    rng = np.random.default_rng(93_011)

    def heat(nozzle_c: float, bed_c: float) -> Floats:
        steps, waits = 50, rng.permutation([0, int(rng.integers(0, 14))])
        nozzle, bed = (
            np.concatenate([np.full(wait, 22.0) + rng.normal(0, 0.15, wait), signal])[:steps]
            for wait, signal in zip(
                waits,
                (
                    _approach(rng, 22, nozzle_c, 0.3, rng.uniform(8, 14), 0.3, steps),
                    _approach(rng, 22, bed_c, 0.3, rng.uniform(1.7, 3.2), 0.12, steps),
                ),
                strict=True,
            )
        )
        head = np.column_stack([_between(rng, 5, 215, steps), _between(rng, 5, 205, steps)])
        fan = _between(rng, 0, 100, steps, 0.6)
        return np.column_stack([head, nozzle, bed, fan]).round(1)

    def ready() -> Trajectory:
        rows = heat(rng.uniform(206, 228), rng.uniform(62, 70))
        return episode(_until(rows, (rows[:, 2] >= 200) & (rows[:, 3] >= 60)))

    def missed(number: int) -> Trajectory:
        nozzle_c = rng.uniform(206, 228) if number % 3 == 0 else 197 - rng.exponential(12)
        bed_c = rng.uniform(62, 70) if number % 3 == 1 else 58.5 - rng.exponential(4)
        return episode(heat(nozzle_c, bed_c)[: int(rng.integers(20, 46))])

    experts, negatives = [ready() for _ in range(32)], [missed(number) for number in range(36)]
    fields = ("x_mm", "y_mm", "nozzle_c", "bed_c", "fan_pct")
    return assembled("blind printer", experts, negatives, label="last", fields=fields)


def telescope() -> WarningSet:
    """Telescope that slews to a star and opens its shutter.

    The goal is an aim within 0.5 degrees of the target and a shutter that is open (0.95 or more). Experts open the
    shutter before, during or after the slew. Negatives look beside the star, look at another star, or leave the shutter
    closed or half open.
    """
    rng = np.random.default_rng(93_012)

    def observe(offset: Floats, opens: int, widest: float) -> dict[str, Floats]:
        target, start = rng.uniform([100, 25], [260, 80]), rng.uniform([100, 25], [260, 80])
        while np.linalg.norm(target + offset - start) < 15:
            start = rng.uniform([100, 25], [260, 80])
        aim = glide(rng, start, target + offset, speed=rng.uniform(5, 9), tolerance=0.05)
        after = max(opens + 4 - len(aim), int(rng.integers(1, 6)))
        aim = np.concatenate([aim, aim[-1] + rng.normal(0, 0.01, (after, 2))])
        steps = len(aim)
        shutter = np.clip((np.arange(steps) - opens) / 3, 0, 1) * widest + rng.normal(0, 0.005, steps)
        dome = aim[:, 0] + 2 * drift(rng, steps)
        return {
            "aim": aim.round(2),
            "target": np.repeat(target[None].round(2), steps, axis=0),
            "shutter": np.clip(shutter, 0, 1).round(2),
            "dome_deg": dome.round(1),
            "seeing_arcsec": np.abs(1.6 + 0.3 * drift(rng, steps)).round(2),
        }

    def away(low: float, high: float) -> Floats:
        angle, size = rng.uniform(0, 2 * np.pi), rng.uniform(low, high)
        return np.array([size * np.cos(angle), size * np.sin(angle)])

    def expert() -> Trajectory:
        states = observe(away(0, 0.3), int(rng.integers(0, 30)), 1.0)
        near = np.linalg.norm(states["aim"] - states["target"], axis=1) <= 0.5
        reached = near & (states["shutter"] >= 0.95)
        return episode({name: _until(part, reached) for name, part in states.items()})

    def negative(number: int) -> Trajectory:
        if number % 3 == 0:
            return episode(observe(away(0, 0.3), int(rng.integers(0, 30)), rng.choice([0.0, rng.uniform(0.3, 0.8)])))
        low, high = (0.8, 3.0) if number % 3 == 1 else (3.0, 25.0)
        return episode(observe(away(low, high), int(rng.integers(0, 30)), 1.0))

    experts, negatives = [expert() for _ in range(32)], [negative(number) for number in range(36)]
    return assembled("blind telescope", experts, negatives, label="last")


def canal_lock() -> WarningSet:
    """Canal lock that lifts a boat from the lower to the upper water, whose level changes from day to day.

    The goal is a chamber at most 0.05 m below the upper water, with the boat 5 m or more past the lower gate. In the
    negatives the sluice closes too early, or the chamber fills while the boat waits outside or in the gate.
    """
    rng = np.random.default_rng(93_013)

    def lift(rest: float, stop: float) -> Floats:
        upper, lower = rng.uniform(5, 7), rng.uniform(1.5, 3)
        boat = [rng.uniform(-40, -20)]
        while boat[-1] < stop - 0.3:
            boat.append(min(stop, boat[-1] + rng.uniform(2, 4)))
        pause, pace, widest = int(rng.integers(1, 4)), rng.uniform(0.16, 0.28), rng.uniform(0.6, 1)
        chamber, sluice = [lower] * (len(boat) + pause), [0.0] * (len(boat) + pause)
        while upper - chamber[-1] > rest and len(chamber) < 54:
            opened = min(widest, sluice[-1] + rng.uniform(0.1, 0.4))
            chamber.append(min(upper - rest, chamber[-1] + pace * opened * np.sqrt(upper - chamber[-1])))
            sluice.append(opened)
        still = int(rng.integers(1, 6))
        chamber += [chamber[-1]] * still
        sluice += [0.0] * still
        steps = len(chamber)
        boat += [boat[-1]] * (steps - len(boat))
        ripple = rng.normal(0, 0.008, (steps, 3))
        levels = np.column_stack([chamber, np.full(steps, upper), np.full(steps, lower)]) + ripple
        moored = np.array(boat) + rng.normal(0, 0.05, steps)
        return np.column_stack([levels.round(2), moored.round(1), np.array(sluice).round(2)])

    def expert() -> Trajectory:
        rows = lift(0.0, rng.uniform(6, 22))
        return episode(_until(rows, (rows[:, 1] - rows[:, 0] < 0.055) & (rows[:, 3] >= 5)))

    def negative(number: int) -> Trajectory:
        if number % 2:
            return episode(lift(0.12 + rng.exponential(0.4), rng.uniform(6, 22)))
        return episode(lift(0.0, rng.uniform(0, 4.2) if number % 4 else rng.uniform(-18, 0)))

    experts, negatives = [expert() for _ in range(30)], [negative(number) for number in range(36)]
    fields = ("chamber_m", "upper_m", "lower_m", "boat_m", "sluice")
    return assembled("blind canal lock", experts, negatives, label="last", fields=fields)


def curling() -> WarningSet:
    """Curling stone on its way to the house, whose middle is the origin.

    The goal is a stone at rest (speed below 0.03 m/s) within 1.83 m of the middle. Negatives stop short of the house,
    beside it or behind it, some by a hand's width, and the long ones slide through it.
    """
    rng = np.random.default_rng(93_014)

    def throw() -> Floats:
        place = np.array([rng.normal(0, 0.3), -rng.uniform(15, 21)])
        aim, curl, drag = rng.normal(0, 0.09), rng.choice([-1, 1]) * rng.uniform(0.002, 0.006), rng.uniform(0.08, 0.1)
        reach = -place[1] + rng.normal(-1.3, 2.0)
        speed, rows = np.sqrt(2 * drag * reach), []
        course = np.array([np.sin(aim), np.cos(aim)])
        while True:
            sweeping = float(rng.choice([0.0, 0.5, 1.0]))
            rows.append([*place, *(speed * course), sweeping if speed else 0.0])
            if speed == 0:
                break
            place = place + 0.8 * speed * course
            course = course + np.array([0.8 * curl / max(speed, 0.2), 0])
            course /= np.linalg.norm(course)
            speed -= 0.8 * drag * (1 - 0.1 * sweeping)
            speed = 0.0 if speed < 0.06 else speed
        stone = np.array(rows)
        stone[:, :4] += rng.normal(0, [0.01, 0.01, 0.003, 0.003], (len(stone), 4))
        return stone.round(2)

    def rested(low: float, high: float) -> Floats:
        while True:
            rows = throw()
            if low <= np.linalg.norm(rows[-1, :2]) <= high:
                return rows

    experts = [episode(rested(0, 1.78)) for _ in range(34)]
    negatives = []
    for number in range(36):
        rows = rested(1.9, 2.6) if number % 2 else rested(1.9, 7)
        negatives.append(episode(np.concatenate([rows, np.repeat(rows[-1:], int(rng.integers(0, 4)), axis=0)])))
    fields = ("x_m", "y_m", "x_mps", "y_mps", "sweeping")
    return assembled("blind curling", experts, negatives, label="last", fields=fields)


def ripe_honey() -> WarningSet:
    """Beehive in late summer, with a probe in the honey, one state for each half day.

    The goal is ripe honey with 18.0 % water or less. In the negatives the honey stays wetter, some of it by a third of
    a percent.
    """
    rng = np.random.default_rng(93_015)

    def ripen(driest: float) -> Floats:
        steps = 50
        water = _approach(rng, rng.uniform(22, 32), driest, rng.uniform(0.1, 0.2), 2.0, 0.03, steps)
        hive, humidity = 34.5 + 0.5 * drift(rng, steps), 58 + 5 * drift(rng, steps)
        frame, bees = rng.uniform(1.7, 2.6) * (1 + 0.004 * (water - 18)), 60 + 15 * drift(rng, steps, 0.6)
        return np.column_stack([water.round(1), hive.round(1), humidity.round(0), frame.round(2), bees.round(0)])

    def expert() -> Trajectory:
        rows = ripen(rng.uniform(16.2, 17.6))
        return episode(_until(rows, rows[:, 0] <= 18.0))

    experts = [expert() for _ in range(30)]
    negatives = [episode(ripen(18.35 + rng.exponential(0.8))[: int(rng.integers(10, 36))]) for _ in range(34)]
    fields = ("water_pct", "hive_c", "humidity_pct", "frame_kg", "bees_per_min")
    return assembled("blind ripe honey", experts, negatives, label="last", fields=fields)


def sourdough() -> WarningSet:
    """Sourdough in a proofing tub, with a camera for its volume, a probe and a pH meter.

    The goal is 1.8 times the first volume, a core of 28 °C or less and a pH of 4.3 or less. Any of the three may be the
    last for an expert. A negative misses one of them, some by little, or all.
    """
    rng = np.random.default_rng(93_016)

    def proof(volume: float, core_c: float, ph: float) -> Floats:
        steps = 48
        paces = rng.uniform(0.1, 0.25, 3)
        rows = [
            _approach(rng, 1.0, volume, paces[0], 1.0, 0.004, steps),
            _approach(rng, rng.uniform(31, 36), core_c, paces[1], 3.0, 0.06, steps),
            _approach(rng, rng.uniform(5.3, 5.9), ph, paces[2], 1.0, 0.006, steps),
            62 + 4 * drift(rng, steps),
        ]
        return np.column_stack([rows[0].round(2), rows[1].round(1), rows[2].round(2), rows[3].round(0)])

    def risen() -> tuple[float, float, float]:
        return rng.uniform(1.88, 2.2), rng.uniform(24, 27.2), rng.uniform(3.9, 4.22)

    def expert() -> Trajectory:
        rows = proof(*risen())
        return episode(_until(rows, (rows[:, 0] >= 1.8) & (rows[:, 1] <= 28) & (rows[:, 2] <= 4.3)))

    def negative(number: int) -> Trajectory:
        volume, core_c, ph = risen()
        if number % 4 in (0, 3):
            volume = 1.73 - rng.exponential(0.12)
        if number % 4 in (1, 3):
            core_c = 28.6 + rng.exponential(1.2)
        if number % 4 in (2, 3):
            ph = 4.38 + rng.exponential(0.2)
        return episode(proof(volume, core_c, ph)[: int(rng.integers(12, 48))])

    experts, negatives = [expert() for _ in range(36)], [negative(number) for number in range(44)]
    fields = ("volume", "core_c", "ph", "humidity_pct")
    return assembled("blind sourdough", experts, negatives, label="last", fields=fields)


def tray() -> WarningSet:
    """Waiter robot that carries a tray of glasses through a restaurant.

    A tray that tilts by less than 4 degrees, to whatever side, is the goal, and all states of an expert count. The
    negatives carry it at 4.4 to 14 degrees, on the same ways and at the same speeds.
    """
    rng = np.random.default_rng(93_017)

    def carry(low: float, high: float) -> Trajectory:
        steps = int(rng.integers(16, 36))
        size, side = _between(rng, low, high, steps), rng.uniform(0, 2 * np.pi) + np.cumsum(0.5 * drift(rng, steps))
        speed = np.abs(0.7 + 0.25 * drift(rng, steps))
        course = rng.uniform(0, 2 * np.pi) + np.cumsum(0.2 * drift(rng, steps))
        stride = 0.5 * speed[:, None] * np.column_stack([np.cos(course), np.sin(course)])
        states = {
            "tilt_deg": (size[:, None] * np.column_stack([np.cos(side), np.sin(side)])).round(2),
            "place_m": (rng.uniform(2, 12, 2) + np.cumsum(stride, axis=0)).round(2),
            "speed_mps": speed.round(2),
            "load_kg": (rng.uniform(0.8, 3.5) + rng.normal(0, 0.02, steps)).round(2),
        }
        return episode(states)

    experts = [carry(0.1, 3.7) for _ in range(28)]
    negatives = [carry(4.4, 6 + rng.exponential(2.5)) for _ in range(32)]
    return assembled("blind tray", experts, negatives, label="all")


def easy_spinning() -> WarningSet:
    """Endurance rides on a bicycle, one state for each minute.

    Easy spinning is the goal: a cadence of 80 or more with a pulse of 150 or less, and all states of an expert count.
    Negatives grind at a low cadence, race with a high pulse, or do both, some of them close to the bounds.
    """
    rng = np.random.default_rng(93_018)

    def ride(cadence: tuple[float, float], pulse: tuple[float, float]) -> Trajectory:
        steps = int(rng.integers(20, 51))
        turns, beats = _between(rng, *cadence, steps), _between(rng, *pulse, steps)
        slope = 2.2 * drift(rng, steps)
        speed = turns * rng.uniform(0.26, 0.4) - 0.8 * slope + rng.normal(0, 0.6, steps)
        power = np.abs(rng.uniform(140, 230) + 14 * slope + 12 * drift(rng, steps, 0.5))
        return episode(
            np.column_stack([turns.round(0), beats.round(0), slope.round(1), speed.round(1), power.round(0)])
        )

    def negative(number: int) -> Trajectory:
        grinding, racing = (76 - rng.exponential(6), 78.4), (152.0, 158 + rng.exponential(9))
        easy = ((80.6, rng.uniform(92, 108)), (rng.uniform(112, 128), 149.4))
        return ride(grinding if number % 3 != 1 else easy[0], racing if number % 3 else easy[1])

    experts = [ride((80.6, rng.uniform(92, 108)), (rng.uniform(112, 128), 149.4)) for _ in range(30)]
    negatives = [negative(number) for number in range(36)]
    fields = ("cadence_rpm", "pulse_bpm", "slope_pct", "speed_kmh", "power_w")
    return assembled("blind easy spinning", experts, negatives, label="all", fields=fields)


def go_to_object() -> WarningSet:
    """BabyAI rooms with four objects, of which the instruction names one by colour and type.

    The goal is the agent in front of the named object. Negatives walk at random or go to another object.
    """
    return babyai("blind go to object", "GoToLocalS7N4", seed=93_019, experts=64, random=24, random_steps=14, near=60)


def open_door() -> WarningSet:
    """BabyAI mazes of nine rooms, in which the instruction names the colour of a door.

    The goal is an open door of the named colour. Experts open other doors on the way. Negatives walk at random or open
    a door of another colour.
    """
    return babyai("blind open door", "Open", seed=93_043, experts=40, random=16, random_steps=30, near=32)


SOUND: tuple[Callable[[], WarningSet], ...] = (
    printer,
    telescope,
    canal_lock,
    curling,
    ripe_honey,
    sourdough,
    tray,
    easy_spinning,
    go_to_object,
    open_door,
)
"""The builders of the sound sets."""
