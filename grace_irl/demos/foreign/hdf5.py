"""Reader of HDF5 files with flat arrays (D4RL), or with one group for each episode (robomimic, ManiSkill)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from grace_irl.demos.foreign.episode import Episode, EpisodesSource, column_of, joined
from grace_irl.demos.foreign.flat import (
    ACTIONS,
    KNOWN,
    NEXT,
    OBSERVATIONS,
    REWARDS,
    TERMINALS,
    TIMEOUTS,
    flat_source,
    is_flat,
)
from grace_irl.demos.hdf5 import Hdf5File
from grace_irl.demos.memory import Memory
from grace_irl.demos.trajectory import step_rewards
from grace_irl.errors import InputError

GROUP = re.compile(r"(demo|traj|episode|trajectory)_?(\d+)")
"""Pattern for the name of an episode's group: `demo_0` in robomimic, `traj_0` in ManiSkill."""

DEPTH = 4
"""Maximum depth of an array below the group of observations. Deeper arrays are ignored."""


def open_hdf5(file: Path, memory: Memory) -> EpisodesSource:
    """Open an HDF5 file with flat arrays, or with one group for each episode.

    Raises:
        InputError: the file is damaged or has another layout, or h5py is not installed.
    """
    try:
        opened = Hdf5File(file, memory)
    except ImportError:
        raise InputError(
            f"{file}: an HDF5 file, and h5py is not installed; install the extra, pip install 'grace-irl[minari]'"
        ) from None
    try:
        return _read(opened, file)
    except (OSError, RuntimeError, ValueError, TypeError, KeyError) as error:
        if isinstance(error, InputError):
            raise
        said = " ".join(str(error).split())[:160]
        raise InputError(f"{file}: damaged ({said}); expected a whole file: copy it again") from None


def _read(opened: Hdf5File, file: Path) -> EpisodesSource:
    where = str(file)
    names = opened.names((), where)
    if is_flat(dict.fromkeys(names)):
        arrays = {name: _rows(opened, (name,), where) for name in names if name in KNOWN}
        return flat_source(arrays | dict.fromkeys(name for name in names if name not in KNOWN), where)
    root = ("data",) if "data" in names else ()
    groups = sorted(
        (found for name in opened.names(root, where) if (found := GROUP.fullmatch(name))),
        key=lambda found: int(found[2]),
    )
    if not groups:
        inside = ", ".join(opened.names(root, where)[:8]) or "nothing"
        raise InputError(
            f"{file}: {inside} {'in its group data' if root else 'at its root'}; expected D4RL's observations and "
            "terminals, or robomimic's data/demo_0, data/demo_1, …"
        )
    episodes = [_episode(opened, (*root, found[0]), f"{where}: {found[0]}") for found in groups]
    read = {found[0] for found in groups}
    others = [name for name in opened.names(root, where) if name not in read and GROUP.match(name)]
    more = ", …" if len(others) > 12 else ""
    notes = [f"{file}: passed over: {', '.join(others[:12])}{more} (expected demo_0, demo_1, …)"] if others else []
    return EpisodesSource(file, episodes, notes=notes)


def _episode(opened: Hdf5File, group: tuple[str, ...], where: str) -> Episode:
    """The episode of a group.

    If the group has next observations, their last row becomes the last state, unless the observations hold that state.

    Raises:
        InputError: next observations with other parts than the observations.
    """
    names = opened.names(group, where)
    kinds = (OBSERVATIONS, NEXT, ACTIONS, REWARDS, TERMINALS, TIMEOUTS)
    found = {kind: next((name for name in kind if name in names), None) for kind in kinds}
    name = found[OBSERVATIONS]
    if name is None:
        raise InputError(
            f"{where}: {', '.join(names[:8]) or 'nothing'}; expected observations in a group or dataset 'obs'"
        )
    # A group of robomimic has both `obs` and the simulator's `states`. `OBSERVATIONS` lists `obs` before `states`, so
    # `obs` is read.
    states = _rows(opened, (*group, name), where)
    states = states if isinstance(states, dict) else {"": states}
    following = {} if found[NEXT] is None else _rows(opened, (*group, str(found[NEXT])), where)
    following = following if isinstance(following, dict) else {"": following}
    if following and (odd := sorted(states.keys() ^ following.keys())):
        raise InputError(
            f"{where}: part {odd[0]!r} in only one of {name} and {found[NEXT]}; expected the same parts in both: write "
            "it in both, or in neither"
        )
    final = any(len(part) < len(states[key]) for key, part in following.items())
    if following and not final:
        states = {key: joined(part, following[key][-1:], where) for key, part in states.items()}
    count = min(map(len, states.values()), default=0)
    beside = {
        kind: None if found[kind] is None else opened.array((*group, str(found[kind])), where)
        for kind in (ACTIONS, REWARDS)
    }
    actions, rewards = beside[ACTIONS], beside[REWARDS]
    ends = {
        kind: None if found[kind] is None else opened.array((*group, str(found[kind])), where)
        for kind in (TERMINALS, TIMEOUTS)
    }
    ended, cut = (flags is not None and bool(flags[-1:].any()) for flags in ends.values())
    # If there is one state more than actions (or flags), the last state is the one after the last action.
    beside_steps = next((each for each in (actions, ends[TERMINALS]) if each is not None), None)
    final = bool(following) or (beside_steps is not None and len(beside_steps) == count - 1)
    return Episode(
        states[""] if set(states) == {""} else states,
        where,
        actions=None if actions is None else actions[: count - 1],
        rewards=None
        if rewards is None
        else step_rewards(column_of(rewards[:count], f"{where}, {found[REWARDS]}"), count - 1),
        terminated=ended and final,
        truncated=cut,
    )


def _rows(opened: Hdf5File, path: tuple[str, ...], where: str) -> Any:
    """Return the array at a path. For a group, return a map from paths inside the group to arrays.

    Raises:
        InputError: a group without arrays.
    """
    if opened.is_dataset(path, where):
        return opened.array(path, where)
    found = {"/".join(parts): opened.array((*path, *parts), where) for parts in _leaves(opened, path, where)}
    if not found:
        raise InputError(f"{where}: no arrays in the group {path[-1]!r}; expected at least one: write the file again")
    return found


def _leaves(
    opened: Hdf5File, path: tuple[str, ...], where: str, inner: Sequence[str] = ()
) -> Iterator[tuple[str, ...]]:
    for name in opened.names((*path, *inner), where):
        parts = (*inner, name)
        if opened.is_dataset((*path, *parts), where):
            yield parts
        elif len(parts) < DEPTH:
            yield from _leaves(opened, path, where, parts)
