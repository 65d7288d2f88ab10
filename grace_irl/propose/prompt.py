"""A prompt for a model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

AnswerFormat = Literal[
    "code", "json"
]  # a fenced block after a short paragraph, or an object by schema (docs/models.md)


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
