"""Tasks, for which search methods design rewards. A TOML file names a task's environment and its score of episodes."""

from __future__ import annotations

import hashlib
import json
import math
import reprlib
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from pydantic import TypeAdapter, ValidationError

from grace_irl.demos.components import listed
from grace_irl.demos.select_recipe import require_keys
from grace_irl.demos.trajectory import Metadata
from grace_irl.errors import GraceError, InputError
from grace_irl.pages import page
from grace_irl.rl.actions import require_actions
from grace_irl.rl.environments import UnknownEnvironmentError, is_adapter, make, module_of, quiet
from grace_irl.rl.evaluation import Rollout
from grace_irl.rl.hyperparameters import Hyperparameters, hyperparameters
from grace_irl.settings import problem_of
from grace_irl.tasks.fault import fault
from grace_irl.tasks.recorded import CODE, MODULES, portable
from grace_irl.toml import read_toml

Score = Callable[[Rollout], float]
"""A function that scores one episode. Higher is better."""
Sees = Literal["state", "transition"]

PACKAGE = "grace_irl"
INFO = "info:"
"""Prefix of the name of a score that is a number in `info` of an episode's last step, such as "info:pipes"."""
EXPECTED = f"a task: TOML with env, text and score ({page('tasks')})"
TYPES: Mapping[str, type] = {
    **dict.fromkeys(("env", "text", "score", "scored", "sees"), str),
    **dict.fromkeys(("shows_score",), bool),
    **dict.fromkeys(("fields",), list),
    **dict.fromkeys(("options", "training", "short", "ppo"), dict),
}
ABOVE_0 = math.ulp(0.0)
RANGES: Mapping[str, tuple[float, float]] = {
    **dict.fromkeys(("n_envs", "n_steps", "n_epochs"), (1, math.inf)),
    "batch_size": (2, math.inf),  # PPO divides advantages by their standard deviation
    **dict.fromkeys(("learning_rate", "clip_range", "max_grad_norm", "adam_eps"), (ABOVE_0, math.inf)),
    **dict.fromkeys(("ent_coef", "vf_coef"), (0, math.inf)),
    "gamma": (ABOVE_0, 1),
    "gae_lambda": (0, 1),
}
"""Smallest and largest valid value of each setting of PPO."""
TRAINING: Mapping[str, type] = dict.fromkeys(("steps", "evaluations", "episodes", "max_steps"), int)
SHORT: Mapping[str, type] = {"steps": int, "floor": float}


@dataclass(frozen=True)
class Task:
    """A task for which reward programs are designed.

    Attributes:
        name: name of the file, without its ending.
        env: a registered Gymnasium id, or an adapter (`file.py:make`), as for `grace_irl.rl.environments.make`.
        text: description for the author of programs, a model or a person.
        score: "info:KEY", or a function (`Score`) as `package.module:function` or `file.py:function`.
        scored: the score in words, for tables and prompts.
        sees: the most that `reward_fn` may take, "state" or "transition". A transition is a state, an action and the
            next state.
        shows_score: whether programs can compute parts of the score from what they see. Prompts then say so.
        fields: names of the components of state vectors; () if the components have no names.
        options: further arguments of `gymnasium.make`.
        steps: environment steps of a full training.
        evaluations: number of evaluations during a full training.
        episodes: episodes of each evaluation.
        max_steps: time limit of an episode in steps; 0 keeps the environment's own limit.
        short_steps: environment steps of a short training before the full trainings; 0: no short training.
        floor: score that a policy must reach in the short training. Otherwise, the full trainings are omitted.
        ppo: settings of PPO (`Hyperparameters`) that replace the environment's own settings.
    """

    name: str
    env: str
    text: str
    score: str
    scored: str = ""
    sees: Sees = "transition"
    shows_score: bool = False
    fields: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    steps: int = 50_000
    evaluations: int = 10
    episodes: int = 20
    max_steps: int = 0
    short_steps: int = 0
    floor: float = -math.inf
    ppo: Mapping[str, Any] = field(default_factory=dict)

    def require_alike(self, demonstrations: Metadata) -> None:
        """Check the view of demonstrations, and the names of their components.

        The names must be the task's or those of its environment, in their order.

        Args:
            demonstrations: metadata of the demonstrations. An empty view, or no names, are accepted.

        Raises:
            InputError: another view, other names, or another order of names.
        """
        environment, view = self.make()
        environment.close()
        ours, theirs = view.metadata, demonstrations
        names = [known for known in (self.fields, ours.fields) if known]
        found = [("view", theirs.view, ours.view)] if ours.view and theirs.view != ours.view else []
        if names and theirs.fields not in names:
            found.append(("components", listed(theirs.fields), listed(names[0])))
        for what, said, expected in found:
            if said:
                order = " in the same order" if what == "components" else ""
                raise InputError(
                    f"demonstrations with {what} {said}, and task {self.name} has {expected}; expected the same{order}"
                    ": leave --demos out, or bring demonstrations of this environment"
                )

    def make(self) -> tuple[Any, Any]:
        """Make one environment and its view. The caller closes the environment.

        Raises:
            InputError: the environment cannot be made.
        """
        from grace_irl.tasks.environment import TaskEnvironment, TaskView

        beside = f" with [options] {dict(self.options)}" if self.options else ""
        expected = f"an environment{', and [options] that it takes' if beside else ''}"
        try:
            environment, view = make(self.env, max_steps=self.max_steps or None, options=self.options)
        except UnknownEnvironmentError as error:
            if not beside:
                raise
            raise InputError(f"task {self.name}{beside}: {error}, and {expected}") from None
        except GraceError:
            raise
        except Exception as error:  # an option that the environment does not take, or any value that it refuses
            raise InputError(
                f"task {self.name}: {self.env}{beside} cannot be made: {fault(error)}; expected {expected}"
            ) from error
        wrapped = TaskEnvironment(environment, self.name)
        return wrapped, TaskView(view, wrapped, self.name)

    @cached_property
    def metadata(self) -> Metadata:
        """Facts about the states of the environment, with the task's names of components.

        Raises:
            InputError: the environment cannot be made, PPO cannot learn its actions, or the number of names does not
                fit the states, as the view shows them after a reset.
        """
        environment, view = self.make()
        found: Metadata = view.metadata
        with closing(environment):
            require_actions(environment.action_space)
            if not self.fields:
                return found
            with quiet():
                observation, _ = environment.reset(seed=0)
            states = view.state(environment, observation)
        if not found.state_kind.named_fields:
            raise InputError(f"task {self.name}: {len(self.fields)} fields, and states are no vectors; expected none")
        if np.shape(states) != (len(self.fields),):
            raise InputError(
                f"task {self.name}: {len(self.fields)} fields for states of shape {np.shape(states)}; expected one for "
                "each number"
            )
        return replace(found, fields=self.fields)

    @property
    def settings(self) -> Hyperparameters:
        """The settings of PPO.

        Raises:
            InputError: a setting is unknown or invalid.
        """
        found = hyperparameters(self.env, self.metadata.kind)
        unknown = sorted(set(self.ppo) - {each.name for each in fields(Hyperparameters)} | {*self.ppo} & {"source"})
        if unknown:
            known = ", ".join(each.name for each in fields(Hyperparameters) if each.name != "source")
            raise InputError(f"task {self.name}: [ppo] {unknown[0]}; expected one of {known}")
        if not self.ppo:
            return found
        for key, value in self.ppo.items():
            least, most = RANGES.get(key, (-math.inf, math.inf))
            if not isinstance(getattr(found, key), int | float):
                continue
            if isinstance(value, bool) is not isinstance(getattr(found, key), bool) or isinstance(value, str):
                raise InputError(f"task {self.name}: [ppo] {key} = {value!r}; expected {_like(getattr(found, key))}")
            if isinstance(value, int | float) and not (least <= value <= most and math.isfinite(value)):
                raise InputError(f"task {self.name}: [ppo] {key} = {value}; expected {_range(least, most)}")
        try:
            merged = TypeAdapter(Hyperparameters).validate_python(
                {**asdict(found), **self.ppo, "source": f"task {self.name}"}
            )
        except ValidationError as error:
            raise InputError(f"task {self.name}: [ppo] {problem_of(error, {})}") from None
        if merged.rollout < 2:
            raise InputError(f"task {self.name}: [ppo] n_envs * n_steps = {merged.rollout}; expected at least 2")
        if any(width < 1 for width in merged.net_arch):
            raise InputError(f"task {self.name}: [ppo] net_arch = {[*merged.net_arch]}; expected layers of at least 1")
        return merged

    def scorer(self) -> Score:
        """The function that scores episodes.

        Raises:
            InputError: the function cannot be imported.
        """
        if self.score.startswith(INFO):
            return _InfoScore(self.name, self.score.removeprefix(INFO))
        module, _, name = self.score.rpartition(":")
        if module.endswith(".py") and not Path(module).is_file():
            raise InputError(
                f"task {self.name}: score {self.score!r}: no file {module}; expected a function of an episode as "
                f"file.py:function, beside the task, or package.module:function ({page('tasks')})"
            )
        try:
            found = getattr(module_of(module, self.score), name, None)
        except InputError as error:
            raise InputError(f"task {self.name}: score {error}") from None
        except Exception as error:  # another module may raise anything
            said = " ".join(f"{type(error).__name__}: {error}".split())[:200]
            raise InputError(
                f"task {self.name}: score {self.score!r} cannot be imported: {said}; expected module:function"
            ) from None
        if not callable(found):
            raise InputError(f"task {self.name}: score {self.score!r} is no function; expected module:function")
        return _FunctionScore(self.name, found)

    @property
    def code(self) -> dict[str, str]:
        """SHA-256 of each Python file that the task names, by path."""
        paths = {name.rpartition(":")[0] for name in (self.env, self.score) if ".py:" in name}
        return {path: hashlib.sha256(Path(path).read_bytes()).hexdigest() for path in sorted(paths)}

    @property
    def modules(self) -> dict[str, str]:
        """SHA-256 of each module that the task names as `package.module:function`, by the module's name.

        Modules of this package are left out.
        """
        paths = {name.rpartition(":")[0]: _source(name) for name in (self.env, self.score)}
        return {
            name: hashlib.sha256(Path(path).read_bytes()).hexdigest() for name, path in sorted(paths.items()) if path
        }

    @property
    def content(self) -> str:
        """The task as JSON, with digests of the Python files and modules that it names."""
        code: dict[str, Any] = {CODE: sorted(self.code.values())}  # whatever the names of the folders
        code |= {MODULES: self.modules} if self.modules else {}
        return json.dumps({**asdict(self), **code}, indent=1, sort_keys=True) + "\n"

    @property
    def digest(self) -> str:
        """SHA-256 (16 hex digits) of the task's `content`, without the folders of Python files."""
        whole = json.dumps(portable(json.loads(self.content)), indent=1, sort_keys=True) + "\n"
        return hashlib.sha256(whole.encode()).hexdigest()[:16]

    @property
    def destination(self) -> str:
        """One line for the user with the code that the task names."""
        return f"task {self.name}: environment {self.env}, score {self.score}" + (
            f" ({self.scored})" if self.scored else ""
        )


def _source(name: str) -> str:
    """The path of the Python file behind `package.module:function`; "" if there is none."""
    where = name.rpartition(":")[0]
    if name.startswith(INFO) or not is_adapter(name) or where.endswith(".py") or where.partition(".")[0] == PACKAGE:
        return ""
    try:
        spec = find_spec(where)
    except Exception:  # `find_spec` imports the module's package, which may raise anything
        return ""
    return spec.origin if spec is not None and spec.origin and spec.origin.endswith(".py") else ""


@dataclass(frozen=True)
class _InfoScore:
    """A `Score` that is a number in `info` of the last step."""

    task: str
    key: str

    def __call__(self, rollout: Rollout) -> float:
        if self.key not in rollout.final:
            known = ", ".join(sorted(rollout.final)[:20]) or "none"
            raise InputError(
                f"task {self.task}: the last step of an episode has no number {self.key!r} in info; expected one of "
                f"its numbers: {known}"
            )
        found = rollout.final[self.key]
        if not math.isfinite(found):
            raise InputError(f"task {self.task}: info[{self.key!r}] is {found} at an end; expected a finite number")
        return found


@dataclass(frozen=True)
class _FunctionScore:
    """A `Score` that calls a function which the task names. The function must return finite numbers."""

    task: str
    function: Callable[[Rollout], Any]

    def __call__(self, rollout: Rollout) -> float:
        try:
            given = self.function(rollout)
        except Exception as error:
            raise InputError(
                f"task {self.task}: its score fails on an episode: {fault(error)}; expected a finite number"
            ) from error
        try:
            found = math.nan if isinstance(given, str | bytes) else float(given)
        except (TypeError, ValueError):
            found = math.nan
        if not math.isfinite(found):
            raise InputError(
                f"task {self.task}: its score of an episode is {reprlib.repr(given)}; expected a finite number"
            )
        return found


def shipped() -> tuple[str, ...]:
    """The names of the tasks that the package contains."""
    return tuple(sorted(each.name.removesuffix(".toml") for each in _folder().iterdir() if each.name.endswith(".toml")))


def read_task(name: str) -> Task:
    """Read a task.

    Args:
        name: path of a TOML file, or the name of a task that the package contains, such as "reacher".

    Raises:
        InputError: there is no such task, or its file has an unknown or invalid key.
    """
    if name in shipped():
        path = Path(str(_folder() / f"{name}.toml"))
    else:
        path = Path(name)
        if path.suffix != ".toml" or not path.is_file():
            found = f"a file without .toml at its end ({page('tasks')})" if path.is_file() else "no such file"
            raise InputError(
                f"--task {name}: {found}; expected a file that ends in .toml, or one of {', '.join(shipped())}"
            )
    document = require_keys(read_toml(path, EXPECTED), TYPES, str(path))
    for key in ("env", "text", "score"):
        if not document.get(key, "").strip():
            raise InputError(f"{path}: no {key!r}; expected {EXPECTED}")
    training = _numbers(document.pop("training", {}), TRAINING, f"{path}, [training]")
    short = _numbers(document.pop("short", {}), SHORT, f"{path}, [short]")
    if document.get("sees", "transition") not in get_args(Sees):
        raise InputError(
            f"{path}: sees = {reprlib.repr(document['sees'])}; expected one of {', '.join(get_args(Sees))}"
        )
    where, _, function = document["score"].rpartition(":")
    if not where or not function:
        raise InputError(
            f"{path}: score = {reprlib.repr(document['score'])}; expected info:KEY, package.module:function or "
            "file.py:function"
        )
    if document.get("options") and is_adapter(document["env"]):
        raise InputError(
            f"{path}: [options] beside env = {document['env']!r}, which is a function of yours; expected options of a "
            "registered environment: set them in the function"
        )
    if short and (short.keys() != SHORT.keys() or not math.isfinite(short["floor"])):
        found = ", ".join(f"{key} = {value}" for key, value in short.items())
        raise InputError(f"{path}, [short]: {found}; expected steps and a finite floor, or no [short]")
    if short and short["steps"] >= training.get("steps", Task.steps):
        raise InputError(
            f"{path}, [short]: steps = {short['steps']}, and a full training has {training.get('steps', Task.steps)}; "
            "expected fewer: a short training finds rewards that are not worth a full one"
        )
    names = document.pop("fields", [])
    if not all(isinstance(each, str) for each in names):
        raise InputError(f"{path}: fields = {reprlib.repr(names)}; expected a list of texts")
    if twice := [each for each in names if names.count(each) > 1]:
        raise InputError(f"{path}: fields has {twice[0]!r} {names.count(twice[0])} times; expected names that differ")
    text = document.pop("text").strip()
    changes = {"short_steps" if key == "steps" else key: value for key, value in short.items()}
    for key in ("env", "score"):
        document[key] = _beside(path, document[key])
    return Task(path.stem, text=text, fields=tuple(names), **document, **training, **changes)


def _beside(path: Path, name: str) -> str:
    """Make the path in `file.py:function` absolute. A relative path starts at the folder of the task's file, `path`."""
    where, _, function = name.rpartition(":")
    if not is_adapter(name) or not where.endswith(".py"):
        return name
    return f"{(path.absolute().parent / where).resolve()}:{function}"


def _numbers(table: object, types: Mapping[str, type], where: str) -> dict[str, Any]:
    if isinstance(table, dict):  # TOML reads `floor = 2` as an integer
        whole = {key for key, kind in types.items() if kind is float and type(table.get(key)) is int}
        table = table | {key: float(table[key]) for key in whole}
    found = require_keys(table, types, where)
    for key, value in found.items():
        if types[key] is int and value < (0 if key == "max_steps" else 1):
            raise InputError(f"{where}: {key} = {value}; expected at least {0 if key == 'max_steps' else 1}")
    return found


def _like(value: object) -> str:
    return "true or false" if isinstance(value, bool) else "a number"


def _range(least: float, most: float) -> str:
    low = "a finite number" if least == -math.inf else "a number above 0" if least == ABOVE_0 else f"at least {least:g}"
    return low if most == math.inf else f"{low} and at most {most:g}"


def _folder() -> Any:
    return files("grace_irl.tasks") / "files"
