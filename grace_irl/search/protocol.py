"""The interface between a search and the main loop of a run, called the engine.

The engine calls `Search.ask` to get a request, and `Search.tell` to pass the request's result to the search.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from grace_irl.evaluate.evaluation import Bar, Evaluation
from grace_irl.programs.program import Program

COUNTED = 10
"""Number of results that count as one generation in progress bars and stop rules, for a search that does not count its
generations (`Generational`)."""


@dataclass(frozen=True)
class Request:
    """A request for one program.

    Attributes:
        index: index of the request within the search, from 0.
        operator: name of the operator that writes the prompt, for example "initialise" or "mutate".
        parents: ids of the programs on which the new program builds; () for "initialise".
        seed: seed of all random choices in the answer. The search draws this number.
        context: options of the operator as pairs of name and value, for example ("include_expert", True).
        samples: number of consecutive requests with equal operator, parents, seed and context. A model answers
            them in one call.
        sample: index of this request among those `samples` requests, from 0.
        version: index of a "reshape" request among all "reshape" requests, from 0; 0 for other operators.
        ancestors: ids of further programs that a prompt may show, for example the parents' parents.
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
    """The return value of `Search.ask` if the search needs results of pending requests before its next request."""


@dataclass(frozen=True)
class Draft:
    """A program that a later version replaced, for example an invalid program before its repair."""

    program: Program
    evaluation: Evaluation


UNTOLD = "untold"
"""Prefix of `Result.failure` if the proposer answers that the states lack information for a better program."""


@dataclass(frozen=True)
class Result:
    """The answer to a request: a scored program, or the reason why there is none.

    Attributes:
        request: the request.
        program: the program, or None.
        evaluation: the program's evaluation, or None.
        failure: the reason why there is no program, in one line, for example a refusal; "" if there is a program.
        drafts: earlier versions of the program, oldest first. Follow-up calls, such as repairs, replaced them.
        notes: texts from follow-up calls, for example a self-assessment, by name of the call's operator.
        exhausted: whether the proposer has nothing new to propose, so that the next request will bring no program.
    """

    request: Request
    program: Program | None = None
    evaluation: Evaluation | None = None
    failure: str = ""
    drafts: tuple[Draft, ...] = ()
    notes: Mapping[str, str] = field(default_factory=dict)
    exhausted: bool = False

    @property
    def untold(self) -> bool:
        """Whether the answer says that the states lack information for a better program.

        `Evolution` then stops mutating the request's parents.
        """
        return self.failure.startswith(f"{UNTOLD}:")


@dataclass(frozen=True)
class Fate:
    """The decision on a program, with its reason.

    Attributes:
        program_id: id of the program.
        verdict: "kept", "dropped", "duplicate", "invalid" or "repaired". A program is "repaired" if a later version
            replaced it (`Draft`).
        reason: one line.
    """

    program_id: str
    verdict: str
    reason: str


class Search(Protocol):
    """A search: a state machine with its own seeded random generator and without side effects.

    The engine calls `tell` with results in the order of their requests. The other protocols of this module are
    optional.
    """

    def ask(self) -> Request | Wait | None:
        """Return the next request, `Wait` if more results must come first, or None at the end of the search."""
        ...

    def tell(self, result: Result) -> list[Fate]:
        """Process a result. Return the fates (`Fate`) that are now decided."""
        ...

    @property
    def best(self) -> tuple[str, ...]:
        """Ids of valid programs, best first.

        The result of a run is the first one that passes `Evaluator.verify`, unless the method prefers another program
        (`runs.engine.Prefers`).
        """
        ...


@runtime_checkable
class Generational(Protocol):
    """A search that counts its generations. For other searches, `COUNTED` results are one generation."""

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

        A program whose score is below `Bar.floor` cannot enter the population. The floor is -inf until the population
        is full. If the search ranks by merit (`ranks.merit`), the floor is the lowest merit in the population. A
        program's merit is at most its score, so a score below the floor implies a merit below the floor.
        """
        ...


@runtime_checkable
class Staged(Protocol):
    """A search that may enter another stage, such as reshaping, when a stop rule applies.

    Attributes:
        prefer: function that returns the id of the best program of the stages so far, or None. The engine sets it.
    """

    prefer: Callable[[], str | None]

    def conclude(self) -> bool:
        """End the current stage, because a stop rule applies. Return whether another stage follows.

        If the result is True, all later requests belong to the next stage.
        """
        ...


@runtime_checkable
class Deciding(Protocol):
    """A search that may keep or drop a program later than in the `tell` call with the program's result."""

    @property
    def undecided(self) -> tuple[str, ...]:
        """Ids of valid programs that are neither kept nor dropped yet. They may be better than the ones in `best`."""
        ...

    def finish(self) -> list[Fate]:
        """Decide all open fates and return them. The engine calls this once, after the last result."""
        ...
