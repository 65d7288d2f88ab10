"""Finds the environment and the view that show what demonstrations show."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from grace_irl.demos.trajectory import Demonstrations, Metadata
from grace_irl.errors import InputError
from grace_irl.rl.adapters import is_adapter, names_code
from grace_irl.rl.environments import make
from grace_irl.rl.layouts import BODIES, layout, split_id
from grace_irl.rl.observed import EnvironmentFactory


def environment_for(
    demonstrations: Demonstrations, name: str = "", *, max_steps: int | None = None
) -> EnvironmentFactory:
    """A factory of environments whose states are what programs saw in the demonstrations.

    MuJoCo's bodies are made as v5, with the layout that the width of the states tells (`rl.layouts`).

    Args:
        demonstrations: their metadata name the environment and the view; the states tell the layout.
        name: another environment than the one that they name: a Gymnasium id or an adapter (`file.py:make`).
        max_steps: a time limit instead of the environment's.

    Raises:
        InputError: no environment is named, one that only the user may name (`names_code`), or its states are something
            else than the demonstrations'.
    """
    metadata = demonstrations.metadata
    chosen = name or metadata.environment
    if not chosen:
        raise InputError("the demonstrations do not name their environment; expected --env, for example Hopper-v5")
    if not name and names_code(chosen):
        raise InputError(
            f"the demonstrations name {chosen!r} as their environment, which runs code of their choice; expected a "
            f"registered Gymnasium id there, or, if you trust that code, --env {shlex.quote(chosen)}"
        )
    if not demonstrations.items:
        raise InputError("no demonstrations; expected at least one, whose states tell what the environment must show")
    shape = demonstrations.items[0].trajectory.states.shape[1:]
    options: dict[str, Any] = {}
    if metadata.kind == "vector" and not is_adapter(chosen):
        chosen, options = layout(chosen, shape[0])
    _check(chosen, options, max_steps, metadata, shape)
    return lambda: make(chosen, max_steps=max_steps, options=options)


def _check(
    chosen: str, options: Mapping[str, Any], max_steps: int | None, metadata: Metadata, shape: tuple[int, ...]
) -> None:
    """Makes one environment, and sees that its view agrees with the demonstrations."""
    environment, view = make(chosen, max_steps=max_steps, options=options)
    environment.close()
    found = view.metadata
    pairs = [("states", metadata.kind, found.kind), ("view", metadata.view, found.view)]
    if not is_adapter(chosen) or metadata.fields:
        pairs.append(("fields", ", ".join(metadata.fields), ", ".join(found.fields)))
    problem = next((pair for pair in pairs if pair[1] and pair[2] and pair[1] != pair[2]), None)
    if problem is None and found.kind == "vector" and metadata.kind == "vector":
        width = environment.observation_space.shape[0] if _is_array(environment) else shape[0]
        if width != shape[0]:
            problem = ("states", f"{shape[0]} numbers", f"{width} numbers")
    if problem is not None:
        what, theirs, ours = problem
        raise InputError(
            f"{chosen}: its {what} are {ours}, and the demonstrations have {theirs}; expected the environment and view "
            "that they were recorded in: choose another --env, or convert them"
        )


def _is_array(environment: Any) -> bool:
    return len(getattr(environment.observation_space, "shape", None) or ()) == 1


def told(demonstrations: Demonstrations, name: str = "") -> str:
    """One line where older data meets a newer environment; "" where there is nothing to tell."""
    chosen = name or demonstrations.metadata.environment
    if split_id(chosen)[0] not in BODIES or demonstrations.metadata.kind != "vector" or not demonstrations.items:
        return ""
    found, options = layout(chosen, demonstrations.items[0].trajectory.states.shape[1])
    if found == chosen and not options:
        return ""
    arguments = ", ".join(f"{key}={value}" for key, value in options.items())
    return f"{chosen}: trained in {found}{f' with {arguments}' if arguments else ''}, which shows the same numbers"
