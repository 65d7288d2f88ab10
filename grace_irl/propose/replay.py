"""Answers that were recorded, given again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from grace_irl.errors import InputError
from grace_irl.propose.protocol import Parent, Proposal
from grace_irl.search.protocol import Request


class Recording(Protocol):
    """Answers of a run's proposer."""

    def proposal(self, index: int, attempt: int = 0) -> Proposal | None:
        """The answer to request `index`; attempt 1 is a repair."""
        ...


class Replay:
    """Answers each request as the recorded run was answered, repairs included: no server, no model, the same run.

    Args:
        recording: of the run.
        name: of the recording, for messages.
    """

    def __init__(self, recording: Recording, name: str) -> None:
        self._recording = recording
        self._name = name

    async def propose(self, request: Request, parents: Sequence[Parent]) -> Proposal:
        """See `Proposer`. What the recording lacks is a failure: the recorded run went no further."""
        del parents
        answer = self._recording.proposal(request.index)
        return answer or Proposal("", failure=f"exhausted: {self._name} holds no answer to request {request.index}")

    async def repair(self, request: Request, parents: Sequence[Parent], failed: Parent) -> Proposal | None:
        """See `Repairer`: what was sent back then is sent back now."""
        del parents, failed
        return self._recording.proposal(request.index, attempt=1)


def require_answers(recording: Recording, name: str) -> None:
    """Raises InputError for a recording without a first answer."""
    if recording.proposal(0) is None:
        raise InputError(f"{name}: no recorded answers; expected the folder of a run, or a recording made by export")
