"""Suspects: features whose values hardly depend on the agent's behaviour, such as a clock or a fixed target.

A feature is a component of a vector or a number in a record. A suspect alone is not a fault. It is a *cue* if a reward
needs nothing else to tell experts from negatives (`grace_irl.audit.shuffling`).

`grace_irl.demos.fields` finds exact clocks and constants. Measured data are not exact: clocks jitter, cameras see a
fixed target with noise, and a sensor measures a constant of its simulator with noise. So this module also finds inexact
clocks and constants.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from grace_irl.demos.fields import NAMES, Numbers, find_cues, moments, varies
from grace_irl.demos.labels import Labelled

Episodes = Sequence[NDArray[np.float64]]

JITTER = 0.5
"""Maximum standard deviation of a clock's increments in an episode, as a share of the episode's mean increment."""
PACE = 0.15
"""Maximum spread of a clock's speeds. The speed in an episode is the mean increment per step. The standard deviation of
the speeds of all episodes must not exceed this share of the average absolute speed."""
STILL = 0.05
"""Maximum variation of a fixed feature within episodes, as a share of its variation between episodes. The variation
within episodes is the square root of the average of the episodes' variances. The variation between episodes is the
standard deviation of the episodes' means."""
NARROW = 0.02
"""Maximum standard deviation of a feature that is nearly constant everywhere, as a share of the feature's mean."""
JUMPY = 0.3
"""Maximum |correlation| of successive values, in a feature that is a constant with noise. In a feature that depends on
behaviour, successive values correlate, even if the values contain a large constant, as an altitude above sea level
does."""


@dataclass(frozen=True)
class Suspects:
    """Suspects in three groups: clocks, constants and fixed features. A feature can be in several groups.

    Attributes:
        names: names of all features. The other attributes hold indices into `names`.
        clocks: features that rise in all episodes, or fall in all episodes, by about equal steps.
        constants: features that are nearly constant everywhere, up to noise, and features with one constant in all
            experts and another constant in all negatives.
        fixed: features that hardly change within an episode, and the features of `constants`.
    """

    names: tuple[str, ...] = ()
    clocks: tuple[int, ...] = ()
    constants: tuple[int, ...] = ()
    fixed: tuple[int, ...] = ()


def suspects(items: Sequence[Labelled], fields: Sequence[str]) -> Suspects:
    """Find suspects. States without named features have none.

    Args:
        items: labelled demonstrations of one kind of state.
        fields: names of a vector's components (`Metadata.fields`).
    """
    first = items[0].trajectory
    if first.kind not in NAMES:
        return Suspects()
    names = NAMES[first.kind](first.states, fields)
    episodes = Numbers.of([item for item in items if len(item.trajectory.states) > 2])
    exact = find_cues(items, fields)

    def numbered(known: Sequence[str], likely: NDArray[np.bool_]) -> tuple[int, ...]:
        return tuple(n for n, name in enumerate(names) if name in known or likely[n])

    nothing = np.zeros(len(names), dtype=np.bool_)
    narrow = _narrow(episodes) if episodes else nothing
    still = (_still(episodes) | narrow) if episodes else nothing
    return Suspects(
        tuple(names),
        numbered(exact.clocks, ticking(episodes) if episodes else nothing),
        numbered(exact.sources, narrow),
        numbered((*exact.sources, *exact.fixed), still),
    )


def ticking(episodes: Episodes) -> NDArray[np.bool_]:
    """Whether each field rises in all episodes, or falls in all episodes, by about equal steps.

    Args:
        episodes: arrays `(T+1, n)` with at least three states each.
    """
    even, found = np.ones(episodes[0].shape[1], dtype=np.bool_), []
    for one in episodes:
        steps = np.diff(one, axis=0)
        found.append(steps.mean(axis=0))
        even &= steps.std(axis=0) <= JITTER * np.abs(found[-1])
    means = np.stack(found)
    pace = np.abs(means).mean(axis=0)
    return np.asarray(even & (pace > 0) & (means.std(axis=0) <= PACE * pace))


def _still(episodes: Episodes) -> NDArray[np.bool_]:
    within = np.sqrt(np.mean([one.var(axis=0) for one in episodes], axis=0))
    between = np.std([one.mean(axis=0) for one in episodes], axis=0)
    return np.asarray((between > 0) & (within <= STILL * between))


def _narrow(episodes: Episodes) -> NDArray[np.bool_]:
    mean, spread = moments(episodes)
    varied = varies(np.concatenate([(one.min(axis=0), one.max(axis=0)) for one in episodes]))
    narrow = varied & (spread <= NARROW * np.abs(mean))
    return np.asarray(narrow & (np.abs(succession(episodes)) <= JUMPY))


def succession(episodes: Episodes) -> NDArray[np.float64]:
    """Correlation of successive values, after each episode's mean is subtracted; 0 for a constant."""
    products, squares = [], []
    for one in episodes:
        shifted = one - one.mean(axis=0)
        products.append((shifted[1:] * shifted[:-1]).sum(axis=0))
        squares.append((shifted * shifted).sum(axis=0))
    square = np.sum(squares, axis=0)
    return np.asarray(np.sum(products, axis=0) / np.where(square > 0, square, 1))
