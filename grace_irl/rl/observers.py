"""Observations of a policy: one array made of a state and its instruction, from which the state can be read back."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Protocol

import gymnasium
import numpy as np
from numpy.typing import NDArray

from grace_irl.demos.trajectory import Trajectory
from grace_irl.errors import InputError
from grace_irl.rewards.view import INSTRUCTION, SHOWN, StateView
from grace_irl.rl.environments import quiet

MAX_WORDS = 32
"""Words of an instruction that a policy reads; the rest is cut."""

WORDS = 1024
"""Numbers that words are mapped to, from 1 on; 0 stands for no word."""

MINIGRID_AGENT = 10
"""Code of the agent in channel 0 of MiniGrid's arrays (`minigrid.core.constants.OBJECT_TO_IDX`)."""


class Observer(Protocol):
    """Makes observations, in a `Box`: what Stable-Baselines3 and imitation take without ado."""

    @property
    def space(self) -> Any:
        """The Gymnasium `Box` of one observation."""
        ...

    def observe(self, state: NDArray[Any], instruction: str) -> NDArray[Any]:
        """One observation `(k,)`."""
        ...

    def states(self, observations: NDArray[Any]) -> NDArray[Any]:
        """The states `(batch, ...)` in observations `(batch, k)`, or one state in one observation."""
        ...


@dataclass(frozen=True)
class VectorObserver:
    """Vectors are observed as they are.

    Attributes:
        size: n of a state `(n,)`.
    """

    size: int

    @property
    def space(self) -> Any:
        """`(n,)` float64, unbounded."""
        from gymnasium.spaces import Box

        return Box(-np.inf, np.inf, (self.size,), np.float64)

    def observe(self, state: NDArray[Any], instruction: str) -> NDArray[Any]:  # noqa: ARG002
        """The state."""
        return np.asarray(state, np.float64)

    def states(self, observations: NDArray[Any]) -> NDArray[Any]:
        """The same array."""
        return observations


@dataclass(frozen=True)
class GridObserver:
    """A grid's codes, flattened, and behind them a number for each word of the instruction.

    Attributes:
        shape: (w, h, 3) of a state.
        agent: the code of the agent in channel 0, whose channel 2 is its direction; -1 where there is no such thing.
    """

    shape: tuple[int, int, int]
    agent: int = -1

    @property
    def space(self) -> Any:
        """`(3 w h + MAX_WORDS,)` int16."""
        from gymnasium.spaces import Box

        return Box(0, WORDS, (self.cells + MAX_WORDS,), np.int16)

    @property
    def cells(self) -> int:
        """Numbers of a state."""
        width, height, channels = self.shape
        return width * height * channels

    def observe(self, state: NDArray[Any], instruction: str) -> NDArray[np.int16]:
        """See the class."""
        observation = np.zeros(self.cells + MAX_WORDS, np.int16)
        observation[: self.cells] = state.reshape(-1)
        numbers = word_numbers(instruction)
        observation[self.cells : self.cells + len(numbers)] = numbers
        return observation

    def states(self, observations: NDArray[Any]) -> NDArray[Any]:
        """`(batch, w, h, 3)`."""
        return observations[..., : self.cells].reshape(*observations.shape[:-1], *self.shape)


def word_numbers(instruction: str) -> list[int]:
    """A number in 1 … WORDS for each of the first MAX_WORDS words, by a hash: no vocabulary has to be kept.

    Words that share a number cannot be told apart; those of BabyAI's instructions share none.
    """
    words = re.findall(r"[^\W_]+", instruction.lower())[:MAX_WORDS]
    return [1 + zlib.crc32(word.encode()) % WORDS for word in words]


def observer_for(view: StateView, state: NDArray[Any]) -> Observer:
    """How a policy observes states like this one.

    Raises:
        InputError: states that no policy of ours reads.
    """
    if state.ndim == 1:
        return VectorObserver(len(state))
    if state.ndim == 3 and state.shape[2] == 3:
        agent = MINIGRID_AGENT if view.metadata.view == "minigrid-full" else -1
        return GridObserver((state.shape[0], state.shape[1], state.shape[2]), agent)
    raise InputError(f"states of shape {state.shape}; expected vectors (n,) or grids (w, h, 3): PPO reads no others")


def observe_trajectory(observer: Observer, trajectory: Trajectory) -> NDArray[Any]:
    """What a policy would have observed along a trajectory, `(T+1, k)`."""
    return np.stack([observer.observe(state, trajectory.extra_info) for state in trajectory.states])


EnvironmentFactory = Callable[[], tuple[Any, StateView]]
"""Makes one environment and its view, as `lambda: environments.make("Hopper-v5")` does; its caller closes it."""


class Observed(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Observes what programs see, encoded once per step for both the policy and the reward.

    `info["instruction"]` of `reset` holds the goal text, and `info["is_success"]` of an episode's last step whether it
    reached its goal, where the environment has one. The information of each reset and step holds the state
    (`rewards.view.SHOWN`).

    Attributes:
        state: the state at hand.
        instruction: of the running episode.
    """

    def __init__(self, environment: gymnasium.Env[Any, Any], view: StateView, observer: Observer | None = None) -> None:
        super().__init__(environment)
        self.view = view
        self.instruction = ""
        if observer is None:
            with quiet():
                observation, _ = environment.reset(seed=0)
            observer = observer_for(view, view.state(environment, observation))
        self.observer = observer
        self.observation_space = observer.space

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """A new episode."""
        with quiet():
            observation, info = self.env.reset(seed=seed, options=options)
        self.state: NDArray[Any] = self.view.state(self.env, observation)
        self.instruction = self.view.instruction(self.env)
        info |= {INSTRUCTION: self.instruction, SHOWN: self.state}
        return self.observer.observe(self.state, self.instruction), info

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """One step, with the environment's own reward."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        self.state = info[SHOWN] = self.view.state(self.env, observation)
        if (terminated or truncated) and self.view.has_goal:
            info["is_success"] = self.view.success(bool(terminated), float(reward))
        return self.observer.observe(self.state, self.instruction), float(reward), terminated, truncated, info


def observed(make: EnvironmentFactory, observer: Observer | None = None) -> Observed:
    """One environment of a factory, ready for a policy."""
    return Observed(*make(), observer)


def acts_continuously(make: EnvironmentFactory) -> bool:
    """Whether actions in a factory's environments are numbers rather than choices."""
    environment, _ = make()
    with closing(environment):
        return isinstance(environment.action_space, gymnasium.spaces.Box)
