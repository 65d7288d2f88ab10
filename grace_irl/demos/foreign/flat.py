"""Reader of flat arrays, as in D4RL: each array holds the steps of all episodes, and flags mark the ends of episodes.

Row t holds the state before action t. The state after the last action of an episode comes from `next_observations`.
Without this array, the last action is left out. An episode of L rows then has L states and L-1 actions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grace_irl.demos.foreign.episode import Episode, EpisodesSource, column_of, joined, parts_of, rows_of
from grace_irl.demos.trajectory import step_rewards
from grace_irl.errors import InputError

OBSERVATIONS = ("observations", "observation", "obs", "states", "state")
NEXT = ("next_observations", "next_observation", "next_obs", "next_states")
ACTIONS = ("actions", "action", "acts")
REWARDS = ("rewards", "reward", "rews")
TERMINALS = ("terminals", "terminal", "terminations", "terminated", "dones", "done")
TIMEOUTS = ("timeouts", "timeout", "truncations", "truncated")
"""Possible names of the arrays: observations, next observations, actions, rewards, and two kinds of flags that mark the
ends of episodes. For each array, the reader uses the first name that the data have."""

KNOWN = (*OBSERVATIONS, *NEXT, *ACTIONS, *REWARDS, *TERMINALS, *TIMEOUTS)


def is_flat(arrays: Mapping[str, Any]) -> bool:
    """Whether arrays are flat: some name is in `OBSERVATIONS`, and some other name is in `TERMINALS` or `TIMEOUTS`."""
    return first_name(OBSERVATIONS, arrays) is not None and any(name in arrays for name in (*TERMINALS, *TIMEOUTS))


def flat_source(arrays: Mapping[str, Any], path: str) -> EpisodesSource:
    """The episodes of flat arrays.

    Args:
        arrays: arrays by name; observations and next observations may be mappings of arrays.
        path: file or argument, for messages.

    Raises:
        InputError: arrays of different lengths, flags other than 0 and 1, or rows that are not in order.
    """
    ends = [str(name) for name in (first_name(TERMINALS, arrays), first_name(TIMEOUTS, arrays)) if name]
    said = f"{path}: states are {first_name(OBSERVATIONS, arrays)}; episodes end at {' and '.join(ends)}"
    left = left_out([name for name in arrays if name not in KNOWN])
    said += f"; {left}" if left else ""
    episodes = list(flat_episodes(arrays, path))
    cut = sum(not (each.terminated or each.truncated) for each in episodes[:-1]) if first_name(NEXT, arrays) else 0
    said += f"; without a flag, {cut} end where the next observation is not that of the next row" if cut else ""
    return EpisodesSource(path, episodes, notes=[said])


def left_out(names: Sequence[str]) -> str:
    """Words for the user about entries of the data that are not read; "" if there are none."""
    return f"left out: {', '.join(names[:12])}{', …' if len(names) > 12 else ''}" if names else ""


def flat_episodes(arrays: Mapping[str, Any], path: str) -> Iterator[Episode]:
    """Yield the episodes of flat arrays in order. The arguments are those of `flat_source`."""
    states = _rows(OBSERVATIONS, arrays, path)
    assert states is not None  # all callers make sure that there are observations
    count = length(states)
    following = _rows(NEXT, arrays, path)
    columns = {names: _rows(names, arrays, path) for names in (ACTIONS, REWARDS, TERMINALS, TIMEOUTS)}
    for names, column in columns.items():
        if isinstance(column, Mapping):
            raise InputError(f"{path}: {first_name(names, arrays)} has parts; expected one array")
    for names, column in ((NEXT, following), *columns.items()):
        if column is not None and length(column) != count:
            raise InputError(
                f"{path}: {length(column)} {first_name(names, arrays)} for {count} {first_name(OBSERVATIONS, arrays)}; "
                "expected one for each row"
            )
    ends = {
        names: _flags(columns[names], f"{path}: {first_name(names, arrays)}", count) for names in (TERMINALS, TIMEOUTS)
    }
    first = first_name(TERMINALS, arrays)
    if first is not None and not ends[TERMINALS].any():
        # The first array of terminal flags marks no end. Another one may, such as `dones` beside `terminals`.
        others = [name for name in TERMINALS[TERMINALS.index(first) + 1 :] if name in arrays]
        for name in others:
            flags = _rows((name,), arrays, path)
            if not isinstance(flags, Mapping) and length(flags) == count:
                ends[TERMINALS] = ends[TERMINALS] | (_flags(flags, f"{path}: {name}", count) & ~ends[TIMEOUTS])
    if not count:
        raise InputError(f"{path}: no episodes; expected at least one row")
    over = ends[TERMINALS] | ends[TIMEOUTS]
    if following is not None:
        over[:-1] |= _resets(states, following, over, f"{path}: {first_name(NEXT, arrays)}")
    starts = [0, *(np.flatnonzero(over) + 1).tolist()]
    bounds = pairwise(starts if starts[-1] == count else [*starts, count])
    for number, (start, stop) in enumerate(bounds):
        own = _sliced(states, start, stop)
        if following is not None:
            own = with_last(own, _sliced(following, start, stop), f"{path}: episode {number}")
        steps = slice(start, stop if following is not None else stop - 1)
        actions, rewards, paid = columns[ACTIONS], columns[REWARDS], first_name(REWARDS, arrays)
        yield Episode(
            own,
            f"{path}: episode {number}",
            actions=None if actions is None else actions[steps],
            rewards=None
            if rewards is None
            else step_rewards(column_of(rewards[start:stop], f"{path}: {paid}"), steps.stop - start),
            terminated=bool(ends[TERMINALS][stop - 1]) and following is not None,
            truncated=bool(ends[TIMEOUTS][stop - 1]),
        )


def _resets(states: Rows, following: Rows, over: NDArray[np.bool_], where: str) -> NDArray[np.bool_]:
    """Mark the rows without a flag at which an episode ends. The result has one boolean for each row except the last.

    At such a row, the next observation differs from the observation in the following row.

    Raises:
        InputError: an episode ends at more than half of the rows without a flag, as in a shuffled replay buffer.
    """
    if isinstance(states, Mapping) != isinstance(following, Mapping):
        return np.zeros(len(over) - 1, np.bool_)  # `with_last` refuses parts in only one of the two
    pairs = (
        [(states[name], following[name]) for name in states if name in following]
        if isinstance(states, Mapping) and isinstance(following, Mapping)
        else [(states, following)]
    )
    found = np.zeros(len(over) - 1, np.bool_)
    for own, after in pairs:
        one, other = np.asarray(own)[1:], np.asarray(after)[:-1]
        if one.shape == other.shape and one.dtype.kind in "biuf" and other.dtype.kind in "biuf":
            exact = one.dtype.kind != "f" and other.dtype.kind != "f"
            same = one == other if exact else np.isclose(one, other, equal_nan=True)
            found |= ~same.reshape(len(same), -1).all(axis=1)
    found &= ~over[:-1]
    if found.sum() > (~over[:-1]).sum() / 2:
        raise InputError(
            f"{where} are mostly not the observations one row later; expected rows in order: a replay buffer that was "
            "shuffled has no episodes, write it before it is"
        )
    return found


Rows = NDArray[Any] | Mapping[str, NDArray[Any]]


def _rows(names: Sequence[str], arrays: Mapping[str, Any], path: str) -> Any:
    """The entry under the first name that `arrays` has, as an array or a map of arrays; None if it has none of them."""
    name = first_name(names, arrays)
    if name is None:
        return None
    value = arrays[name]
    where = f"{path}: {name}"
    return parts_of(value, where) if isinstance(value, Mapping) else rows_of(value, where)


def first_name(names: Sequence[str], arrays: Mapping[Any, Any]) -> str | None:
    """The first of these names that the arrays have; None if they have none of them."""
    return next((name for name in names if name in arrays), None)


def length(rows: Rows) -> int:
    """The number of rows."""
    return len(next(iter(rows.values()))) if isinstance(rows, Mapping) else len(rows)


def _sliced(rows: Rows, start: int, stop: int) -> Rows:
    if isinstance(rows, Mapping):
        return {name: part[start:stop] for name, part in rows.items()}
    return rows[start:stop]


def with_last(rows: Rows, following: Rows, where: str) -> Rows:
    """Append the last row of the next observations to the observations of an episode.

    Raises:
        InputError: the observations and the next observations differ in their parts, shapes or types.
    """
    last = _sliced(following, length(following) - 1, length(following))
    if isinstance(rows, Mapping) and isinstance(last, Mapping):
        if set(rows) != set(last):
            odd = sorted(set(rows) ^ set(last))[0]
            raise InputError(f"{where}: part {odd!r} of either states or next states; expected the same parts in both")
        return {name: joined(part, last[name], where) for name, part in rows.items()}
    if isinstance(rows, Mapping) or isinstance(last, Mapping):
        raise InputError(f"{where}: either the states or the next states have parts; expected both, or neither")
    return joined(rows, last, where)


def _flags(column: NDArray[Any] | None, where: str, count: int) -> NDArray[np.bool_]:
    if column is None:
        return np.zeros(count, np.bool_)
    if column.dtype.kind not in "biuf" or not np.isin(column, (0, 1)).all():
        raise InputError(f"{where}: {column.dtype} of shape {column.shape}; expected 0 or 1 for each row")
    return np.asarray(column.reshape(count, -1).any(axis=1), np.bool_) if count else np.zeros(0, np.bool_)
