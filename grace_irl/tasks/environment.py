"""The wrappers of tasks' environments and views. If one of them fails, the error names the task and ends the run."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np

from grace_irl.errors import GraceError, InputError
from grace_irl.rewards.view import StateView
from grace_irl.rl.environments import SUCCESS
from grace_irl.tasks.fault import fault

DIVERGED = 1e6
"""Bound on the absolute values of an action's components. If a component reaches the bound or is not finite, the policy
has diverged. The policy's reward is then at fault, not the environment."""
ENDLESS = 100_000
"""Maximum number of steps of an episode. A policy may find a way to live on in an environment without a time limit."""


class TaskEnvironment(gymnasium.Wrapper[Any, Any, Any, Any]):
    """A wrapper that raises InputError if its environment fails, unless a diverged policy chose the action.

    The InputError ends the run. Any other error in a training would count as a failure of the reward program, which is
    not at fault if the environment fails.

    Args:
        environment: the environment.
        task: name of the task.

    Attributes:
        diverged: whether a component of the last action was `DIVERGED` or more in size.
    """

    def __init__(self, environment: Any, task: str) -> None:
        super().__init__(environment)
        self._task = task
        self._steps = 0
        self.diverged = False

    def __getattr__(self, name: str) -> Any:
        """An attribute of the wrapped environment, for views that read it."""
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.env, name)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Reset the environment.

        Raises:
            InputError: the environment fails.
        """
        self._steps = 0
        self.diverged = False
        try:
            return super().reset(seed=seed, options=options)
        except Exception as error:
            raise _named(self._task, error) from error

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Take one step.

        Raises:
            InputError: the environment fails, and all components of the action are below `DIVERGED` in size. If a
                larger action made it fail, the environment's own error passes through. Or the episode is endless
                (`ENDLESS`).
        """
        self._steps += 1
        if self._steps > ENDLESS:
            endless = InputError(
                f"task {self._task}: an episode has not ended after {ENDLESS:,} steps; expected an environment whose "
                "episodes end: set max_steps in [training], for a new run"
            )
            endless.says_how_to_go_on = True  # a resumed run would fail again
            raise endless
        self.diverged = not (np.abs(np.asarray(action, np.float64)) < DIVERGED).all()
        try:
            return _sound(super().step(action))
        except Exception as error:
            if self.diverged:
                raise  # the policy has diverged on its reward
            raise _named(self._task, error) from error

    def close(self) -> None:
        """Close the environment.

        Raises:
            InputError: the environment fails.
        """
        try:
            super().close()
        except Exception as error:
            raise _named(self._task, error) from error


class TaskView:
    """The view of a task's environment (`StateView`), with the checks of `TaskEnvironment`.

    If the states are vectors, all of them have the length of the first one.

    Args:
        view: the view.
        environment: the environment. If its policy has diverged, errors of the view pass through.
        task: name of the task.
    """

    def __init__(self, view: StateView, environment: TaskEnvironment, task: str) -> None:
        self._view, self._environment, self._task = view, environment, task
        self._shape: tuple[int, ...] = ()

    def __getattr__(self, name: str) -> Any:
        """An attribute of the view, such as the names of the states' possible kinds."""
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._view, name)

    def state(self, environment: Any, observation: Any) -> Any:
        """See `StateView`.

        Raises:
            InputError: the view fails, or the state is a vector of another length than the first one.
        """
        return self._checked(lambda: self._alike(self._view.state(environment, observation)))

    def instruction(self, environment: Any) -> str:
        """See `StateView`.

        Raises:
            InputError: the view fails.
        """
        return str(self._checked(lambda: self._view.instruction(environment)))

    def success(self, terminated: bool, reward: float) -> bool:
        """See `StateView`.

        Raises:
            InputError: the view fails.
        """
        return bool(self._checked(lambda: self._view.success(terminated, reward)))

    def _checked(self, call: Callable[[], Any]) -> Any:
        try:
            return call()
        except Exception as error:
            if self._environment.diverged:
                raise
            raise _named(self._task, error) from error

    def _alike(self, state: Any) -> Any:
        shape = np.shape(state) if isinstance(state, np.ndarray) else ()
        if len(shape) == 1:
            self._shape = self._shape or shape
            if shape != self._shape:
                raise ValueError(f"a state of {shape[0]} numbers, and the first one has {self._shape[0]}")
        return state


def _named(task: str, error: Exception) -> GraceError:
    """The error of an environment or a view, with the name of the task."""
    if isinstance(error, GraceError):
        return error
    return InputError(
        f"task {task}: its environment fails: {fault(error)}; expected one that plays whole episodes (after a change "
        "of its code, begin a new run)"
    )


def _sound(step: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
    """The result of a step, with the reward as a number.

    Raises:
        TypeError, ValueError: the result has not five parts, the reward is no finite number, `info` is no dict, or
            an entry about success (`SUCCESS`) is neither true nor false.
    """
    observation, reward, ended, cut, info = step
    paid = float(reward)
    if not math.isfinite(paid):
        raise ValueError(f"a step is paid {paid}")
    if not isinstance(info, dict):
        raise TypeError(f"info is {type(info).__name__}, expected a dict")
    for key in SUCCESS:
        told = info.get(key)
        if told is not None and (np.ndim(told) or np.asarray(told).dtype.kind not in "biuf"):
            raise TypeError(f"info[{key!r}] is {type(told).__name__}, expected true or false")
    return observation, paid, ended, cut, info
