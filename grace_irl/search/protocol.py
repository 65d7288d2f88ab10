"""The ask-and-tell interface between the engine and a search, with its optional parts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from grace_irl.evaluate.evaluation import Bar, Evaluation
from grace_irl.programs.program import Program

COUNTED = 10
"""Number of results that progress and stop rules treat as one generation, if a search has no generations."""


@dataclass(frozen=True)
class Request:
    """A request for one program.

    Attributes:
        index: number of earlier requests of the search.
        operator: name of the method's operator or the synthesiser's task, such as "initialise" or "mutate".
        parents: ids of the programs to start from, any number; () for initialise.
        seed: seed of all random choices in the answer to this request, drawn by the search.
        context: pairs of name and value that the search has drawn, such as ("include_expert", True).
        samples: number of consecutive requests with the same operator, parents, seed and context. A model answers
            them in one call.
        sample: index of this request among these consecutive ones, from 0.
        version: number of earlier requests to reshape, for such a request; else 0.
        ancestors: ids of further programs that the operator may show, such as the path from the root of a tree.
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
    """The search needs results of pending requests before its next request."""


@dataclass(frozen=True)
class Draft:
    """A program that a follow-up call replaced, such as an invalid program before its repair."""

    program: Program
    evaluation: Evaluation


@dataclass(frozen=True)
class Result:
    """The answer to a request: a scored program, or the reason why there is none.

    Attributes:
        request: the request.
        program: the program, or None.
        evaluation: its evaluation, or None.
        failure: "" with a program, else one line (no answer, refused, no code in the answer, …).
        drafts: earlier versions of the program that follow-up calls replaced, oldest first.
        notes: the model's answers to follow-up calls, by the name of the step that asked, such as a self-assessment.
        exhausted: whether the proposer has nothing new. The next request would bring no program either.
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
    """The decision on a program, with its reason.

    Attributes:
        program_id: id of the program.
        verdict: "kept", "dropped", "duplicate", "invalid" or "repaired".
        reason: one line.
    """

    program_id: str
    verdict: str
    reason: str


class Search(Protocol):
    """A search: a pure state machine with its own random generator.

    The engine calls `tell` with results in the order of their requests. The protocols below are optional.
    """

    def ask(self) -> Request | Wait | None:
        """The next request, `Wait` if more results must come first, or None at the end of the search."""
        ...

    def tell(self, result: Result) -> list[Fate]:
        """Process a result. Return the fates (`Fate`) that are now decided."""
        ...

    @property
    def best(self) -> tuple[str, ...]:
        """Ids of valid programs, best first. A run returns the first that also passes verification."""
        ...


@runtime_checkable
class Generational(Protocol):
    """A search that counts generations. For other searches `COUNTED` results are one generation."""

    @property
    def generation(self) -> int:
        """Number of complete generations. It is 1 once the first population is complete."""
        ...


@runtime_checkable
class Barred(Protocol):
    """A search that knows which scores are useless, so that evaluations can stop early."""

    @property
    def bar(self) -> Bar:
        """The limits on the score (`Bar`) for the next requested program.

        The floor is the score below which this program cannot enter the population; -inf while there is room. A search
        that ranks by merit returns the merit of its last member. As merit is the score plus a prior term <= 0, a lower
        score cannot enter.
        """
        ...


@runtime_checkable
class Staged(Protocol):
    """A search with a further stage after a stop rule (accuracy, plateau) applies."""

    def conclude(self) -> bool:
        """End the current stage, because a stop rule applies. Return whether another stage follows.

        If so, all later requests belong to that stage.
        """
        ...


@runtime_checkable
class Deciding(Protocol):
    """A search that may decide the fate of a program after the call of `tell`."""

    @property
    def undecided(self) -> tuple[str, ...]:
        """Ids of valid programs whose fate is open. One of them may be better than `best` if the run is interrupted."""
        ...

    def finish(self) -> list[Fate]:
        """Decide all open fates, because no more results will come. The engine calls it once."""
        ...
