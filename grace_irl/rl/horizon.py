"""The fixed-horizon form: every episode has one length, so that a reward can say nothing by how long episodes are.

If episodes end early, their length shows how well they went, and a reward need not be right to be good. A reward that
is positive everywhere, as GAIL's is, teaches to stay alive; one that is negative everywhere teaches to end the episode.
In the fixed-horizon form an episode that reaches a terminal state goes on in an absorbing one, which pays nothing and
which no action leaves, until the horizon. The true return stays what it was. (Kostrikov et al. 2019,
"Discriminator-Actor-Critic"; the wrapper of `seals` that does so keeps the last observation instead.)
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from grace_irl.errors import InputError

ABSORBED = "absorbed"
"""Key of a step's information: whether the episode had reached a terminal state before this step."""


class FixedHorizon(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Episodes of exactly `horizon` steps; none is terminated, each is truncated at the horizon.

    Vectors get one more component, 1 in the absorbing state and 0 elsewhere; all others are 0 there. Arrays of more
    dimensions keep their shape and are all 0 in the absorbing state, which no grid of MiniGrid is.

    Args:
        environment: what is wrapped; its observations are a `Box`.
        horizon: steps of each episode, not more than the environment's own time limit.

    Raises:
        InputError: other observations, or a horizon below 1.
    """

    def __init__(self, environment: gymnasium.Env[Any, Any], horizon: int) -> None:
        super().__init__(environment)
        space = environment.observation_space
        if not isinstance(space, gymnasium.spaces.Box):
            raise InputError(f"fixed horizon: observations of {space}; expected a Box: flatten them first")
        if horizon < 1:
            raise InputError(f"fixed horizon {horizon}; expected at least 1 step")
        self._horizon = horizon
        dtype: Any = space.dtype
        low, high = space.low, space.high
        if len(space.shape) == 1:
            low, high = np.append(low, dtype.type(0)), np.append(high, dtype.type(1))
        # 0 must be an observation in every component.
        self.observation_space = gymnasium.spaces.Box(np.minimum(low, 0), np.maximum(high, 0), dtype=dtype)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """A new episode."""
        observation, info = self.env.reset(seed=seed, options=options)
        self._steps, self._absorbed = 0, False
        return alive(np.asarray(observation)), info

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """One step; nothing happens in the absorbing state.

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
            raise InputError(
                f"fixed horizon {self._horizon}: the environment's time limit ended an episode after {self._steps} "
                f"steps; expected a horizon of at most {self._steps}"
            )
        self._absorbed = bool(terminated)
        seen = absorbing(self.observation_space) if terminated and not last else alive(np.asarray(observation))
        return seen, float(reward), False, last, info


def alive(observations: NDArray[Any]) -> NDArray[Any]:
    """Observations outside the absorbing state: `(..., n)` vectors become `(..., n + 1)`, others stay.

    A single vector is `(n,)`; a grid `(h, w, c)` has at least three dimensions.
    """
    if observations.ndim != 1:
        return observations
    return np.append(observations, observations.dtype.type(0))


def absorbing(space: Any) -> NDArray[Any]:
    """The observation of the absorbing state in a space that `FixedHorizon` gives."""
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
    """An episode in the fixed-horizon form, as `FixedHorizon` would have given it.

    Args:
        observations: `(T+1, ...)`.
        actions: `(T, ...)`.
        horizon: steps to bring it to; what is longer is cut.
        terminal: whether its last state is terminal. One that is not ends with the recording.
        action_space: of the environment; actions in the absorbing state are drawn from it, uniformly, because they
            have no effect and a discriminator must not read anything from them.
        generator: draws them.
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
    if hasattr(action_space, "n"):
        drawn = generator.integers(int(action_space.n), size=rest) + int(getattr(action_space, "start", 0))
    else:
        drawn = generator.uniform(action_space.low, action_space.high, (rest, *action_space.shape))
    return np.concatenate([observations[:-1], flag]), np.concatenate([actions, drawn.astype(actions.dtype)])
