"""Python objects that hold episodes: arrays, data frames, and the objects of other libraries.

Objects are recognised without an import of their libraries, so these libraries need not be installed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grace_irl.demos.foreign.cells import WORDS, is_flag, marked
from grace_irl.demos.foreign.columns import ROLES_OF_COLUMNS, Columns, is_table
from grace_irl.demos.foreign.episode import Episode, EpisodesSource, parts_of, rows_of
from grace_irl.demos.foreign.flat import (
    ACTIONS,
    KNOWN,
    NEXT,
    OBSERVATIONS,
    REWARDS,
    TERMINALS,
    TIMEOUTS,
    flat_episodes,
    flat_source,
    is_flat,
    left_out,
    length,
    with_last,
)
from grace_irl.demos.foreign.table import Table, table_source
from grace_irl.demos.held import HeldSource
from grace_irl.demos.source import Source
from grace_irl.demos.trajectory import Demonstration, Demonstrations, Trajectory, step_rewards
from grace_irl.errors import InputError
from grace_irl.pages import page

EXPECTED = (
    "paths, a DataFrame, arrays of shape (T, n), one for each episode, or episodes of imitation, Minari or "
    f"Stable-Baselines3 ({page('python')})"
)
LONGEST_PATH = 4096
BESIDE = [name for use in ("instruction", "task", "role", "split") for name in ROLES_OF_COLUMNS[use]]
"""Names of the entries of an episode with one value for the whole episode."""
GOALS = ("achieved_goal", "desired_goal")
"""Parts of a state beside `observation`, in Gymnasium's environments with goals."""


def are_paths(value: Any) -> bool:
    """Whether an argument is a path, or a list or tuple of paths. An empty list counts as a list of paths."""
    if isinstance(value, str | Path):
        return True
    return isinstance(value, list | tuple) and all(isinstance(each, str | Path) for each in value)


def require_paths(value: Any, name: str) -> None:
    """Check that an argument holds paths. By mistake, a user may pass the content of a table as a text instead.

    A text with a line break, or with more than `LONGEST_PATH` characters, cannot be a path.

    Args:
        value: a path, or a list or tuple of paths.
        name: name of the argument, for messages.

    Raises:
        InputError: a text that cannot be a path.
    """
    for each in [value] if isinstance(value, str | Path) else value:
        text = str(each)
        if "\n" in text or len(text) > LONGEST_PATH:
            raise InputError(
                f"{name}: a text of {len(text):,} characters that begins {text[:30]!r}; expected a path, a DataFrame "
                "or arrays: write it to a file, or read it with pandas"
            )


def source_of(value: Any, name: str, columns: Columns = Columns()) -> Source:
    """The episodes of a Python object.

    Args:
        value: the object.
        name: argument (such as "experts") or file, for messages.
        columns: the user's choice of columns, for tables.

    Raises:
        InputError: an object that holds no episodes, or episodes that cannot be used.
    """
    if (table := _as_table(value, name)) is not None:
        return table_source(table, name, columns)
    if callable(iterate := getattr(value, "iterate_episodes", None)):  # a Minari dataset
        return _source(iterate(), name)
    if hasattr(value, "buffer_size") and hasattr(value, "observations"):
        return EpisodesSource(name, [*_of_buffer(value, name)])
    if isinstance(value, np.ndarray):
        return source_of(value.tolist(), name, columns) if value.dtype.kind == "O" else _of_array(value, name)
    if isinstance(value, Mapping):
        return _of_mapping(value, name, columns)
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise InputError(f"{name}: {type(value).__name__} {str(value)[:40]!r}; expected {EXPECTED}")
    items = list(value)
    if items and all(_is_row(each, columns) for each in items):
        return table_source(_transposed(items, name), name, columns)
    if columns != Columns():
        raise InputError(
            f"{name}: a {type(value).__name__} of {type(items[0]).__name__ if items else 'nothing'}, and columns are "
            "chosen; expected a table: a DataFrame, a dict of columns or a list of rows; or leave the columns out"
        )
    if isinstance(value, Demonstrations):
        return HeldSource(name, value)
    if items and all(isinstance(each, Trajectory | Demonstration) for each in items):
        return HeldSource(name, items)
    return _source(items, name)


def _source(items: Iterable[Any], name: str) -> EpisodesSource:
    """The episodes of objects, mappings or arrays, with a note about the entries of mappings that are not read."""
    episodes, keys = [], dict[str, None]()
    for number, item in enumerate(items):
        episodes.append(_episode(item, f"{name}: episode {number}"))
        if isinstance(item, Mapping) and any(each in item for each in OBSERVATIONS):
            keys |= dict.fromkeys(map(str, item))
    read = {
        *KNOWN,
        *BESIDE,
        *GOALS,
        *(ROLES_OF_COLUMNS["goal"] if any(each.goals is not None for each in episodes) else ()),
    }
    left = left_out([key for key in keys if key not in read])
    return EpisodesSource(name, episodes, notes=[f"{name}: {left}"] if left else [])


def _episode(item: Any, where: str) -> Episode:
    """One episode from an object, a mapping or an array of states."""
    if isinstance(item, Mapping):
        return _of_record(item, where)
    for states, actions, rewards in (("obs", "acts", "rews"), ("observations", "actions", "rewards")):
        if hasattr(item, states):
            known = {"observations": getattr(item, states), "actions": getattr(item, actions, None)}
            known |= {"rewards": getattr(item, rewards, None)}
            known |= {"terminations": getattr(item, "terminations", getattr(item, "terminal", None))}
            known |= {"truncations": getattr(item, "truncations", None)}
            return _of_record({key: value for key, value in known.items() if value is not None}, where)
    if isinstance(item, str | bytes | int | float) or not isinstance(item, Sequence | np.ndarray):
        raise InputError(f"{where}: {type(item).__name__} {str(item)[:40]!r}; expected {EXPECTED}")
    return Episode(_states(item, where), where)


def _of_record(record: Mapping[Any, Any], where: str) -> Episode:
    """An episode from a mapping with keys such as "observations" and "actions", as in Gymnasium and Minari.

    If there are as many observations as actions, the state after the last action comes from the next observations.
    Without them, the last action is left out.

    With `GOALS` beside them, observations are parts of the states.

    If the mapping has no key for observations, all its entries are parts of the states. For example, the keys "arm" and
    "camera" give states with the parts "arm" and "camera".
    """
    known = {
        names: next((record[name] for name in names if name in record), None)
        for names in (OBSERVATIONS, NEXT, ACTIONS, REWARDS, TERMINALS, TIMEOUTS)
    }
    if known[OBSERVATIONS] is not None and (goals := {name: record[name] for name in GOALS if name in record}):
        known |= {OBSERVATIONS: {"observation": known[OBSERVATIONS], **goals}, NEXT: None}
    if known[OBSERVATIONS] is None:
        if not record:
            raise InputError(f"{where}: an empty dict; expected observations, or an array for each part of the states")
        return Episode(parts_of(record, where), where)
    states = _states(known[OBSERVATIONS], where)
    actions = None if known[ACTIONS] is None else rows_of(known[ACTIONS], f"{where}, actions")
    if known[NEXT] is not None and (actions is None or len(actions) == length(states)):
        following = _states(known[NEXT], f"{where}, next observations")
        states = with_last(states, following, where) if length(following) == length(states) else states
    count = length(states)
    rewards = None if known[REWARDS] is None else rows_of(known[REWARDS], f"{where}, rewards")
    # With as many actions as states, the state after the last action is unknown, so the last action is left out.
    whole = actions is None or len(actions) != count
    ended = _ended(known[TERMINALS])
    return Episode(
        states,
        where,
        actions=actions if whole or actions is None else actions[:-1],
        rewards=None if rewards is None else step_rewards(rewards.reshape(-1)[: None if whole else count], count - 1),
        terminated=ended and whole,
        truncated=_ended(known[TIMEOUTS]),
        instruction=_said(record, "instruction"),
        task=_said(record, "task") or "default",
        role=WORDS.get(role.lower(), role) if (role := _said(record, "role")) else None,
        split=_said(record, "split"),
        goals=_goals(record, count, where),
    )


def _goals(record: Mapping[Any, Any], count: int, where: str) -> tuple[int, ...] | None:
    """Indices of the goal states of an episode of `count` states; None if no entry holds a flag for each state.

    Raises:
        InputError: booleans that are more or fewer than the states.
    """
    for name in ROLES_OF_COLUMNS["goal"]:
        flags = record.get(name)
        flags = flags.tolist() if isinstance(flags, np.ndarray) else flags
        column = _series(list(flags)) if isinstance(flags, list | tuple) else np.empty(0)
        if len(column) == count and is_flag(column):
            return marked(column, f"{where}, {name}")
        if column.dtype.kind == "b":  # a list of numbers may be something else, such as a target position
            raise InputError(
                f"{where}: {len(column)} flags in {name!r} for {count} states; expected one for each: correct them"
            )
    return None


def _said(record: Mapping[Any, Any], use: str) -> str:
    """The first text, number or flag under one of the keys `ROLES_OF_COLUMNS[use]`, as text; "" if there is none."""
    for name in ROLES_OF_COLUMNS[use]:
        value = record.get(name)
        if isinstance(value, str | bool | int | float | np.generic):
            return str(value).strip() if use != "instruction" else str(value)
    return ""


def _states(value: Any, where: str) -> NDArray[Any] | Mapping[str, NDArray[Any]]:
    """The states of an episode, as an array. If the states have named parts, return a map from part names to arrays.

    `value` holds states with named parts as one mapping of arrays, or as a list with one mapping per state.
    """
    if isinstance(value, Mapping):
        return parts_of(value, where)
    mapped = getattr(value, "_d", None)  # imitation's DictObs
    if isinstance(mapped, Mapping):
        return parts_of(mapped, where)
    if isinstance(value, list | tuple) and value and isinstance(value[0], Mapping):
        rows = [parts_of_state(each, f"{where}, state {step}") for step, each in enumerate(value)]
        for step, row in enumerate(rows):
            if row.keys() != rows[0].keys():
                raise InputError(
                    f"{where}, state {step}: parts {', '.join(map(repr, row))}; expected those of state 0: "
                    f"{', '.join(map(repr, rows[0]))}"
                )
        return {key: rows_of([row[key] for row in rows], f"{where}, part {key!r}") for key in rows[0]}
    return rows_of(value, where)


def parts_of_state(value: Mapping[Any, Any], where: str, prefix: str = "") -> dict[str, Any]:
    """Flatten one state, a nested mapping, to a map from names such as "arm/joints" to values."""
    found: dict[str, Any] = {}
    for key, part in value.items():
        if isinstance(part, Mapping):
            found |= parts_of_state(part, where, f"{prefix}{key}/")
        else:
            found[f"{prefix}{key}"] = part
    return found


def _ended(flags: Any) -> bool:
    return flags is not None and bool(np.any(np.asarray(flags, np.bool_)))


def _of_array(array: NDArray[Any], name: str) -> EpisodesSource:
    if array.ndim < 3:
        hint = f": pass [{name}] if it is one episode" if array.ndim == 2 else ""
        raise InputError(
            f"{name}: an array of shape {array.shape}; expected one of episodes, steps and numbers, or a list of "
            f"arrays with one for each episode{hint}"
        )
    return _source(array, name)


def _of_mapping(value: Mapping[Any, Any], name: str, columns: Columns) -> EpisodesSource:
    named = {str(key): part for key, part in value.items()}
    if columns == Columns() and is_flat(named):
        return flat_source(named, name)
    if is_table(list(named)) or columns.episode:
        return table_source({key: _column(part) for key, part in named.items()}, name, columns)
    if all(isinstance(part, np.ndarray) and part.ndim >= 3 for part in named.values()) and named:
        counts = {key: len(part) for key, part in named.items()}
        if len({*counts.values()}) > 1:
            raise InputError(f"{name}: parts of {counts} episodes; expected as many in each part: correct the arrays")
        rows = [dict(zip(named, parts, strict=True)) for parts in zip(*named.values(), strict=True)]
        return _source(rows, name)
    raise InputError(
        f"{name}: a dict of {', '.join(map(repr, list(named)[:6])) or 'nothing'}; expected a list of dicts, one for "
        "each episode, a column of episodes, or observations with flags such as 'terminals' and 'timeouts'"
    )


def _is_row(item: Any, columns: Columns) -> bool:
    """Whether an item is a row of a table: a mapping that names its episode, or that holds only single values."""
    if not isinstance(item, Mapping) or not item:
        return False
    names = [str(key) for key in item]
    single = (bool, int, float, str, np.number, np.bool_, type(None))
    return columns.episode in names or is_table(names) or all(isinstance(each, single) for each in item.values())


def _transposed(rows: Sequence[Mapping[Any, Any]], name: str) -> Table:
    """The columns of a list of rows. All rows must have the same keys."""
    keys = list(rows[0])
    for place, row in enumerate(rows):
        if row.keys() != rows[0].keys():
            other = sorted({*map(str, row)} ^ {*map(str, keys)})
            raise InputError(
                f"{name}: row {place} differs from row 0 in {other[0]!r}; expected the same keys in all rows"
            )
    return {str(key): _series([row[key] for row in rows]) for key in keys}


def _column(values: Any) -> NDArray[Any]:
    """Convert values to a column of a table: a numeric array if all values are numbers, else an array of objects."""
    if isinstance(values, np.ndarray) and values.ndim == 1:
        return values
    values = list(values)
    if values and all(isinstance(each, bool | int | float | np.number | np.bool_) for each in values):
        return np.asarray(values)
    column = np.empty(len(values), object)
    for place, each in enumerate(values):
        column[place] = each
    return column


def _as_table(value: Any, name: str) -> Table | None:
    """The columns of a data frame of pandas or Polars, or of an Arrow table; None for any other object.

    Args:
        value: the object.
        name: name of the argument, for messages.

    Raises:
        InputError: two columns with one name.
    """
    library = type(value).__module__.split(".")[0]
    if library == "pyarrow" and hasattr(value, "column_names"):
        from grace_irl.demos.foreign.arrow import columns_of

        return columns_of(value, "the table")
    if library == "polars":
        value = value.collect() if hasattr(value, "collect") else value
    if library not in ("pandas", "polars") or not hasattr(value, "columns"):
        return None
    if library == "polars":
        return {column: _series(value[column].to_list()) for column in value.columns}
    index = [each for each in value.index.names if each is not None]
    names = [str(each) for each in (*index, *value.columns)]
    if twice := [each for each in names if names.count(each) > 1]:
        raise InputError(f"{name}: column {twice[0]!r} twice; expected each name once: rename or drop one")
    value = value.reset_index() if index else value
    return {str(column): _series(value[column].tolist()) for column in value.columns}


def _series(values: list[Any]) -> NDArray[Any]:
    numbers = [each for each in values if each is not None]
    if numbers and all(isinstance(each, bool | int | float) for each in numbers):
        return np.array([np.nan if each is None else each for each in values])
    return _column(values)


def _of_buffer(buffer: Any, name: str) -> Iterator[Episode]:
    """The episodes of a buffer of Stable-Baselines3.

    A buffer without `next_observations` does not hold the state after the last action of an episode, so this action is
    left out. Steps after the last end of an episode form another episode, which is neither terminated nor truncated.
    """
    replay = hasattr(buffer, "next_observations") or getattr(buffer, "optimize_memory_usage", False)
    count = buffer.buffer_size if buffer.full else buffer.pos
    if not count:
        raise InputError(f"{name}: an empty buffer; expected one that holds steps")
    order = np.arange(count) if not (replay and buffer.full) else (np.arange(count) + buffer.pos) % count
    if replay and buffer.full and getattr(buffer, "next_observations", None) is None:
        # This buffer stores the state after a step in the place of the next step's state. So the state after the newest
        # step has overwritten the state of the oldest step, and the oldest step is left out.
        order = order[1:]
    flags = np.asarray(buffer.dones if replay else buffer.episode_starts)
    timeouts = getattr(buffer, "timeouts", None)
    # `RolloutBuffer.get` merges the axes (steps, environments) of observations and actions to one axis.
    joined = getattr(buffer, "generator_ready", False)
    number = 0
    for place in range(buffer.n_envs):

        def column(values: Any, joined: bool = False, place: int = place) -> Any:
            """The rows of one environment, from the oldest to the newest.

            With `joined`, `values` has one axis for the steps of all environments, one environment after another.
            """
            if isinstance(values, Mapping):
                return {key: column(part, joined) for key, part in values.items()}
            if joined:
                values = np.asarray(values).reshape(buffer.n_envs, -1, *values.shape[1:]).swapaxes(0, 1)
            return np.asarray(values)[order, place]

        steps = {"observations": column(buffer.observations, joined), "actions": column(buffer.actions, joined)}
        steps["rewards"] = column(buffer.rewards)
        if replay:
            over = column(timeouts).astype(bool) if timeouts is not None else np.zeros(len(order), bool)
            ends = column(flags).astype(bool)
            steps |= {"terminals": ends & ~over, "timeouts": ends & over}
            if getattr(buffer, "next_observations", None) is not None:
                steps["next_observations"] = column(buffer.next_observations)
        else:
            starts = column(flags).astype(bool)
            steps["timeouts"] = np.append(starts[1:], False)
        for each in flat_episodes(steps, name):
            yield replace(each, where=f"{name}: episode {number}")
            number += 1
