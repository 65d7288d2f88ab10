"""Protocols of proposers, which answer requests, and of chats, which answer prompts."""

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
        source: the program, or "" if the answer contains none.
        failure: the reason why there is no program; "" otherwise.
        reasoning: the proposer's explanation, for the reader of a run.
        prompt: the prompt as sent; "" for proposers without prompts.
        raw: the raw answer.
        sketch: the proposer's own form of the program. The store keeps it, and the proposer gets it back with the
            parent. Only the synthesiser uses it.
        tokens_in, tokens_out: number of tokens as counted by the server; 0 without a server.
        seconds: wall time of the call.
        prior: log-prior of the program in nats, relative to the proposer's best: at most 0; 0 if unknown.
        exhausted: whether there is no program because the proposer has nothing new to propose.
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
    """A program on which a new one builds.

    Attributes:
        program: the program.
        evaluation: its score.
        sketch: `Proposal.sketch` of its proposal.
        notes: text answers of further calls about it (steps that write no program), by operator.
    """

    program: Program
    evaluation: Evaluation
    sketch: str = ""
    notes: Mapping[str, str] = field(default_factory=dict)


class Proposer(Protocol):
    """A source of programs. Answers depend only on the request, the parents and the training data, never on timing.

    The argument `parents` holds the parents of the request, then its ancestors.
    """

    async def propose(self, request: Request, parents: Sequence[Parent]) -> Proposal:
        """Return one answer. A failure is a `Proposal` with `failure` set, not an exception."""
        ...


@dataclass(frozen=True)
class Step:
    """A further call about one request, after its first answer.

    Attributes:
        operator: name of one of the method's operators: "repair", "align", …
        writes: whether the answer is a new version of the program. If that version can be read, it replaces the old
            one. False: the answer is a text, which the search and later prompts find under the operator's name.
    """

    operator: str
    writes: bool = True


Following = Callable[[Request, Result, Sequence[Step]], Step | None]
"""Rule that returns the next step, from a request, its result and the steps so far; None if the result is final."""


def repairs(most: int) -> Following:
    """Return a rule that requests a repair of an invalid program, at most `most` times."""

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
        """Return an answer to a step, or None to end the steps. If the step writes no program, only `raw` is used.

        Args:
            step: a step of the method.
            request, parents: the arguments of `propose` for the first answer.
            version: the current version of the program; its evaluation says why it fails.
            attempt: number of this call about the request, from 1.
        """
        ...


@runtime_checkable
class Stoppable(Protocol):
    """A proposer with background work that has to end with the run."""

    async def stop(self) -> None:
        """End the background work."""
        ...


AnswerFormat = Literal["code", "json"]
"""A fenced block after a short paragraph ("code"), or an object by schema ("json") (docs/models.md)."""


@dataclass(frozen=True)
class Prompt:
    """One question to a chat model.

    Attributes:
        system: the model's role and the contract of a reward program. It stays the same during a run, so the server
            can cache it.
        user: the task. The parts that change least come first.
        images: PNG files for multimodal models, sent with `user`.
    """

    system: str
    user: str
    images: tuple[bytes, ...] = ()

    @property
    def text(self) -> str:
        """System and user part as one text, as stored in a run and shown to a person."""
        return f"{self.system}\n\n{self.user}"


Finish = Literal["stop", "length", "refusal"]


@dataclass(frozen=True)
class Completion:
    """One answer of a chat model.

    Attributes:
        text: the answer as the server sent it; may be empty.
        finish: "stop", "length" (cut by the token limit) or "refusal" (the model or a filter declined).
        tokens_in: tokens of the prompt. Only the first answer of a call has them, so that a sum is right.
        tokens_out: tokens of this answer. If the server reports only a sum, it is divided among the answers.
        seconds: wall time of the call; 0 for all but its first answer.
    """

    text: str
    finish: Finish = "stop"
    tokens_in: int = 0
    tokens_out: int = 0
    seconds: float = 0.0


@dataclass(frozen=True)
class Question:
    """A prompt that is sent to a chat.

    Attributes:
        prompt: the prompt.
        name: name that is unique within the run and the same on every resume, such as "0012" or "0012-repair".
        n: number of answers wanted.
        schema: JSON schema of answers in the format "json".
    """

    prompt: Prompt
    name: str
    n: int = 1
    schema: Mapping[str, object] = field(default_factory=lambda: ANSWER_SCHEMA)


class Chat(Protocol):
    """An interface that answers questions, several in parallel."""

    async def answer_format(self) -> AnswerFormat:
        """The format of the answers."""
        ...

    async def room(self) -> int | None:
        """Maximum tokens of a prompt that leaves the model room for its answer; None if unknown."""
        ...

    async def ask(self, question: Question) -> tuple[Completion, ...]:
        """Return exactly `question.n` answers.

        Raises:
            CallFailed, ContextOverflow: this question failed.
            GraceError: the server is gone. The run ends, and can be resumed.
        """
        ...

    async def close(self) -> None:
        """Close the connections. Later calls open them again."""
        ...
