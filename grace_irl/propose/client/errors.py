"""Errors of the client that a caller may have to act on, beside `InputError`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from grace_irl.errors import GraceError
from grace_irl.propose.chat import Completion


class ServerGone(GraceError):  # noqa: N818  says what happened, as a name
    """The server stayed away, or refused work, longer than the run's patience. The run can be resumed later."""


class CallFailed(GraceError):  # noqa: N818  says what happened, as a name
    """This one call failed for good while the server is there: the caller may go on with others.

    Attributes:
        kind: of the last failure, as `Counters.failures` names it.
        answers: what the other requests of the same call brought: paid for, and whole.
    """

    def __init__(self, message: str, kind: str, answers: tuple[Completion, ...] = ()) -> None:
        super().__init__(message)
        self.kind = kind
        self.answers = answers


class ContextOverflow(GraceError):  # noqa: N818  says what happened, as a name
    """A prompt that leaves no room for an answer in the model's context: shrink it.

    Attributes:
        limit: the model's context in tokens; None where the server does not say.
        prompt_tokens: of the prompt, at least; None where the server does not say.
    """

    def __init__(self, limit: int | None, prompt_tokens: int | None) -> None:
        found = f"{prompt_tokens} tokens or more" if prompt_tokens else "more"
        expected = f"{limit} tokens" if limit else "the model's context"
        super().__init__(
            f"a prompt of {found}, beside the room for an answer, does not fit into {expected}; "
            "show the model less, ask for shorter answers, or serve it with a longer context"
        )
        self.limit = limit
        self.prompt_tokens = prompt_tokens


Kind = Literal[
    "busy",
    "server error",
    "connection",
    "time-out",
    "empty body",
    "malformed body",
    "web page",
    "no answer",
    "too long",
    "rejected",
]

LONGEST = 10_000  # characters of a server's words that are searched for reasons


@dataclass(eq=False)
class CallFailure(Exception):  # noqa: N818  a failed request is no defect
    """Inside the client only; what leaves it is in `errors.py`.

    Attributes:
        kind: for counting and for what to do.
        message: what happened, in a few words that can be shown.
        status: of HTTP; 0 without a response.
        said: the server's own words, which may hold anything.
        body: the error object of the response, {} without one.
        retry_after: seconds that the server asks to wait; 0 where it does not.
    """

    kind: Kind
    message: str
    status: int = 0
    said: str = ""
    body: dict[str, object] | None = None
    retry_after: float = 0.0

    def __post_init__(self) -> None:
        self.said = self.said[:LONGEST]

    @property
    def away(self) -> bool:
        """Nobody listens, or a proxy says that nobody does: worth a look whether the server is there at all."""
        return (self.kind == "connection" and self.status == 0) or self.status in (502, 503)

    @property
    def busy(self) -> bool:
        """The server answers, and takes no work for now."""
        return self.kind == "busy" or self.status in (502, 503)

    @property
    def code(self) -> str:
        """The server's own code or type of the error, as words."""
        body = self.body or {}
        return f"{body.get('code', '')} {body.get('type', '')}".strip()
