"""Programs that look for what goal screens show: what is there, what is on, and what the instruction names."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from grace_irl.demos.labels import Labelled
from grace_irl.synthesis.screen.reading import Clause, Condition, ScreenReading, Spoken
from grace_irl.synthesis.screen.search import SearchSpace
from grace_irl.synthesis.screen.source import write_source

SYSTEM = 6.0
"""What a reading pays, in nats, for looking at the system's own windows: clocks, batteries and signals go by there."""
UNSURE = 12.0
"""Nats that a reading of the apps' windows alone may be wrong by before the system's are looked at."""
CANDIDATES = 12
"""Conditions among which a variation chooses."""


class UiSketcher:
    """Sketches are readings; variations say less, more or something else of the same goals.

    Args:
        items: training demonstrations.
    """

    def __init__(self, items: Sequence[Labelled]) -> None:
        self._found = SearchSpace(items, system=False)
        self._readings = self._found.readings()
        if not self._readings or self._wrong(self._readings[0], self._found) > UNSURE:
            wider = SearchSpace(items, system=True)
            readings = wider.readings()
            if readings and (
                not self._readings or wider.cost(readings[0]) + SYSTEM < self._found.cost(self._readings[0])
            ):
                self._found, self._readings = wider, readings

    @staticmethod
    def _wrong(reading: ScreenReading, found: SearchSpace) -> float:
        return found.evidence.cost(found.hits(reading))

    def initial(self) -> list[str]:
        """The readings of least cost, and of each what asks for more, where there is more."""
        sketches = [reading.text() for one in self._readings for reading in (one, self._found.fuller(one))]
        return list(dict.fromkeys(sketches))

    def mutate(self, sketch: str, seed: int) -> str:
        """Drops, adds or exchanges a condition of one clause, or drops the clause."""
        rng = np.random.default_rng(seed)
        clauses = list(ScreenReading.of(sketch).clauses)
        at = int(rng.integers(len(clauses)))
        if len(clauses) > 1 and rng.random() < 0.1:
            return ScreenReading(tuple(clauses[:at] + clauses[at + 1 :])).text()
        clauses[at] = self._varied(clauses[at], rng)
        return ScreenReading(tuple(clauses)).text()

    def source(self, sketch: str) -> str:
        return write_source(ScreenReading.of(sketch), system=self._found.system)

    def prior(self, sketch: str) -> float:
        """Minus what the reading costs more than the best one."""
        return min(0.0, self._found.cost(self._readings[0]) - self._found.cost(ScreenReading.of(sketch)))

    def reasoning(self, sketch: str) -> str:
        return f"The goal is reached where {ScreenReading.of(sketch).phrase()}."

    def _varied(self, clause: Clause, rng: np.random.Generator) -> Clause:
        conditions = list(clause)
        step = rng.random()
        if (step < 0.7 and len(conditions) > 1) or step < 0.3:
            dropped = int(rng.integers(len(conditions)))
            rest = conditions[:dropped] + conditions[dropped + 1 :]
            if step < 0.2 and _looks(rest):
                return tuple(rest)
            if rest:
                conditions = rest
        added = self._addition(tuple(conditions), clause, rng)
        return tuple(conditions if added is None else [*conditions, added])

    def _addition(self, clause: Clause, former: Clause, rng: np.random.Generator) -> Condition | None:
        """A condition that nearly all goals of a clause share, cheap and telling ones the likelier."""
        offered = [one for one in self._found.additions(clause) if one not in former][: 4 * CANDIDATES]
        if not offered:
            return None
        chances = np.exp(-np.arange(len(offered)) / CANDIDATES)
        return offered[int(rng.choice(len(offered), p=chances / chances.sum()))]


def _looks(clause: Sequence[Condition]) -> bool:
    """Whether a clause looks at the screen."""
    return any(not isinstance(one, Spoken) for one in clause)
