"""Relevance of components, by the correlation of a component's return with the score of a task.

A component is a summand of a reward for steps. The correlation is over episodes of random actions.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from grace_irl.synthesis.vector.components import Components, Floats, Rollout

LEAST_EPISODES = 10
"""Minimum number of episodes whose score differs from the most frequent score. With fewer, the return of a component
may agree with the score by luck."""
FALSE = 0.05
"""False discovery rate: the expected share of relevant components that have no real relation to the score."""


def relevance(components: Components, rollouts: Sequence[Rollout], scores: Sequence[float]) -> dict[str, float]:
    """The rank correlation (Spearman) of each relevant component's return with the score, from -1 to 1.

    A component's return is its sum over the steps of an episode. Components are relevant if their correlation is
    significant by the normal approximation, at the false discovery rate `FALSE` (Benjamini and Hochberg, 1995). The
    shapes "level" and "lower" of a quantity are opposite, so only the one with a positive correlation is in the result.

    Args:
        components: the components.
        rollouts: whole episodes of random actions.
        scores: the score of each episode.

    Returns:
        Correlations by the names of components; {} if too few scores differ from the most frequent score
        (`LEAST_EPISODES`).
    """
    _, counts = np.unique(np.asarray(scores, dtype=np.float64), return_counts=True)
    if len(scores) - counts.max(initial=0) < LEAST_EPISODES or not components.listed:
        return {}
    from scipy.stats import false_discovery_control, norm  # slow to import

    ours = _centred(_returns(components, rollouts))
    theirs = _centred(np.asarray(scores, dtype=np.float64)[:, None])
    lengths = np.sqrt((ours**2).sum(axis=0) * (theirs**2).sum())
    correlations = np.divide((ours * theirs).sum(axis=0), lengths, out=np.zeros_like(lengths), where=lengths > 0)
    chances = false_discovery_control(2 * norm.sf(np.abs(correlations) * np.sqrt(len(scores) - 1)))
    return {
        name: float(found)
        for (name, component), found, chance in zip(components.listed.items(), correlations, chances, strict=True)
        if chance <= FALSE and (found > 0 or component.shape not in ("level", "lower"))
    }


def _returns(components: Components, rollouts: Sequence[Rollout]) -> Floats:
    """The return `(episodes, components)` of each component in each episode."""
    steps = components.steps(rollouts)
    lengths = [len(components.steps([episode]).after) for episode in rollouts]
    episodes = np.repeat(np.arange(len(rollouts)), lengths)
    sums = [
        np.bincount(episodes, components.value(component, steps), minlength=len(rollouts))
        for component in components.listed.values()
    ]
    return np.stack(sums, axis=1)


def _centred(values: Floats) -> Floats:
    """The ranks in each column, minus their mean."""
    from scipy.stats import rankdata  # slow to import

    ranks: Floats = np.asarray(rankdata(values, axis=0), dtype=np.float64)
    centred: Floats = ranks - ranks.mean(axis=0)
    return centred
