"""A program in the synthesiser's own form: small, exact, and what it mutates."""

from __future__ import annotations

from typing import Protocol


class Sketcher(Protocol):
    """Writes and varies programs of one family. Everything is a function of the training data and the arguments."""

    def initial(self) -> list[str]:
        """Sketches to begin with, best first."""
        ...

    def mutate(self, sketch: str, seed: int) -> str:
        """A variation of a sketch."""
        ...

    def source(self, sketch: str) -> str:
        """The program of a sketch."""
        ...

    def prior(self, sketch: str) -> float:
        """How plausible the data makes the sketch, nats below the best one."""
        ...

    def reasoning(self, sketch: str) -> str:
        """One line on what the program says, for people."""
        ...
