"""A model's answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

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
