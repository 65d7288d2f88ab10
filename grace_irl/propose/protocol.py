"""Interfaces of proposers and chats. A proposer answers a search's requests with programs. A chat answers prompts."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from inspect import isawaitable
from typing import Literal, Protocol, runtime_checkable

from grace_irl.errors import GraceError, InputError
from grace_irl.evaluate.evaluation import Evaluation
from grace_irl.programs.program import Program
from grace_irl.propose.json_answer import ANSWER_SCHEMA
from grace_irl.search.protocol import Request, Result


@dataclass(frozen=True)
class Proposal:
    """A proposer's answer to a request: a program or a failure.

    Attributes:
        source: the program, or "" if the answer contains none.
        failure: the reason why there is no program; "" otherwise.
        reasoning: the proposer's explanation, for users.
        prompt: the prompt as sent; "" for proposers without prompts.
        raw: the answer as it came.
        sketch: the synthesiser's internal form of the program; "" from other proposers. The synthesiser is a proposer
            without a language model. If the program becomes a parent, the synthesiser gets the sketch back.
        tokens_in, tokens_out: number of tokens as counted by the server; 0 without a server.
        seconds: wall time of the call.
        prior: log-prior of the program in nats, relative to the proposer's most probable program, so at most 0; 0 if
            unknown.
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
class Attempt:
    """An attempt to improve a program: a new version that an earlier generation made of it.

    Attributes:
        reasoning: the proposer's explanation of the version (`Proposal.reasoning`), before any follow-up call.
        evaluation: the version's scores, after all follow-up calls.
    """

    reasoning: str
    evaluation: Evaluation


@dataclass(frozen=True)
class Parent:
    """A program on which a new program builds.

    Attributes:
        program: the program.
        evaluation: the program's scores.
        sketch: `Proposal.sketch` of the program.
        notes: answers to follow-up calls that ask for a text, by the call's operator (`Step.operator`).
        tried: versions that earlier generations made of the program, oldest first.
    """

    program: Program
    evaluation: Evaluation
    sketch: str = ""
    notes: Mapping[str, str] = field(default_factory=dict)
    tried: tuple[Attempt, ...] = ()


class Proposer(Protocol):
    """A source of programs. Answers depend only on the request, the parents and the training data, never on timing.

    The argument `parents` holds the parents of the request, then the programs of `Request.ancestors`.
    """

    async def propose(self, request: Request, parents: Sequence[Parent]) -> Proposal:
        """Return one answer. A failure is a `Proposal` with `failure` set, not an exception."""
        ...


def require_proposer(proposer: object) -> None:
    """Refuse an object that is no proposer. Whether `propose` is asynchronous shows only in a call; see `proposed`.

    Raises:
        InputError: a class, or an object without a method `propose`.
    """
    if isinstance(proposer, type):
        raise InputError(f"proposer: the class {proposer.__name__}; expected an object: {proposer.__name__}(…)")
    if not callable(getattr(proposer, "propose", None)):
        raise InputError(
            f"proposer: {type(proposer).__name__} without a method propose; expected a name or a Proposer object"
        )


async def proposed(proposer: Proposer, request: Request, parents: Sequence[Parent]) -> Proposal:
    """The answer of a proposer, which a user may have written.

    Raises:
        InputError: `propose` is no coroutine function, or returns something other than a `Proposal`.
    """
    asked: object = proposer.propose(request, parents)
    name = f"{type(proposer).__name__}.propose"
    if not isawaitable(asked):
        raise InputError(f"{name} is not asynchronous; expected: async def propose(self, request, parents)")
    found = await asked
    if not isinstance(found, Proposal):
        raise InputError(f"{name} returned {reprlib.repr(found)}; expected a Proposal, with failure='…' if it fails")
    return found


@dataclass(frozen=True)
class SizeFigures:
    """Figures of one candidate in the choice of a program's size. The choice compares the figures of its candidates.

    The choice uses nested folds (`synthesis.vector.folds`) or validation episodes (`runs.preference`). In nested folds,
    a candidate is a size, such as all programs with three terms. On validation episodes, a candidate is one program.

    Attributes:
        words: the size in words, such as "3 terms"; "" on validation episodes.
        program: id of the program. For a size, this is its best program, from the search on all training episodes.
        auc: area under the ROC curve, averaged over episodes. In nested folds, the program that scores an episode comes
            from a search on other episodes.
        worse: AUC of the best candidate minus AUC of this candidate, averaged over episodes.
        error: standard error of `worse`.
        chosen: whether this candidate is chosen.
    """

    words: str
    program: str
    auc: float
    worse: float
    error: float
    chosen: bool


@runtime_checkable
class SizesPrograms(Protocol):
    """An object that chooses a program's size: a proposer by nested folds, `runs.preference` by validation episodes."""

    @property
    def sizes(self) -> tuple[SizeFigures, ...] | None:
        """The figures of each candidate, smallest first.

        () if there are too few episodes for folds; None if there is no choice between sizes.
        """
        ...


@dataclass(frozen=True)
class Step:
    """A follow-up call about a request after its first answer, such as a repair.

    Attributes:
        operator: name of an operator of the search method, such as "repair".
        writes: whether the answer is a new version of the program. If True, the new version replaces the old
            one, unless the answer contains no program. If False, the answer is a text for the search and later
            prompts (`Parent.notes`).
    """

    operator: str
    writes: bool = True


Following = Callable[[Request, Result, Sequence[Step]], Step | None]
"""Rule for follow-up calls: a function of a request, the request's result, and the follow-up calls so far.

The function returns the next follow-up call, or None if the result is final."""


def repairs(most: int) -> Following:
    """Return a rule that requests a repair of an invalid program, at most `most` times."""

    def following(request: Request, result: Result, done: Sequence[Step]) -> Step | None:
        del request
        failed = result.evaluation is not None and not result.evaluation.valid
        return Step("repair") if failed and len(done) < most else None

    return following


@runtime_checkable
class Follower(Protocol):
    """A proposer that answers follow-up calls about a program."""

    async def follow(
        self, step: Step, request: Request, parents: Sequence[Parent], version: Parent, attempt: int
    ) -> Proposal | None:
        """Return the answer to a follow-up call, or None to end the follow-up calls of this request.

        If `step.writes` is False, only `Proposal.raw` of the answer is used.

        Args:
            step: the follow-up call, chosen by the search method's rule (`Following`).
            request, parents: the arguments of `propose` for the first answer.
            version: the current version of the program. If the version is invalid, its evaluation gives the reason.
            attempt: number of this follow-up call within the request, from 1.
        """
        ...


@runtime_checkable
class Stoppable(Protocol):
    """A proposer with background work that has to end with the run."""

    async def stop(self) -> None:
        """End the background work."""
        ...


AnswerFormat = Literal["code", "json"]
"""Format of answers (docs/models.md): "code" is a fenced block after a short paragraph, "json" a JSON object that
follows a schema."""


@dataclass(frozen=True)
class Prompt:
    """One question to a chat model.

    Attributes:
        system: the model's role and the contract of a reward program. It stays the same during a run, so the server
            can cache it.
        user: the data and the task. The parts that change least come first, also for the server's cache.
        images: PNG files for multimodal models, sent with `user`.
    """

    system: str
    user: str
    images: tuple[bytes, ...] = ()

    @property
    def text(self) -> str:
        """System and user part as one text, for the files of a run and for users."""
        return f"{self.system}\n\n{self.user}"


Finish = Literal["stop", "length", "refusal"]


@dataclass(frozen=True)
class Completion:
    """One answer of a chat model.

    Attributes:
        text: the answer as the server sent it; may be empty.
        finish: "stop", "length" (cut by the token limit) or "refusal" (the model or a filter declined).
        tokens_in: number of tokens of the prompt; 0 for all but the first answer in a response of the server. So a sum
            over answers counts each sent prompt once.
        tokens_out: number of tokens of this answer. If the server reports only a sum, the sum is divided among the
            answers in the response.
        seconds: wall time of the request; 0 for all but the first answer in a response.
    """

    text: str
    finish: Finish = "stop"
    tokens_in: int = 0
    tokens_out: int = 0
    seconds: float = 0.0


class LimitReached(GraceError):  # noqa: N818  the name says what happened
    """A limit of the run (`--max-tokens`, `--max-cost`, `--max-seconds`) is reached, so a model is not called."""


@dataclass(frozen=True)
class Question:
    """A prompt that is sent to a chat.

    Attributes:
        prompt: the prompt.
        name: unique name within the run, such as "0012" or "0012-repair". A resumed run uses the same names.
        n: number of answers wanted.
        schema: JSON schema of answers in the format "json".
    """

    prompt: Prompt
    name: str
    n: int = 1
    schema: Mapping[str, object] = field(default_factory=lambda: ANSWER_SCHEMA)


class Chat(Protocol):
    """A model or a person who answers questions, several in parallel."""

    async def answer_format(self) -> AnswerFormat:
        """The format of the answers."""
        ...

    async def room(self) -> int | None:
        """Maximum tokens of a prompt that leaves room for an answer in the model's context; None if unknown."""
        ...

    async def ask(self, question: Question) -> tuple[Completion, ...]:
        """Return exactly `question.n` answers.

        Raises:
            CallFailed, ContextOverflow: this question failed.
            LimitReached: a limit of the run forbids the call.
            GraceError: the server is gone. The run ends, and can be resumed.
        """
        ...

    async def close(self) -> None:
        """Close the connections. Later calls open them again."""
        ...
