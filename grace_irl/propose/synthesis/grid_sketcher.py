"""Programs that watch for what the instruction asks for: grids whose experts end where the goal is reached."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from grace_irl.demos.labels import Labelled
from grace_irl.propose.synthesis.grid.meaning import Filter, Hypothesis, Meanings, Novel
from grace_irl.propose.synthesis.grid.search import search, view
from grace_irl.propose.synthesis.grid.source import summary, write_source

NOVEL: tuple[Novel, ...] = ("ignore", "guess", "require")
PATIENCE = 20
"""Tries to find a variation that differs."""


class GridSketcher:
    """A sketch is the JSON of a `Hypothesis`."""

    def __init__(self, items: Sequence[Labelled], seed: int) -> None:
        self._view = view(items)
        self._found = [hypothesis for _, hypothesis in search(self._view, seed)]

    @property
    def possible(self) -> bool:
        """Whether anything happens in these grids that a program could watch for."""
        return bool(self._found)

    def initial(self) -> list[str]:
        """Every reading as decided; then bold (guesses required), careful (guesses left out) and wordless."""
        sketches = []
        for hypothesis in self._found:
            bold = {**dict(hypothesis.meanings), **dict(hypothesis.guesses)}
            for variant in (
                hypothesis,
                replace(hypothesis, meanings=_meanings(bold), guesses=(), novel="ignore"),
                replace(hypothesis, guesses=(), novel="ignore"),
                replace(hypothesis, meanings=(), guesses=(), novel="ignore"),
            ):
                sketches.append(variant.to_json())
        return list(dict.fromkeys(sketches))

    def mutate(self, sketch: str, seed: int) -> str:
        rng = np.random.default_rng(seed)
        for _ in range(PATIENCE):
            varied = self._vary(Hypothesis.from_json(sketch), rng).to_json()
            if varied != sketch:
                return varied
        return sketch

    def _vary(self, hypothesis: Hypothesis, rng: np.random.Generator) -> Hypothesis:
        """One change: of a word's meaning, of a constant, or of how much is guessed."""
        filters = [f for f in self._view.evidence.filters if f.feature not in ("event", "count")]
        words = self._view.vocabulary
        known = {**dict(hypothesis.meanings), **dict(hypothesis.guesses)}
        kind = int(rng.integers(4))
        if kind == 0 and words and filters:
            word = str(rng.choice(list(words)))
            given = {**dict(hypothesis.meanings), word: (filters[int(rng.integers(len(filters)))],)}
            guesses = tuple(pair for pair in hypothesis.guesses if pair[0] != word)
            return replace(hypothesis, meanings=_meanings(given), guesses=guesses)
        if kind == 1 and known:
            word = sorted(known)[int(rng.integers(len(known)))]
            sure = {w: f for w, f in hypothesis.meanings if w != word}
            unsure = {w: f for w, f in hypothesis.guesses if w != word}
            if word in dict(hypothesis.meanings):  # from sure to guessed, from guessed to forgotten
                unsure[word] = known[word]
            return replace(hypothesis, meanings=_meanings(sure), guesses=_meanings(unsure))
        if kind == 2 and filters:
            chosen = filters[int(rng.integers(len(filters)))]
            kept = [f for f in hypothesis.constants if f.feature != chosen.feature]
            added = [] if chosen in hypothesis.constants else [chosen]
            return replace(hypothesis, constants=tuple(sorted([*kept, *added])))
        return replace(hypothesis, novel=NOVEL[int(rng.integers(3))] if known else "ignore")

    def source(self, sketch: str) -> str:
        hypothesis = Hypothesis.from_json(sketch)
        return write_source(hypothesis, self._view.perception, self._view.vocabulary, self._view.phrases)

    def reasoning(self, sketch: str) -> str:
        return f"The goal is reached where {summary(Hypothesis.from_json(sketch))}."


def _meanings(words: dict[str, tuple[Filter, ...]]) -> Meanings:
    return tuple(sorted(words.items()))
