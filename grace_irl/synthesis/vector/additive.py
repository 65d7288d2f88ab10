"""Additive rewards, weighted sums of terms: the choice of terms and weights, and the program of such a reward.

Terms are simple functions (`terms`) of numbers of the state (`numbers`). They are chosen one at a time, each to raise
the likelihood of a logistic regression that separates positive from negative states. Both classes have the same weight.
Let D be the predicted probability that a state is positive. Up to a factor, the log-likelihood is the mean of log D
over positive states plus the mean of log(1 - D) over negative states. This sum is the fitness of the reward (GRACE, eq.
4.1) if log pi, the policy's term, is 0.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_expit

from grace_irl.demos.fields import fixed_fields, source_fields
from grace_irl.demos.labels import Labelled
from grace_irl.errors import InputError
from grace_irl.propose.templates import written
from grace_irl.synthesis.vector.folds import Rewards, Rung, assign, barred, judged, ladder
from grace_irl.synthesis.vector.folds import chosen as chosen_size
from grace_irl.synthesis.vector.numbers import WIDTH, Numbers, broken
from grace_irl.synthesis.vector.terms import FAR, FORMULAS, PAIRS, Shape, Term, shown, vocabulary
from grace_irl.text import packed, quoted


def write_source(reward: Additive, numbers: Numbers) -> str:
    """Write the program of an additive reward over these numbers of the state."""
    # A feature (number of the state) has the same centre, spread and range in all terms, so the program lists it once.
    used = {
        field: ", ".join((shown(mean, spread, 4), f"{spread:.4g}", *(shown(end, spread, 3) for end in ends)))
        for term in reward.terms
        for field, mean, spread, ends in zip(term.fields, term.centres, term.spreads, term.ranges, strict=True)
    }
    used = dict(sorted(used.items()))
    values: dict[str, object] = {
        "reward": reward,
        "fields": numbers.table(used),
        "reader": numbers.reader(used),
        "bias": f"{reward.bias:.4g}",
        "far": f"{FAR:g}",
        "used": used,
        "rows": "\n".join(row for key, weight in _merged(reward, numbers).items() for row in _row(weight, *key)),
        "formulas": "\n".join(
            packed([f"{quoted(shape)}: {FORMULAS[shape]}" for shape in FORMULAS if shape in reward.shapes], WIDTH)
        ),
        "outside": "",
        "listed": "",
    }
    for term, weight in zip(reward.terms, reward.weights, strict=True):
        if term.shape == "outside":
            values["outside"] = f"{weight:.4g}"
            if set(term.fields) != set(used):
                values["listed"] = "\n".join(packed([quoted(numbers.names[field]) for field in term.fields], WIDTH))
    return written("grace_irl.synthesis", "vector.py.j2", values)


def _merged(reward: Additive, numbers: Numbers) -> dict[tuple[str, Shape, str], float]:
    """The weight of each row in the program's table, largest magnitude first.

    If the rows of two terms differ only in weight, their weights are added.
    """
    rows: dict[tuple[str, Shape, str], float] = {}
    for term, weight in zip(reward.terms, reward.weights, strict=True):
        if term.shape == "outside":
            continue
        one, *other = (quoted(numbers.names[field]) for field in term.fields)
        row = (one, term.shape, other[0] if other else term.value_shown)
        rows[row] = rows.get(row, 0.0) + weight
    return dict(sorted(rows.items(), key=lambda row: -abs(row[1])))


def _row(weight: float, name: str, shape: Shape, other: str) -> list[str]:
    """The row of a term in the program's table, on two lines if it is long."""
    return broken(f"    ({weight:.4g}, {name}, {quoted(shape)},", f"{other}),")


RIDGE = 1e-2
"""Ridge penalty on squared weights, per 100 states."""
MOST_OUTSIDE = -0.5
"""Maximum weight of the term "outside", the sum of the features' distances from the experts' ranges. So each standard
deviation of distance lowers the reward by at least 0.5. The limit is needed because policies visit states that no
demonstration contains."""
NEWTON_STEPS = 25  # maximum number of Newton steps of a fit
TRIAL_STEPS = 3
"""Number of Newton steps for an estimate of the likelihood with a further term, from the fit without this term."""
ROUNDED = 1e-3
"""Nats per state that the rounding of weights may cost."""
SHORTLIST = 8
"""Number of candidate terms for which the gain is estimated when a term is added. The gradient selects them."""


@dataclass(frozen=True)
class Additive:
    """A reward: bias + sum of weight * term.

    Attributes:
        terms: the terms.
        weights: one weight for each term.
        bias: the constant.
    """

    terms: tuple[Term, ...]
    weights: tuple[float, ...]
    bias: float

    @property
    def shapes(self) -> set[Shape]:
        """The shapes of the terms."""
        return {term.shape for term in self.terms}

    def value(self, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        """The rewards `(N,)` of N states, which are given by their numbers `(N, n)`."""
        terms = (weight * term.value(numbers) for weight, term in zip(self.weights, self.terms, strict=True))
        return np.asarray(sum(terms, np.full(len(numbers), self.bias)))


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

        columns = [term.value(states) for term in terms]
        raw = np.stack(columns, axis=1) if columns else np.zeros((len(states), 0))
        self.mean, self.deviation = raw.mean(axis=0), raw.std(axis=0) + 1e-9
        self.values = (raw - self.mean) / self.deviation
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
        # The score test predicts the gain. Correlations with the chosen terms are left out.
        slope = self.values.T @ (self.weight * (self.positive - chance))
        curvature = (self.values**2).T @ (self.weight * chance * (1 - chance)) + RIDGE * len(self.values) / 100
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
        """The log-likelihood of a fit, without the prices of its terms, in nats."""
        return self.fit(chosen)[1] - float(self.price[list(chosen)].sum())

    def reward(self, chosen: Sequence[int]) -> Additive:
        """Fit the reward over the terms with indices `chosen`. Its weights are for terms before standardisation.

        Weights have as few significant digits as cost the likelihood next to nothing (`ROUNDED`).
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


MAX_TERMS = 12
"""Maximum number of terms in a program. It keeps programs below about 60 lines."""
MAX_PAIRED = 12
"""Maximum number of features (numbers of the state) that are combined in pairs. Those with the largest effect size are
used, which distinguish positive states best from all states."""
MAX_WATCHED = 16
"""Maximum number of features in the term "outside", also selected by effect size."""
MAX_STATES = 20_000
"""Maximum number of states of each class, positive and negative, in the fit."""
FOLD_STATES = 4_000
"""The same for the searches of folds."""


EXCHANGED = 6
"""Maximum number of terms of a program whose terms are exchanged for better ones, one at a time."""


BLOCK = 100
"""Maximum number of states of an episode that count as one piece of evidence, at least if they are all alike."""


def design_effect(
    values: NDArray[np.float64], positive: NDArray[np.bool_], episodes: NDArray[np.int64]
) -> NDArray[np.float64]:
    """The number of states that are worth one independent state, for each column of `values`: at least 1.

    It is the design effect of cluster samples (Kish 1965): the variance of sums over blocks of states of one episode,
    over what it were if states were independent. Both are taken around the mean of each class. What is constant within
    episodes has the length of a block, and what changes fast has 1.
    """
    blocks = np.cumsum(np.diff(episodes, prepend=episodes[:1]) != 0)
    starts = np.flatnonzero(np.diff(blocks, prepend=-1))
    within = (np.arange(len(blocks)) - np.repeat(starts, np.diff(starts, append=len(blocks)))) // BLOCK
    starts = np.flatnonzero((np.diff(blocks, prepend=-1) != 0) | (np.diff(within, prepend=-1) != 0))
    single, together = np.zeros(values.shape[1]), np.zeros(values.shape[1])
    for side in (positive, ~positive):
        centred = np.where(side[:, None], values - values[side].mean(axis=0), 0.0)
        single += (centred**2).sum(axis=0) / side.sum() ** 2
        together += (np.add.reduceat(centred, starts, axis=0) ** 2).sum(axis=0) / side.sum() ** 2
    return np.asarray(np.maximum(1.0, together / np.maximum(single, 1e-300)))


def description(terms: Sequence[Term], forms: Sequence[str]) -> NDArray[np.float64]:
    """The description length of each term in nats: log of the number of terms of its class.

    A class has one shape, or the shapes with a threshold, over numbers of the same forms. A distance has few companions
    in its class, and so costs less than a pair of numbers. The term "outside" costs nothing, as all programs have it.
    """
    classes = [
        (one.shape if one.shape in PAIRS else "one", *sorted(forms[field] for field in one.fields[:2])) for one in terms
    ]
    counts = Counter(classes)
    return np.array(
        [0.0 if term.shape == "outside" else np.log(counts[one]) for term, one in zip(terms, classes, strict=True)]
    )


class SumSearch:
    """The candidate terms for some episodes, and the best sums of 1, 2, … of them.

    Args:
        episodes: the numbers `(T+1, n)` along each episode.
        positive: for each episode, whether each state is positive.
        expert: whether each episode is an expert's.
        conditions: see `AdditiveSketcher`.
        forms: what each number is (`Numbers.forms`).
        most: maximum number of states of each class; of more, an evenly spaced sample is used.
        clustered: whether prices count how alike the states of an episode are. Few episodes do not say.
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
            # A number with one constant per side tells the two sides apart in pairs, too. Set to 0, it has no terms.
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
        """Indices of the terms of programs, shortest first. Each program has one term more than the one before."""
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


class AdditiveSketcher:
    """Sketcher for additive rewards. Its sketch of a program is a JSON list of indices into the candidate terms.

    Nested folds choose the number of terms (`folds`).

    Args:
        items: the labelled training demonstrations.
        numbers: the numbers that terms read.
        conditions: whether numbers that are constant within every episode are conditions: read only in pairs with
            numbers that change, or not at all if all experts have one constant and all negatives another.
    """

    def __init__(self, items: Sequence[Labelled], numbers: Numbers, *, conditions: bool = True) -> None:
        self.numbers = numbers
        self._conditions = conditions
        self._episodes = [numbers.values(item.trajectory.states) for item in items]
        self._positive = [np.asarray(item.positive, dtype=np.bool_) for item in items]
        self._expert = [item.demonstration.role == "expert" for item in items]
        self._search = self._of(range(len(items)), MAX_STATES)
        self._table = self._search.table
        self._path = self._search.path()

    def _of(self, inside: Sequence[int], most: int) -> SumSearch:
        return SumSearch(
            [self._episodes[i] for i in inside],
            [self._positive[i] for i in inside],
            [self._expert[i] for i in inside],
            conditions=self._conditions,
            forms=self.numbers.forms,
            most=most,
            clustered=assign(self._expert) is not None,
        )

    @cached_property
    def rungs(self) -> list[Rung]:
        """Figures of folds for each number of terms."""
        folds = assign(self._expert)
        return [] if folds is None else ladder(judged(folds, self._positive, self.of_sizes))

    def of_sizes(self, inside: Sequence[int]) -> dict[int, Rewards]:
        """The rewards of the best program of each size, searched on the episodes with these indices."""
        search = self._of(inside, FOLD_STATES)
        sums = {len(chosen): search.table.reward(chosen) for chosen in search.path()}
        return {size: partial(self._rewards, reward) for size, reward in sums.items()}

    def _rewards(self, reward: Additive, episode: int) -> NDArray[np.float64]:
        return reward.value(self._episodes[episode])

    @cached_property
    def size(self) -> int:
        """The number of terms that folds choose. With too few episodes it is the smallest number that separates the
        training states, or else the largest one.
        """
        found = chosen_size(self.rungs)
        if found is not None:
            return found
        return min((len(chosen) for chosen in self._path if self._separates(chosen)), default=MAX_TERMS)

    def _separates(self, chosen: list[int]) -> bool:
        """Whether each positive state has a higher reward than every other one."""
        beta, _ = self._table.fit(chosen)
        margin = self._table.values[:, chosen] @ beta[1:]
        positive = self._table.positive
        return bool(margin[positive].min() > margin[~positive].max())

    @property
    def _always(self) -> list[int]:
        return self._search.always

    def initial(self) -> list[str]:
        """Sketches of the program of the chosen size, of shorter ones, and then of longer ones."""
        fitting = [chosen for chosen in self._path[::-1] if len(chosen) <= self.size]
        longer = [chosen for chosen in self._path if len(chosen) > self.size]
        return [json.dumps(chosen) for chosen in (*fitting, *longer)]

    def mutate(self, sketch: str, seed: int) -> str:
        """Remove a few terms, preferably weak ones, and add others from a random half of the candidates."""
        rng = np.random.default_rng(seed)
        always = self._always
        sketched = self._indices(sketch)
        beta, _ = self._table.fit(sketched)
        # Weights of standardised terms are comparable.
        weakness = np.exp(-np.abs(beta[1 + len(always) :]))
        chosen = sketched[len(always) :]
        size = len(chosen)
        dropped = rng.choice(size, size=min(size, int(rng.integers(1, 4))), replace=False, p=weakness / weakness.sum())
        chosen = [*always, *(term for i, term in enumerate(chosen) if i not in dropped)]
        count = len(self._table.terms)
        # Only half of the candidates are allowed, because growth from all would lead back to the parent.
        allowed = np.flatnonzero(rng.random(count) < 0.5).tolist()
        while len(chosen) < min(len(sketched) + int(rng.integers(0, 2)), max(self.size, 1 + len(always))):
            grown = self._table.grow(chosen, allowed)
            if len(grown) == len(chosen):
                break
            chosen = grown
        return json.dumps(chosen) if len(chosen) > len(always) else sketch

    def source(self, sketch: str) -> str:
        return write_source(self._table.reward(self._indices(sketch)), self.numbers)

    def prior(self, sketch: str) -> float:
        """The description lengths of the terms, in units of the fitness that they must gain.

        Programs of more terms than folds choose are barred, however well they fit.
        """
        chosen = self._indices(sketch)
        if len(chosen) > self.size:
            return barred(self._positive)
        return -float(self._table.price[chosen].sum()) / 2

    def reasoning(self, sketch: str) -> str:
        names = [self._table.terms[i].name(self.numbers.names) for i in self._indices(sketch)]
        return "Expert states differ from the others in " + ", ".join(names) + "."

    def sizes(self) -> list[tuple[str, str, Rung, bool]] | None:
        """The number of terms in words, the sketch, the figures of folds, and whether it is chosen, for each number.

        None if folds have nothing to judge; [] with too few episodes for folds.
        """
        if assign(self._expert) is not None and not self.rungs:
            return None
        sketches = {len(chosen): json.dumps(chosen) for chosen in self._path}
        return [
            (f"{rung.size} term{'s' if rung.size > 1 else ''}", sketches[rung.size], rung, rung.size == self.size)
            for rung in self.rungs
            if rung.size in sketches
        ]

    def _indices(self, sketch: str) -> list[int]:
        """The indices of a sketch's terms.

        Raises:
            InputError: an index that no term has. The sketch is of a version with other terms.
        """
        found: list[int] = json.loads(sketch)
        if any(not 0 <= index < len(self._table.terms) for index in found):
            raise InputError(
                f"term {max(found)} of {len(self._table.terms)}: another version of grace-irl began this run; expected "
                "one of this version: begin a run with its programs (fit --start-from RUN)"
            )
        return found


def _spread(indices: NDArray[np.int64], most: int) -> NDArray[np.int64]:
    """At most `most` of the indices, evenly spaced."""
    if len(indices) <= most:
        return indices
    return indices[np.linspace(0, len(indices) - 1, most).astype(np.int64)]


def _rows(parts: Sequence[NDArray[np.float64]], kept: NDArray[np.int64]) -> NDArray[np.float64]:
    """Rows `kept` of the concatenated parts, without concatenating all of them."""
    starts = np.cumsum([0, *(len(part) for part in parts)])
    return np.concatenate(
        [part[kept[(kept >= a) & (kept < b)] - a] for part, a, b in zip(parts, starts, starts[1:], strict=False)]
    )
