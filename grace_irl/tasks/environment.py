"""Environments of tasks, whose own failures name the task and end a run."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

from grace_irl.errors import GraceError, InputError

DIVERGED = 1e6
"""Size of an action, or not finite, from which on a policy has diverged, which is the fault of its reward."""


class TaskEnvironment(gymnasium.Wrapper[Any, Any, Any, Any]):
    """An environment that raises InputError where the wrapped one fails, unless the action is at fault.

    Otherwise a training that ends with such a failure would count against the program that it trains on.

    Args:
        environment: the environment.
        task: name of the task.
    """

    def __init__(self, environment: Any, task: str) -> None:
        super().__init__(environment)
        self._task = task

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
        try:
            return super().reset(seed=seed, options=options)
        except Exception as error:
            raise self._named(error) from error

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Take one step.

        Raises:
            InputError: the environment fails on an action that no diverged policy took.
        """
        try:
            return super().step(action)
        except Exception as error:
            if not (np.abs(np.asarray(action, np.float64)) < DIVERGED).all():
                raise  # a policy that has diverged on its reward
            raise self._named(error) from error

    def _named(self, error: Exception) -> GraceError:
        if isinstance(error, GraceError):
            return error
        said = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        return InputError(f"task {self._task}: its environment fails: {said}; expected one that plays whole episodes")
