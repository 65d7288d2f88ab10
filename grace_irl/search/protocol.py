"""Ask and tell: what every search offers to the engine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from grace_irl.evaluate.evaluation import Evaluation
from grace_irl.programs.program import Program


@dataclass(frozen=True)
class Request:
    """A wish for one program.

    Attributes:
        index: its place in the order of asking, from 0.
        operator: "initialise", "mutate", …: names the prompt template or the synthesiser's task.
        parents: ids of the programs to work from, () for initialise.
        seed: drawn from the search's own generator; everything random that answers this request uses it.
        context: chances already drawn by the search (name, value), such as ("include_expert", True).
        sample, samples: this request is number `sample` (from 0) of `samples` that follow each other and ask the
            same: same operator, parents, seed and context. A model answers them in one call.
        version: of requests to reshape: how many were asked before.
    """

    index: int
    operator: str
    parents: tuple[str, ...] = ()
    seed: int = 0
    context: tuple[tuple[str, str | int | float | bool], ...] = ()
    sample: int = 0
    samples: int = 1
    version: int = 0


@dataclass(frozen=True)
class Wait:
    """The search needs results of requests in flight before it can ask again."""


@dataclass(frozen=True)
class Draft:
    """A first version that failed and was sent back."""

    program: Program
    evaluation: Evaluation


@dataclass(frozen=True)
class Result:
    """The answer to a request: a scored program, or why there is none.

    Attributes:
        failure: "" with a program; else one line (no answer, refused, no code in the answer, …).
        draft: the first version, where the program is its repair.
    """

    request: Request
    program: Program | None = None
    evaluation: Evaluation | None = None
    failure: str = ""
    draft: Draft | None = None


@dataclass(frozen=True)
class Fate:
    """What became of a candidate, and why: "kept", "dropped", "duplicate", "invalid" or "repaired"."""

    program_id: str
    verdict: str
    reason: str


class Search(Protocol):
    """A pure state machine with its own random generator. Told results come in the order of asking."""

    def ask(self) -> Request | Wait | None:
        """The next request; `Wait` until more results are told; None when the search is finished."""
        ...

    def tell(self, result: Result) -> list[Fate]:
        """Take a result in; returns what became of candidates because of it."""
        ...

    @property
    def population(self) -> tuple[str, ...]:
        """Ids of the programs that the search keeps, best first."""
        ...

    @property
    def generation(self) -> int:
        """How many generations (or rounds) are complete, counted from 1 when the first population stands."""
        ...

    @property
    def floor(self) -> float:
        """Fitness below which a program asked for now cannot enter the population; -inf while it has room.

        A search that also weighs the prior (at most 0) gives the merit of its last member: no fitness below that
        reaches it.
        """
        ...

    @property
    def elite_floor(self) -> float:
        """The fitness from which a program asked for now would be an elite; -inf while there is room."""
        ...

    @property
    def heirs(self) -> tuple[str, ...]:
        """Ids of programs that the search prefers to the population's best by rank, first choice first; mostly ()."""
        ...

    def conclude(self) -> bool:
        """A stop rule of the search is met (accuracy, plateau): whether there is something to do after the search.

        False ends the run. A search that answers True asks for nothing more of what it asked for until now.
        """
        ...

    def finish(self) -> list[Fate]:
        """No more results will come: decides what was told and is not yet decided. Called once."""
        ...
