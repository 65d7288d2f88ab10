"""Methods by name. Other packages add methods by entry points of the group `grace_irl.methods`."""

from __future__ import annotations

from functools import cache
from importlib.metadata import entry_points

from grace_irl.config import Config
from grace_irl.errors import InputError
from grace_irl.methods import (
    eureka,
    forge,
    grace,
    map_elites,
    policy_evolution,
    random_search,
    revolve,
    rf_agent,
)
from grace_irl.methods.method import Method

GROUP = "grace_irl.methods"

_MODULES = (grace, map_elites, random_search, eureka, revolve, rf_agent, forge, policy_evolution)
METHODS: dict[str, Method] = {each.METHOD.name: each.METHOD for each in _MODULES}
"""The built-in methods by name."""


def method(name: str) -> Method:
    """The method with this name.

    Raises:
        InputError: no method has this name, or its package cannot be loaded.
    """
    if name in METHODS:
        return METHODS[name]
    if name not in names():
        raise InputError(f"method {name!r} is unknown; expected one of {', '.join(names())}")
    return _brought(name)


def method_of(config: Config) -> Method:
    """The method of a run. In a run with a task, a method with two forms is replaced by its `Method.with_task`."""
    return judged_by(config.method, task_named(config))


def judged_by(name: str, task: str) -> Method:
    """The method with this name. If `task` is not "", a method with two forms is replaced by its `Method.with_task`."""
    found = method(name)
    return found.with_task if task and found.with_task is not None else found


def task_named(config: Config) -> str:
    """The name of a run's task; "" for a run without a task."""
    return str(getattr(getattr(config, "policy", None), "task", ""))


def needs_demonstrations(name: str) -> bool:
    """Whether a method needs demonstrations in every run."""
    found = method(name)
    return found.needs.demonstrations and found.with_task is None


def names() -> list[str]:
    """The names of all methods, built-in ones first."""
    return [*METHODS, *sorted({each.name for each in entry_points(group=GROUP)} - set(METHODS))]


@cache
def _brought(name: str) -> Method:
    (entry,) = list(entry_points(group=GROUP, name=name))[:1]
    try:
        found = entry.load()
    except Exception as error:  # another distribution's module may raise anything
        said = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        raise InputError(f"method {name!r} ({entry.value}) cannot be loaded: {said}; repair its distribution") from None
    if not isinstance(found, Method) or found.name != name:
        raise InputError(
            f"method {name!r} ({entry.value}) is {type(found).__name__}; expected a grace_irl.methods.method.Method "
            "of this name: repair its distribution"
        )
    return found
