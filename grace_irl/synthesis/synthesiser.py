"""The proposer that derives reward programs from the training data by search, without a language model."""

from __future__ import annotations

import itertools
import json
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache
from typing import Protocol

import numpy as np

from grace_irl.demos.labels import Problem
from grace_irl.errors import InputError
from grace_irl.programs.source_id import source_id
from grace_irl.propose.protocol import Parent, Proposal, SizeFigures
from grace_irl.search.protocol import Request
from grace_irl.states.grid import GRID
from grace_irl.states.record import RECORD
from grace_irl.states.screen import SCREEN
from grace_irl.states.vector import VECTOR
from grace_irl.synthesis.grid.scene import perceive
from grace_irl.synthesis.grid.sketcher import GridSketcher
from grace_irl.synthesis.reshaper import Reshaper
from grace_irl.synthesis.screen.sketcher import UiSketcher
from grace_irl.synthesis.vector.goals import GoalSketcher, measures
from grace_irl.synthesis.vector.numbers import (
    MOST_NUMBERS,
    GridNumbers,
    PlainNumbers,
    RecordNumbers,
    VectorNumbers,
)
from grace_irl.synthesis.vector.sketcher import AdditiveSketcher


class Sketcher(Protocol):
    """A writer of one family of programs, such as additive rewards or programs over screens.

    A sketch is a short text from which the sketcher writes a program. Results depend only on the arguments of the
    methods, the training data and the sketcher's seed.
    """

    def initial(self) -> Iterable[str]:
        """Initial sketches, best first. Before these, a sketch may come early, while the analysis goes on."""
        ...

    def mutate(self, sketch: str, seed: int) -> str:
        """Return a variation of a sketch."""
        ...

    def source(self, sketch: str) -> str:
        """The program of a sketch."""
        ...

    def prior(self, sketch: str) -> float:
        """Log-prior of the sketch in nats, relative to the best sketch; at most 0."""
        ...

    def reasoning(self, sketch: str) -> str:
        """One line that explains the sketch's program to the user."""
        ...


PATIENCE = 20
"""The synthesiser is exhausted after this number of variations in a row without a new program. In variations of a
parent, a program is new if it differs from the parent's program. In the list of distinct programs, a program is new if
the list does not contain it yet."""
EXHAUSTED = f"exhausted: {PATIENCE} variations in a row gave no new program"


class Synthesiser:
    """A proposer that answers requests with programs that it derives from the training data.

    The answer depends on the operator of the request:

    - "reshape": a version of the first parent with additional rewards for progress. The answer is a failure if
      `Reshaper` has no such version, for example because the parent is no synthesised program over grids.
    - "initialise", if no parent has a sketch: program number `request.index - first` of a list of distinct programs.
      The list begins with the initial programs, best first, and goes on with variations of initial programs. The
      answer is a failure if the list is too short.
    - Any other request: a variation of the first parent that has a sketch, or of an initial program if none has.

    For given training demonstrations and a given seed, equal requests with equal parents have equal answers.

    Args:
        problem: labelled demonstrations.
        seed: seed of the analysis of grids, and of the variations in the list of initial programs.
        first: index of the first request that the synthesiser answers. Others answer those before, for example with
            given programs (`propose.given.Given`).
    """

    def __init__(self, problem: Problem, seed: int = 0, first: int = 0) -> None:
        self._problem = problem
        self._seed = seed
        self._first = first
        self._lock = threading.Lock()
        self._reshaper = Reshaper(problem)
        self._listed: list[str] = []  # sketches of the first distinct programs; `_at` extends the list

    async def propose(self, request: Request, parents: Sequence[Parent]) -> Proposal:
        """Return one program.

        The first request other than "reshape" analyses the data, which can block for seconds. So the wrapper `InThread`
        calls this method in a thread, outside the event loop.
        """
        return self._answer(request, parents)

    def _answer(self, request: Request, parents: Sequence[Parent]) -> Proposal:
        start = time.perf_counter()
        with self._lock:
            if request.operator == "reshape":
                found = self._reshaper.reshape(parents[0].program.source, request.version)
                return replace(found, seconds=time.perf_counter() - start)
            if not self._possible:
                spent = time.perf_counter() - start
                failure = "nothing distinguishes the expert states from the others"
                return Proposal("", failure=failure, seconds=spent, exhausted=True)
            sketch = self._sketch(request, parents)
            if sketch is None:
                return Proposal("", failure=EXHAUSTED, seconds=time.perf_counter() - start, exhausted=True)
            return Proposal(
                source=self._sketcher.source(sketch),
                reasoning=self._sketcher.reasoning(sketch),
                sketch=json.dumps([0, sketch]),  # the 0 has no meaning but keeps the format of older runs
                seconds=time.perf_counter() - start,
                prior=self._sketcher.prior(sketch),
            )

    @property
    def sizes(self) -> tuple[SizeFigures, ...] | None:
        """The results of folds for each size of programs (`SizesPrograms`); None before the data are analysed.

        Only `AdditiveSketcher` and `GoalSketcher` choose a size by folds. For the other sketchers, the result is None.
        """
        with self._lock:
            if "_sketcher" not in self.__dict__ or not isinstance(self._sketcher, (AdditiveSketcher, GoalSketcher)):
                return None
            sizes = self._sketcher.sizes()
            if sizes is None:
                return None
            return tuple(
                SizeFigures(words, _id(self._sketcher.source(sketch)), rung.auc, rung.worse, rung.error, chosen)
                for words, sketch, rung, chosen in sizes
            )

    @cached_property
    def _sketcher(self) -> Sketcher:
        require_words(self._problem)
        return SKETCHERS[self._problem.metadata.kind](self._problem, self._seed)

    @cached_property
    def _possible(self) -> bool:
        return next(iter(self._sketcher.initial()), None) is not None

    @cached_property
    def _initial(self) -> list[str]:
        return list(self._sketcher.initial())

    @cached_property
    def _distinct(self) -> Iterator[str]:
        return self._different()

    def _sketch(self, request: Request, parents: Sequence[Parent]) -> str | None:
        """The sketch that answers a request, or None if there is no new program.

        The sketch is a variation of the first parent that has a sketch. If no parent has a sketch, "initialise" gives
        the sketch with the request's index minus `first`, and any other operator gives a variation of an initial one.
        """
        for parent in parents:
            if parent.sketch:
                return self._child(json.loads(parent.sketch)[1], request.seed)
        if request.operator == "initialise":
            return self._at(max(0, request.index - self._first))
        return self._child(self._initial[request.seed % len(self._initial)], request.seed)

    def _child(self, parent: str, seed: int) -> str | None:
        """A variation of the sketch `parent` that gives another program; None after `PATIENCE` failed attempts."""
        own = self._sketcher.source(parent)
        rng = np.random.default_rng(seed)
        for _ in range(PATIENCE):
            sketch = self._sketcher.mutate(parent, int(rng.integers(2**62)))
            if sketch != parent and self._sketcher.source(sketch) != own:
                return sketch
        return None

    def _at(self, index: int) -> str | None:
        """The sketch of the program at this index in the list of distinct programs; None if the list is too short.

        The result does not depend on earlier requests.
        """
        while len(self._listed) <= index:
            one = next(self._distinct, None)
            if one is None:
                return None
            self._listed.append(one)
        return self._listed[index]

    def _different(self) -> Iterator[str]:
        """Generate sketches of distinct programs: the initial sketches, then variations of them.

        The generator ends after `PATIENCE` sketches in a row whose programs are not new.
        """
        seen: set[str] = set()
        repeats = 0
        for sketch in itertools.chain(self._sketcher.initial(), self._variations()):
            source = self._sketcher.source(sketch)
            if source in seen:
                repeats += 1
                if repeats == PATIENCE:
                    return
                continue
            repeats = 0
            seen.add(source)
            yield sketch

    def _variations(self) -> Iterator[str]:
        """Generate variations of the initial sketches, which take turns, without end."""
        for count in itertools.count(len(self._initial)):
            rng = np.random.default_rng([self._seed, count])
            yield self._sketcher.mutate(self._initial[count % len(self._initial)], int(rng.integers(2**62)))


_id = lru_cache(maxsize=64)(source_id)


def _vectors(problem: Problem, seed: int) -> Sketcher:
    del seed
    stacks = [item.trajectory.states for item in problem.train]
    return _numbers(problem, VectorNumbers.of(problem.metadata.fields, stacks[0].shape[1]))


def _numbers(problem: Problem, numbers: PlainNumbers) -> Sketcher:
    """Make the sketcher for named numbers: `GoalSketcher`, or `AdditiveSketcher` if every expert state is positive."""
    if problem.rule != "all":
        return GoalSketcher(problem.train, numbers)
    episodes = [numbers.values(item.trajectory.states) for item in problem.train]
    positive = [item.positive for item in problem.train]
    expert = [item.demonstration.role == "expert" for item in problem.train]
    return AdditiveSketcher(problem.train, measures(numbers, episodes, positive, expert))


def _grids(problem: Problem, seed: int) -> Sketcher:
    """Make the sketcher for grids. Its programs pay for an event that goal states have, for example that a door opens.

    If every expert state is positive, or if no event happens in goal states, the programs are additive rewards instead.
    The terms of such a reward read distances from the agent, and counts of the cells with a code. Such a number
    may be a term even if it is constant within every episode, because it shows the layout of the grid.
    """
    if problem.rule != "all":
        happenings = GridSketcher(problem.train, seed)
        if happenings.possible:
            return happenings
    stacks = [item.trajectory.states for item in problem.train]
    return AdditiveSketcher(problem.train, GridNumbers.of(stacks, perceive(stacks).agent), conditions=False)


def _screens(problem: Problem, seed: int) -> Sketcher:
    del seed
    return UiSketcher(problem.train)


def _records(problem: Problem, seed: int) -> Sketcher:
    del seed
    return _numbers(problem, RecordNumbers.of(problem.train[0].trajectory.states))


def require_words(problem: Problem) -> None:
    """Check that the synthesiser can read the states of this problem.

    Raises:
        InputError: there is no sketcher for states of this kind.
    """
    kind = problem.metadata.state_kind
    if kind.name not in SKETCHERS:
        raise InputError(
            f"the synthesiser cannot read {kind.plural}; expected a model or a person to write programs: give "
            "--llm-url, with --images if the model reads images, or --proposer manual"
        )


def unread(problem: Problem) -> str:
    """A line that names the parts of records that the synthesiser cannot read; "" if there are none."""
    if not problem.metadata.state_kind.has_parts or not problem.train:
        return ""
    parts = RecordNumbers.left_out(problem.train[0].trajectory.states)
    named = ", ".join(map(repr, parts[:5])) + (", …" if len(parts) > 5 else "")
    return (
        f"the synthesiser cannot read texts, or parts of more than {MOST_NUMBERS} numbers: it leaves out {named}"
        if parts
        else ""
    )


SKETCHERS: dict[str, Callable[[Problem, int], Sketcher]] = {
    VECTOR.name: _vectors,
    GRID.name: _grids,
    SCREEN.name: _screens,
    RECORD.name: _records,
}
"""By kind of state: the function that makes the sketcher from a problem and a seed."""
