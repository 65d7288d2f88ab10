"""Weights for terms, and which terms: class-balanced logistic regression, grown one term at a time.

Minus its loss is the AIRL fitness of GRACE's equation 4.1 with log pi = 0, up to a factor: the mean of log D over
expert states plus the mean of log(1 - D) over negative ones. So growing the model is climbing the fitness.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_expit

from grace_irl.synthesis.vector.term import Term

RIDGE = 1e-2
"""Weight of the squared weights against the loss per state."""
LEAST_FINE = -0.5
"""Largest weight of "outside": each deviation out of the experts' range costs at least this, whether or not the
demonstrations show that it should. Policies go where no demonstration was."""
NEWTON_STEPS = 25
TRIAL_STEPS = 3
"""Newton steps, from the fit without it, that tell how much a term of the shortlist would gain."""
SHORTLIST = 8
"""Terms that are fitted for real, of those with the largest gain predicted from the gradient."""


@dataclass(frozen=True)
class Additive:
    """A reward: bias + sum of weight * term.

    Attributes:
        terms: what is added up.
        weights: one per term.
        bias: the constant.
    """

    terms: tuple[Term, ...]
    weights: tuple[float, ...]
    bias: float


class Table:
    """States under every term of a vocabulary, standardised, with labels.

    Args:
        terms: the vocabulary.
        states: (N, n).
        positive: (N,).
    """

    def __init__(self, terms: Sequence[Term], states: NDArray[np.float64], positive: NDArray[np.bool_]) -> None:
        self.terms = tuple(terms)
        columns = [term.value(states) for term in terms]
        raw = np.stack(columns, axis=1) if columns else np.zeros((len(states), 0))
        self.mean, self.deviation = raw.mean(axis=0), raw.std(axis=0) + 1e-9
        self.values = (raw - self.mean) / self.deviation
        self.positive = positive
        count = len(positive)
        fines = np.array([term.shape == "outside" for term in terms], dtype=bool)
        self._most = np.where(fines, LEAST_FINE * self.deviation, np.inf)
        self.weight = np.where(positive, 0.5 * count / positive.sum(), 0.5 * count / (~positive).sum())

    def fit(
        self, chosen: Sequence[int], start: NDArray[np.float64] | None = None, steps: int = NEWTON_STEPS
    ) -> tuple[NDArray[np.float64], float]:
        """Bias and weights (over standardised terms) for these terms, and the weighted log-likelihood, nats.

        Args:
            start: bias and weights to start from, default zeros.
            steps: Newton steps at most.
        """
        columns = np.column_stack([np.ones(len(self.values)), self.values[:, list(chosen)]])
        ridge = np.full(columns.shape[1], RIDGE * len(columns) / 100)
        ridge[0] = 1e-9
        most = np.append(np.inf, self._most[list(chosen)])
        beta = np.minimum(np.zeros(columns.shape[1]) if start is None else start, most)
        for _ in range(steps):
            chance = expit(columns @ beta)
            gradient = columns.T @ (self.weight * (self.positive - chance)) - ridge * beta
            curvature = (columns * (self.weight * chance * (1 - chance))[:, None]).T @ columns + np.diag(ridge)
            # A weight at its bound that would leave it stays, and the others move without it.
            free = (beta < most) | (gradient < 0)
            step = np.zeros(len(beta))
            step[free] = np.linalg.solve(curvature[np.ix_(free, free)], gradient[free])
            # Far from the optimum a full Newton step can overshoot: cap it.
            step = np.minimum(step * min(1.0, 5.0 / (np.abs(step).max() + 1e-12)), most - beta)
            beta = beta + step
            if np.abs(step).max() < 1e-6:
                break
        margin = columns @ beta
        signed = np.where(self.positive, margin, -margin)
        return beta, float((self.weight * log_expit(signed)).sum())

    def grow(self, chosen: Sequence[int], allowed: Sequence[int] | None = None) -> list[int]:
        """The terms with the best one added; the same terms where none is left."""
        beta, _ = self.fit(chosen)
        chance = expit(beta[0] + self.values[:, list(chosen)] @ beta[1:])
        # The score test: with standardised columns the curvature is much the same for all.
        gain = (self.values.T @ (self.weight * (self.positive - chance))) ** 2
        gain[list(chosen)] = -1.0
        if allowed is not None:
            gain[np.setdiff1d(np.arange(len(gain)), allowed)] = -1.0
        shortlist = [int(i) for i in np.argsort(-gain, kind="stable")[:SHORTLIST] if gain[i] > 0]
        if not shortlist:
            return list(chosen)
        start = np.append(beta, 0.0)
        scored = [(self.fit([*chosen, column], start, TRIAL_STEPS)[1], -column) for column in shortlist]
        return [*chosen, -max(scored)[1]]

    def reward(self, chosen: Sequence[int]) -> Additive:
        """The fitted reward over these terms, in the terms' own units."""
        beta, _ = self.fit(chosen)
        weights = beta[1:] / self.deviation[list(chosen)]
        bias = float(beta[0] - weights @ self.mean[list(chosen)])
        return Additive(tuple(self.terms[i] for i in chosen), tuple(map(float, weights)), bias)
