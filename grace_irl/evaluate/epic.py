"""EPIC: a distance between two rewards that ignores differences without effect on policies (Gleave et al. 2021).

Rewards that differ only by a positive factor, a constant and potential shaping rank all policies alike. Their distance
is 0. The distance of a reward and its negation is 1. The distance of two uncorrelated rewards is 1/sqrt(2). The
computation needs only transitions, and trains no policy.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grace_irl.errors import InputError

Floats = NDArray[np.float64]
Reward = Callable[[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[np.bool_]], NDArray[Any]]
"""A function from n transitions to their rewards `(n,)`. Its arguments are the columns of `Transitions`."""

CHUNK = 16_384
"""Maximum number of transitions in one call of a reward function by `_means`.

`_means` combines each state with all draws of an action and a next state. If there are more draws than this maximum, a
call holds all draws for one state."""

FLAT = 1e-10
"""Rewards count as constant if they deviate from their mean by at most this fraction of the largest |reward|."""


@dataclass(frozen=True, eq=False)
class Transitions:
    """n transitions on which two rewards are compared: a sample of the coverage distribution of Gleave et al.

    Attributes:
        states: `(n, ...)` states.
        actions: `(n, ...)` actions.
        next_states: `(n, ...)` states after the actions.
        dones: `(n,)` whether the next state ended the episode.

    Raises:
        InputError: fewer than two transitions, or columns of different lengths.
    """

    states: NDArray[Any]
    actions: NDArray[Any]
    next_states: NDArray[Any]
    dones: NDArray[np.bool_]

    def __post_init__(self) -> None:
        lengths = {field.name: len(getattr(self, field.name)) for field in fields(self)}
        if len(set(lengths.values())) != 1 or len(self.states) < 2:
            told = ", ".join(f"{count} {name}" for name, count in lengths.items())
            raise InputError(f"transitions with {told}; expected columns of equal length, at least 2 transitions")

    def __len__(self) -> int:
        return len(self.states)


def epic_distance(
    first: Reward,
    second: Reward,
    transitions: Transitions,
    discount: float,
    *,
    samples: int = 256,
    seed: int = 0,
) -> float:
    """The EPIC distance of two rewards, from 0 to 1, estimated on a sample (Gleave et al., def. 4.5 and section 5).

    First, `canonical` removes potential shaping from both rewards, up to a constant. To do this, `canonical` averages
    over actions and next states that are drawn independently from the transitions. All transitions share the draws, so
    the constant is the same for all transitions and does not change the correlation of the rewards.

    Args:
        first, second: the rewards. The distance is symmetric.
        transitions: the sample. It should cover more than expert behaviour, because rewards may differ elsewhere.
        discount: discount factor of the environment. Potential shaping adds discount * potential(s') - potential(s).
        samples: number of draws of an action and a next state for the averages.
        seed: seed of the draws.

    Raises:
        InputError: a discount outside 0 to 1, fewer than one draw, or rewards that are not finite numbers.
    """
    if not 0 <= discount <= 1:
        raise InputError(f"discount {discount:g}; expected 0 to 1")
    if samples < 1:
        raise InputError(f"{samples} samples; expected at least 1")
    shaped = (canonical(each, transitions, discount, samples, seed) for each in (first, second))
    return pearson_distance(*shaped)


def canonical(reward: Reward, transitions: Transitions, discount: float, samples: int, seed: int) -> Floats:
    """Canonically shaped rewards `(n,)` of the transitions, up to a constant (Gleave et al., def. 4.1):

        C(R)(s, a, s') = R(s, a, s') + E[discount R(s', A, S') - R(s, A, S') - discount R(S, A, S')]

    S and S' are random states from the columns `states` and `next_states`, and A is a random action from `actions`. The
    result omits the last term, E[discount R(S, A, S')]. This term is the same for all transitions, so a correlation
    ignores it.
    """
    generator = np.random.default_rng(seed)
    everywhere = np.concatenate([transitions.states, transitions.next_states])
    actions = transitions.actions[generator.integers(len(transitions), size=samples)]
    reached = everywhere[generator.integers(len(everywhere), size=samples)]
    columns = (transitions.states, transitions.actions, transitions.next_states, transitions.dones)
    paid = _values(reward, *columns)
    onward = _means(reward, transitions.next_states, actions, reached)
    before = _means(reward, transitions.states, actions, reached)
    return paid + discount * onward - before


def pearson_distance(first: Floats, second: Floats) -> float:
    """The Pearson distance sqrt((1 - rho) / 2) of two samples `(n,)` with correlation rho (Gleave et al., def. 4.2).

    The distance of a constant and a varying sample is 1/sqrt(2). The distance of two constant samples is 0.
    """
    centred = [_centred(each) for each in (first, second)]
    flat = [not each.any() for each in centred]
    if all(flat):
        return 0.0
    if any(flat):
        return math.sqrt(0.5)
    # Two unit vectors with the inner product rho are sqrt(2 - 2 rho) apart, twice the Pearson distance. Near rho = 1,
    # their difference is more exact than 1 - rho.
    one, other = (each / np.linalg.norm(each) for each in centred)
    return min(float(np.linalg.norm(one - other)) / 2, 1.0)


def _centred(values: Floats) -> Floats:
    """The values minus their mean, or all 0 if the differences are only rounding (`FLAT`)."""
    left = values - values.mean()
    return left if np.abs(left).max() > FLAT * np.abs(values).max() else np.zeros_like(left)


def _means(reward: Reward, states: NDArray[Any], actions: NDArray[Any], reached: NDArray[Any]) -> Floats:
    """For each of n states s, the mean `(n,)` of R(s, A, S') over draws of an action A and a next state S'.

    Args:
        reward: the reward R.
        states: `(n, ...)` states s.
        actions, reached: `(k, ...)` draws of A and of S'.
    """
    draws = len(actions)
    at_once = max(1, CHUNK // draws)
    means = [np.empty(0)]
    for start in range(0, len(states), at_once):
        part = states[start : start + at_once]
        values = _values(
            reward,
            np.repeat(part, draws, axis=0),
            np.concatenate([actions] * len(part)),
            np.concatenate([reached] * len(part)),
            np.zeros(len(part) * draws, bool),
        )
        means.append(values.reshape(len(part), draws).mean(axis=1))
    return np.concatenate(means)


def _values(
    reward: Reward,
    states: NDArray[Any],
    actions: NDArray[Any],
    next_states: NDArray[Any],
    dones: NDArray[np.bool_],
) -> Floats:
    values = np.asarray(reward(states, actions, next_states, dones), np.float64)
    if values.shape != (len(states),) or not np.isfinite(values).all():
        lost = int((~np.isfinite(values)).sum())
        raise InputError(
            f"rewards of shape {values.shape} for {len(states)} transitions, {lost} not finite; expected one finite "
            "number each"
        )
    return values
