"""The EPIC distance between a recovered reward and the true reward, as a result of a comparison.

For one seed, the distances of all methods are computed on the same transitions.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grace_irl.compare.fitted import ProgramReward
from grace_irl.errors import InputError
from grace_irl.evaluate.epic import Reward, Transitions, epic_distance
from grace_irl.rl.matching import split_id
from grace_irl.rl.method import PolicyProblem, TransitionReward

Floats = NDArray[np.float64]
StateReward = Callable[[Floats, Floats, Floats], Floats]
"""A function from states `(n, k)`, actions `(n, m)` and next states `(n, k)` to rewards `(n,)`."""


@dataclass(frozen=True)
class Locomotion:
    """The true reward of a MuJoCo body: forward velocity, minus the cost of control, plus a bonus for health.

    The bonus is 1 if the next state is healthy.

    Attributes:
        size: number of components of a state. The horizontal position is not one of them.
        velocity: index of the forward velocity in a state.
        control: cost of control per unit of the sum of the squared action components.
        heights: limits of the torso's height in a healthy state, in metres; None: there is no bonus.
        angles: limits of the torso's angle in a healthy state, in radians.
        largest: limit of the absolute value of each component of a healthy state, except the height.
    """

    size: int
    velocity: int
    control: float
    heights: tuple[float, float] | None = None
    angles: tuple[float, float] = (-np.inf, np.inf)
    largest: float = np.inf

    def __call__(self, states: Floats, actions: Floats, next_states: Floats) -> Floats:
        """See `StateReward`."""
        forward = (states[:, self.velocity] + next_states[:, self.velocity]) / 2
        paid: Floats = forward - self.control * np.square(actions).sum(axis=1)
        if self.heights is not None:
            paid = paid + self._healthy(next_states)
        return paid

    def _healthy(self, states: Floats) -> NDArray[np.bool_]:
        assert self.heights is not None  # `__call__` checks this
        upright = (states[:, 0] > self.heights[0]) & (states[:, 0] < self.heights[1])
        straight = (states[:, 1] > self.angles[0]) & (states[:, 1] < self.angles[1])
        return np.asarray(upright & straight & (np.abs(states[:, 1:]) < self.largest).all(axis=1))


TABLE: dict[str, Locomotion] = {
    "Hopper-v5": Locomotion(11, 5, 1e-3, (0.7, np.inf), (-0.2, 0.2), 100.0),
    "HalfCheetah-v5": Locomotion(17, 8, 0.1),
    "Walker2d-v5": Locomotion(17, 8, 1e-3, (0.8, 2.0), (-1.0, 1.0)),
}
"""True rewards by Gymnasium id, with the default parameters in Gymnasium's documentation."""


def true_reward(environment: str, size: int) -> StateReward | None:
    """The true reward of an environment whose states have `size` components; None if `TABLE` has no such entry."""
    name = split_id(environment)[0]
    found = TABLE.get(f"{name}-v5")
    return found if found is not None and found.size == size else None


TRANSITIONS, DRAWS = 512, 64
"""Number of transitions on which `distance` compares rewards (TRANSITIONS), and number of samples for each mean in
EPIC's shaping (DRAWS)."""
DISCOUNT = 0.99


def distance(problem: PolicyProblem, reward: TransitionReward) -> float | None:
    """EPIC distance from 0 to 1; None if the true reward is unknown (`true_reward`) or no expert has actions.

    Half of the transitions come from experts, and half from random actions. The methods do not affect the transitions.

    Args:
        problem: the learning problem of the comparison. Its environment and its experts are used.
        reward: a reward on the problem's observations, or a `ProgramReward` on states.

    Raises:
        GraceError: the reward fails.
    """
    with closing(problem.make_env()) as environment:
        metadata = environment.get_wrapper_attr("view").metadata
        observer = environment.get_wrapper_attr("observer")
    size = getattr(observer, "size", 0)
    true = true_reward(metadata.environment, size)
    if true is None:
        return None
    transitions = _transitions(problem)
    if transitions is None:
        return None
    recovered: Reward = _OfStates(reward, size) if isinstance(reward, ProgramReward) else reward
    return epic_distance(recovered, _Closed(true, size), transitions, DISCOUNT, samples=DRAWS)


@dataclass(frozen=True)
class _Closed:
    """A `StateReward` as a reward on observations, whose first `size` components are the state."""

    reward: StateReward
    size: int

    def __call__(
        self,
        state: NDArray[Any],
        action: NDArray[Any],
        next_state: NDArray[Any],
        done: NDArray[np.bool_],  # noqa: ARG002
    ) -> NDArray[Any]:
        return self.reward(state[:, : self.size], action, next_state[:, : self.size])


@dataclass(frozen=True)
class _OfStates:
    """A program as a reward on observations, whose first `size` components are the state."""

    reward: TransitionReward
    size: int

    def __call__(
        self, state: NDArray[Any], action: NDArray[Any], next_state: NDArray[Any], done: NDArray[np.bool_]
    ) -> NDArray[Any]:
        return self.reward(state[:, : self.size], action, next_state[:, : self.size], done)


def _transitions(problem: PolicyProblem) -> Transitions | None:
    """The transitions on which rewards are compared; None if no expert has actions."""
    from grace_irl.rl.episodes import expert_episodes

    try:
        episodes = expert_episodes(problem, "epic", absorbing=False)
    except InputError:
        return None
    pairs = [(each.observations, each.actions) for each in episodes]
    half = TRANSITIONS // 2
    generator = np.random.default_rng(0)
    rows = [_drawn(pairs, half, generator), _drawn(_random(problem, 4 * half), half, generator)]
    before, actions, after = (np.concatenate(parts) for parts in zip(*rows, strict=True))
    return Transitions(before, actions, after, np.zeros(len(before), bool))


def _drawn(
    episodes: list[tuple[NDArray[Any], NDArray[Any]]], count: int, generator: np.random.Generator
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """At most `count` randomly drawn transitions of episodes."""
    before = np.concatenate([observations[:-1] for observations, _ in episodes])
    after = np.concatenate([observations[1:] for observations, _ in episodes])
    actions = np.concatenate([taken for _, taken in episodes])
    chosen = generator.permutation(len(before))[:count]
    return before[chosen], actions[chosen], after[chosen]


def _random(problem: PolicyProblem, steps: int) -> list[tuple[NDArray[Any], NDArray[Any]]]:
    """Episodes with `steps` random actions in total. Transitions to terminal and absorbing states are left out."""
    episodes, left = [], steps
    with closing(problem.make_env()) as environment:
        environment.action_space.seed(0)
        while left > 0:
            observations, actions = [environment.reset(seed=left)[0]], []
            over = False
            while not over and left > 0:
                action = environment.action_space.sample()
                observation, _, terminated, truncated, info = environment.step(action)
                over, left = terminated or truncated or _is_flagged(problem, observation), left - 1
                if not (terminated or info.get("absorbed") or _is_flagged(problem, observation)):
                    observations.append(observation)
                    actions.append(action)
            if actions:
                episodes.append((np.stack(observations), np.stack(actions)))
    return episodes


def _is_flagged(problem: PolicyProblem, observation: NDArray[Any]) -> bool:
    """Whether an observation shows the absorbing state, which pads the episodes of a fixed horizon."""
    return bool(problem.horizon and observation[-1] == 1)
