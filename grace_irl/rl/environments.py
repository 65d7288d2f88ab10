"""Makes environments by id, with the view that fits them."""

from __future__ import annotations

import contextlib
import importlib
import io
from collections.abc import Iterator, Mapping
from typing import Any

from grace_irl.errors import InputError
from grace_irl.rewards.view import StateView
from grace_irl.rl.adapters import is_adapter, make_adapted
from grace_irl.rl.views import MiniGridView, VectorStateView

GRID_PREFIXES = ("BabyAI-", "MiniGrid-")


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Swallows what environments print: MiniGrid writes "Sampling rejected" to standard output on reset."""
    with contextlib.redirect_stdout(io.StringIO()):
        yield


@contextlib.contextmanager
def quiet_models() -> Iterator[None]:
    """Drops MuJoCo's warnings about old keywords in a model file; it would log them to a file in the user's folder."""
    try:
        mujoco: Any = importlib.import_module("mujoco")
    except ImportError:
        yield
        return
    before = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(lambda _: None)
    try:
        yield
    finally:
        mujoco.set_mju_user_warning(before)


def make(
    environment_id: str, *, max_steps: int | None = None, options: Mapping[str, Any] | None = None
) -> tuple[Any, StateView]:
    """A Gymnasium environment and its view.

    Args:
        environment_id: as `gymnasium.make` takes it (MiniGrid's and BabyAI's are registered here), or an adapter of
            the user's own, `package.module:function` or `file.py:function` (`grace_irl.rl.adapters`).
        max_steps: a time limit of the caller's own; None keeps the environment's.
        options: more arguments of `gymnasium.make`.

    Raises:
        InputError: unknown id, missing packages, or observations that no view handles.
    """
    try:
        import gymnasium

        if environment_id.startswith(GRID_PREFIXES):
            importlib.import_module("minigrid")  # registers its environments
            importlib.import_module("grace_irl.rl.levels").register()
    except ImportError as error:
        raise InputError(
            f"{environment_id}: {error.name} is not installed; expected the simulators: "
            "install the extra, pip install 'grace-irl[rl]'"
        ) from None
    chosen = dict(options or {})
    if max_steps is not None:
        if max_steps < 1:
            raise InputError(f"--max-steps {max_steps}; expected at least 1")
        # MiniGrid keeps its own limit and would truncate first; the wrapper serves everybody else.
        chosen["max_steps" if environment_id.startswith("MiniGrid-") else "max_episode_steps"] = max_steps
    if is_adapter(environment_id):
        adapted, own_view = make_adapted(environment_id)
        if max_steps is not None:
            adapted = gymnasium.wrappers.TimeLimit(adapted, max_steps)
        own_view.prepare(adapted)
        return adapted, own_view
    try:
        is_grid = environment_id.startswith(GRID_PREFIXES)
        with quiet(), contextlib.nullcontext() if is_grid else quiet_models():
            environment = gymnasium.make(environment_id, disable_env_checker=True, **chosen)
    except gymnasium.error.DependencyNotInstalled as error:
        raise InputError(f"{environment_id}: {error}; install the extra, pip install 'grace-irl[rl]'") from None
    except (gymnasium.error.Error, ImportError, ValueError) as error:  # the latter of a module that an id names
        raise InputError(
            f"{environment_id}: no such environment ({error}); expected a Gymnasium id such as "
            "BabyAI-GoToObj-v0 or Hopper-v5"
        ) from None
    view: StateView = (
        MiniGridView(environment_id) if is_grid else VectorStateView(environment_id, environment.observation_space)
    )
    view.prepare(environment)
    return environment, view
