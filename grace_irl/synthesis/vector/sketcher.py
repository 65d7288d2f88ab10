"""The sketcher of additive rewards, for label rule "all" and for goals if no other program suffices."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from grace_irl.demos.labels import Labelled
from grace_irl.errors import InputError
from grace_irl.evaluate.sizes import Rung, ladder
from grace_irl.evaluate.sizes import chosen as chosen_size
from grace_irl.synthesis.vector.additive import Additive, write_source
from grace_irl.synthesis.vector.folds import Rewards, assign, barred, judged
from grace_irl.synthesis.vector.numbers import Numbers
from grace_irl.synthesis.vector.sum_search import MAX_TERMS, SumSearch

MAX_STATES = 20_000
"""Maximum number of states of each class, positive and negative, in the search on all training episodes."""
FOLD_STATES = 4_000
"""Maximum number of states of each class in the searches of folds."""


class AdditiveSketcher:
    """Sketcher of additive rewards. A sketch is a JSON list of indices into the candidate terms.

    Nested folds choose the number of terms (`folds`).

    Args:
        items: the labelled training demonstrations.
        numbers: the numbers that terms read.
        conditions: whether numbers that are constant within every episode are conditions. A condition is read only in a
            pair with a number that changes. It is not read at all if all experts have one constant and all negatives
            have another.
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
        """The results of folds for each number of terms; [] with too few episodes for folds."""
        folds = assign(self._expert)
        return [] if folds is None else ladder(judged(folds, self._positive, self.of_sizes))

    def of_sizes(self, inside: Sequence[int]) -> dict[int, Rewards]:
        """The rewards of the best program of each size, from a search on the episodes with these indices."""
        search = self._of(inside, FOLD_STATES)
        sums = {len(chosen): search.table.reward(chosen) for chosen in search.path()}
        return {size: partial(self._rewards, reward) for size, reward in sums.items()}

    def _rewards(self, reward: Additive, episode: int) -> NDArray[np.float64]:
        return reward.value(self._episodes[episode])

    @cached_property
    def size(self) -> int:
        """The number of terms that folds choose.

        Without results of folds, it is the smallest number of terms that separates the training states, or `MAX_TERMS`
        if no number does.
        """
        found = chosen_size(self.rungs)
        if found is not None:
            return found
        return min((len(chosen) for chosen in self._path if self._separates(chosen)), default=MAX_TERMS)

    def _separates(self, chosen: list[int]) -> bool:
        """Whether each positive state has a higher reward than every other state."""
        beta, _ = self._table.fit(chosen)
        margin = self._table.values[:, chosen] @ beta[1:]
        positive = self._table.positive
        return bool(margin[positive].min() > margin[~positive].max())

    @property
    def _always(self) -> list[int]:
        return self._search.always

    def initial(self) -> list[str]:
        """Sketches of programs: first the one of the chosen size, then smaller ones, then larger ones."""
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
        """Minus half the sum of the terms' prices in nats. Programs with more terms than folds choose are barred."""
        chosen = self._indices(sketch)
        if len(chosen) > self.size:
            return barred(self._positive)
        return -float(self._table.price[chosen].sum()) / 2

    def reasoning(self, sketch: str) -> str:
        names = [self._table.terms[i].name(self.numbers.names) for i in self._indices(sketch)]
        return "Expert states differ from the others in " + ", ".join(names) + "."

    def sizes(self) -> list[tuple[str, str, Rung, bool]] | None:
        """For each number of terms: the number in words, the sketch, the results of folds, and whether folds chose it.

        The result is [] with too few episodes for folds, and None if folds have no programs to judge.
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
            InputError: no term has one of the indices, because another version of grace-irl wrote the sketch.
        """
        found: list[int] = json.loads(sketch)
        if any(not 0 <= index < len(self._table.terms) for index in found):
            raise InputError(
                f"term {max(found)} of {len(self._table.terms)}: another version of grace-irl began this run; expected "
                "one of this version: begin a run with its programs (fit --start-from RUN)"
            )
        return found
