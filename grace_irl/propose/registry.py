"""Proposers by name."""

from __future__ import annotations

from collections.abc import Callable

from grace_irl.demos.labels import Problem
from grace_irl.errors import InputError
from grace_irl.propose.in_thread import InThread
from grace_irl.propose.protocol import Proposer

Factory = Callable[[Problem, int], Proposer]
"""From the labelled data and the run's seed to a proposer."""


def _synthesis(problem: Problem, seed: int) -> Proposer:
    from grace_irl.propose.synthesis import Synthesiser

    return InThread(Synthesiser(problem, seed))


PROPOSERS: dict[str, Factory] = {"synthesis": _synthesis}


def factory(name: str) -> Factory:
    """The factory of this name.

    Raises:
        InputError: for a name that is not registered.
    """
    if name not in PROPOSERS:
        raise InputError(f"proposer {name!r} is unknown; expected one of {', '.join(sorted(PROPOSERS))}")
    return PROPOSERS[name]
