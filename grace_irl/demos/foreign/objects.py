"""Python objects that hold episodes: arrays, data frames, and the objects of other libraries.

Objects are recognised without an import of their libraries, so these libraries need not be installed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grace_irl.demos.foreign.columns import Columns, is_table
from grace_irl.demos.foreign.episode import Episode, EpisodesSource
from grace_irl.demos.foreign.flat import (
    flat_episodes,
    flat_source,
    is_flat,
    left_out,
)
from grace_irl.demos.foreign.mapping import episode_of, goal_flags, states_of
from grace_irl.demos.foreign.table import Table, table_source
from grace_irl.demos.held import HeldSource
from grace_irl.demos.source import Source
from grace_irl.demos.trajectory import Demonstration, Demonstrations, Trajectory
from grace_irl.errors import InputError
from grace_irl.pages import page

EXPECTED = (
    "paths, a DataFrame, arrays of shape (T, n), one for each episode, or episodes of imitation, Minari or "
    f"Stable-Baselines3 ({page('python')})"
)
LONGEST_PATH = 4096


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
    episodes, unread, uses = [], dict[str, None](), dict[str, None]()
    marks = goal_flags(items) if isinstance(items, Sequence) else None
    for number, item in enumerate(items):
        episode, left, words = _episode(item, f"{name}: episode {number}", marks)
        episodes.append(episode)
        unread |= dict.fromkeys(left)
        uses |= dict.fromkeys(filter(None, [words]))
    said = "; ".join(filter(None, (*list(uses)[:1], left_out([*unread]))))
    return EpisodesSource(name, episodes, notes=[f"{name}: {said}"] if said else [])


def _episode(item: Any, where: str, marks: Collection[str] | None) -> tuple[Episode, list[str], str]:
    """One episode from an object, a mapping or an array of states; for a mapping, also the rest of `episode_of`."""
    if isinstance(item, Mapping):
        return episode_of(item, where, marks)
    for states, actions, rewards in (("obs", "acts", "rews"), ("observations", "actions", "rewards")):
        if hasattr(item, states):
            known = {"observations": getattr(item, states), "actions": getattr(item, actions, None)}
            known |= {"rewards": getattr(item, rewards, None)}
            known |= {"terminations": getattr(item, "terminations", getattr(item, "terminal", None))}
            known |= {"truncations": getattr(item, "truncations", None)}
            return episode_of({key: value for key, value in known.items() if value is not None}, where)
    if isinstance(item, str | bytes | int | float) or not isinstance(item, Sequence | np.ndarray):
        raise InputError(f"{where}: {type(item).__name__} {str(item)[:40]!r}; expected {EXPECTED}")
    return Episode(states_of(item, where), where), [], ""


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
