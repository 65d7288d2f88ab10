"""Reshaping of GRACE's best program: versions whose reward rises more steadily (docs/runs.md, "Reshaping")."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from grace_irl.evaluate.evaluation import EQUAL, Bar, Evaluation
from grace_irl.search.evolution import Evolution
from grace_irl.search.protocol import Fate, Request, Result, Wait
from grace_irl.search.ranks import Scored

STEADIEST = 1.0  # maximum Kendall's tau: the reward rises at every step


class Reshaping:
    """A search that runs another search to its end and then requests `count` versions of its best program.

    The operator of these requests is "reshape". The inner search ends by itself or by `conclude`, when a stop rule
    applies. It still gets the results of its own requests. A version is kept if three conditions hold:

    - its reward is more monotone than that of the best program;
    - its accuracy on training data, and on held-out data if there is any, is not lower;
    - expert and negative states stay separated if they were.

    Kept versions rank before every other program, the most monotone first (`heirs`). All random draws happen in `ask`,
    so that they depend only on the order of calls.

    Args:
        search: the inner search.
        count: number of requests to reshape. There are none without a best program, or if its reward rises at every
            step already.
        samples: number of identical requests in a row, which a model answers in one call.
        seed: seed of the generator that draws the requests' seeds.
    """

    def __init__(self, search: Evolution, count: int, samples: int, seed: int) -> None:
        self._search = search
        self._count = count
        self._samples = samples
        self._rng = np.random.default_rng([seed, 1])  # independent of the inner search's generator
        self._scored: dict[str, Scored] = {}  # valid programs of the inner search by id
        self._seen: set[str] = set()
        self._asked = 0
        self._told = 0
        self._first = 0  # index of the first request to reshape
        self._concluded = False
        self._parent: Scored | None = None
        self._over = False  # whether the inner search has ended and has all its results
        self._kept: list[Scored] = []
        self._fates: list[Fate] = []  # fates from the end of the inner search, not yet returned
        self._same = Request(0, "reshape")

    @property
    def best(self) -> tuple[str, ...]:
        """See `Search`. Kept versions come before the best programs of the inner search."""
        return (*self.heirs, *self._search.best)

    @property
    def heirs(self) -> tuple[str, ...]:
        """Ids of the kept versions, the most monotone first."""
        return tuple(scored.program.id for scored in self._kept)

    @property
    def generation(self) -> int:
        """See `Generational`. It is that of the inner search; reshaping adds none."""
        return self._search.generation

    @property
    def bar(self) -> Bar:
        """See `Barred`. A version has no minimum fitness and always runs in strict mode, like elites."""
        return Bar() if self._over else self._search.bar

    @property
    def undecided(self) -> tuple[str, ...]:
        """See `Deciding`."""
        return () if self.heirs else self._search.undecided

    def conclude(self) -> bool:
        """See `Staged`."""
        self._concluded = True
        return True

    def ask(self) -> Request | Wait | None:
        """See `Search`."""
        if not self._over:
            asked = None if self._concluded else self._search.ask()
            if asked is not None:
                self._asked += isinstance(asked, Request)
                return asked
            if self._told < self._asked:
                return Wait()
            self._begin()
        done = self._asked - self._first
        if self._parent is None or done >= self._count:
            return None
        place = done % self._samples
        if place == 0:
            samples, seed = min(self._samples, self._count - done), int(self._rng.integers(2**62))
            self._same = Request(self._asked, "reshape", (self._parent.program.id,), seed, samples=samples)
        request = replace(self._same, index=self._asked, sample=place, version=done)
        self._asked += 1
        return request

    def tell(self, result: Result) -> list[Fate]:
        """See `Search`."""
        self._told += 1
        program, evaluation = result.program, result.evaluation
        if self._over:
            fates, self._fates = [*self._fates, *self._judge(result)], []
            return fates
        if program is not None and evaluation is not None:
            self._seen.add(program.id)
            if evaluation.valid and evaluation.complete:
                self._scored.setdefault(program.id, Scored(program, evaluation, result.request.index))
        return self._search.tell(result)

    def finish(self) -> list[Fate]:
        """See `Deciding`."""
        if self._over:
            fates, self._fates = self._fates, []
            return fates
        return self._search.finish()

    def _begin(self) -> None:
        """Begin the reshaping of the inner search's best program."""
        self._over, self._first = True, self._asked
        self._fates = self._search.finish()
        best = next((self._scored[name] for name in self._search.best), None)
        if best is not None and best.evaluation.metrics.get("monotonicity", STEADIEST) < STEADIEST - EQUAL:
            self._parent = best

    def _judge(self, result: Result) -> list[Fate]:
        program, evaluation = result.program, result.evaluation
        if program is None or evaluation is None or self._parent is None:
            return []
        if program.id in self._seen:
            return [Fate(program.id, "duplicate", "the same program was tried before")]
        self._seen.add(program.id)
        if not evaluation.valid:
            return [Fate(program.id, "invalid", f"{evaluation.status}: {evaluation.message}")]
        worse, words = compared(self._parent.evaluation, evaluation)
        if worse:
            return [Fate(program.id, "dropped", f"reshaped: {worse}")]
        self._kept.append(Scored(program, evaluation, result.request.index))
        self._kept.sort(key=_preference)
        return [Fate(program.id, "kept", f"reshaped: {words}")]


def compared(old: Evaluation, new: Evaluation) -> tuple[str, str]:
    """Compare a version with the program that it reshapes. Return two texts.

    The first is the reason to drop the version, "" if it is kept. The second lists the changes of scores.
    """
    was, now = old.metrics, new.metrics
    before, after = was.get("monotonicity", 0.0), now.get("monotonicity")
    changes = [_change("monotonicity", before, after)]
    problems = [] if after is not None and after > before + EQUAL else [f"{changes[0]}: not higher"]
    for split, words in (("", "accuracy"), ("held_out_", "held-out accuracy")):
        accuracy, separated = f"{split}accuracy", f"{split}separated"
        if accuracy not in was:
            continue
        changes.append(_change(words, was[accuracy], now.get(accuracy)))
        if now.get(accuracy, 0.0) < was[accuracy] - EQUAL:
            problems.append(f"{changes[-1]}: it falls")
        if was.get(separated) and not now.get(separated):
            problems.append(f"{words.removesuffix('accuracy') or 'train '}states are separated no more")
    return "; ".join(problems), ", ".join(changes)


def _change(name: str, before: float, after: float | None) -> str:
    if after is None:
        return f"{name} {before:.4g} -> none"
    same = abs(after - before) <= EQUAL
    return f"{name} {before:.4g} stays" if same else f"{name} {before:.4g} -> {after:.4g}"


def _preference(scored: Scored) -> tuple[float, float, int, int]:
    """Sort key: the most monotone first. Ties: higher held-out accuracy, fewer nodes, the earlier request."""
    metrics = scored.evaluation.metrics
    return (
        -round(metrics.get("monotonicity", 0.0), 9),
        -metrics.get("held_out_accuracy", 0.0),
        scored.program.nodes,
        scored.index,
    )
