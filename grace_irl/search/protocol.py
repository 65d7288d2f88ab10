"""Ask and tell: what every search offers to the engine, and what it may offer besides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from grace_irl.evaluate.evaluation import Bar, Evaluation
from grace_irl.programs.program import Program

COUNTED = 10
"""Results that count as a generation of a search without generations, for progress and stop rules."""


@dataclass(frozen=True)
class Request:
    """A wish for one program.

    Attributes:
        index: its place in the order of asking, from 0.
        operator: "initialise", "mutate", …: names the method's operator or the synthesiser's task.
        parents: ids of the programs to work from, any number; () for initialise.
        seed: drawn from the search's own generator; everything random that answers this request uses it.
        context: chances already drawn by the search (name, value), such as ("include_expert", True).
        sample, samples: this request is number `sample` (from 0) of `samples` that follow each other and ask the
            same: same operator, parents, seed and context. A model answers them in one call.
        version: of requests to reshape: the number of those before it.
        ancestors: ids of further programs that the operator may show, such as the way from a tree's root.
    """

    index: int
    operator: str
    parents: tuple[str, ...] = ()
    seed: int = 0
    context: tuple[tuple[str, str | int | float | bool], ...] = ()
    sample: int = 0
    samples: int = 1
    version: int = 0
    ancestors: tuple[str, ...] = ()


@dataclass(frozen=True)
class Wait:
    """The search needs results of requests in flight before it can ask again."""


@dataclass(frozen=True)
class Draft:
    """A version that a follow-up call replaced, such as a program that failed and was sent back."""

    program: Program
    evaluation: Evaluation


@dataclass(frozen=True)
class Result:
    """The answer to a request: a scored program, or why there is none.

    Attributes:
        failure: "" with a program; else one line (no answer, refused, no code in the answer, …).
        drafts: the versions before the program, oldest first, if follow-up calls replaced it.
        notes: texts that follow-up calls brought, by the name of their step: a thought, a score of itself.
        exhausted: the proposer has nothing new: the next request would bring no program either.
    """

    request: Request
    program: Program | None = None
    evaluation: Evaluation | None = None
    failure: str = ""
    drafts: tuple[Draft, ...] = ()
    notes: Mapping[str, str] = field(default_factory=dict)
    exhausted: bool = False


@dataclass(frozen=True)
class Fate:
    """The fate of a candidate, with its reason: "kept", "dropped", "duplicate", "invalid" or "repaired"."""

    program_id: str
    verdict: str
    reason: str


class Search(Protocol):
    """A pure state machine with its own random generator. `tell` gets results in the order of asking.

    These three are all that a search must have. What it offers besides is in the protocols below.
    """

    def ask(self) -> Request | Wait | None:
        """The next request; `Wait` if it needs more results first; None when the search is finished."""
        ...

    def tell(self, result: Result) -> list[Fate]:
        """Take a result in; returns the fates that it decides."""
        ...

    @property
    def best(self) -> tuple[str, ...]:
        """Ids of valid programs, the run's answer first: the next ones serve if it cheats."""
        ...


@runtime_checkable
class Generational(Protocol):
    """A search in generations; without them, `COUNTED` results count as one."""

    @property
    def generation(self) -> int:
        """Complete generations, counted from 1 when the first population stands."""
        ...


@runtime_checkable
class Barred(Protocol):
    """A search that knows which scores are of no use, so that evaluations may stop early."""

    @property
    def bar(self) -> Bar:
        """The bar of the next requested program.

        Its floor is the score below which the program cannot enter; -inf while there is room. A search that also weighs
        the prior (at most 0) gives the merit of its last member: no score below that reaches it.
        """
        ...


@runtime_checkable
class Staged(Protocol):
    """A search with something to do after a stop rule of the search is met (accuracy, plateau)."""

    def conclude(self) -> bool:
        """A stop rule is met: whether there is more to do. A True is its word that it asks for nothing of before."""
        ...


@runtime_checkable
class Deciding(Protocol):
    """A search that decides the fate of a result later."""

    @property
    def undecided(self) -> tuple[str, ...]:
        """Ids of valid programs that are not decided yet: an interrupted run may prefer one to `best`."""
        ...

    def finish(self) -> list[Fate]:
        """No more results will come: decides all open fates. Called once."""
        ...
