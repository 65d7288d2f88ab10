"""Pixels among the fields of the states: found where they are, and not where other numbers are."""

from __future__ import annotations

import numpy as np
import pytest

from grace_irl.demos.trajectory import Demonstration, Demonstrations, Metadata, Role, Trajectory
from grace_irl.states.record import RecordStates
from tests.audit.bench import codes, drawn, examined


def shot(rng: np.random.Generator, role: Role, size: int, rgb: int = 1) -> np.ndarray:
    """Six pictures of a bright spot, each of them flattened. In the last one, an expert's spot is in the corner."""
    rows, columns = np.mgrid[:size, :size]
    places = rng.uniform(3, size, size=(6, 2))
    if role == "expert":
        places[-1] = 0
    made = [np.exp(-((rows - y) ** 2 + (columns - x) ** 2) / 4) for y, x in places]
    return np.stack([np.repeat(each[..., None], rgb, axis=2).ravel() for each in made])


@pytest.mark.parametrize(("size", "rgb"), [(10, 1), (8, 3), (20, 1), (12, 3)])
def test_small_pictures_and_pictures_beside_other_numbers(size: int, rgb: int) -> None:
    alone = drawn(lambda rng, role: Trajectory(shot(rng, role, size, rgb), np.zeros(5)))
    assert "pixels" in codes(examined(alone, "return float(state[0] > 0.99)"))
    rng = np.random.default_rng(0)
    roles: tuple[Role, ...] = ("expert", "negative")
    records = [
        Demonstration(
            Trajectory(RecordStates({"camera": shot(rng, role, size, rgb), "speed": rng.normal(300, 9, 6)})), role
        )
        for role in roles
        for _ in range(24)
    ]
    found = examined(Demonstrations(Metadata("record"), tuple(records)), "return float(state['camera'][0] > 0.99)")
    assert "pixels" in codes(found)


def test_a_hundred_sensors_are_no_small_picture() -> None:
    def measured(rng: np.random.Generator, role: Role) -> Trajectory:
        states = rng.uniform(size=(6, 100))
        states[-1, 0] = 1.0 if role == "expert" else 0.5
        return Trajectory(states, np.zeros(5))

    assert "pixels" not in codes(examined(drawn(measured), "return float(state[0] == 1.0)"))


def test_a_scan_is_no_picture() -> None:
    def scanned(rng: np.random.Generator, role: Role) -> Trajectory:
        angles = np.linspace(-1.5, 1.5, 270)
        phases, heights = rng.uniform(0, 6, size=(6, 1)), rng.uniform(0.05, 0.3, size=(6, 1))
        states = 0.5 + heights * np.sin(angles + phases) + rng.normal(0, 0.002, (6, 270))
        states[-1, 0] = 0.999 if role == "expert" else 0.5
        return Trajectory(states, np.zeros(5))

    assert "pixels" not in codes(examined(drawn(scanned), "return float(state[0] > 0.99)"))
