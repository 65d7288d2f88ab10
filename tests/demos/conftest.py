"""Sets of demonstrations that the tests of every format share."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from grace_irl.demos.trajectory import Demonstration, Demonstrations, Metadata, Trajectory
from grace_irl.states.texts import pack
from grace_irl.states.ui import markup


@pytest.fixture(autouse=True)
def _minari_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "minari"))


@pytest.fixture
def grids() -> Demonstrations:
    """Three grid trajectories of one size, with everything but goals; one is a single state."""
    rng = np.random.default_rng(0)
    items = []
    for number, steps in enumerate((5, 1, 3)):
        trajectory = Trajectory(
            rng.integers(0, 9, (steps + 1, 4, 6, 3), dtype=np.uint8),
            rng.integers(0, 7, steps),
            extra_info=f"go to the {('red', 'grüne', 'blue')[number]} ball",
            rewards=rng.normal(size=steps),
            log_probs=rng.normal(size=steps),
            terminated=number == 0,
            truncated=number == 1,
        )
        role, split = ("expert", "train") if number else ("negative", "held_out")
        items.append(Demonstration(trajectory, role, f"task {number % 2}", split))
    return Demonstrations(Metadata("grid", (), "BabyAI-GoToObj-v0", "minigrid-full", "last"), tuple(items))


@pytest.fixture
def vectors() -> Demonstrations:
    """Four vector trajectories with actions of two numbers, one of them without a step."""
    rng = np.random.default_rng(1)
    items = tuple(
        Demonstration(
            Trajectory(rng.normal(size=(steps + 1, 3)), rng.normal(size=(steps, 2)).astype(np.float32)),
            "expert",
        )
        for steps in (4, 0, 9, 2)
    )
    return Demonstrations(Metadata("vector", ("height", "speed", "angle"), "Hopper-v5", "vector", "all"), items)


@pytest.fixture
def screens() -> Demonstrations:
    """Four trajectories of screens, of different lengths and widths; many are equal, one has letters of all widths."""
    screens = [screen(f"Alarm {n}", "Überall 起床 😀" * (n % 2)) for n in range(5)] + [screen("long " * 4000)]
    items = []
    for number, chosen in enumerate(((0, 1, 1, 0), (4,), (2, 5, 2), (3, 3))):
        trajectory = Trajectory(
            pack([screens[index] for index in chosen]), extra_info="set an alarm", terminated=number == 0
        )
        goals = None if number == 3 else (len(chosen) - 1,)
        items.append(Demonstration(trajectory, "negative" if number == 3 else "expert", "alarm", goals=goals))
    return Demonstrations(Metadata("ui", view="uiautomator", label="last"), tuple(items))


def screen(*texts: str) -> str:
    """A screen with one node for each text, in the spelling of `markup.write`."""
    root = markup.hierarchy()
    for text in texts:
        markup.add(root, {"text": text, "resource-id": "com.example.clock:id/label", "bounds": "[0,0][9,9]"})
    return markup.write(root)


@pytest.fixture
def states_only() -> Demonstrations:
    """Vector trajectories without actions."""
    rng = np.random.default_rng(2)
    items = tuple(Demonstration(Trajectory(rng.normal(size=(n, 2))), "negative", "walk") for n in (3, 6))
    return Demonstrations(Metadata("vector"), items)
