"""Layouts of observations that MuJoCo environments gave over the years, told by their width."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from grace_irl.errors import InputError

NEWEST = "v5"


_POSITION = "exclude_current_positions_from_observation"


_HUMANOID = ("cinert", "cvel", "qfrc_actuator", "cfrc_ext")


def _without(*parts: str) -> dict[str, bool]:
    return {f"include_{part}_in_observation": False for part in parts}


@dataclass(frozen=True)
class Body:
    """What a v5 environment can give, and what older versions gave that it cannot.

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
    "Humanoid": Body(
        {348: {}, 350: {_POSITION: False}, 45: _without(*_HUMANOID)},
        {376: "v2 to v4, whose inertias and forces v5 counts otherwise: keep the first 45 numbers of each state"},
    ),
    "HumanoidStandup": Body(
        {348: {}, 350: {_POSITION: False}, 45: _without(*_HUMANOID)},
        {376: "v2 to v4, whose inertias and forces v5 counts otherwise: keep the first 45 numbers of each state"},
    ),
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
