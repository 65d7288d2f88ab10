"""Evaluations of a policy while it learns: the points of its learning curve."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from grace_irl.atomic import write_atomically
from grace_irl.rl.method import Policy, PolicyProblem

if TYPE_CHECKING:
    from grace_irl.rl.curve import Point

EVALUATION = 7919
"""Added to the seed of a job for the seed of its last evaluation: the same episodes for every method."""


class Looks:
    """Evaluates a policy on the way and keeps the learning curve. Implements `Watch`.

    Args:
        problem: whose environments it plays in.
        path: of the curve.
        episodes: of each look.
        seed: of the job.
        deterministic: take each state's likeliest action.

    Attributes:
        seconds: that it took.
    """

    def __init__(self, problem: PolicyProblem, path: Path, episodes: int, seed: int, *, deterministic: bool) -> None:
        self._problem, self._path, self._episodes = problem, path, episodes
        self._seed, self._deterministic = seed, deterministic
        self._points: list[Point] = []
        self.seconds = 0.0
        write_atomically(path, "[]")  # of a job that is done again, the old one goes

    def __call__(self, steps: int, policy: Policy) -> None:
        """See `Watch`."""
        from grace_irl.rl.curve import to_json
        from grace_irl.rl.evaluation import evaluate

        begun = time.monotonic()
        number = self._seed + (len(self._points) + 2) * EVALUATION  # never the episodes of the last one
        found = evaluate(policy, self._problem.make_env, self._episodes, number, deterministic=self._deterministic)
        self._points.append(found.point(steps))
        write_atomically(self._path, to_json(self._points))
        self.seconds += time.monotonic() - begun
