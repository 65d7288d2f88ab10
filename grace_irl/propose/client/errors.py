"""Errors of the client that a caller may have to act on, beside `InputError`."""

from __future__ import annotations

from grace_irl.errors import GraceError
from grace_irl.propose.completion import Completion


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
