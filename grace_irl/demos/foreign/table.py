"""Reader of tables with one row per state and one column per number, or with one row per number (long tables).

The reader recognises columns by their names (`columns.py`). All other columns of numbers form the states, and their
names become the names of a vector's components. If some of these columns hold lists, the states are records, and the
names of the columns become the names of the parts. A note for the user lists the use of each column (`Header.notes`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grace_irl.demos.foreign import cells
from grace_irl.demos.foreign.columns import (
    ACTION,
    EPISODE,
    NAME,
    OUTCOMES,
    ROLES_OF_COLUMNS,
    STATE,
    STEP,
    VALUE,
    Columns,
    first_of,
    is_aside,
    is_next,
    is_text_role,
)
from grace_irl.demos.foreign.episode import Episode, EpisodesSource
from grace_irl.demos.header import Span
from grace_irl.demos.source import ended, stated_words
from grace_irl.demos.trajectory import Role, step_rewards
from grace_irl.errors import InputError

Table = Mapping[str, NDArray[Any]]
"""Columns by name. Each column is an array with one entry per row. An array of dtype object holds texts or lists."""


def table_source(table: Table, path: str, columns: Columns = Columns(), first: int = 0) -> EpisodesSource:
    """The episodes of a table.

    Args:
        table: the columns.
        path: file or argument, for messages.
        columns: the user's choice of columns.
        first: number of the table's first episode, if the table is a part of a larger table.

    Raises:
        InputError: no column of episodes, no column of states, or entries that cannot be used.
    """
    names = [str(name).strip() for name in table]
    columns = Columns(tuple(name.strip() for name in columns.state), columns.episode.strip())
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"{path}: two columns {twice!r}; expected one of each name: rename one")
    table = dict(zip(names, table.values(), strict=True))
    if any(len(column) == 0 for column in table.values()) or not table:
        raise InputError(f"{path}: an empty table; expected one row for each state")
    for name in (*columns.state, *filter(None, [columns.episode])):
        if name not in table:
            raise InputError(f"{path}: no column {name!r}; expected one of {_listed(names)}")
    table = {name: column if is_text_role(name) else cells.with_numbers(column) for name, column in table.items()}
    table = _ordered(_wide(table, columns, path), columns, path)
    layout = _Layout.of(table, columns, path)
    episodes = [layout.episode(start, stop, number) for number, (start, stop) in enumerate(layout.bounds(), first)]
    source = EpisodesSource(path, episodes, notes=[layout.line()])
    source.header = replace(source.header, span=layout.span(episodes))
    return source


@dataclass(frozen=True)
class _Layout:
    """The columns of a table, grouped by their use.

    Attributes:
        table: all columns.
        path: file or argument, for messages.
        by_episode: name of the column that gives each row's episode; "" if flags mark the ends of episodes.
        states, actions: names of the columns that form the states and the actions.
        beside: map from a use in `ROLES_OF_COLUMNS`, such as "reward", to the name of the column.
        left_out: names of the columns that are no part of the episodes.
    """

    table: Table
    path: str
    by_episode: str
    states: tuple[str, ...]
    actions: tuple[str, ...]
    beside: Mapping[str, str]
    left_out: tuple[str, ...]

    @classmethod
    def of(cls, table: Table, columns: Columns, path: str) -> _Layout:
        by_episode = columns.episode or first_of(EPISODE, table)
        beside = {
            role: found for role, known in ROLES_OF_COLUMNS.items() if (found := first_of(known, table)) is not None
        }
        beside = {role: name for role, name in beside.items() if name not in columns.state and name != by_episode}
        if "goal" in beside and not cells.is_flag(table[beside["goal"]]):  # for example a target position, not a flag
            del beside["goal"]
        for words in ("action_text", "step_instruction"):
            if words in beside and table[beside[words]].dtype.kind in "biuf":
                del beside[words]
        if by_episode is None and not {"terminated", "truncated"} & beside.keys():
            raise InputError(
                f"{path}: no column of episodes among {_listed(list(table))}; expected a number for each episode, in a "
                "column such as 'episode': name it (--episode-column), or add one; a file that describes others "
                "belongs elsewhere"
            )
        rich = [name for name, column in table.items() if column.dtype.kind not in "biuf"]
        whole = columns.state or tuple(filter(None, [first_of(STATE, rich)]))
        taken = {by_episode, first_of(STEP, table), *beside.values()}
        actions = tuple(name for name in table if ACTION.fullmatch(name) and name not in (*whole, *taken))
        free = [name for name in table if name not in (*taken, *actions)]
        numbers = [name for name in free if cells.holds_numbers(table[name]) and not is_aside(name)]
        numbers = [name for name in numbers if not is_next(name, numbers)]
        states = whole or tuple(numbers)
        for name in () if whole else (each for each in free if not is_aside(each)):
            cells.require_no_spoilt(table[name], f"{path}: column {name!r}")
        if not states and (xml := next((name for name in free if cells.holds_xml(table[name])), None)) is not None:
            raise InputError(
                f"{path}: column {xml!r} holds XML, and no column the states; expected screens in a column of texts "
                f"'state': rename it, or name it (--state-columns {xml})"
            )
        if not states:
            raise InputError(
                f"{path}: no column of numbers for the states among {_listed(list(table))}; expected one column for "
                "each number, or a column 'state' of lists: name them (--state-columns)"
            )
        left = tuple(name for name in (*free, first_of(STEP, table) or "") if name and name not in states)
        return cls(table, path, by_episode or "", states, actions, beside, left)

    def bounds(self) -> Iterator[tuple[int, int]]:
        """Yield the index of each episode's first row, and the index after the episode's last row.

        Raises:
            InputError: a row without an episode, or rows of an episode that are not consecutive.
        """
        count = len(self.table[self.states[0]])
        if not self.by_episode:
            ends = np.zeros(count, np.bool_)
            for role in {"terminated", "truncated"} & self.beside.keys():
                ends |= self._marks(role, self.table[self.beside[role]])
            self._require_ends(ends)
            starts = [0, *(np.flatnonzero(ends) + 1).tolist()]
            yield from pairwise(starts if starts[-1] == count else [*starts, count])
            return
        ids = self.table[self.by_episode]
        if lacking := cells.missing(ids):
            raise InputError(
                f"{self.path}: no {self.by_episode} in {lacking} of {count} rows; expected a number or a name in each "
                "row: fill it in, or choose another column (--episode-column)"
            )
        codes = np.unique(cells.texts(ids) if ids.dtype.kind in "OUS" else ids, return_inverse=True)[1]
        starts = [0, *(np.flatnonzero(np.diff(codes)) + 1).tolist(), count]
        found = codes[starts[:-1]]
        if len(set(found.tolist())) < len(found):
            again = next(int(start) for n, start in enumerate(starts[:-1]) if codes[start] in found[:n])
            raise InputError(
                f"{self.path}: {self.by_episode} {ids[again]} comes back after another one; "
                "expected the rows of an episode together: sort by episode and step"
            )
        yield from pairwise(starts)

    def _require_ends(self, ends: NDArray[np.bool_]) -> None:
        """Check that step numbers never decrease from row to row, except where a flag ends an episode.

        Raises:
            InputError: step numbers decrease within an episode.
        """
        step = first_of(STEP, self.table)
        if step is None or step in self.states or self.table[step].dtype.kind not in "iuf":
            return
        steps = self.table[step]
        back = np.flatnonzero((steps[1:] < steps[:-1]) & ~ends[:-1])
        if len(back):
            row = int(back[0]) + 1
            raise InputError(
                f"{self.path}: {step} goes back from {steps[row - 1]} to {steps[row]} in row {row}, and no flag ends "
                "an episode before it; expected a flag there, or a column that numbers the episodes: add one "
                "(--episode-column)"
            )

    def episode(self, start: int, stop: int, number: int) -> Episode:
        """The episode of the rows from `start` to `stop`."""
        where = f"{self.path}: episode {number}"
        rows, steps = slice(start, stop), stop - start - 1
        reward = self._beside("reward", rows)
        return Episode(
            self._states(rows, where),
            where,
            actions=self._actions(slice(start, stop - 1), where) if self.actions else None,
            rewards=None
            if reward is None
            else step_rewards(cells.numbers(reward, where, self.beside["reward"]), steps),
            terminated=self._flagged("terminated", rows, where),
            truncated=self._flagged("truncated", rows, where),
            instruction=self._text("instruction", rows, where),
            task=self._text("task", rows, where) or "default",
            role=self._role(rows, where),
            split=self._text("split", rows, where),
            goals=self._goals(rows),
            action_texts=self._words("action_text", slice(start, stop - 1), where),
            step_instructions=self._words("step_instruction", slice(start, stop - 1), where),
        )

    def span(self, episodes: Sequence[Episode]) -> Span | None:
        """The table's first and last episode; None without a column of episodes."""
        if not self.by_episode:
            return None
        ids, step = cells.texts(self.table[self.by_episode]), first_of(STEP, self.table)
        steps = () if step is None or self.table[step].dtype.kind not in "iuf" else self.table[step][[0, -1]].tolist()
        over = episodes[-1].terminated or episodes[-1].truncated
        return Span(ids[0], "" if over else ids[-1], len(episodes), *steps)

    def line(self) -> str:
        """A line for the user about the use of each column."""
        said = [f"states are {_listed(self.states)}"]
        said += [f"actions are {_listed(self.actions)}"] if self.actions else []
        said += [f"episodes by {self.by_episode!r}"] if self.by_episode else ["episodes end where a flag says so"]
        said += [f"{role} by {name!r}" for role, name in self.beside.items()]
        said += [f"left out: {_listed(self.left_out)}"] if self.left_out else []
        outcome = first_of(OUTCOMES, self.table)
        if outcome is not None and "role" not in self.beside:
            said += [f"no roles; if {outcome!r} says them (1 expert, 0 negative), rename it to 'label'"]
        return f"{self.path}: {'; '.join(said)} (--state-columns, --episode-column choose otherwise)"

    def _states(self, rows: slice, where: str) -> NDArray[Any] | dict[str, NDArray[Any]]:
        try:
            parts = {name: cells.stacked(self.table[name][rows], where, name) for name in self.states}
        except InputError as error:
            raise InputError(f"{error}; or choose other columns (--state-columns)") from None
        if len(parts) == 1 and self.table[self.states[0]].dtype.kind not in "biuf":
            return parts[self.states[0]]  # whole states
        texts = next((name for name, part in parts.items() if part.dtype.kind not in "biuf"), None)
        if texts is not None:
            raise InputError(
                f"{where}: column {texts!r} holds no numbers; expected numbers in each column of the states"
            )
        return parts

    def _actions(self, rows: slice, where: str) -> NDArray[Any]:
        columns = [cells.stacked(self.table[name][rows], where, name) for name in self.actions]
        if len(columns) == 1:
            return columns[0]
        return np.column_stack([column.reshape(len(column), -1) for column in columns])

    def _goals(self, rows: slice) -> tuple[int, ...] | None:
        """Indices of the goal states of an episode; None if nobody marked any."""
        column = self._beside("goal", rows)
        if column is None or (cells.missing(column) == len(column) and not self._only_goals):
            return None
        return tuple(np.flatnonzero(cells.flags(column, self._named("goal"))).tolist())

    @cached_property
    def _only_goals(self) -> bool:
        """Whether the table marks goal states and leaves all others blank, so that a blank means no goal."""
        column = self.table[self.beside["goal"]]
        filled = len(column) - cells.missing(column)
        return bool(0 < filled < len(column) and cells.flags(column, self._named("goal")).sum() == filled)

    def _beside(self, role: str, rows: slice) -> NDArray[Any] | None:
        return self.table[self.beside[role]][rows] if role in self.beside else None

    def _flagged(self, role: str, rows: slice, where: str) -> bool:
        column = self._beside(role, rows)
        return column is not None and ended(self._marks(role, column), self.beside[role], where)

    def _marks(self, role: str, column: NDArray[Any]) -> NDArray[np.bool_]:
        return cells.flags(column, self._named(role))

    def _named(self, role: str) -> str:
        return f"{self.path}: column {self.beside[role]!r}"

    def _text(self, role: str, rows: slice, where: str) -> str:
        column = self._beside(role, rows)
        texts = set() if column is None else set(cells.texts(column).tolist())
        if len(texts) > 1:
            raise InputError(
                f"{where}: column {self.beside[role]!r} holds {_listed(sorted(texts))}; expected one value in all rows "
                "of an episode"
            )
        return str(texts.pop()) if texts else ""

    def _words(self, role: str, steps: slice, where: str) -> tuple[str, ...]:
        column = self._beside(role, steps)
        texts = [] if column is None else [None if each is None else str(each) for each in column.tolist()]
        return stated_words(texts, self.beside[role], where) if any(texts) else ()

    def _role(self, rows: slice, where: str) -> Role | None:
        text = self._text("role", rows, where)
        if "role" not in self.beside:
            return None
        role = cells.WORDS.get(text.strip().lower())
        if role is None:
            raise InputError(
                f"{where}: column {self.beside['role']!r} holds {text[:40]!r}; expected 'expert' or 'negative' (or 1 "
                "or 0): correct it, or rename the column if it says something else"
            )
        return role


def _wide(table: Table, columns: Columns, path: str) -> Table:
    """Convert a long table (one row per number) to a table with one row per state and one column per name.

    A table that is not long is returned unchanged.
    """
    name = first_of(NAME, table)
    value = first_of((VALUE,), table)
    step = first_of(STEP, table)
    by_episode = columns.episode or first_of(EPISODE, table)
    if name is None or value is None or step is None or by_episode is None or table[value].dtype.kind not in "biuf":
        return table
    names = cells.texts(table[name])
    # Fields in the order in which they first appear.
    fields = list(dict.fromkeys(names.tolist()))
    ids = [cells.texts(table[by_episode]), table[step]]
    order = {each: place for place, each in enumerate(dict.fromkeys(ids[0].tolist()))}
    keys = list(
        dict.fromkeys(sorted(zip(ids[0].tolist(), ids[1].tolist(), strict=True), key=lambda k: (order[k[0]], k[1])))
    )
    if len(names) != len(fields) * len(keys):
        raise InputError(
            f"{path}: {len(names)} rows for {len(fields)} names and {len(keys)} steps; expected one row for each "
            "episode, step and name: fill in what is missing, or drop it"
        )
    places = {key: place for place, key in enumerate(keys)}
    rows = np.array([places[key] for key in zip(ids[0].tolist(), ids[1].tolist(), strict=True)])
    found: dict[str, NDArray[Any]] = {by_episode: np.array([key[0] for key in keys], object)}
    found[step] = np.array([key[1] for key in keys])
    for field in fields:
        own = names == field
        if len(set(rows[own].tolist())) < len(keys):
            raise InputError(f"{path}: {field!r} comes twice in one step; expected one value for each step: drop one")
        column = np.empty(len(keys), table[value].dtype)
        column[rows[own]] = table[value][own]
        found[field] = column
    first = np.zeros(len(keys), np.int64)
    first[rows[::-1]] = np.arange(len(rows))[::-1]
    rest = [each for each in table if each not in (by_episode, step, name, value)]
    return found | {each: table[each][first] for each in rest}


def _ordered(table: Table, columns: Columns, path: str) -> Table:
    """Sort the rows of each episode by step, if a column numbers the steps and some rows are out of order.

    Raises:
        InputError: a row has no step. Or the rows are out of order, and some episode has a step twice, for example
            because two episodes share one number.
    """
    step, by_episode = first_of(STEP, table), columns.episode or first_of(EPISODE, table)
    if step is None or by_episode is None or table[step].dtype.kind not in "iuf":
        return table
    steps, ids = table[step], cells.texts(table[by_episode])
    # If the user chose this column, such as "t", as a part of the states, it orders the rows only if it can: each value
    # is a whole number that comes once in its episode.
    is_state = step in columns.state
    if np.isnan(steps).any():
        if is_state:
            return table
        row = int(np.flatnonzero(np.isnan(steps))[0])
        found = f"{path}: no {step} in row {row}"
        raise InputError(f"{found}; expected a number in each row: fill it in, or drop the column")
    # Steps are compared, not subtracted, because differences of unsigned numbers are never negative.
    if not (steps[1:] < steps[:-1])[ids[1:] == ids[:-1]].any():
        return table
    order = {each: place for place, each in enumerate(dict.fromkeys(ids.tolist()))}
    rows = np.lexsort((steps, np.array([order[each] for each in ids.tolist()])))
    twice = np.flatnonzero((steps[rows][1:] == steps[rows][:-1]) & (ids[rows][1:] == ids[rows][:-1]))
    if is_state and (len(twice) or (steps != np.round(steps)).any()):
        return table
    if len(twice):
        row = rows[twice[0]]
        raise InputError(
            f"{path}: {by_episode} {ids[row]} has {step} {table[step][row]} twice, and its rows are not in order; "
            "expected one row for each step: number the episodes apart (--episode-column), or sort the rows"
        )
    return {name: column[rows] for name, column in table.items()}


def _listed(names: Sequence[str], most: int = 12) -> str:
    return ", ".join(map(repr, names[:most])) + (f" and {len(names) - most} more" if len(names) > most else "")
