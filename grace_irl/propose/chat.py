"""Whoever answers prompts: a server, a person with a chat window, a script in a test."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

from grace_irl.propose.json_answer import ANSWER_SCHEMA
from grace_irl.propose.protocol import AnswerFormat, Prompt

Finish = Literal["stop", "length", "refusal"]


@dataclass(frozen=True)
class Completion:
    """One answer of a chat model.

    Attributes:
        text: as the server sent it; may be empty.
        finish: "stop", "length" (cut by the token limit) or "refusal" (the model or a filter declined).
        tokens_in: of the prompt. Of several answers to one call only the first carries them: a sum counts once.
        tokens_out: of this answer (the call's completion tokens are shared out where the server only sums).
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
        """Most tokens of a prompt beside its answer, where that is known."""
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
