"""The demonstrations as rows, one for each screen under each instruction, and what it costs to be wrong about them.

Three kinds of rows count. A goal state that a program misses; any other state that it takes for one; and a goal state
of one instruction under another, which is rarely a goal there too, so that programs look at what was asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from grace_irl.demos.labels import Labelled
from grace_irl.synthesis.screen.look import Looks, Said, Sight

MISSED = 12.0
"""All goal states of a trajectory; each its share."""
WRONG = 2.0
"""Another state, once for each trajectory that holds it."""
WRONG_OF_EXPERT = 2.5
"""Another state of an expert: nobody comes nearer to a goal and is not there yet."""
WRONG_ELSEWHERE = 2.0
"""A goal state under all other instructions of a task, be it its own or another one; each its share."""
MAX_WRONG = 6_000
"""Rows that are no goals; of more, an evenly spaced sample."""


@dataclass(frozen=True, eq=False)
class Evidence:
    """Rows, in no particular order.

    Attributes:
        looks: of all screens.
        sights: the distinct screens.
        said: the distinct instructions; those of experts come first.
        experts: how many of them are experts'.
        pairs: (rows, 2) the screen and the instruction of each row.
        missed: (rows,) nats for a row that is a goal and is not taken for one.
        wrong: (rows,) nats for a row that is taken for a goal and is none.
        task: (rows,) the number of a goal's task, -1 for what is no goal.
        near: (rows,) whether the row is a state of an expert that is no goal.
    """

    looks: Looks
    sights: tuple[Sight, ...]
    said: tuple[Said, ...]
    experts: int
    pairs: NDArray[np.int64]
    missed: NDArray[np.float64]
    wrong: NDArray[np.float64]
    task: NDArray[np.int64]
    near: NDArray[np.bool_]

    @property
    def signed(self) -> NDArray[np.float64]:
        """(rows,) what it costs more to take a row for a goal than not to."""
        return self.wrong - self.missed

    @property
    def tasks(self) -> int:
        """How many tasks the goals are of."""
        return int(self.task.max(initial=-1)) + 1

    def cost(self, hits: NDArray[np.bool_]) -> float:
        """The nats of taking these rows for goals, and no others."""
        return float(self.wrong[hits].sum() + self.missed[~hits].sum())

    @classmethod
    def of(cls, items: Sequence[Labelled], *, system: bool) -> Evidence:
        """Rows from training demonstrations.

        Args:
            system: whether the system's own windows (the status bar) are looked at.
        """
        states: dict[bytes, int] = {}
        said: dict[str, int] = {}
        for item in sorted(items, key=lambda item: not item.positive.any()):
            said.setdefault(item.trajectory.extra_info, len(said))
        experts = len({item.trajectory.extra_info for item in items if item.positive.any()})
        missed: dict[tuple[int, int], float] = {}
        wrong: dict[tuple[int, int], float] = {}
        near: set[tuple[int, int]] = set()
        tasks: dict[str, int] = {}
        task: dict[tuple[int, int], int] = {}
        for item in items:
            rows = [
                (states.setdefault(state, len(states)), said[item.trajectory.extra_info])
                for state in item.trajectory.states.tolist()
            ]
            goals = [row for row, positive in zip(rows, item.positive.tolist(), strict=True) if positive]
            for row in goals:
                missed[row] = missed.get(row, 0.0) + MISSED / len(goals)
                task[row] = tasks.setdefault(item.task, len(tasks))
            for row in dict.fromkeys(rows):
                if row not in goals:
                    wrong[row] = wrong.get(row, 0.0) + (WRONG_OF_EXPERT if goals else WRONG)
                    if goals:
                        near.add(row)
        asked = [{said for (_, said), of in task.items() if of == number} for number in range(len(tasks))]
        for screen, own in list(missed):
            for others in (instructions - {own} for instructions in asked):
                for other in others:
                    if (screen, other) not in missed:
                        wrong[screen, other] = wrong.get((screen, other), 0.0) + WRONG_ELSEWHERE / len(others)
        goalless = [row for row in wrong if row not in missed]
        kept = [*missed, *(goalless[i] for i in _spread(len(goalless), MAX_WRONG))]
        shown = {screen: place for place, screen in enumerate(dict.fromkeys(screen for screen, _ in kept))}
        texts = list(states)
        looks = Looks()
        return cls(
            looks,
            tuple(Sight.of(texts[screen], looks, system=system) for screen in shown),
            tuple(map(Said, said)),
            experts,
            np.array([(shown[screen], instruction) for screen, instruction in kept], dtype=np.int64).reshape(-1, 2),
            np.array([missed.get(row, 0.0) for row in kept]),
            np.array([wrong.get(row, 0.0) for row in kept]),
            np.array([task.get(row, -1) for row in kept], dtype=np.int64),
            np.array([row in near for row in kept], dtype=np.bool_),
        )


def _spread(count: int, most: int) -> list[int]:
    """At most so many of the first `count` numbers, evenly spaced."""
    if count <= most:
        return list(range(count))
    return [int(i) for i in np.linspace(0, count - 1, most)]
