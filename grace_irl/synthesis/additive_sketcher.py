"""Programs that add up terms over named numbers: vectors, and grids where every expert state counts."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from grace_irl.demos.labels import Labelled
from grace_irl.synthesis.grid.perception import perceive
from grace_irl.synthesis.vector.additive import Table
from grace_irl.synthesis.vector.numbers import GridNumbers, Numbers, VectorNumbers
from grace_irl.synthesis.vector.source import write_source
from grace_irl.synthesis.vector.term import vocabulary

MAX_TERMS = 12
"""Terms in the longest program: with its frame it stays under 60 lines."""
MAX_PAIRED = 12
"""Numbers, of those with the largest effect, that are looked at in pairs."""
MAX_WATCHED = 16
"""Numbers, of those with the largest effect, that are watched for leaving the experts' range."""
MAX_STATES = 20_000
"""States that terms are chosen on; of more, an evenly spaced sample of each class."""


class AdditiveSketcher:
    """A sketch is the JSON list of indices of the terms that are added up."""

    def __init__(self, items: Sequence[Labelled], fields: Sequence[str]) -> None:
        stacks = [item.trajectory.states for item in items]
        self.numbers: Numbers
        if items[0].trajectory.kind == "grid":
            self.numbers = GridNumbers.of(stacks, perceive(stacks).agent)
        else:
            self.numbers = VectorNumbers.of(fields, stacks[0].shape[1])
        positive = np.concatenate([item.positive for item in items])
        kept = np.sort(np.concatenate([_spread(np.flatnonzero(positive)), _spread(np.flatnonzero(~positive))]))
        values = _rows([self.numbers.values(stack) for stack in stacks], kept)
        experts = values[positive[kept]]
        self._table = Table(vocabulary(experts, values, MAX_PAIRED, MAX_WATCHED), values, positive[kept])

    @property
    def _always(self) -> list[int]:
        """The term that every program has: what leaving the experts' range costs."""
        return [i for i, term in enumerate(self._table.terms[:1]) if term.shape == "outside"]

    def initial(self) -> list[str]:
        chosen = self._always
        sketches = []
        while len(chosen) < min(MAX_TERMS, len(self._table.terms)):
            grown = self._table.grow(chosen)
            if len(grown) == len(chosen):
                break
            chosen = grown
            sketches.append(json.dumps(chosen))
        return sketches[::-1]

    def mutate(self, sketch: str, seed: int) -> str:
        """Takes a few terms away, the weaker the likelier, and grows others from a random part of the vocabulary."""
        rng = np.random.default_rng(seed)
        always = self._always
        sketched: list[int] = json.loads(sketch)
        beta, _ = self._table.fit(sketched)
        weakness = np.exp(-np.abs(beta[1 + len(always) :]))
        chosen = sketched[len(always) :]
        size = len(chosen)
        dropped = rng.choice(size, size=min(size, int(rng.integers(1, 4))), replace=False, p=weakness / weakness.sum())
        chosen = [*always, *(term for i, term in enumerate(chosen) if i not in dropped)]
        count = len(self._table.terms)
        allowed = np.flatnonzero(rng.random(count) < 0.5).tolist()
        while len(chosen) < min(len(sketched) + int(rng.integers(0, 2)), MAX_TERMS):
            grown = self._table.grow(chosen, allowed)
            if len(grown) == len(chosen):
                break
            chosen = grown
        return json.dumps(chosen) if len(chosen) > len(always) else sketch

    def source(self, sketch: str) -> str:
        return write_source(self._table.reward(json.loads(sketch)), self.numbers)

    def prior(self, sketch: str) -> float:  # noqa: ARG002
        """No opinion: fitness over many states tells more than any prior."""
        return 0.0

    def reasoning(self, sketch: str) -> str:
        names = [self._table.terms[i].name(self.numbers.names) for i in json.loads(sketch)]
        return "Expert states differ from the others in " + ", ".join(names) + "."


def _spread(indices: NDArray[np.int64]) -> NDArray[np.int64]:
    """At most MAX_STATES of the indices, evenly spaced."""
    if len(indices) <= MAX_STATES:
        return indices
    return indices[np.linspace(0, len(indices) - 1, MAX_STATES).astype(np.int64)]


def _rows(parts: Sequence[NDArray[np.float64]], kept: NDArray[np.int64]) -> NDArray[np.float64]:
    """Rows of the concatenated parts, without building the whole where little of it is needed."""
    starts = np.cumsum([0, *(len(part) for part in parts)])
    return np.concatenate(
        [part[kept[(kept >= a) & (kept < b)] - a] for part, a, b in zip(parts, starts, starts[1:], strict=False)]
    )
