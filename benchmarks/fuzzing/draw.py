"""Random numbers that make an input, and a count of what they changed in what was right."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from random import Random
from typing import Any, TypeVar

T = TypeVar("T")


class Draw(Random):
    """Random numbers by a seed.

    Attributes:
        changes: made so far: an input with none is valid, one with one is one change from valid.
        calm: make none for now.
    """

    changes = 0
    calm = False
    _within = False

    def changed(self, chance: float = 1.0) -> bool:
        """Whether to make a change, which is counted."""
        made = chance >= 1 or self.may(chance)
        self.changes += made and not self._within
        return made

    def may(self, chance: float) -> bool:
        """Whether to do what counts itself as a change."""
        return self.random() < chance and not self.calm

    def rounds(self) -> range:
        """Number of changes to make: mostly one, at times none."""
        if self.calm:
            return range(0)
        return range(self.choice((0, 1, 1, 1, 1, 2, 3, 6)))


def change(make: Callable[..., T]) -> Callable[..., T]:
    """Counts a function as one change, whatever further changes it is made of. Its first argument is the draw."""

    @wraps(make)
    def counted(rng: Draw, *values: Any) -> T:
        inside = rng._within
        rng.changed()
        rng._within = True
        try:
            return make(rng, *values)
        finally:
            rng._within = inside

    return counted
