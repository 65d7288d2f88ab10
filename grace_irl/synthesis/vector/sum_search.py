"""The search for additive rewards: the candidate terms for some episodes, and the best sums of 1, 2, … terms."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from grace_irl.demos.fields import fixed_fields, source_fields
from grace_irl.synthesis.vector.term_table import TermTable
from grace_irl.synthesis.vector.terms import PAIRS, Term, vocabulary

MAX_TERMS = 12
"""Maximum number of terms in a program. It keeps programs below about 60 lines."""
MAX_PAIRED = 12
"""Maximum number of features (numbers of the state) that are combined in pairs. Features with the largest effect size
are used, because they distinguish positive states best from all states."""
MAX_WATCHED = 16
"""Maximum number of features that the term "outside" reads (see `Term`). If there are more, those with the largest
effect size are used."""


EXCHANGED = 6
"""In programs with at most this number of terms, single terms are exchanged for better ones."""


def description(terms: Sequence[Term], forms: Sequence[str]) -> NDArray[np.float64]:
    """The description length of each term in nats: log of the number of terms of its class.

    Terms of one number are in the same class if their numbers have the same form. Terms of two numbers must also have
    the same shape. Classes with distances are small, so a distance costs less than a pair of numbers. The term
    "outside" costs nothing, because all programs have it.
    """
    classes = [
        (one.shape if one.shape in PAIRS else "one", *sorted(forms[field] for field in one.fields[:2])) for one in terms
    ]
    counts = Counter(classes)
    return np.array(
        [0.0 if term.shape == "outside" else np.log(counts[one]) for term, one in zip(terms, classes, strict=True)]
    )


class SumSearch:
    """The candidate terms for some episodes, and the best sums of 1, 2, … terms.

    Args:
        episodes: the numbers `(T+1, n)` along each episode.
        positive: for each episode, whether each state is positive.
        expert: whether each episode is an expert's.
        conditions: see `AdditiveSketcher` (`sketcher`).
        forms: the form of each number (`Numbers.forms`).
        most: maximum number of positive states, and of negative states. If there are more, an evenly spaced sample is
            used.
        clustered: whether prices depend on the similarity of states of an episode (`design_effect`). Few episodes
            cannot show this similarity.
    """

    def __init__(
        self,
        episodes: Sequence[NDArray[np.float64]],
        positive: Sequence[NDArray[np.bool_]],
        expert: Sequence[bool],
        *,
        conditions: bool,
        forms: Sequence[str],
        most: int,
        clustered: bool,
    ) -> None:
        labels = np.concatenate(positive)
        sides = (np.flatnonzero(labels), np.flatnonzero(~labels))
        kept = np.sort(np.concatenate([_spread(side, most) for side in sides]))
        values, fixed = _rows(episodes, kept), None
        if conditions:
            fixed = fixed_fields(episodes, expert)
            # A number with one constant for experts and another for negatives only shows the role of an episode. It is
            # set to 0, so that it has no terms.
            values[:, source_fields(episodes, expert)] = 0.0
        plain = np.array([form == "number" for form in forms], dtype=bool)
        terms = vocabulary(values[labels[kept]], values, MAX_PAIRED, MAX_WATCHED, fixed, plain)
        numbers = np.repeat(np.arange(len(positive)), [len(each) for each in positive])[kept]
        nats = description(terms, forms)
        self.table = TermTable(terms, values, labels[kept], nats, numbers if clustered else None)

    @property
    def always(self) -> list[int]:
        """Indices of the terms that every program has: [0] for the term "outside", or [] if there is no such term."""
        return [i for i, term in enumerate(self.table.terms[:1]) if term.shape == "outside"]

    def path(self) -> list[list[int]]:
        """The indices of each program's terms. Each program has one term more than the program before."""
        chosen, found = self.always, []
        while len(chosen) < min(MAX_TERMS, len(self.table.terms)):
            grown = self.table.grow(chosen)
            if len(grown) == len(chosen):
                break
            chosen = self._exchanged(grown) if len(grown) <= EXCHANGED else grown
            found.append(chosen)
        return found

    def _exchanged(self, chosen: list[int]) -> list[int]:
        """Exchange one term at a time as long as the posterior rises."""
        best, changed = self.table.posterior(chosen), True
        while changed:
            changed = False
            for term in chosen[len(self.always) :]:
                grown = self.table.grow([each for each in chosen if each != term])
                reached = self.table.posterior(grown)
                if reached > best + 1e-6:
                    chosen, best, changed = grown, reached, True
        return chosen


def _spread(indices: NDArray[np.int64], most: int) -> NDArray[np.int64]:
    """At most `most` of the indices, evenly spaced."""
    if len(indices) <= most:
        return indices
    return indices[np.linspace(0, len(indices) - 1, most).astype(np.int64)]


def _rows(parts: Sequence[NDArray[np.float64]], kept: NDArray[np.int64]) -> NDArray[np.float64]:
    """The rows `kept` of the concatenated parts. Other rows are not copied."""
    starts = np.cumsum([0, *(len(part) for part in parts)])
    return np.concatenate(
        [part[kept[(kept >= a) & (kept < b)] - a] for part, a, b in zip(parts, starts, starts[1:], strict=False)]
    )
