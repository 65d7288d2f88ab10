"""From what the data makes likely to what the program says: the choice with the least expected loss.

A meaning that is required but wrong loses expert states; one that is left out lets negative states through. How much
the second costs depends on how often negatives come near: that is measured, not assumed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from grace_irl.synthesis.grid.evidence import GridEvidence
from grace_irl.synthesis.grid.lexicon import GridReading, Lexicon, Posterior
from grace_irl.synthesis.grid.meaning import SEVERAL, Filter, Hypothesis, Meanings, Novel

MISS = 0.8
"""Chance that a thing with another meaning of a word fails the wrong one: about 1 - 1/5 for a handful of values."""
COINCIDENCE = 0.05
"""Chance below which what all goals share is no accident."""
NOVEL_TRUST = 0.85
"""Trust that a word never seen before names a value that no known word names."""


def decide(lexicon: Lexicon, posterior: Posterior, reading: GridReading | None = None) -> Hypothesis:
    """The hypothesis that a posterior supports: what is sure is required, what else the reading says is guessed.

    Args:
        reading: another than the likeliest one.
    """
    evidence = lexicon.evidence
    reading = reading or posterior.best
    pressure = negative_pressure(lexicon, posterior.best)
    sure: list[tuple[str, tuple[Filter, ...]]] = []
    guesses: list[tuple[str, tuple[Filter, ...]]] = []
    for word in lexicon.words:
        chances = _without_several(posterior.words[word], evidence)
        best = reading.meanings.get(word, -1)
        kept = safest(chances, pressure, evidence)
        if kept:
            sure.append((word, tuple(evidence.filters[column] for column in kept)))
        if best >= 0 and evidence.filters[best] != SEVERAL and kept != (best,):
            guesses.append((word, (evidence.filters[best],)))
    columns = {*reading.constants.values(), *shared_constants(lexicon, reading)}
    constants = tuple(sorted(evidence.filters[column] for column in columns))
    return Hypothesis(lexicon.plan, constants, tuple(sure), tuple(guesses), _novel(tuple(sure), pressure))


def _without_several(chances: Mapping[int, float], evidence: GridEvidence) -> dict[int, float]:
    """The chances, with "one of several" counted as no meaning: it says nothing about a thing."""
    several = evidence.index[SEVERAL]
    plain = chances.get(-1, 0.0) + chances.get(several, 0.0)
    return {**{column: chance for column, chance in chances.items() if column != several}, -1: plain}


def shared_constants(lexicon: Lexicon, reading: GridReading) -> list[int]:
    """Codes that what happens at every goal shares, beyond chance, and that the same happening elsewhere need not have.

    Doors that open and doors that close both change: that all goals are openings is no accident, even where no
    negative closed the right door. A constant holds for every step, so none that would undo an earlier one is taken.
    """
    evidence = lexicon.evidence
    spoken = {evidence.filters[column].feature for column in (*reading.constants.values(), *reading.meanings.values())}
    goals: list[NDArray[np.bool_]] = []
    others: list[NDArray[np.bool_]] = []
    for i, positive in enumerate(evidence.positives):
        at_goal, elsewhere = evidence.split_rows(i, lexicon.stages(reading, i), positive)
        goals += [at_goal] if len(at_goal) else []
        others.append(elsewhere)
    if not goals or lexicon.plan.beside:
        return []
    rest = np.concatenate(others)
    found: list[int] = []
    for column, f in enumerate(evidence.filters):
        if f.feature.startswith("channel") and f.feature not in spoken and all(rows[:, column].all() for rows in goals):
            usual = (rest[:, column].sum() + 1) / (len(rest) + 2)
            if usual ** len(goals) < COINCIDENCE and _goals_stay(lexicon, reading, [*found, column]):
                found.append(column)
    return found


def _goals_stay(lexicon: Lexicon, reading: GridReading, constants: Sequence[int]) -> bool:
    """Whether every goal state that a reading marks is still marked when these filters hold for every step."""
    for i, positive in enumerate(lexicon.evidence.positives):
        stages = lexicon.stages(reading, i)
        narrower = tuple(tuple((tuple(sorted({*step[0], *constants})),) for step in stage) for stage in stages)
        fired = lexicon.evidence.fired(i, stages)
        if (positive & fired & ~lexicon.evidence.fired(i, narrower)).any():
            return False
    return True


def negative_pressure(lexicon: Lexicon, reading: GridReading) -> float:
    """The fraction of negative states that the happening would fit if words said nothing about the thing."""
    filters = lexicon.evidence.filters
    verbs = {word: column for word, column in reading.meanings.items() if filters[column].feature == "event"}
    wordless = GridReading(reading.constants, verbs)
    hits = total = 0
    for i, positive in enumerate(lexicon.evidence.positives):
        fired = lexicon.evidence.fired(i, lexicon.stages(wordless, i))
        hits += int((fired & ~positive).sum())
        total += int((~positive).sum())
    return hits / max(1, total)


def safest(chances: Mapping[int, float], pressure: float, evidence: GridEvidence) -> tuple[int, ...]:
    """The filters of which one is required, () for none: the set with the least expected loss.

    Only filters on one feature are put together, likeliest first. With probability 1 - P(set) the set is wrong and
    loses experts; a set of k of the feature's K values lets k/K of the negatives through that come near.
    """
    best: tuple[float, tuple[int, ...]] = (pressure, ())
    features = {evidence.filters[column].feature for column in chances if column >= 0}
    for feature in sorted(features):
        size = sum(f.feature == feature for f in evidence.filters)
        ranked = sorted(
            (column for column in chances if column >= 0 and evidence.filters[column].feature == feature),
            key=lambda column: (-chances[column], column),
        )
        for k in range(1, len(ranked)):
            chosen = ranked[:k]
            wrong = 1.0 - sum(chances[column] for column in chosen)
            loss = wrong * MISS + pressure * k / size
            if loss < best[0] - 1e-12:
                best = (loss, tuple(sorted(chosen)))
    return best[1]


def _novel(sure: Meanings, pressure: float) -> Novel:
    if not sure:
        return "ignore"
    return "require" if pressure * MISS > (1 - NOVEL_TRUST) * MISS else "guess"
