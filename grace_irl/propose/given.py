"""The proposer of programs that exist already."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from grace_irl.propose.protocol import Parent, Proposal
from grace_irl.search.protocol import Request


@dataclass(frozen=True)
class GivenProgram:
    """A program to begin with.

    Attributes:
        source: its text.
        origin: where it comes from, for people.
        prior: as its proposer had it; 0 without an opinion.
    """

    source: str
    origin: str
    prior: float = 0.0


class Given:
    """Answers request i with program i; beyond the last one with the failure "no more given programs"."""

    def __init__(self, programs: Sequence[GivenProgram]) -> None:
        self._programs = tuple(programs)

    async def propose(self, request: Request, parents: Sequence[Parent]) -> Proposal:  # noqa: ARG002
        """See `Proposer`."""
        if request.index >= len(self._programs):
            return Proposal("", failure="no more given programs")
        program = self._programs[request.index]
        return Proposal(program.source, reasoning=f"given: {program.origin}", prior=program.prior)
