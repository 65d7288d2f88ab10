"""Cues: properties by which a reward can tell experts from negatives without looking at behaviour.

An experiment tests a possible cue: the states of all episodes are shuffled, so that only the cue keeps its place. If a
reward classifies the shuffled states nearly as well as the real states, the reward needs only the cue.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grace_irl.demos.labels import Labelled
from grace_irl.demos.trajectory import Trajectory

KEPT = 0.8
"""A cue explains a reward if at least this share of the reward's accuracy above chance is left on shuffled states."""
TOLD = 0.6
"""Minimum balanced accuracy of a reward on the real states. With less, no cue explains the reward."""


def explains(real: float, shuffled: float) -> bool:
    """Whether a cue explains a reward, from its balanced accuracies on real and on shuffled states."""
    return real >= TOLD and shuffled - 0.5 >= KEPT * (real - 0.5)


def balanced(values: Sequence[NDArray[np.float64]], items: Sequence[Labelled], threshold: float) -> float:
    """Balanced accuracy of rewards at a threshold. Entries that are NaN are left out.

    For rewards of transitions, the first entry of each trajectory is NaN.

    Args:
        values: rewards `(T+1,)` of each trajectory.
        items: the labelled trajectories. They have positive and negative states.
        threshold: reward above which a state is classified as positive.
    """
    rewards, positive = np.concatenate(values), np.concatenate([item.positive for item in items])
    known = ~np.isnan(rewards)
    above = rewards[known] > threshold
    return float((above[positive[known]].mean() + (~above[~positive[known]]).mean()) / 2)


def shuffled(
    items: Sequence[Labelled],
    seed: int,
    kept: Sequence[int] = (),
    texts: Sequence[str] = (),
    status: bool = False,
) -> list[Trajectory]:
    """Copies of trajectories with the states in random order. A state may move to any step of any trajectory.

    Lengths, actions and instructions do not change. A state takes the place of a state with the same shape.

    Args:
        items: labelled trajectories of one kind.
        seed: seed of the random order.
        kept: indices of the features of a vector or record that stay in their place.
        texts: names of the text parts of a record that stay in their place.
        status: whether the status bars of screens stay in their place.
    """
    rng = np.random.default_rng(seed)
    groups: dict[Hashable, list[int]] = {}
    for place, item in enumerate(items):
        parts = item.trajectory.state_kind.parts(item.trajectory.states)
        shapes = tuple((name, array.shape[1:], array.dtype.kind) for name, array in parts.items())
        groups.setdefault(shapes, []).append(place)  # grids of one set may differ in size
    made: dict[int, Trajectory] = {}
    for places in groups.values():
        trajectories = [items[place].trajectory for place in places]
        kind = trajectories[0].state_kind
        stored = [kind.parts(each.states) for each in trajectories]
        lengths = [len(each.states) for each in trajectories]
        order = rng.permutation(sum(lengths))
        pooled = {name: np.concatenate([parts[name] for parts in stored]) for name in stored[0]}
        mixed = {name: array[order] for name, array in pooled.items()}
        _restore(mixed, pooled, kept)
        mixed |= {name: pooled[name] for name in texts}
        for place, each, stop, length in zip(places, trajectories, np.cumsum(lengths), lengths, strict=True):
            own = {name: array[stop - length : stop] for name, array in mixed.items()}
            states = kind.whole(own)
            if status:
                exchanged = kind.with_status_of(states, each.states)
                states = states if exchanged is None else exchanged
            made[place] = replace(each, states=states, screenshots=())
    return [made[place] for place in range(len(items))]


def _restore(mixed: dict[str, NDArray[Any]], pooled: dict[str, NDArray[Any]], features: Sequence[int]) -> None:
    """Move some features of the shuffled states back to their original places. This changes `mixed`.

    The indices in `features` run through all numeric parts of a state, one part after another.
    """
    first = 0
    for name, array in mixed.items():
        if not len(features) or array.dtype.kind in "SUO":
            continue
        width = int(np.prod(array.shape[1:], dtype=np.int64))
        columns = [number - first for number in features if first <= number < first + width]
        flat = array.reshape(len(array), width)  # a copy if the array is in Fortran order
        flat[:, columns] = pooled[name].reshape(len(array), width)[:, columns]
        mixed[name] = flat.reshape(array.shape)
        first += width
