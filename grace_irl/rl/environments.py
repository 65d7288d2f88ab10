"""Construction of environments together with their views, from a Gymnasium id or from a user's adapter.

A view converts an environment's observations to the states that reward programs receive. An adapter is a user's
function that returns an environment; the function's name has the form `package.module:make` or `file.py:make`.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.machinery
import importlib.util
import io
import os
import re
import reprlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from grace_irl.demos.trajectory import Metadata
from grace_irl.errors import InputError
from grace_irl.rewards.view import StateView
from grace_irl.rl.views import MiniGridView, SpaceView
from grace_irl.states import kinds_of_space, likeliest
from grace_irl.states.kind import StateKind

SUCCESS = ("is_success", "success")
"""Keys in the `info` of a step that show whether the episode reached the goal. Stable-Baselines3 uses the first key.
The mazes of Gymnasium-Robotics use the second key."""


def success_in(info: Mapping[str, Any], before: bool | None = None) -> bool | None:
    """Whether the episode reached its goal, according to the `info` of a step; `before` if the step does not tell."""
    told = next((info[key] for key in SUCCESS if key in info), None)
    return before if told is None else bool(told)


_FORM = "package.module:function or file.py:function, a function without arguments that returns an environment"


def _observation(environment: Any, observation: Any) -> Any:  # noqa: ARG001
    return observation


def _unknown(environment: Any) -> str:  # noqa: ARG001
    return ""


class UnknownEnvironmentError(InputError):
    """An id under which no environment is registered."""


@dataclass(frozen=True)
class FunctionView:
    """A `StateView` made of functions.

    Attributes:
        metadata: facts about all states, such as their kind ("vector", "grid", …) and the environment's id.
        of: function from `(environment, observation)` to the state. By default the observation is the state.
        text: function from the environment to the instruction of its running episode. By default the instruction is
            `info["instruction"]` of `reset`, or else the environment's `mission` (`rewards.view.instruction_of`).
        reached: function that decides from `(terminated, reward)` of an episode's last step whether the episode reached
            its goal; None if the environment has no goal.
        kinds: names of all possible kinds of the states; () if only the kind in `metadata` is possible.
    """

    metadata: Metadata
    of: Callable[[Any, Any], Any] = _observation
    text: Callable[[Any], str] = _unknown
    reached: Callable[[bool, float], bool] | None = None
    kinds: tuple[str, ...] = ()

    @property
    def has_goal(self) -> bool:
        """Whether the environment has a goal, so that `success` has a meaning."""
        return self.reached is not None

    def prepare(self, environment: Any) -> None:
        """Do nothing. Other views may have to prepare the environment."""

    def state(self, environment: Any, observation: Any) -> Any:
        """The state that `of` returns, copied."""
        return self.metadata.state_kind.copied(self.of(environment, observation))

    def instruction(self, environment: Any) -> str:
        """The instruction that `text` returns."""
        return self.text(environment)

    def success(self, terminated: bool, reward: float) -> bool:
        """The result of `reached`; False if the environment has no goal."""
        return self.reached is not None and self.reached(terminated, reward)


def is_adapter(name: str) -> bool:
    """Whether a name belongs to an adapter, such as `file.py:make`. In contrast, `module:Name-v0` is a Gymnasium id."""
    return re.fullmatch(r".+:[A-Za-z_]\w*", name) is not None


def without_folder(name: str) -> str:
    """The name of a function in a Python file, such as `folder/file.py:make`, without the folder; others unchanged."""
    where, colon, function = name.rpartition(":")
    return f"{Path(where).name}:{function}" if colon and where.endswith(".py") else name


def names_code(name: str) -> bool:
    """Whether a name selects code to import: an adapter (`file.py:make`), or Gymnasium's `module:Name-v0`.

    Any other name is an id in Gymnasium's registry. Making its environment imports only installed code.
    """
    return ":" in name


def make_adapted(name: str, kind: str = "") -> tuple[Any, StateView]:
    """Make an environment by a user's adapter. The adapter is the user's own code, so it runs outside the sandbox.

    Args:
        name: `package.module:function`, or `file.py:function`. The function returns a Gymnasium environment, or an
            environment and its `StateView`. Without a view, observations are the states: vectors `(n,)`, grids
            `(w, h, 3)` of integers, images `(h, w, c)` of bytes, or dicts.
        kind: name of the observations' kind, for example "grid" or "image", if their space fits several kinds.

    Raises:
        InputError: the function cannot be imported or called, returns no environment, or the observations fit no kind
            of state.
    """
    where, _, function = name.rpartition(":")
    module = module_of(where, name)
    made = getattr(module, function, None)
    if not callable(made):
        raise InputError(f"{name}: no function {function} in {where}; expected {_FORM}")
    try:
        found = made()
    except Exception as error:
        raise InputError(f"{name}: {function}() raised {type(error).__name__}: {error}; expected {_FORM}") from error
    return _with_view(found, name, function, kind)


def made_by(make: Callable[[], Any]) -> tuple[Any, StateView]:
    """The environment that a function returns, and its view. Without a view, observations are the states.

    Raises:
        InputError: the function returns no environment, or the observations fit no kind of state.
    """
    return _with_view(make(), "", getattr(make, "__name__", "make"))


def _with_view(found: Any, name: str, function: str, kind: str = "") -> tuple[Any, StateView]:
    """The environment and the view that an adapter returned.

    Args:
        found: result of the adapter: an environment, or an environment and its view.
        name: name of the adapter, such as `file.py:make`; "" if the caller passed the function itself.
        function: name of the function, for messages.
        kind: name of the observations' kind, as for `make_adapted`.
    """
    environment, view = found if isinstance(found, tuple) and len(found) == 2 else (found, None)
    if not all(hasattr(environment, part) for part in ("reset", "step", "observation_space", "action_space")):
        raise InputError(f"{name or function}: {function}() gave a {type(environment).__name__}; expected {_FORM}")
    return environment, view if view is not None else _view(name, environment, kind)


def module_of(where: str, name: str) -> ModuleType:
    """Import a module by its name, or a Python file by its path. At its top, such a file may import others beside it.

    Args:
        where: `package.module`, or the path of a file that ends in .py.
        name: the whole name that the user gave, for messages.

    Raises:
        InputError: the module or file cannot be imported.
    """
    try:
        if not where.endswith(".py"):
            return importlib.import_module(where)
        path = Path(where)
        if not path.is_file():
            raise InputError(f"{name}: no file {where}; expected {_FORM}")
        module_name = f"grace_irl_adapter_{path.stem}"
        spec = importlib.util.spec_from_file_location(module_name, path)
        assert spec is not None  # a .py file always has a loader
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[module_name] = module  # dataclasses and pickles look up their module here
        folder = str(path.parent.absolute())
        _forget(folder)
        sys.path.append(folder)  # last, so that no file hides an installed package
        try:
            spec.loader.exec_module(module)
        finally:
            sys.path.remove(folder)  # not for good: programs in the sandbox may read what is on the path
        return module
    except InputError:
        raise
    except Exception as error:
        raise InputError(f"{name}: {where} does not import: {type(error).__name__}: {error}") from error


_FOLDERS: set[str] = set()
"""Folders of the files of environments that this process has loaded."""


def _forget(folder: str) -> None:
    """Forget helpers of other files' folders that are named like helpers in this folder.

    So the file that is loaded next imports the helpers of its own folder.
    """
    others = _FOLDERS - {folder}
    for name in [name for name, module in sys.modules.items() if "." not in name and _home(module) in others]:
        if importlib.machinery.PathFinder.find_spec(name, [folder]) is not None:
            for found in [each for each in sys.modules if each == name or each.startswith(f"{name}.")]:
                del sys.modules[found]
    importlib.invalidate_caches()
    _FOLDERS.add(folder)


def _home(module: ModuleType) -> str:
    """The folder in which a module or a package lies; "" if it has no file."""
    file, paths = getattr(module, "__file__", None), [*getattr(module, "__path__", ())]
    return str(Path(paths[0]).parent) if paths else str(Path(file).parent) if file else ""


def _view(name: str, environment: Any, asked: str) -> StateView:
    """A view for an adapter that returns only an environment. The states are the observations.

    Raises:
        InputError: the observations fit no kind of state.
    """
    kind = _kind(environment, asked)
    if kind is not None:
        kinds = tuple(each.name for each in kinds_of_space(environment.observation_space))
        return FunctionView(Metadata(kind.name, (), name, kind.name), kinds=kinds)
    raise InputError(
        f"{name or 'the environment'}: observations of {environment.observation_space}; expected vectors (n,), grids "
        "(w, h, 3) of integers, images (h, w, 1, 3 or 4) of bytes or a Dict of such parts, or that the function "
        "returns a view, too: grace_irl.rl.environments.FunctionView makes one of a function"
    )


def _kind(environment: Any, asked: str) -> StateKind | None:
    """The kind of an environment's observations; None if no kind fits.

    If several kinds fit the observation space, `asked` selects one of them by name. If `asked` names none of them, the
    values of the first observation after a reset decide.
    """
    kinds = kinds_of_space(environment.observation_space)
    if len(kinds) < 2:
        return kinds[0] if kinds else None
    named = next((kind for kind in kinds if kind.name == asked), None)
    if named is not None:
        return named
    with quiet():
        observation, _ = environment.reset(seed=0)
    return likeliest(kinds, observation)


GRID_PREFIXES = ("BabyAI-", "MiniGrid-")


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Suppress the output of environments, such as MiniGrid's "Sampling rejected" on reset."""
    with contextlib.redirect_stdout(io.StringIO()):
        yield


@contextlib.contextmanager
def quiet_models() -> Iterator[None]:
    """Keep MuJoCo from writing warnings to a log file, for example about old keywords in models."""
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
    environment_id: str, *, max_steps: int | None = None, options: Mapping[str, Any] | None = None, kind: str = ""
) -> tuple[Any, StateView]:
    """Make an environment and its view.

    Args:
        environment_id: id for `gymnasium.make`, or an adapter, `package.module:function` or `file.py:function`
            (`make_adapted`). For ids of MiniGrid and BabyAI, this function first registers their environments.
        max_steps: time limit of an episode in steps; None keeps the environment's own limit. A shorter limit inside an
            adapter's environment stays in force.
        options: further arguments of `gymnasium.make`. Adapters do not receive them.
        kind: name of the observations' kind, for example "grid" or "image", if their space fits several kinds.

    Raises:
        InputError: the id is unknown, a package is missing, `max_steps` is below 1, or the observations fit no view.
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
        # `max_steps` replaces the built-in limit of environments named MiniGrid-…, because this limit could end
        # episodes earlier than Gymnasium's wrapper `TimeLimit`. All other environments get the wrapper. A level of
        # BabyAI also keeps its own limit if that limit is longer (`_raise_limit`): the level's rewards depend on it.
        chosen["max_steps" if environment_id.startswith("MiniGrid-") else "max_episode_steps"] = max_steps
    if is_adapter(environment_id):
        adapted, own_view = make_adapted(environment_id, kind)
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
    except (gymnasium.error.Error, ImportError, ValueError) as error:  # `module:Name-v0` may raise the last two
        file = environment_id.rpartition(":")[2]
        named = f", or the function of a file, such as {file}:make" if file.endswith(".py") else ""
        raise UnknownEnvironmentError(
            f"{environment_id}: no such environment ({error}); expected a Gymnasium id such as "
            f"BabyAI-GoToObj-v0 or Hopper-v5{named}"
        ) from None
    view: StateView
    if is_grid:
        view = MiniGridView(environment_id)
        if max_steps is not None:
            _raise_limit(environment.unwrapped, max_steps)
    elif (found := _kind(environment, kind)) is not None:
        view = SpaceView(environment_id, environment.observation_space, found)
    else:
        raise InputError(
            f"{environment_id}: observations of {environment.observation_space}; expected a vector, a grid, an image "
            "or a Dict of such parts"
        )
    view.prepare(environment)
    return environment, view


def _raise_limit(level: Any, least: int) -> None:
    """Make each reset of a level raise the level's built-in time limit to at least `least` steps.

    BabyAI's own reset computes the limit anew for each episode.
    """
    reset = level.reset

    def reset_and_raise(**options: Any) -> Any:
        found = reset(**options)
        level.max_steps = max(level.max_steps, least)
        return found

    level.reset = reset_and_raise


def code_of(*environment_ids: str) -> dict[str, Any]:
    """The facts by which another process finds the user's code, as plain data for `find_code`.

    They are the entries of `sys.path`, and the `registration` of each environment.

    Raises:
        InputError: see `registration`.
    """
    registered = [found for each in environment_ids if (found := registration(each)) is not None]
    return {"path": [os.path.abspath(entry) for entry in sys.path], "registered": registered}


def find_code(path: Sequence[str], registered: Sequence[str]) -> None:
    """Let this process find the code that the process of `code_of` finds.

    Args:
        path: entries that `sys.path` needs.
        registered: registrations of environments with Gymnasium, as JSON.
    """
    sys.path += [entry for entry in path if entry not in sys.path]
    for each in registered:
        register(each)


def registration(environment_id: str) -> str | None:
    """The registration of an environment, as JSON, which may come from the user's code in this process.

    In another process, `register` restores the environment from the JSON. The result is None for adapters,
    names with a module (`module:Name-v0`), unknown ids, and environments that `make` registers.

    Raises:
        InputError: the entry point or an argument is an object of this process, which another process cannot import.
    """
    import gymnasium

    if ":" in environment_id or environment_id not in gymnasium.registry:
        return None
    spec = gymnasium.registry[environment_id]
    if not isinstance(spec.entry_point, str) or spec.entry_point.startswith("__main__:"):
        what = "__main__" if isinstance(spec.entry_point, str) else "a function of this process"
        raise InputError(
            f"{environment_id}: registered with {what}; expected an entry point "
            "(package.module:Class), which a training in a process of its own can import"
        )
    if environment_id.startswith(GRID_PREFIXES) and spec.entry_point.partition(".")[0] in ("minigrid", "grace_irl"):
        return None
    try:
        return spec.to_json()
    except (TypeError, ValueError):
        raise InputError(
            f"{environment_id}: registered with the arguments {reprlib.repr(spec.kwargs)}; expected arguments that are "
            "JSON, for a training in a process of its own"
        ) from None


def register(text: str) -> None:
    """Register an environment from JSON that `registration` returned, unless its id is registered already."""
    import gymnasium
    from gymnasium.envs.registration import EnvSpec

    spec = EnvSpec.from_json(text)
    gymnasium.registry.setdefault(spec.id, spec)
