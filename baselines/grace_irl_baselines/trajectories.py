"""Experts' episodes in the form that `imitation` reads."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from imitation.data.types import Trajectory, Transitions

from grace_irl.rl.episodes import ExpertEpisode


def as_trajectories(episodes: Sequence[ExpertEpisode]) -> list[Trajectory]:
    """One trajectory per episode.

    `terminal` holds if the episode ended for whatever reason: a vectorised environment says `done` in both cases,
    and a discriminator must get the same from both sides.
    """
    return [Trajectory(each.observations, each.actions, None, each.ended) for each in episodes]


def as_transitions(episodes: Sequence[ExpertEpisode], at_least: int = 1) -> Transitions:
    """All transitions, in order, repeated as a whole until there are `at_least`.

    `imitation` draws batches without replacement and refuses fewer transitions than a batch has.
    """
    from imitation.data.rollout import flatten_trajectories

    once = flatten_trajectories(as_trajectories(episodes))
    times = -(-at_least // len(once))
    if times == 1:
        return once
    fields = (once.obs, once.acts, once.infos, once.next_obs, once.dones)
    return Transitions(*(np.concatenate([each] * times) for each in fields))
