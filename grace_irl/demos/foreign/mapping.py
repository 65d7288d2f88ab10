"""One episode as a mapping with keys such as "observations" and "actions", as in Gymnasium and Minari."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grace_irl.demos.foreign.cells import WORDS
from grace_irl.demos.foreign.columns import ACTION, ROLES_OF_COLUMNS, is_aside, is_next
from grace_irl.demos.foreign.episode import Episode, parts_of, rows_of
from grace_irl.demos.foreign.flat import (
    ACTIONS,
    NEXT,
    OBSERVATIONS,
    REWARDS,
    TERMINALS,
    TIMEOUTS,
    Rows,
    first_name,
    length,
)
from grace_irl.demos.trajectory import step_rewards
from grace_irl.errors import InputError

SPOKEN = ("instruction", "task", "role", "split")
"""Uses of the entries of an episode that hold one value for the whole episode."""
GOALS = ("achieved_goal", "desired_goal")
"""Parts of a state beside `observation`, in Gymnasium's environments with goals."""
INFOS = ("info", "infos", "env_infos", "agent_infos")
"""Names of entries that are never read."""


def episode_of(
    record: Mapping[Any, Any], where: str, marks: Collection[str] | None = None
) -> tuple[Episode, list[str], str]:
    """The episode of a mapping, the names of the entries that are not read, and words about some others.

    If there are as many observations as actions, the state after the last action comes from the next observations. If
    they hold no such state, the last action is left out.

    If the mapping has `GOALS` with a row for each observation, all of them are parts of the states. If it has no key
    for observations, its entries are parts of the states. For example, the keys "arm" and "camera" give states with
    the parts "arm" and "camera". Entries with the names that columns of tables have for rewards, ends, actions,
    instructions, outcomes and so on are no parts. If there are such entries, the words name the parts and what is read
    beside them. For other mappings, the words name flags of goal states that are numbers; else they are "".

    Args:
        record: the mapping.
        where: the episode, for messages.
        marks: keys of goal states that hold flags (`goal_flags` of all episodes); None decides by this episode.

    Raises:
        InputError: an empty mapping, entries that cannot be used, or an end before the last step.
    """
    names = {names: first_name(names, record) for names in (OBSERVATIONS, NEXT, ACTIONS, REWARDS, TERMINALS, TIMEOUTS)}
    marks = goal_flags([record]) if marks is None else marks
    known = {key: None if name is None else record[name] for key, name in names.items()}
    read = {name for name in names.values() if name is not None}
    named: dict[Any, Any] = {}
    if names[OBSERVATIONS] is None:
        named = {name: part for name, part in record.items() if not _reserved(name, part, record, marks)}
        if not named:
            found = f"a dict of {', '.join(map(repr, record))} alone" if record else "an empty dict"
            raise InputError(f"{where}: {found}; expected observations, or an array for each part of the states")
        known[OBSERVATIONS] = named
        read |= named.keys()
    goals = {} if isinstance(known[OBSERVATIONS], Mapping) else _goal_parts(record, known[OBSERVATIONS])
    following = known[NEXT]
    if goals:
        known[OBSERVATIONS] = {"observation": known[OBSERVATIONS], **goals}
        after = {name: record.get(f"next_{name}") for name in goals}
        if following is not None and not isinstance(following, Mapping):
            following = {"observation": following, **after}
            read |= {f"next_{name}" for name in goals}
        read |= goals.keys()
    states = states_of(known[OBSERVATIONS], where)
    before = length(states)
    actions = None if known[ACTIONS] is None else rows_of(known[ACTIONS], f"{where}, actions")
    if following is not None and (actions is None or len(actions) == length(states)):
        longer = _with_last(states, following, where)
        if longer is None:
            read -= {str(names[NEXT]), *(f"next_{name}" for name in GOALS)}
        states = states if longer is None else longer
    count = length(states)
    rewards = None if known[REWARDS] is None else rows_of(known[REWARDS], f"{where}, rewards")
    # With as many actions as states, the state after the last action is unknown, so the last action is left out.
    whole = actions is None or len(actions) != count
    said = {use: _said(record, use, read) for use in SPOKEN}
    marked_by, goals_at = _goal_states(record, marks, count, count > before, where)
    read |= {marked_by, *(name for name in marks if record.get(name) is None)} - {""}
    episode = Episode(
        states,
        where,
        actions=actions if whole or actions is None else actions[:-1],
        rewards=None if rewards is None else step_rewards(rewards.reshape(-1)[: None if whole else count], count - 1),
        terminated=_ended(known[TERMINALS], f"{where}, {names[TERMINALS]}", count) and whole,
        truncated=_ended(known[TIMEOUTS], f"{where}, {names[TIMEOUTS]}", count),
        instruction=said["instruction"],
        task=said["task"].strip() or "default",
        role=WORDS.get(role.lower(), role) if (role := said["role"].strip()) else None,
        split=said["split"].strip(),
        goals=goals_at,
    )
    left = [str(name) for name in record if name not in read]
    uses = [str(name) for name in record if name in read and name not in named]
    if named:
        words = f"states are {', '.join(map(repr, map(str, named)))}" if uses or left else ""
        return episode, left, words + (f"; {', '.join(map(repr, uses))} read beside them" if uses else "")
    counted = goals_at is not None and np.asarray(record[marked_by]).dtype.kind in "iuf"
    return episode, left, f"1 in {marked_by!r} marks a goal state" if counted else ""


def goal_flags(records: Sequence[Any]) -> frozenset[str]:
    """The keys of goal states that hold flags in all mappings among `records` that have them. None stands for no value.

    A target position may look like flags in some episodes, so all episodes decide together.
    """
    known = [record for record in records if isinstance(record, Mapping)]
    return frozenset(
        name
        for name in ROLES_OF_COLUMNS["goal"]
        if all(_flags(record[name]) is not None for record in known if record.get(name) is not None)
    )


def _reserved(name: Any, part: Any, record: Mapping[Any, Any], marks: Collection[str]) -> bool:
    """Whether an entry beside the parts of states is no part itself, as with columns of tables of this name.

    Names of outcomes, steps, episodes and words are reserved for values that are no rows of several numbers.
    """
    text = str(name).strip().lower()
    if text in ROLES_OF_COLUMNS["goal"]:
        return text in marks
    if text in (*NEXT, *ACTIONS, *INFOS) or is_next(text, [str(each) for each in record]):
        return True
    if isinstance(part, Mapping):
        return False
    if text in (*REWARDS, *TERMINALS, *TIMEOUTS) or ACTION.fullmatch(text) is not None:
        return True
    shape = _shape(part)
    return is_aside(text) and (len(shape) < 2 or shape[1:] == (1,))


def states_of(value: Any, where: str) -> Rows:
    """The states of an episode, as an array. If the states have named parts, return a map from part names to arrays.

    `value` holds states with named parts as one mapping of arrays, or as a list with one mapping per state.

    Raises:
        InputError: values that cannot be states.
    """
    if isinstance(value, Mapping):
        return parts_of(value, where)
    mapped = getattr(value, "_d", None)  # imitation's DictObs
    if isinstance(mapped, Mapping):
        return parts_of(mapped, where)
    if isinstance(value, list | tuple) and value and isinstance(value[0], Mapping):
        rows = [_parts_of_state(each, f"{where}, state {step}") for step, each in enumerate(value)]
        for step, row in enumerate(rows):
            if row.keys() != rows[0].keys():
                raise InputError(
                    f"{where}, state {step}: parts {', '.join(map(repr, row))}; expected those of state 0: "
                    f"{', '.join(map(repr, rows[0]))}"
                )
        return {key: rows_of([row[key] for row in rows], f"{where}, part {key!r}") for key in rows[0]}
    return rows_of(value, where)


def _parts_of_state(value: Mapping[Any, Any], where: str, prefix: str = "") -> dict[str, Any]:
    """Flatten one state, a nested mapping, to a map from names such as "arm/joints" to values."""
    found: dict[str, Any] = {}
    for key, part in value.items():
        if isinstance(part, Mapping):
            found |= _parts_of_state(part, where, f"{prefix}{key}/")
        else:
            found[f"{prefix}{key}"] = part
    return found


def _goal_parts(record: Mapping[Any, Any], observations: Any) -> dict[str, Any]:
    """The entries in `GOALS` if each is there and has a row of numbers for each observation; else none of them."""
    own, shapes = _shape(observations), [_shape(record.get(name)) for name in GOALS]
    fit = len(own) >= 2 and all(len(each) == 2 and each[0] == own[0] for each in shapes)
    return {name: record[name] for name in GOALS} if fit else {}


def _shape(value: Any) -> tuple[int, ...]:
    """The shape of an array or of nested lists; () for anything else."""
    try:
        return np.shape(value)
    except ValueError:  # lists of different lengths
        return ()


def _with_last(states: Rows, following: Any, where: str) -> Rows | None:
    """The states and the last next observation; None if the latter is missing, not a number or of another form."""
    try:
        rows = states_of(following, where)
    except InputError:
        return None
    if not isinstance(states, Mapping) and not isinstance(rows, Mapping):
        return _joined(states, rows)
    if not isinstance(states, Mapping) or not isinstance(rows, Mapping) or states.keys() != rows.keys():
        return None
    parts = {name: _joined(part, rows[name]) for name, part in states.items()}
    found = {name: part for name, part in parts.items() if part is not None}
    return found if len(found) == len(parts) else None


def _joined(rows: NDArray[Any], following: NDArray[Any]) -> NDArray[Any] | None:
    """The rows and the last row of `following`, in the type of `rows`; None if its values are not of this form."""
    last = following[-1:]
    if rows.shape != following.shape or (rows.dtype.kind in "biuf") != (last.dtype.kind in "biuf"):
        return None
    if rows.dtype.kind in "biuf":
        with np.errstate(invalid="ignore"):
            cast = last.astype(rows.dtype)
        if not np.array_equal(cast, last):  # NaN is not equal to itself
            return None
        last = cast
    return np.concatenate([rows, last])


def _goal_states(
    record: Mapping[Any, Any], marks: Collection[str], count: int, added: bool, where: str
) -> tuple[str, tuple[int, ...] | None]:
    """The key of the flags that mark goal states, and the indices of these states. Without flags, "" and None.

    Args:
        record: the episode.
        marks: keys that hold flags (`goal_flags`).
        count: number of states.
        added: whether the last state comes from the next observations.
        where: the episode, for messages.

    Raises:
        InputError: booleans that are fewer or more than the states, or flags that lack the added state.
    """
    for name in ROLES_OF_COLUMNS["goal"]:
        flags = _flags(record.get(name)) if name in marks else None
        if flags is None:
            continue
        if len(flags) == count:
            marked = tuple(place for place, flag in enumerate(flags) if flag)
            return name, marked if any(flag is not None for flag in flags) else None
        short = added and len(flags) == count - 1
        if short or (len(flags) > 1 and any(isinstance(flag, bool) for flag in flags)):
            last = ", of which next observations gave the last" if added else ""
            raise InputError(
                f"{where}, {name}: {len(flags)} flags for {count} states{last}; expected one for each state"
            )
    return "", None


def _flags(value: Any) -> list[bool | int | None] | None:
    """Booleans, or numbers that are all 0 or 1, one in each row; None if the value holds something else.

    In a list, None stands for no flag.
    """
    flags = value.reshape(-1) if isinstance(value, np.ndarray) and value.shape[1:] == (1,) else value
    flags = flags.tolist() if isinstance(flags, np.ndarray) else flags
    if not isinstance(flags, list | tuple) or not flags:
        return None
    plain = [flag.item() if isinstance(flag, np.generic) else flag for flag in flags]
    fit = all(flag is None or (isinstance(flag, bool | int | float) and flag in (0, 1)) for flag in plain)
    return plain if fit else None


def _said(record: Mapping[Any, Any], use: str, read: set[str]) -> str:
    """The first text, number or flag under one of the keys `ROLES_OF_COLUMNS[use]`, as text; "" if there is none.

    An entry with the same text for each state counts as this text. The key is added to `read`.
    """
    for name in ROLES_OF_COLUMNS[use]:
        value = record.get(name)
        rows = value.tolist() if isinstance(value, np.ndarray) else value
        if isinstance(rows, list | tuple) and rows and all(isinstance(row, str) and row == rows[0] for row in rows):
            rows = rows[0]
        if isinstance(rows, str | bool | int | float | np.generic):
            read.add(name)
            return str(rows)
    return ""


def _ended(flags: Any, where: str, count: int) -> bool:
    """Whether flags mark the end of an episode of `count` states: one flag, or one for each step or state.

    Raises:
        InputError: another number of flags, or a flag that is on before others that are off. Of a flag for each state,
            the last may be off.
    """
    if flags is None:
        return False
    ends = np.asarray(flags, np.bool_).reshape(-1)
    on = np.flatnonzero(ends)
    if len(ends) < 2 or not on.size:
        return bool(on.size)
    if len(ends) not in (count - 1, count):
        raise InputError(f"{where}: {len(ends)} flags for {count} states; expected one, or one for each step or state")
    if not ends[on[0] : count - 1].all():
        raise InputError(
            f"{where}: flag {on[0] + 1} of {len(ends)} says that the episode ends, and it goes on; expected an end "
            "in the last step alone: cut the episode there, or drop the flags"
        )
    return True
