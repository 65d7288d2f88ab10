"""The wrapper through which policies see an environment.

A view makes a state from the environment's observation. An observer then makes the policy's observation from the state.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import Any

import gymnasium
from numpy.typing import NDArray

from grace_irl.rewards.view import INSTRUCTION, SHOWN, StateView, instruction_of
from grace_irl.rl.actions import require_actions, typed
from grace_irl.rl.environments import SUCCESS, made_by, quiet
from grace_irl.rl.observers import Observer, observer_for

EnvironmentFactory = Callable[[], Any]
"""Factory of one environment and its view, such as `lambda: environments.make("Hopper-v5")`, or of an environment alone
whose observations are the states (`environments.made_by`). The caller closes the environment."""


class Observed(gymnasium.Wrapper[Any, Any, Any, Any]):
    """A wrapper that computes the view's state once per step, for both the policy and the reward.

    `info` of each reset and step holds the state, under the key `rewards.view.SHOWN`. `info["instruction"]` of `reset`
    holds the instruction. If the environment has a goal, `info["is_success"]` says whether the episode has just reached
    the goal, unless the environment itself says so in the steps before an end.

    Args:
        environment: the environment to wrap.
        view: its view.
        observer: the conversion of states to the policy's observations; None: chosen by the state of a first reset.

    Attributes:
        state: the current state.
        instruction: the instruction of the running episode.
    """

    def __init__(self, environment: gymnasium.Env[Any, Any], view: StateView, observer: Observer | None = None) -> None:
        super().__init__(environment)
        self.view = view
        self.instruction = ""
        if observer is None:
            with quiet():
                observation, info = environment.reset(seed=0)
            state, instruction = view.state(environment, observation), instruction_of(environment, info, view)
            observer = observer_for(view, state, instruction)
        self.observer = observer
        self.observation_space = observer.space

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start an episode."""
        with quiet():
            observation, info = self.env.reset(seed=seed, options=options)
        self.state: NDArray[Any] = self.view.state(self.env, observation)
        self.instruction = instruction_of(self.env, info, self.view)
        # A new dict: an environment may return one and the same dict from all calls.
        found = {**info, INSTRUCTION: self.instruction, SHOWN: self.state}
        return self.observer.observe(self.state, self.instruction), found

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """One step, with the environment's own reward."""
        observation, reward, terminated, truncated, given = self.env.step(typed(self.env.action_space, action))
        self.state = self.view.state(self.env, observation)
        info = {**given, SHOWN: self.state}
        if self.view.has_goal and (terminated or truncated):
            info["is_success"] = self.view.success(bool(terminated), float(reward))
        elif self.view.has_goal and not any(key in given for key in SUCCESS):
            info["is_success"] = False  # an outer wrapper may end the episode here
        return self.observer.observe(self.state, self.instruction), float(reward), terminated, truncated, info


def observed(make: EnvironmentFactory, observer: Observer | None = None) -> Observed:
    """One environment of a factory, wrapped in `Observed`."""
    return Observed(*made_by(make), observer)


def acts_continuously(make: EnvironmentFactory) -> bool:
    """Whether a factory's environments have continuous actions.

    Raises:
        InputError: PPO cannot learn their actions.
    """
    environment, _ = made_by(make)
    with closing(environment):
        require_actions(environment.action_space)
        return isinstance(environment.action_space, gymnasium.spaces.Box)
