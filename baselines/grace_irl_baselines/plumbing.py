"""Conversion of experts' episodes to the types of `imitation`, and a logger for the trainers of `imitation`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from imitation.data.types import Trajectory, Transitions
from imitation.util.logger import HierarchicalLogger, configure

from grace_irl.rl.episodes import ExpertEpisode
from grace_irl.rl.method import PolicyProblem


def as_trajectories(episodes: Sequence[ExpertEpisode]) -> list[Trajectory]:
    """One trajectory of `imitation` per episode.

    The field `terminal` of a trajectory is also true for an episode that ended by a time limit. A vector environment
    returns `done` for both kinds of end, and a discriminator must get the same `done` from experts and learner.
    """
    return [Trajectory(each.observations, each.actions, None, each.ended) for each in episodes]


def as_transitions(episodes: Sequence[ExpertEpisode], at_least: int = 1) -> Transitions:
    """All transitions in order. The whole sequence is repeated until there are at least `at_least` transitions.

    `imitation` draws batches without replacement, and refuses fewer transitions than the batch size.
    """
    from imitation.data.rollout import flatten_trajectories

    once = flatten_trajectories(as_trajectories(episodes))
    times = -(-at_least // len(once))
    if times == 1:
        return once
    fields = (once.obs, once.acts, once.infos, once.next_obs, once.dones)
    return Transitions(*(np.concatenate([each] * times) for each in fields))


@contextmanager
def logger(problem: PolicyProblem) -> Iterator[HierarchicalLogger]:
    """A logger that writes TensorBoard's files to the problem's folder for logs, or nothing if there is no folder."""
    with TemporaryDirectory() as nowhere:
        found = configure(problem.log or Path(nowhere), ["tensorboard"] if problem.log else [])
        try:
            yield found
        finally:
            found.close()  # type: ignore[no-untyped-call]
