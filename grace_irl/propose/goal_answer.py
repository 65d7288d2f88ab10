"""An answer about the goal states of a trajectory."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Origin = Literal["file", "data", "model"]


@dataclass(frozen=True)
class GoalAnswer:
    """What was said of the goal states of one expert trajectory.

    Attributes:
        digest: of the trajectory.
        attempt: counts what was said of it, from 0; the last word counts.
        origin: "file" (a person's), "data" (their own marks) or "model".
        indices: 1-based goal states, () for none; None where the answer does not say them validly.
        failure: why not, in one line; "" otherwise.
        prompt: what was asked, as sent; "" unless a model was.
        raw: the raw answer.
        tokens_in, tokens_out, seconds: of the call.
    """

    digest: str
    attempt: int
    origin: Origin
    indices: tuple[int, ...] | None
    failure: str = ""
    prompt: str = ""
    raw: str = ""
    tokens_in: int = 0
    tokens_out: int = 0
    seconds: float = 0.0


def last_words(answers: Iterable[GoalAnswer]) -> dict[str, tuple[int, ...]]:
    """Goal states by digest, 1-based: the last valid answer on each trajectory."""
    return {answer.digest: answer.indices for answer in answers if answer.indices is not None}
