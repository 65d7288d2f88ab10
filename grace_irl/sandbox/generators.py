"""Random numbers of one episode, apart from those of the process and of other episodes."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np


class Generators:
    """`random` and `numpy.random` as one episode finds them.

    Args:
        used: the program draws; otherwise nothing is put anywhere, which saves its time.
    """

    def __init__(self, *, used: bool) -> None:
        self._used = used
        self._state: tuple[Any, Any] | None = None

    @contextmanager
    def lent(self, *, kept: bool = True) -> Iterator[None]:
        """Put them in the place of the process's for a while.

        Args:
            kept: the episode goes on from the numbers that were drawn; otherwise it draws them again.
        """
        if not self._used:
            yield
            return
        before = _standing()
        if self._state is not None:
            _put(self._state)
        try:
            yield
        finally:
            if kept:
                self._state = _standing()
            _put(before)


def _standing() -> tuple[Any, Any]:
    return random.getstate(), np.random.get_state()


def _put(state: tuple[Any, Any]) -> None:
    random.setstate(state[0])
    np.random.set_state(state[1])
