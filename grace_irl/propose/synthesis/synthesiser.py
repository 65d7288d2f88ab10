"""The proposer that needs no model: programs found in the training data by enumeration and search."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Sequence

from grace_irl.demos.labels import Problem
from grace_irl.errors import InputError
from grace_irl.propose.protocol import Parent, Proposal
from grace_irl.propose.synthesis.additive_sketcher import AdditiveSketcher
from grace_irl.propose.synthesis.grid_sketcher import GridSketcher
from grace_irl.propose.synthesis.sketch import Sketcher
from grace_irl.search.protocol import Request


class Synthesiser:
    """Answers "initialise" with the readings of the data, best first, and "mutate" with a variation of the parent.

    Only training demonstrations are looked at. An answer depends on them, the seed, the request and its parents, and
    on nothing else.

    Args:
        problem: labelled demonstrations.
        seed: for everything random in reading the data.

    Raises:
        InputError: for a state kind that it has no vocabulary for.
    """

    def __init__(self, problem: Problem, seed: int = 0) -> None:
        if problem.metadata.kind == "ui":
            raise InputError("the synthesiser has no vocabulary for ui states; expected vector or grid states")
        self._problem = problem
        self._seed = seed
        self._lock = threading.Lock()
        self._sketchers: list[Sketcher] = []
        self._initial: list[tuple[int, str]] = []

    async def propose(self, request: Request, parents: Sequence[Parent]) -> Proposal:
        """One program; the first call reads the data, which can take seconds."""
        return await asyncio.to_thread(self._answer, request, parents)

    def _answer(self, request: Request, parents: Sequence[Parent]) -> Proposal:
        start = time.perf_counter()
        with self._lock:
            if not self._sketchers:
                self._read()
            if not self._initial:
                return Proposal("", failure="nothing tells the expert states from the others")
            which, sketch = self._sketch(request, parents)
            sketcher = self._sketchers[which]
            return Proposal(
                source=sketcher.source(sketch),
                reasoning=sketcher.reasoning(sketch),
                sketch=json.dumps([which, sketch]),
                seconds=time.perf_counter() - start,
                prior=sketcher.prior(sketch),
            )

    def _read(self) -> None:
        train = self._problem.train
        if self._problem.metadata.kind == "grid" and self._problem.rule != "all":
            happenings = GridSketcher(train, self._seed)
            if happenings.possible:
                self._sketchers.append(happenings)
        if not self._sketchers:
            self._sketchers.append(AdditiveSketcher(train, self._problem.metadata.fields))
        self._initial = [(i, sketch) for i, sketcher in enumerate(self._sketchers) for sketch in sketcher.initial()]

    def _sketch(self, request: Request, parents: Sequence[Parent]) -> tuple[int, str]:
        """The sketch that answers a request: from a parent that has one, else from the initial ones."""
        for parent in parents:
            if parent.sketch:
                which, sketch = json.loads(parent.sketch)
                return which, self._sketchers[which].mutate(sketch, request.seed)
        if request.index < len(self._initial):
            return self._initial[request.index]
        which, sketch = self._initial[request.index % len(self._initial)]
        return which, self._sketchers[which].mutate(sketch, request.seed)
