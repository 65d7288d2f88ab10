"""All kinds of state, by the suite of kinds."""

from __future__ import annotations

import numpy as np

from grace_irl.states import KINDS
from grace_irl.states.grid import GRID
from grace_irl.states.image import IMAGE
from grace_irl.states.kind import States
from grace_irl.states.record import RECORD
from grace_irl.states.screen import SCREEN
from grace_irl.states.texts import pack
from grace_irl.states.vector import VECTOR
from grace_irl.testing.kinds import StateKindSuite
from tests.demos.conftest import screen
from tests.states.records import everything


class TestVector(StateKindSuite):
    kind = VECTOR
    fields = ("height", "speed", "angle")

    def make(self, steps: int, seed: int) -> States:
        return np.random.default_rng([seed, steps]).normal(size=(steps + 1, 3))


class TestGrid(StateKindSuite):
    kind = GRID

    def make(self, steps: int, seed: int) -> States:
        return np.random.default_rng([seed, steps]).integers(0, 4, (steps + 1, 5, 6, 3), dtype=np.uint8)


class TestImage(StateKindSuite):
    kind = IMAGE

    def make(self, steps: int, seed: int) -> States:
        return np.random.default_rng([seed, steps]).integers(0, 256, (steps + 1, 8, 9, 3), dtype=np.uint8)


class TestGreyImage(TestImage):
    def make(self, steps: int, seed: int) -> States:
        return super().make(steps, seed)[..., :1].copy()


class TestScreen(StateKindSuite):
    kind = SCREEN

    def make(self, steps: int, seed: int) -> States:
        return pack([screen(f"Alarm {seed}", f"Überall {step} 😀") for step in range(steps + 1)])


class TestRecord(StateKindSuite):
    kind = RECORD

    def make(self, steps: int, seed: int) -> States:
        return everything(steps, seed)


def test_every_kind_is_tried() -> None:
    tried = {value.kind.name for value in globals().values() if isinstance(value, type) and hasattr(value, "kind")}
    assert tried == set(KINDS)
