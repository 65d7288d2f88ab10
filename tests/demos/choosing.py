"""Sets to choose from, and what was chosen."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from grace_irl.demos import save
from grace_irl.demos.files import iter_trajectories
from grace_irl.demos.select import Selection, Selector
from grace_irl.demos.trajectory import Demonstration, Demonstrations, Metadata, Role, Trajectory
from grace_irl.states.texts import pack

SHIPPED = Path(__file__).parents[2] / "datasets" / "babyai-go-to-obj"


def demonstration(
    value: float = 0.0,
    goal: str = "",
    *,
    length: int = 2,
    role: Role = "expert",
    task: str = "default",
    rewards: Sequence[float] | None = None,
    terminated: bool = False,
) -> Demonstration:
    states = np.full((length, 2), value)
    given_rewards = None if rewards is None else np.array(rewards)
    return Demonstration(Trajectory(states, extra_info=goal, rewards=given_rewards, terminated=terminated), role, task)


def screens(*packages: str) -> Demonstration:
    """An episode of one screen for each text, which lists the packages of its nodes."""
    xml = [f"<hierarchy>{''.join(f'<node package={one!r}/>' for one in text.split())}</hierarchy>" for text in packages]
    return Demonstration(Trajectory(pack(xml)), "expert")


def stored(path: Path, *items: Demonstration) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    save(Demonstrations(Metadata("vector"), items), path)
    return path


def numbered(path: Path, values: Sequence[float]) -> Path:
    return stored(path, *(demonstration(value) for value in values))


def values_of(path: str | Path) -> list[float]:
    return [float(item.trajectory.states[0, 0]) for item in iter_trajectories(path)]


def chosen(paths: Sequence[Path], selection: Selection, seed: int = 0) -> list[float]:
    selector = Selector(paths, [selection], seed)
    selector.write(selector.choose())
    return values_of(selection.out)


TIMER = demonstration(goal="Set a Timer for 5 minutes", length=4, task="clock", terminated=True)
