"""GRACE's reshaping (docs/runs.md, "Reshaping"): versions of the best program that rise more steadily."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from grace_irl.evaluate.evaluation import EQUAL, Bar, Evaluation
from grace_irl.search.evolution import Evolution
from grace_irl.search.protocol import Fate, Request, Result, Wait
from grace_irl.search.ranks import Scored

STEADIEST = 1.0  # Kendall's tau of a reward that rises at every step: nothing rises more


class Reshaping:
    """Runs a search to its end, then asks for `count` versions of its best program with operator "reshape".

    The search ends by itself or by `conclude` (a stop rule of the search is met). It still takes in the results of its
    own requests. A version is kept if it is more monotone than the best program and neither accuracy on training data
    nor, if there is any, on held-out data falls, nor the separation of expert from negative states is lost. Kept
    versions come before every other program (`heirs`), the most monotone first. Every draw happens in `ask`, so that
    the state depends on nothing but the order of asking.

    Args:
        search: the one to run first; it works as if it were alone.
        count: requests, unless there is nothing to gain: no program, or one that rises at every step.
        samples: requests in a row that ask the same, so that a model answers them in one call.
        seed: of the requests' seeds.
    """

    def __init__(self, search: Evolution, count: int, samples: int, seed: int) -> None:
        self._search = search
        self._count = count
        self._samples = samples
        self._rng = np.random.default_rng([seed, 1])  # not the stream of the search itself
        self._scored: dict[str, Scored] = {}  # valid programs of the search
        self._seen: set[str] = set()
        self._asked = 0
        self._told = 0
        self._first = 0  # index of the first request to reshape
        self._concluded = False
        self._parent: Scored | None = None
        self._over = False  # the search has ended, and has all its results
        self._kept: list[Scored] = []
        self._fates: list[Fate] = []  # of the search's end, not yet handed over
        self._same = Request(0, "reshape")

    @property
    def best(self) -> tuple[str, ...]:
        """See `Search`: kept versions, then the search's own."""
        return (*self.heirs, *self._search.best)

    @property
    def heirs(self) -> tuple[str, ...]:
        """Ids of the versions kept, the most monotone first."""
        return tuple(scored.program.id for scored in self._kept)

    @property
    def generation(self) -> int:
        """See `Generational`: the search's own; reshaping is none."""
        return self._search.generation

    @property
    def bar(self) -> Bar:
        """See `Barred`: a version need not be fitter than anything; it is scored whole and checked as an elite is."""
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
        """See `Search`."""
        if self._over:
            fates, self._fates = self._fates, []
            return fates
        return self._search.finish()

    def _begin(self) -> None:
        """The search has ended: its best program is what is reshaped."""
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
    """The reason to drop a version: worse shaped, or worse otherwise ("" if it is kept); and the changes of scores."""
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
    """Most monotone first; among equals the better on held-out data, then the shorter, then the earlier."""
    metrics = scored.evaluation.metrics
    return (
        -round(metrics.get("monotonicity", 0.0), 9),
        -metrics.get("held_out_accuracy", 0.0),
        scored.program.nodes,
        scored.index,
    )
