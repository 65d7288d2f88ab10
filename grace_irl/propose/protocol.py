"""The protocols of proposers, who answer requests, and of chats, who answer prompts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, runtime_checkable

from grace_irl.evaluate.evaluation import Evaluation
from grace_irl.programs.program import Program
from grace_irl.propose.json_answer import ANSWER_SCHEMA
from grace_irl.search.protocol import Request, Result


@dataclass(frozen=True)
class Proposal:
    """A proposer's answer.

    Attributes:
        source: the program, or "" if the answer holds none.
        failure: why there is no program; "" otherwise.
        reasoning: what the proposer says of it, for people.
        prompt: what was asked, as sent; "" for proposers without prompts.
        raw: the raw answer.
        sketch: opaque to the engine, kept in the store and handed back with the parent (the synthesiser's own form).
        tokens_in, tokens_out: as counted by the server; 0 without one.
        seconds: wall time of the call.
        prior: how plausible the proposer finds the program, nats below its best; 0 without an opinion.
        exhausted: there is no program, because the proposer has nothing new to propose.
    """

    source: str
    failure: str = ""
    reasoning: str = ""
    prompt: str = ""
    raw: str = ""
    sketch: str = ""
    tokens_in: int = 0
    tokens_out: int = 0
    seconds: float = 0.0
    prior: float = 0.0
    exhausted: bool = False


@dataclass(frozen=True)
class Parent:
    """A program to work from, with its score, the sketch of its proposal, and the notes of its steps."""

    program: Program
    evaluation: Evaluation
    sketch: str = ""
    notes: Mapping[str, str] = field(default_factory=dict)


class Proposer(Protocol):
    """Writes programs. Answers depend only on the request, the parents and the training data, never on timing.

    `parents` are those of the request, then its ancestors.
    """

    async def propose(self, request: Request, parents: Sequence[Parent]) -> Proposal:
        """One answer. A failure of the proposer is a `Proposal` with `failure`, not an exception."""
        ...


@dataclass(frozen=True)
class Step:
    """A further call about one request, after its first answer.

    Attributes:
        operator: of the method, by name: "repair", "align", …
        writes: the answer is a new version of the program, which replaces it if it can be read; else a text, which the
            search and later prompts find under the operator's name.
    """

    operator: str
    writes: bool = True


Following = Callable[[Request, Result, Sequence[Step]], Step | None]
"""The step after those that are done about a result; None: the search gets it as it is."""


def repairs(most: int) -> Following:
    """Sends a program that fails back with what went wrong, at most `most` times."""

    def following(request: Request, result: Result, done: Sequence[Step]) -> Step | None:
        del request
        failed = result.evaluation is not None and not result.evaluation.valid
        return Step("repair") if failed and len(done) < most else None

    return following


@runtime_checkable
class Follower(Protocol):
    """A proposer that answers further calls about a program."""

    async def follow(
        self, step: Step, request: Request, parents: Sequence[Parent], version: Parent, attempt: int
    ) -> Proposal | None:
        """An answer to a step, of which `raw` counts if the step writes no program; None ends the steps.

        Args:
            step: of the method.
            request, parents: of the first answer.
            version: the program as it is now; its evaluation says why it fails.
            attempt: number of this call about the request, from 1.
        """
        ...


@runtime_checkable
class Stoppable(Protocol):
    """A proposer with work under way that has to be ended with the run."""

    async def stop(self) -> None:
        """Ends what is under way."""
        ...


AnswerFormat = Literal["code", "json"]
"""A fenced block after a short paragraph, or an object by schema (docs/models.md)."""


@dataclass(frozen=True)
class Prompt:
    """One question to a chat model.

    Attributes:
        system: who answers and the contract of a reward program: the same for every call of a run, so that a
            server's prefix cache holds it.
        user: the task; what changes least comes first.
        images: PNG files that go with `user`, for multimodal models.
    """

    system: str
    user: str
    images: tuple[bytes, ...] = ()

    @property
    def text(self) -> str:
        """As recorded in a run and as written for a person."""
        return f"{self.system}\n\n{self.user}"


Finish = Literal["stop", "length", "refusal"]


@dataclass(frozen=True)
class Completion:
    """One answer of a chat model.

    Attributes:
        text: as the server sent it; may be empty.
        finish: "stop", "length" (cut by the token limit) or "refusal" (the model or a filter declined).
        tokens_in: of the prompt. Of several answers to one call only the first carries them: a sum counts once.
        tokens_out: of this answer (a server that only sums has its sum shared out).
        seconds: wall time of the call; 0 for all but the first answer of a call.
    """

    text: str
    finish: Finish = "stop"
    tokens_in: int = 0
    tokens_out: int = 0
    seconds: float = 0.0


@dataclass(frozen=True)
class Question:
    """A prompt on its way.

    Attributes:
        name: unique within the run and the same on every resume, such as "0012" or "0012-repair".
        n: answers wanted.
        schema: of answers in the format "json".
    """

    prompt: Prompt
    name: str
    n: int = 1
    schema: Mapping[str, object] = field(default_factory=lambda: ANSWER_SCHEMA)


class Chat(Protocol):
    """Answers questions, several at once."""

    async def answer_format(self) -> AnswerFormat:
        """The format of answers."""
        ...

    async def room(self) -> int | None:
        """Most tokens of a prompt beside its answer; None if that is not known."""
        ...

    async def ask(self, question: Question) -> tuple[Completion, ...]:
        """Exactly `question.n` answers.

        Raises:
            CallFailed, ContextOverflow: of this question.
            GraceError: nobody answers any more: the run ends, and can be resumed.
        """
        ...

    async def close(self) -> None:
        """Ends what is open; it can be asked again."""
        ...
