"""Finds the environment and the view that show what demonstrations show."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

from grace_irl.demos.trajectory import Demonstrations, Metadata, Trajectory
from grace_irl.errors import InputError
from grace_irl.rewards.view import StateView
from grace_irl.rl.environments import is_adapter, make, names_code, quiet

NEWEST = "v5"
_POSITION = "exclude_current_positions_from_observation"


def _without(*parts: str) -> dict[str, bool]:
    return {f"include_{part}_in_observation": False for part in parts}


@dataclass(frozen=True)
class Body:
    """Observations that a v5 environment can give, and those of older versions that it cannot.

    Attributes:
        options: arguments of `gymnasium.make` by the width of the observation that they give.
        refused: why and what to do, by width.
    """

    options: Mapping[int, Mapping[str, Any]]
    refused: Mapping[int, str]


def _plain(width: int, hidden: int) -> Body:
    """A body whose observation is the same in all versions; `hidden` positions can be shown in front of it."""
    shown = {width + hidden: {_POSITION: False}} if hidden else {}
    return Body({width: {}, **shown}, {})


_HUMANOID = Body(
    {348: {}, 350: {_POSITION: False}, 45: _without("cinert", "cvel", "qfrc_actuator", "cfrc_ext")},
    {376: "v2 to v4, whose inertias and forces v5 counts otherwise: keep the first 45 numbers of each state"},
)

BODIES: dict[str, Body] = {
    "Hopper": _plain(11, 1),
    "HalfCheetah": _plain(17, 1),
    "Walker2d": _plain(17, 1),
    "Swimmer": _plain(8, 2),
    "InvertedPendulum": _plain(4, 0),
    "Pusher": _plain(23, 0),
    "Ant": Body(
        {105: {}, 107: {_POSITION: False}, 27: _without("cfrc_ext"), 29: _without("cfrc_ext") | {_POSITION: False}},
        {111: "v2, v3, or v4 with contact forces, which v5 counts otherwise: keep the first 27 numbers of each state"},
    ),
    "Humanoid": _HUMANOID,
    "HumanoidStandup": _HUMANOID,
    "Reacher": Body({10: {}}, {11: "v2 or v4, whose last number is always 0 and gone in v5: leave it out"}),
    "InvertedDoublePendulum": Body(
        {9: {}}, {11: "v2 or v4, whose last two numbers are always 0 and gone in v5: leave them out"}
    ),
}
"""By name without version; widths and options as Gymnasium documents them (each environment's "Version History")."""


def split_id(environment_id: str) -> tuple[str, str]:
    """Name and version: ("Hopper", "v4"); the version is "" where there is none."""
    name, _, version = environment_id.rpartition("-v")
    return (name, f"v{version}") if name else (environment_id, "")


def layout(environment_id: str, width: int) -> tuple[str, dict[str, Any]]:
    """The environment, and its arguments, whose observations have the layout of older data.

    Args:
        environment_id: of any version.
        width: numbers of a state.

    Returns:
        An id (of v5 where the body is one of MuJoCo's) and the arguments of `gymnasium.make`.

    Raises:
        InputError: a layout that cannot be had.
    """
    name, version = split_id(environment_id)
    body = BODIES.get(name)
    if body is None:
        return environment_id, {}
    newest = f"{name}-{NEWEST}"
    if width in body.options:
        return newest, dict(body.options[width])
    known = ", ".join(map(str, sorted(body.options)))
    if width in body.refused:
        raise InputError(
            f"{environment_id}: states of {width} numbers are of {body.refused[width]} ({newest} has {known})"
        )
    said = f" of {environment_id}" if version else ""
    raise InputError(f"{name}: states of {width} numbers{said}; expected {known}, as {newest} gives them")


@dataclass(frozen=True)
class EnvironmentSpec:
    """A factory of environments (`EnvironmentFactory`) that is plain data, so that another process can have it.

    Attributes:
        name: a Gymnasium id or an adapter (`file.py:make`).
        max_steps: a time limit instead of the environment's.
        options: arguments of `gymnasium.make`.
        kind: name of the observations' kind, as for `make`.
    """

    name: str
    max_steps: int | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    kind: str = ""

    def __call__(self) -> tuple[Any, StateView]:
        """One environment and its view."""
        return make(self.name, max_steps=self.max_steps, options=self.options, kind=self.kind)


def environment_for(demonstrations: Demonstrations, name: str = "", *, max_steps: int | None = None) -> EnvironmentSpec:
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
    first = demonstrations.items[0].trajectory
    options: dict[str, Any] = {}
    if metadata.state_kind.named_fields and not is_adapter(chosen):
        chosen, options = layout(chosen, first.states.shape[1])
    _check(chosen, options, max_steps, metadata, first)
    return EnvironmentSpec(chosen, max_steps, options, metadata.kind)


def _check(
    chosen: str, options: Mapping[str, Any], max_steps: int | None, metadata: Metadata, first: Trajectory
) -> None:
    """Makes one environment, and sees that its view agrees with the demonstrations."""
    environment, view = make(chosen, max_steps=max_steps, options=options, kind=metadata.kind)
    kind, found = first.state_kind, view.metadata
    with closing(environment), quiet():
        observation, _ = environment.reset(seed=0)
        state = view.state(environment, observation)
    pairs = [("states", metadata.kind, found.kind), ("view", metadata.view, found.view)]
    if not is_adapter(chosen) or metadata.fields:
        pairs.append(("fields", ", ".join(metadata.fields), ", ".join(found.fields)))
    problem = next((pair for pair in pairs if pair[1] and pair[2] and pair[1] != pair[2]), None)
    recorded = "the environment and view that they were recorded in: choose another --env, or convert them"
    if problem is not None:
        what, theirs, ours = problem
        raise InputError(f"{chosen}: its {what} are {ours}, and the demonstrations have {theirs}; expected {recorded}")
    shown = kind.online([state])
    if kind.signature(shown) != kind.signature(first.states):
        raise InputError(f"{chosen}: {kind.unlike(shown, first.states, 'the demonstrations')}, as in {recorded}")


def told(demonstrations: Demonstrations, name: str = "") -> str:
    """One line where older data meets a newer environment; "" where there is nothing to tell."""
    chosen = name or demonstrations.metadata.environment
    fits = demonstrations.metadata.state_kind.named_fields and demonstrations.items
    if split_id(chosen)[0] not in BODIES or not fits:
        return ""
    found, options = layout(chosen, demonstrations.items[0].trajectory.states.shape[1])
    if found == chosen and not options:
        return ""
    arguments = ", ".join(f"{key}={value}" for key, value in options.items())
    return f"{chosen}: trained in {found}{f' with {arguments}' if arguments else ''}, which shows the same numbers"
