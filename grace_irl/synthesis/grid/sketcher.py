"""Programs that watch for what the instruction asks for: grids whose experts end where the goal is reached."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from grace_irl.demos.labels import Labelled
from grace_irl.synthesis.grid.decide import decide
from grace_irl.synthesis.grid.learn import wander
from grace_irl.synthesis.grid.lexicon import GridReading
from grace_irl.synthesis.grid.meaning import Hypothesis
from grace_irl.synthesis.grid.outline import summary
from grace_irl.synthesis.grid.search import search, view
from grace_irl.synthesis.grid.source import write_source

Style = Literal["weighed", "bold", "careful"]
STYLES: tuple[Style, ...] = ("weighed", "bold", "careful")
RISK = 1.0
"""What a program pays, in nats, for not weighing what is sure against what is guessed."""
STEPS = 300
"""Steps of the walk from a reading to a variation of it."""


@dataclass(frozen=True)
class _Sketch:
    """A reading of the instructions and how to say it: what is guessed earns half the reward (weighed), is required
    like all else (bold), or is left out (careful)."""

    plan: int
    reading: GridReading
    style: Style

    def text(self) -> str:
        return json.dumps([self.plan, self.reading.constants, dict(sorted(self.reading.meanings.items())), self.style])

    @classmethod
    def of(cls, text: str) -> _Sketch:
        plan, constants, meanings, style = json.loads(text)
        return cls(plan, GridReading(constants, meanings), style)


class GridSketcher:
    """Sketches are readings; variations are other readings that the data makes plausible."""

    def __init__(self, items: Sequence[Labelled], seed: int) -> None:
        self._view = view(items)
        self._found = search(self._view, seed)

    @property
    def possible(self) -> bool:
        """Whether anything happens at the goals that a program could watch for."""
        return bool(self._found)

    def initial(self) -> list[str]:
        """The best reading of every plan, in every style; then what happens alone, whatever the words."""
        sketches = [
            _Sketch(i, one.posterior.best, style).text() for i, one in enumerate(self._found) for style in STYLES
        ]
        wordless = [
            _Sketch(i, GridReading(one.posterior.best.constants), "bold").text() for i, one in enumerate(self._found)
        ]
        return list(dict.fromkeys([*sketches, *wordless]))

    def mutate(self, sketch: str, seed: int) -> str:
        """Walks to another plausible reading, and says it in one of the styles."""
        parent = _Sketch.of(sketch)
        rng = np.random.default_rng(seed)
        reading = wander(self._found[parent.plan].lexicon, parent.reading, STEPS, rng)
        return _Sketch(parent.plan, reading, STYLES[int(rng.integers(len(STYLES)))]).text()

    def prior(self, sketch: str) -> float:
        """Minus what the reading costs more than the best one, and the risk of its style."""
        one = _Sketch.of(sketch)
        found = self._found[one.plan]
        extra = found.lexicon.total(one.reading) - found.posterior.cost + found.cost - self._found[0].cost
        # A walk may come by a reading that is better than the best that was found before.
        return min(0.0, -extra) - (RISK if one.style != "weighed" else 0.0)

    def source(self, sketch: str) -> str:
        return write_source(self._hypothesis(sketch), self._view.perception, self._view.vocabulary, self._view.phrases)

    def reasoning(self, sketch: str) -> str:
        return f"The goal is reached where {summary(self._hypothesis(sketch))}."

    def _hypothesis(self, sketch: str) -> Hypothesis:
        one = _Sketch.of(sketch)
        found = self._found[one.plan]
        weighed = decide(found.lexicon, found.posterior, one.reading)
        if one.style == "weighed":
            return weighed
        if one.style == "careful":
            return replace(weighed, guesses=(), novel="ignore")
        filters = found.lexicon.evidence.filters
        said = {word: (filters[column],) for word, column in one.reading.meanings.items()}
        spoken = tuple(sorted((word, fs) for word, fs in said.items() if fs[0].feature != "count"))
        return replace(weighed, meanings=spoken, guesses=(), novel="require" if weighed.novel != "ignore" else "ignore")
