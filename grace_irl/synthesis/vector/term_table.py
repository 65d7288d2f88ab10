"""The values of candidate terms on labelled states, and the fit of weights.

Terms are chosen one at a time, each to raise the likelihood of a logistic regression that separates positive from
negative states. Both classes have the same weight. Let D be the predicted probability that a state is positive. Up to a
factor, the log-likelihood is the mean of log D over positive states plus the mean of log(1 - D) over negative states.
This sum is the fitness of the reward (GRACE, eq. 4.1) if log pi, the policy's term, is 0.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_expit

from grace_irl.synthesis.vector.additive import Additive
from grace_irl.synthesis.vector.terms import Term

RIDGE = 1e-2
"""Ridge penalty on squared weights, per 100 states."""
MOST_OUTSIDE = -0.5
"""Maximum weight of the term "outside". The term is the sum of the features' distances from the experts' ranges. Each
distance is in standard deviations of the feature, so a distance of 1 lowers the reward by at least 0.5. The limit is
needed because policies visit states that no demonstration contains."""
NEWTON_STEPS = 25  # maximum number of Newton steps of a fit
TRIAL_STEPS = 3
"""Number of Newton steps in a trial of a further term. The trial starts from the fit without this term."""
ROUNDED = 1e-3
"""Maximum cost of rounding the weights, in nats per state."""
SHORTLIST = 8
"""Number of candidate terms that get a trial when a term is added. The score test predicts the gain of each candidate,
and the best candidates get a trial."""


class TermTable:
    """Values of all candidate terms on labelled states, standardised to mean 0 and standard deviation 1.

    Args:
        terms: the candidate terms.
        states: (N, n) numbers of the states.
        positive: (N,) whether each state is positive.
        nats: (k,) description length of each term; None for 0.
        episodes: (N,) number of the episode of each state, in ascending order; None if states are independent.
    """

    def __init__(
        self,
        terms: Sequence[Term],
        states: NDArray[np.float64],
        positive: NDArray[np.bool_],
        nats: NDArray[np.float64] | None = None,
        episodes: NDArray[np.int64] | None = None,
    ) -> None:
        self.terms = tuple(terms)
        self.nats = np.zeros(len(terms)) if nats is None else nats

        # The table is the largest array of a search, so the next steps work in place or on a few columns.
        self.values = np.empty((len(states), len(terms)))
        for column, term in enumerate(terms):
            self.values[:, column] = term.value(states)
        self.mean = self.values.mean(axis=0)
        self.deviation = np.zeros(len(terms))
        for part in _parts(len(terms)):
            self.deviation[part] = self.values[:, part].std(axis=0) + 1e-9
        self.values -= self.mean
        self.values /= self.deviation
        self.positive = positive
        count = len(positive)
        alike = 1.0 if episodes is None else design_effect(self.values, positive, episodes)
        self.price = alike * self.nats
        fines = np.array([term.shape == "outside" for term in terms], dtype=bool)
        self._most = np.where(fines, MOST_OUTSIDE * self.deviation, np.inf)
        self.weight = np.where(positive, 0.5 * count / positive.sum(), 0.5 * count / (~positive).sum())

    def fit(
        self, chosen: Sequence[int], start: NDArray[np.float64] | None = None, steps: int = NEWTON_STEPS
    ) -> tuple[NDArray[np.float64], float]:
        """Fit the bias and the weights of k terms.

        Args:
            chosen: indices of the terms.
            start: (k + 1,) bias and weights at the start; zeros by default.
            steps: maximum number of Newton steps.

        Returns:
            (k + 1,) the bias and the weights of the standardised terms, and the log-likelihood in nats.
        """
        # Newton's method. The weighted log-likelihood is concave, and with the ridge it has one optimum.
        columns = np.column_stack([np.ones(len(self.values)), self.values[:, list(chosen)]])
        ridge = np.full(columns.shape[1], RIDGE * len(columns) / 100)
        ridge[0] = 1e-9
        most = np.append(np.inf, self._most[list(chosen)])
        beta = np.minimum(np.zeros(columns.shape[1]) if start is None else start, most)
        for _ in range(steps):
            chance = expit(columns @ beta)
            gradient = columns.T @ (self.weight * (self.positive - chance)) - ridge * beta
            curvature = (columns * (self.weight * chance * (1 - chance))[:, None]).T @ columns + np.diag(ridge)
            # A weight at its upper limit is fixed if the gradient would raise it. The other weights take a Newton step.
            free = (beta < most) | (gradient < 0)
            step = np.zeros(len(beta))
            step[free] = np.linalg.solve(curvature[np.ix_(free, free)], gradient[free])
            # Far from the optimum a full Newton step can overshoot, so its length is limited.
            step = np.minimum(step * min(1.0, 5.0 / (np.abs(step).max() + 1e-12)), most - beta)
            beta = beta + step
            if np.abs(step).max() < 1e-6:
                break
        return beta, self._likelihood(columns @ beta)

    def grow(self, chosen: Sequence[int], allowed: Sequence[int] | None = None) -> list[int]:
        """Add the term that raises the posterior most (`posterior`). If no term is left, return `chosen`.

        Args:
            chosen: indices of the terms.
            allowed: indices of terms that may be added; None for all.
        """
        beta, _ = self.fit(chosen)
        chance = expit(beta[0] + self.values[:, list(chosen)] @ beta[1:])
        # The score test predicts the gain, but ignores correlations with the chosen terms.
        slope = self.values.T @ (self.weight * (self.positive - chance))
        # einsum needs no second table for the squares, and no threads, which are slow on a busy machine.
        squares = np.einsum("ij,ij,i->j", self.values, self.values, self.weight * chance * (1 - chance))
        curvature = squares + RIDGE * len(self.values) / 100
        gain = slope**2 / (2 * curvature) - self.price
        gain[(slope == 0)] = -np.inf
        gain[list(chosen)] = -np.inf
        if allowed is not None:
            gain[np.setdiff1d(np.arange(len(gain)), allowed)] = -np.inf
        shortlist = [int(i) for i in np.argsort(-gain, kind="stable")[:SHORTLIST] if np.isfinite(gain[i])]
        if not shortlist:
            return list(chosen)
        # The prediction overrates terms that are similar to chosen ones, so a short fit decides among the best few.
        start = np.append(beta, 0.0)
        scored = [
            (self.fit([*chosen, column], start, TRIAL_STEPS)[1] - self.price[column], -column) for column in shortlist
        ]
        return [*chosen, -max(scored)[1]]

    def posterior(self, chosen: Sequence[int]) -> float:
        """The log-likelihood of a fit, minus the prices of its terms, in nats."""
        return self.fit(chosen)[1] - float(self.price[list(chosen)].sum())

    def reward(self, chosen: Sequence[int]) -> Additive:
        """Fit the reward over the terms with indices `chosen`. Its weights are for terms before standardisation.

        Weights are rounded to as few significant digits as possible. Rounding may lower the log-likelihood by at most
        `ROUNDED` per state. But no weight has more than 4 digits, even if 4 digits lower the log-likelihood by more.
        """
        beta, best = self.fit(chosen)
        exact = beta[1:] / self.deviation[list(chosen)]
        raw = self.values[:, list(chosen)] * self.deviation[list(chosen)]
        bias = float(beta[0] - exact @ self.mean[list(chosen)])
        weights = exact
        for digits in range(1, 5):
            weights = np.array([float(f"{weight:.{digits}g}") for weight in exact])
            margin = beta[0] + raw @ weights
            if best - self._likelihood(margin) <= ROUNDED * len(self.values):
                bias = float(beta[0] - weights @ self.mean[list(chosen)])
                break
        return Additive(tuple(self.terms[i] for i in chosen), tuple(map(float, weights)), bias)

    def _likelihood(self, margin: NDArray[np.float64]) -> float:
        """The weighted log-likelihood of the labels, in nats. `margin` is the log-odds of each state."""
        return float((self.weight * log_expit(np.where(self.positive, margin, -margin))).sum())


BLOCK = 100
"""`design_effect` divides each episode into blocks of at most this number of states. A block of equal states counts as
one piece of evidence."""


def design_effect(
    values: NDArray[np.float64], positive: NDArray[np.bool_], episodes: NDArray[np.int64]
) -> NDArray[np.float64]:
    """For each column of `values`, the number of states that carry as much evidence as one independent state.

    This is the design effect of cluster samples (Kish 1965), and at least 1. The clusters are blocks of states of one
    episode. The design effect is the variance of sums over blocks, divided by the variance of such sums if states were
    independent. Both variances are around the mean of each class. The result is the length of a block for a column that
    is constant within episodes, and 1 for a column that changes fast.
    """
    blocks = np.cumsum(np.diff(episodes, prepend=episodes[:1]) != 0)
    starts = np.flatnonzero(np.diff(blocks, prepend=-1))
    within = (np.arange(len(blocks)) - np.repeat(starts, np.diff(starts, append=len(blocks)))) // BLOCK
    starts = np.flatnonzero((np.diff(blocks, prepend=-1) != 0) | (np.diff(within, prepend=-1) != 0))
    single, together = np.zeros(values.shape[1]), np.zeros(values.shape[1])
    for side, part in itertools.product((positive, ~positive), _parts(values.shape[1])):
        own = values[:, part]
        centred = np.where(side[:, None], own - own[side].mean(axis=0), 0.0)
        single[part] += (centred**2).sum(axis=0) / side.sum() ** 2
        together[part] += (np.add.reduceat(centred, starts, axis=0) ** 2).sum(axis=0) / side.sum() ** 2
    return np.asarray(np.maximum(1.0, together / np.maximum(single, 1e-300)))


_PART = 16
"""Number of columns whose intermediate results are in memory at a time."""


def _parts(columns: int) -> list[slice]:
    """Slices of at most `_PART` + 1 columns. No slice has a single column, unless there is only one column.

    NumPy sums a single column in another order, so its sum would differ in the last digits.
    """
    starts = range(0, max(columns - 1, min(columns, 1)), _PART)
    return [slice(start, columns if columns - start <= _PART + 1 else start + _PART) for start in starts]
