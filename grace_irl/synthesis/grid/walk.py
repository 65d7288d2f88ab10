"""A random walk over readings."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from grace_irl.synthesis.grid.lexicon import Lexicon
from grace_irl.synthesis.grid.meaning import SEVERAL
from grace_irl.synthesis.grid.reading import Reading


class Walk:
    """A Metropolis walk.

    Attributes:
        reading: where it is.
        best: the least cost it came by, and the reading there.
    """

    def __init__(self, lexicon: Lexicon, reading: Reading, rng: np.random.Generator) -> None:
        self.lexicon = lexicon
        self.reading = reading
        self.rng = rng
        self.costs = [lexicon.scene_cost(reading, i) for i in lexicon.everywhere]
        self.price = lexicon.price(reading)
        self.best = (self.cost, reading)

    @property
    def cost(self) -> float:
        return sum(self.costs) + self.price

    def run(self, steps: int, start: float, end: float) -> None:
        """Walks while the temperature falls from start to end."""
        draws = self.rng.random((steps, 4))
        for step in range(steps):
            temperature = start * (end / start) ** (step / steps)
            changed, touched = self._change(draws[step])
            if changed is None:
                continue
            new = {i: self.lexicon.scene_cost(changed, i) for i in touched}
            price = self.lexicon.price(changed)
            delta = sum(c - self.costs[i] for i, c in new.items()) + price - self.price
            if delta <= 0 or draws[step, 3] < np.exp(-delta / temperature):
                self.reading, self.price = changed, price
                for i, c in new.items():
                    self.costs[i] = c
                if delta < 0 and self.cost < self.best[0] - 1e-9:
                    self.best = (self.cost, changed)

    def _change(self, draw: np.ndarray[tuple[int], np.dtype[np.float64]]) -> tuple[Reading | None, Sequence[int]]:
        """A reading one change away, and the scenes that the change touches."""
        lexicon, reading = self.lexicon, self.reading
        kind, one, two = float(draw[0]), float(draw[1]), float(draw[2])
        words, columns = lexicon.words, len(lexicon.features)
        if kind < 0.15 or not words:
            column = int(one * columns)
            if lexicon.evidence.filters[column] == SEVERAL:
                return None, ()
            feature = lexicon.features[column]
            constants = dict(reading.constants)
            if constants.get(feature) == column:
                if feature == "event":
                    return None, ()
                del constants[feature]
            else:
                constants[feature] = column
            return Reading(constants, reading.meanings), lexicon.everywhere
        word = words[int(one * len(words))]
        meanings = dict(reading.meanings)
        if kind < 0.3:
            other = words[int(two * len(words))]
            first, second = meanings.pop(word, None), meanings.pop(other, None)
            if first == second:
                return None, ()
            if second is not None:
                meanings[word] = second
            if first is not None:
                meanings[other] = first
            touched = sorted({*lexicon.where[word], *lexicon.where[other]})
            return Reading(reading.constants, meanings), touched
        column = int(two * (columns + columns // 3 + 1))
        if meanings.get(word, -1) == (column if column < columns else -1):
            return None, ()
        meanings.pop(word, None)
        if column < columns:
            meanings[word] = column
        return Reading(reading.constants, meanings), lexicon.where[word]
