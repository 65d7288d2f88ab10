"""The fixed-horizon form: all episodes have the same length, so that a reward cannot favour long or short ones.

If episodes can end early, a reward that is positive everywhere, like GAIL's, encourages the policy to survive. A reward
that is negative everywhere encourages the policy to end the episode. If the task needs survival or a quick end, a wrong
reward can therefore train a good policy.

In the fixed-horizon form, an episode that reaches a terminal state continues in an absorbing state until the horizon
(Kostrikov et al. 2019, "Discriminator-Actor-Critic"). In the absorbing state, the reward is 0 and actions have no
effect, so the true return does not change. A similar wrapper of the library `seals` repeats the last observation.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from grace_irl.errors import InputError
from grace_irl.rl.actions import value_counts

ABSORBED = "absorbed"
"""Key in the `info` of a step. The value is whether the episode had reached a terminal state before this step."""


class FixedHorizon(gymnasium.Wrapper[Any, Any, Any, Any]):
    """A wrapper that makes all episodes exactly `horizon` steps long.

    No episode terminates; each is truncated at the horizon. If an episode reaches a terminal state before the horizon,
    `step` returns the observation of the absorbing state instead.

    Observation vectors get one more component, a flag that is 1 in the absorbing state and 0 elsewhere. The other
    components are 0 in the absorbing state.

    Observations of more dimensions, such as images, keep their shape. All their values are 0 in the absorbing state. A
    policy can recognise the absorbing state if no other observation is all zeros.

    Args:
        environment: the environment to wrap, with a `Box` as observation space.
        horizon: steps of each episode, at most the environment's own time limit.

    Raises:
        InputError: the observation space is not a `Box`, or the horizon is below 1 or above the time limit in the
            environment's `spec`. A time limit that `spec` does not show is found by `step`, which raises the error when
            this limit ends an episode before the horizon.
    """

    def __init__(self, environment: gymnasium.Env[Any, Any], horizon: int) -> None:
        super().__init__(environment)
        space = environment.observation_space
        if not isinstance(space, gymnasium.spaces.Box):
            raise InputError(f"fixed horizon: observations of {space}; expected a Box: flatten them first")
        if horizon < 1:
            raise InputError(f"fixed horizon {horizon}; expected at least 1 step")
        limit = getattr(environment.spec, "max_episode_steps", None)
        if limit is not None and horizon > limit:
            raise _above_limit(horizon, f"the environment's time limit is {limit} steps", limit)
        self._horizon = horizon
        dtype: Any = space.dtype
        low, high = space.low, space.high
        if len(space.shape) == 1:
            low, high = np.append(low, dtype.type(0)), np.append(high, dtype.type(1))
        # The space must contain 0 in every component, for the absorbing state.
        self.observation_space = gymnasium.spaces.Box(np.minimum(low, 0), np.maximum(high, 0), dtype=dtype)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start an episode."""
        observation, info = self.env.reset(seed=seed, options=options)
        self._steps, self._absorbed = 0, False
        return alive(np.asarray(observation)), info

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """One step. In the absorbing state, the inner environment makes no step.

        Raises:
            InputError: the environment's own time limit is shorter than the horizon.
        """
        self._steps += 1
        last = self._steps >= self._horizon
        if self._absorbed:
            return absorbing(self.observation_space), 0.0, False, last, {ABSORBED: True}
        observation, reward, terminated, truncated, info = self.env.step(action)
        info[ABSORBED] = False
        if truncated and not terminated and not last:
            found = f"the environment's time limit ended an episode after {self._steps} steps"
            raise _above_limit(self._horizon, found, self._steps)
        self._absorbed = bool(terminated)
        seen = absorbing(self.observation_space) if terminated and not last else alive(np.asarray(observation))
        return seen, float(reward), False, last, info


def _above_limit(horizon: int, found: str, most: int) -> InputError:
    return InputError(f"fixed horizon {horizon}: {found}; expected a horizon of at most {most}")


def alive(observations: NDArray[Any]) -> NDArray[Any]:
    """Convert an observation outside the absorbing state to the observation space of `FixedHorizon`.

    A vector `(n,)` becomes `(n + 1,)`, with the flag 0 at its end. Arrays of more dimensions stay unchanged.
    """
    if observations.ndim != 1:
        return observations
    return np.append(observations, observations.dtype.type(0))


def absorbing(space: Any) -> NDArray[Any]:
    """The observation of the absorbing state, in the observation space of `FixedHorizon`."""
    seen = np.zeros(space.shape, space.dtype)
    if seen.ndim == 1:
        seen[-1] = 1
    return seen


def absorbed(
    observations: NDArray[Any],
    actions: NDArray[Any],
    horizon: int,
    terminal: bool,
    action_space: Any,
    generator: np.random.Generator,
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Convert a recorded episode to the fixed-horizon form, as `FixedHorizon` would have returned it.

    Args:
        observations: observations, `(T+1, ...)`.
        actions: actions, `(T, ...)`.
        horizon: number of steps. A longer episode is cut to this length. A shorter episode is extended to this length
            if `terminal` is true.
        terminal: whether the last state is terminal.
        action_space: action space of the environment. Actions in the absorbing state are uniform random draws, because
            they have no effect and must not inform a discriminator.
        generator: random generator that draws the actions in the absorbing state.
    """
    if observations.ndim == 2:
        observations = np.hstack([observations, np.zeros((len(observations), 1), observations.dtype)])
    length = len(actions)
    if not terminal or length >= horizon:
        return observations[: horizon + 1], actions[:horizon]
    rest = horizon - length
    flag = np.zeros((rest + 1, *observations.shape[1:]), observations.dtype)
    if flag.ndim == 2:
        flag[:, -1] = 1
    drawn: NDArray[Any]
    counts = value_counts(action_space)
    if counts is not None:
        drawn = generator.integers(counts, size=(rest, *counts.shape)) + getattr(action_space, "start", 0)
    else:
        drawn = generator.uniform(action_space.low, action_space.high, (rest, *action_space.shape))
    return np.concatenate([observations[:-1], flag]), np.concatenate([actions, drawn.astype(actions.dtype)])
