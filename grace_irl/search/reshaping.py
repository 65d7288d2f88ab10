"""Reshaping: a search that makes the reward of the best program rise more steadily (docs/runs.md, "Reshaping").

The monotonicity of a program is Kendall's tau between reward and time along an expert trajectory, averaged over the
expert trajectories.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from grace_irl.evaluate.evaluation import EQUAL, Bar, Evaluation
from grace_irl.search.evolution import Evolution
from grace_irl.search.protocol import Fate, Request, Result, Wait
from grace_irl.search.ranks import Scored

STEADIEST = 1.0  # highest possible monotonicity: the reward rises at every step


class Reshaping:
    """A search in two stages: an inner search for the best program, then `count` requests for versions of this program.

    The requests of the second stage have the operator "reshape". The first stage ends when the inner search ends, or
    when the caller calls `conclude`. The second stage begins when all results of the first stage have arrived. A
    version is kept if three conditions hold:

    - its monotonicity is higher than that of the best program;
    - its accuracy on training data is not lower;
    - if the best program separates positive from negative states, so does the version.

    Kept versions rank before every other program, the most monotone first. Only `ask` draws random numbers, so the
    random numbers do not depend on the arrival times of results.

    Args:
        search: the inner search.
        count: number of "reshape" requests. No such request is made if the inner search finds no program, or if its
            best program has no monotonicity or the highest possible one.
        samples: maximum number of identical requests in a row. A model answers them in one call.
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
        self._first = 0  # index of the first "reshape" request
        self._concluded = False
        self._parent: Scored | None = None
        self._over = False  # whether the inner search has ended and has all its results
        self._kept: list[Scored] = []
        self._fates: list[Fate] = []  # decisions on programs at the end of the inner search, not yet returned
        self._same = Request(0, "reshape")
        self.prefer: Callable[[], str | None] = lambda: next(iter(self._search.best), None)  # see `Staged`

    @property
    def best(self) -> tuple[str, ...]:
        """Ids of the kept versions, most monotone first, then of the inner search's programs, best first."""
        return (*self.heirs, *self._search.best)

    @property
    def heirs(self) -> tuple[str, ...]:
        """Ids of the kept versions, the most monotone first."""
        return tuple(scored.program.id for scored in self._kept)

    @property
    def generation(self) -> int:
        """Number of complete generations of the inner search. Reshaping adds none."""
        return self._search.generation

    @property
    def bar(self) -> Bar:
        """Limits on the next program's score: the inner search's limits in the first stage, no limits in the second.

        Without limits, an evaluation is complete and includes a second run of the program in strict mode (`Bar`).
        """
        return Bar() if self._over else self._search.bar

    @property
    def undecided(self) -> tuple[str, ...]:
        """Ids of the inner search's programs that are neither kept nor dropped yet; () once a version is kept.

        A kept version ranks before all programs of the inner search, so decisions on those programs do not matter.
        """
        return () if self.heirs else self._search.undecided

    def conclude(self) -> bool:
        """End the first stage, if it has not ended yet. Return True, because "reshape" requests may still follow."""
        self._concluded = True
        return True

    def ask(self) -> Request | Wait | None:
        """Return the next request. The "reshape" requests begin after the last result of the inner search.

        Return `Wait` if results of the inner search are missing, and None after the last request.
        """
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
        """Pass a result to the inner search, or judge a version. Return the new decisions on programs (fates)."""
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
        """Return the remaining fates of the inner search's programs. `tell` returns the fates of versions."""
        if self._over:
            fates, self._fates = self._fates, []
            return fates
        return self._search.finish()

    def _begin(self) -> None:
        """End the inner search and choose its best program as the parent of all versions."""
        self._over, self._first = True, self._asked
        self._fates = self._search.finish()
        best = self._scored.get(self.prefer() or "")
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
    """Compare the evaluations of a program and of its reshaped version. Return two texts.

    The first text is the reason to drop the version; it is "" if the version is kept. The second text lists the
    changes of monotonicity and accuracy.
    """
    was, now = old.metrics, new.metrics
    before, after = was.get("monotonicity", 0.0), now.get("monotonicity")
    changes = [_change("monotonicity", before, after)]
    problems = [] if after is not None and after > before + EQUAL else [f"{changes[0]}: not higher"]
    if "accuracy" in was:
        changes.append(_change("accuracy", was["accuracy"], now.get("accuracy")))
        if now.get("accuracy", 0.0) < was["accuracy"] - EQUAL:
            problems.append(f"{changes[-1]}: lower")
        if was.get("separated") and not now.get("separated"):
            problems.append("train states are no longer separated")
    return "; ".join(problems), ", ".join(changes)


def _change(name: str, before: float, after: float | None) -> str:
    if after is None:
        return f"{name} {before:.4g} -> none"
    same = abs(after - before) <= EQUAL
    return f"{name} {before:.4g} stays" if same else f"{name} {before:.4g} -> {after:.4g}"


def _preference(scored: Scored) -> tuple[float, int, int]:
    """Sort key for versions: higher monotonicity, then smaller size, earlier request."""
    rising = scored.evaluation.metrics.get("monotonicity", 0.0)
    return -round(rising, 9), scored.program.size, scored.index
