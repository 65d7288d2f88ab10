"""Choice of the environment whose states match those of given demonstrations.

The observations of MuJoCo's environments differ between versions. This module makes version v5, with options for which
an observation has as many components as a recorded state.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

from grace_irl.demos.scramble import SCRAMBLED
from grace_irl.demos.trajectory import Demonstrations, Metadata, Trajectory
from grace_irl.errors import InputError
from grace_irl.rewards.view import StateView
from grace_irl.rl.environments import UnknownEnvironmentError, is_adapter, make, names_code, quiet
from grace_irl.rl.observers import OBSERVERS, observed_kinds

NEWEST = "v5"
_POSITION = "exclude_current_positions_from_observation"


def _without(*parts: str) -> dict[str, bool]:
    return {f"include_{part}_in_observation": False for part in parts}


@dataclass(frozen=True)
class Body:
    """Known widths (numbers of components) of the observations of one MuJoCo environment, such as Hopper.

    Attributes:
        options: arguments of `gymnasium.make` for v5, by the width that they produce.
        refused: parts of error messages, by width, for widths that only older versions have. Each part names these
            versions, the reason and the cure.
    """

    options: Mapping[int, Mapping[str, Any]]
    refused: Mapping[int, str]


def _plain(width: int, hidden: int) -> Body:
    """A body whose observation has `width` components in all versions.

    An option of v5 puts `hidden` further positions before these components. If `hidden` is 0, there is no such option.
    """
    shown = {width + hidden: {_POSITION: False}} if hidden else {}
    return Body({width: {}, **shown}, {})


_HUMANOID = Body(
    {348: {}, 350: {_POSITION: False}, 45: _without("cinert", "cvel", "qfrc_actuator", "cfrc_ext")},
    {376: "v2 to v4, which have more inertias and forces than v5: keep the first 45 numbers of each state"},
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
        {111: "v2, v3, or v4 with contact forces, of which v5 has fewer: keep the first 27 numbers of each state"},
    ),
    "Humanoid": _HUMANOID,
    "HumanoidStandup": _HUMANOID,
    "Reacher": Body({10: {}}, {11: "v2 or v4, whose last number is always 0 and gone in v5: leave it out"}),
    "InvertedDoublePendulum": Body(
        {9: {}}, {11: "v2 or v4, whose last two numbers are always 0 and gone in v5: leave them out"}
    ),
}
"""Bodies by environment name without version. The widths and options are from the section "Version History" of each
environment's page in Gymnasium's documentation."""


def split_id(environment_id: str) -> tuple[str, str]:
    """Name and version of an id, such as ("Hopper", "v4"); the version is "" if the id has none."""
    name, _, version = environment_id.rpartition("-v")
    return (name, f"v{version}") if name else (environment_id, "")


def layout(environment_id: str, width: int) -> tuple[str, dict[str, Any]]:
    """The environment to make for recorded states of a given width.

    Args:
        environment_id: id of the recorded environment, of any version.
        width: number of components of a recorded state.

    Returns:
        An id and further arguments for `gymnasium.make`. For an environment in `BODIES`, the id is that of v5. For
        others, the id is `environment_id`.

    Raises:
        InputError: the environment is in `BODIES`, but its v5 has no states of this width.
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
    raise InputError(f"{name}: states of {width} numbers{said}; expected a width of {known}, as in {newest}")


@dataclass(frozen=True)
class EnvironmentSpec:
    """A factory of environments (`EnvironmentFactory`) as plain data, which can be sent to another process.

    Attributes:
        name: a Gymnasium id or an adapter (`file.py:make`).
        max_steps: time limit of an episode in steps; None keeps the environment's own limit.
        options: further arguments of `gymnasium.make`.
        kind: name of the states' kind ("vector", "grid", …), as in `grace_irl.rl.environments.make`.
    """

    name: str
    max_steps: int | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    kind: str = ""

    def __call__(self) -> tuple[Any, StateView]:
        """Make one environment and its view."""
        return make(self.name, max_steps=self.max_steps, options=self.options, kind=self.kind)


def environment_for(demonstrations: Demonstrations, name: str = "", *, max_steps: int | None = None) -> EnvironmentSpec:
    """A factory of environments whose states have the form of the demonstrations' states.

    MuJoCo's environments are made in version v5, with options that fit the width of the recorded states (`layout`).

    Args:
        demonstrations: demonstrations, whose metadata name their environment and view.
        name: a Gymnasium id or an adapter (`file.py:make`), to use instead of the environment in the metadata.
        max_steps: time limit of an episode in steps; None keeps the environment's own limit.

    Raises:
        InputError: no policy can observe states of this kind, there is no name or no demonstration, the metadata's name
            would run code (`names_code`), or the environment's states differ from those of the demonstrations.
    """
    metadata = demonstrations.metadata
    if metadata.kind not in OBSERVERS:
        raise InputError(
            f"the demonstrations are {metadata.state_kind.plural}, which no environment here gives, so no policy can "
            f"be trained; expected {observed_kinds()}: recover the reward by grace-irl fit without --expand"
        )
    chosen = name or metadata.environment
    if not chosen:
        raise InputError("the demonstrations do not name their environment; expected --env, for example Hopper-v5")
    if not name and names_code(chosen):
        raise InputError(
            f"the demonstrations name {chosen!r} as their environment, which runs code of their choice; expected a "
            f"registered Gymnasium id there, or, if you trust that code, --env {shlex.quote(chosen)}"
        )
    if not demonstrations.items:
        raise InputError("no demonstrations; expected at least one, because its states determine the environment")
    first = demonstrations.items[0].trajectory
    options: dict[str, Any] = {}
    if metadata.state_kind.named_fields and not is_adapter(chosen):
        chosen, options = layout(chosen, first.states.shape[1])
    found = EnvironmentSpec(chosen, max_steps, options, metadata.kind)
    try:
        require_alike(chosen, found, metadata, first)
    except UnknownEnvironmentError as error:
        if name:
            raise
        raise InputError(
            f"the environment that the demonstrations name: {error}; if it is a function of yours, give --env "
            "FILE.py:FUNCTION"
        ) from None
    return found


def require_alike(
    chosen: str, make_one: Callable[[], tuple[Any, StateView]], metadata: Metadata, first: Trajectory
) -> None:
    """Make one environment, and check that its view and states agree with the demonstrations.

    Args:
        chosen: name of the environment.
        make_one: factory of the environment and its view.
        metadata: facts about the demonstrations.
        first: one trajectory of the demonstrations.

    Raises:
        InputError: the view or the states differ from those of the demonstrations.
    """
    environment, view = make_one()
    kind, found = first.state_kind, view.metadata
    with closing(environment), quiet():
        observation, _ = environment.reset(seed=0)
        state = view.state(environment, observation)
    pairs = [("states", metadata.kind, found.kind), ("view", metadata.view, found.view)]
    if not is_adapter(chosen) or metadata.fields:
        pairs.append(("fields", ", ".join(metadata.fields), ", ".join(found.fields)))
    problem = next((pair for pair in pairs if pair[1] and pair[2] and pair[1] != pair[2]), None)
    recorded = "the environment and view that they were recorded in: choose another environment, or convert them"
    if problem is not None:
        what, theirs, ours = problem
        if theirs == SCRAMBLED:
            raise InputError(
                f"{chosen}: the demonstrations are a scrambled copy, and no environment gives such states; expected "
                "the demonstrations that were scrambled"
            )
        found_here = f"its {what} {'is' if what == 'view' else 'are'} {ours}"
        raise InputError(f"{chosen}: {found_here}, and the demonstrations have {theirs}; expected {recorded}")
    shown = kind.online([state])
    if kind.signature(shown) != kind.signature(first.states):
        raise InputError(f"{chosen}: {kind.unlike(shown, first.states, 'the demonstrations')}, as in {recorded}")


def told(demonstrations: Demonstrations, name: str = "") -> str:
    """A line for the user if training uses another version or other options than the chosen environment; else "".

    The chosen environment is `name`, or the environment in the demonstrations' metadata if `name` is "".
    """
    chosen = name or demonstrations.metadata.environment
    fits = demonstrations.metadata.state_kind.named_fields and demonstrations.items
    if split_id(chosen)[0] not in BODIES or not fits:
        return ""
    found, options = layout(chosen, demonstrations.items[0].trajectory.states.shape[1])
    if found == chosen and not options:
        return ""
    arguments = ", ".join(f"{key}={value}" for key, value in options.items())
    return f"{chosen}: trained in {found}{f' with {arguments}' if arguments else ''}, whose states are the same numbers"
