"""Reader of tables with one row per state and one column per number, or with one row per number (long tables).

The reader recognises columns by their names, which the constants below list. All other columns of numbers form the
states, and their names become the names of a vector's components. If some of these columns hold lists, the states are
records, and the names of the columns become the names of the parts. The user's own choice (`Columns`) takes precedence.
A note for the user lists the use of each column (`Header.notes`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grace_irl.demos.foreign.episode import Episode, EpisodesSource, rows_of
from grace_irl.demos.header import Span
from grace_irl.demos.source import ended, stated_words
from grace_irl.demos.trajectory import Role, step_rewards
from grace_irl.errors import InputError

Table = Mapping[str, NDArray[Any]]
"""Columns by name. Each column is an array with one entry per row. An array of dtype object holds texts or lists."""

EPISODE = (
    *("episode", "episode_id", "episode_index", "episode_number", "ep", "traj", "traj_id", "trajectory"),
    *("trajectory_id", "rollout", "rollout_id", "demo", "demo_id", "run_id"),
)
"""Possible names of the column with the number or name of each row's episode. Earlier names take precedence."""

STEP = ("step", "timestep", "time_step", "step_id", "t", "frame", "frame_index")
"""Possible names of the column that numbers the steps of an episode."""

STATE = ("state", "states", "observation", "observations", "obs")
"""Possible names of a column whose entries are whole states. An entry is a list of numbers or a text. A column of
single numbers with such a name is a component like any other."""

ROLES_OF_COLUMNS: dict[str, tuple[str, ...]] = {
    "reward": ("reward", "rewards", "rew", "next.reward"),
    "terminated": ("terminated", "terminal", "terminals", "done", "dones", "next.done"),
    "truncated": ("truncated", "timeout", "timeouts", "truncations"),
    "role": ("role", "label", "is_expert", "expert"),
    "instruction": ("instruction", "language_instruction"),
    "task": ("task",),
    "split": ("split",),
    "goal": ("goal", "is_goal"),
    "action_text": ("action_text",),
    "step_instruction": ("step_instruction",),
}
"""Possible names of further columns, by the content of the column."""

ACTION = re.compile(r"actions?([._\[\s/-].*|\d+)?|acts?[._-]?\d+", re.IGNORECASE)
"""Names of columns with actions, such as `action`, `action_0` and `action.gripper`."""

OUTCOMES = ("success", "is_success")
"""Possible names of a column that shows whether an episode or a state succeeded. Such a column does not decide whether
an episode is "expert" or "negative"."""

RESULTS = (*OUTCOMES, "return", "index", "task_index", "timestamp", "time", "unnamed: 0", "")
"""Names of numeric columns that are not part of the states: outcomes of episodes, and counters of rows or time."""

INDEX = re.compile(r"__index_level_\d+__")
"""Pattern of the names under which pandas writes an index to a file. Such columns are not part of the states either."""

NAME, VALUE = ("name", "variable", "feature", "field", "sensor", "signal", "key"), "value"
"""The two special columns of a long table. `NAME` lists possible names of the column that names each number. `VALUE` is
the name of the column with the numbers."""

WITH_COMMAS = re.compile(r"[+-]?(\d{1,3}([,' ]\d{3})+(\.\d+)?|\d+,\d+)")
"""Pattern of a number with marks between thousands, or with a decimal comma."""

TRUE, FALSE = ("true", "1", "1.0", "yes", "t", "y"), ("false", "0", "0.0", "no", "f", "n", "", "nan", "none")
"""Texts of flags, in lower case."""

WORDS: dict[str, Role] = {
    **dict.fromkeys(("expert", "experts", "positive", "1", "1.0", "true"), "expert"),
    **dict.fromkeys(("negative", "negatives", "0", "0.0", "false"), "negative"),
}
"""Map from an entry of the role column, in lower case, to the role."""


@dataclass(frozen=True)
class Columns:
    """The user's choice of columns. The reader recognises all other columns by their names.

    Attributes:
        state: columns that form the states, in order. () selects the first name in `STATE` under which the table has
            whole states. Without such a name, the states are formed by all columns that hold numbers or lists of
            numbers and have no other use.
        episode: column with the number or name of each row's episode. "" selects the first name in `EPISODE` that the
            table has.
    """

    state: tuple[str, ...] = ()
    episode: str = ""


def is_table(names: Sequence[str]) -> bool:
    """Whether these are the column names of a table of episodes: one of the names is in `EPISODE`."""
    return column_of_episodes(names) is not None


def column_of_episodes(names: Sequence[str]) -> str | None:
    """Name of the column that gives each row's episode; None if no column has a name in `EPISODE`."""
    return _first_of(EPISODE, names)


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
    table = {name: column if _is_text_role(name) else _with_numbers(column) for name, column in table.items()}
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
        by_episode = columns.episode or _first_of(EPISODE, table)
        beside = {
            role: found for role, known in ROLES_OF_COLUMNS.items() if (found := _first_of(known, table)) is not None
        }
        beside = {role: name for role, name in beside.items() if name not in columns.state and name != by_episode}
        if "goal" in beside and not _is_flag(table[beside["goal"]]):  # for example a target position, not a flag
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
        whole = columns.state or tuple(filter(None, [_first_of(STATE, rich)]))
        taken = {by_episode, _first_of(STEP, table), *beside.values()}
        actions = tuple(name for name in table if ACTION.fullmatch(name) and name not in (*whole, *taken))
        free = [name for name in table if name not in (*taken, *actions)]
        numbers = [name for name in free if _holds_numbers(table[name]) and not _is_aside(name)]
        numbers = [name for name in numbers if not _is_next(name, numbers)]
        states = whole or tuple(numbers)
        for name in () if whole else (each for each in free if not _is_aside(each)):
            _require_no_spoilt(table[name], f"{path}: column {name!r}")
        if not states and (xml := next((name for name in free if _holds_xml(table[name])), None)) is not None:
            raise InputError(
                f"{path}: column {xml!r} holds XML, and no column the states; expected screens in a column of texts "
                f"'state': rename it, or name it (--state-columns {xml})"
            )
        if not states:
            raise InputError(
                f"{path}: no column of numbers for the states among {_listed(list(table))}; expected one column for "
                "each number, or a column 'state' of lists: name them (--state-columns)"
            )
        left = tuple(name for name in (*free, _first_of(STEP, table) or "") if name and name not in states)
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
        if lacking := _missing(ids):
            raise InputError(
                f"{self.path}: no {self.by_episode} in {lacking} of {count} rows; expected a number or a name in each "
                "row: fill it in, or choose another column (--episode-column)"
            )
        codes = np.unique(_texts(ids) if ids.dtype.kind in "OUS" else ids, return_inverse=True)[1]
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
        step = _first_of(STEP, self.table)
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
        goal = self._beside("goal", rows)
        return Episode(
            self._states(rows, where),
            where,
            actions=self._actions(slice(start, stop - 1), where) if self.actions else None,
            rewards=None if reward is None else step_rewards(_numbers(reward, where, self.beside["reward"]), steps),
            terminated=self._flagged("terminated", rows, where),
            truncated=self._flagged("truncated", rows, where),
            instruction=self._text("instruction", rows, where),
            task=self._text("task", rows, where) or "default",
            role=self._role(rows, where),
            split=self._text("split", rows, where),
            goals=None if goal is None else tuple(np.flatnonzero(self._marks("goal", goal)).tolist()),
            action_texts=self._words("action_text", slice(start, stop - 1), where),
            step_instructions=self._words("step_instruction", slice(start, stop - 1), where),
        )

    def span(self, episodes: Sequence[Episode]) -> Span | None:
        """The table's first and last episode; None without a column of episodes."""
        if not self.by_episode:
            return None
        ids, step = _texts(self.table[self.by_episode]), _first_of(STEP, self.table)
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
        outcome = _first_of(OUTCOMES, self.table)
        if outcome is not None and "role" not in self.beside:
            said += [f"no roles; if {outcome!r} says them (1 expert, 0 negative), rename it to 'label'"]
        return f"{self.path}: {'; '.join(said)} (--state-columns, --episode-column choose otherwise)"

    def _states(self, rows: slice, where: str) -> NDArray[Any] | dict[str, NDArray[Any]]:
        try:
            parts = {name: _stacked(self.table[name][rows], where, name) for name in self.states}
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
        columns = [_stacked(self.table[name][rows], where, name) for name in self.actions]
        if len(columns) == 1:
            return columns[0]
        return np.column_stack([column.reshape(len(column), -1) for column in columns])

    def _beside(self, role: str, rows: slice) -> NDArray[Any] | None:
        return self.table[self.beside[role]][rows] if role in self.beside else None

    def _flagged(self, role: str, rows: slice, where: str) -> bool:
        column = self._beside(role, rows)
        return column is not None and ended(self._marks(role, column), self.beside[role], where)

    def _marks(self, role: str, column: NDArray[Any]) -> NDArray[np.bool_]:
        return _flags(column, f"{self.path}: column {self.beside[role]!r}")

    def _text(self, role: str, rows: slice, where: str) -> str:
        column = self._beside(role, rows)
        texts = set() if column is None else set(_texts(column).tolist())
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
        role = WORDS.get(text.strip().lower())
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
    name = _first_of(NAME, table)
    value = _first_of((VALUE,), table)
    step = _first_of(STEP, table)
    by_episode = columns.episode or _first_of(EPISODE, table)
    if name is None or value is None or step is None or by_episode is None or table[value].dtype.kind not in "biuf":
        return table
    names = _texts(table[name])
    # Fields in the order in which they first appear.
    fields = list(dict.fromkeys(names.tolist()))
    ids = [_texts(table[by_episode]), table[step]]
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
    step, by_episode = _first_of(STEP, table), columns.episode or _first_of(EPISODE, table)
    if step is None or by_episode is None or table[step].dtype.kind not in "iuf":
        return table
    steps, ids = table[step], _texts(table[by_episode])
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


def _stacked(column: NDArray[Any], where: str, name: str) -> NDArray[Any]:
    """The entries of a column as one array with one row per entry."""
    if column.dtype.kind != "O":
        return column
    return rows_of(
        [each.tolist() if isinstance(each, np.ndarray) else each for each in column], f"{where}, column {name!r}"
    )


def _numbers(column: NDArray[Any], where: str, name: str) -> NDArray[Any]:
    if column.dtype.kind not in "biuf":
        raise InputError(f"{where}: column {name!r} holds {str(column[0])[:40]!r}; expected numbers")
    return column


def _holds_numbers(column: NDArray[Any]) -> bool:
    """Whether a column holds numbers, or lists of numbers."""
    if column.dtype.kind != "O":
        return column.dtype.kind in "biuf"
    first: Any = next((each for each in column.tolist() if _length(each)), None)
    if not _length(first):
        return False
    while _length(first):
        first = first[0]
    return isinstance(first, int | float | np.number | np.bool_)


def _length(entry: Any) -> int:
    """The length of a list; 0 for anything else."""
    return len(entry) if isinstance(entry, list | tuple) or (isinstance(entry, np.ndarray) and entry.ndim) else 0


def _holds_xml(column: NDArray[Any]) -> bool:
    first = next((each for each in column.tolist() if each), None)
    return isinstance(first, str) and first.lstrip().startswith("<")


def _with_numbers(column: NDArray[Any]) -> NDArray[Any]:
    """Convert a column that mixes numbers with numbers written as texts to an array of numbers.

    Any other column is returned unchanged.
    """
    if column.dtype.kind != "O":
        return column
    known = [each for each in column.tolist() if each is not None]
    numeric = [isinstance(each, int | float) and not isinstance(each, bool) for each in known]
    written = all(
        is_number or (isinstance(each, str) and _is_number(each))
        for each, is_number in zip(known, numeric, strict=True)
    )
    if not any(numeric) or not written:
        return column
    return np.array([np.nan if each is None else float(each) for each in column.tolist()])


def _is_text_role(name: str) -> bool:
    """Whether a column has a name in `ROLES_OF_COLUMNS`. The texts of such a column are not converted to numbers."""
    return any(name.lower() in known for known in ROLES_OF_COLUMNS.values())


def _require_no_spoilt(column: NDArray[Any], where: str) -> None:
    """Check that a column does not mix numbers with a few other texts, such as "n/a".

    A column passes if all its entries are numbers that are written as texts. Such texts may be identifiers.

    Raises:
        InputError: of the distinct texts, at least two and at least half are plain numbers or match `WITH_COMMAS`, and
            at least one is not a plain number.
    """
    if column.dtype.kind not in "OUS":
        return
    texts: dict[str, int] = {}
    for row, each in enumerate(column.tolist()):
        texts.setdefault(each if isinstance(each, str) else "" if each is None else str(each), row)
    odd = [text for text in texts if not _is_number(text)]
    numbers = [text for text in texts if _is_number(text) or WITH_COMMAS.fullmatch(text.strip())]
    if odd and len(numbers) >= max(len(texts) / 2, 2):
        raise InputError(
            f"{where} holds numbers, and {odd[0][:40]!r} among them; expected a number in each row, without "
            f"marks between digits: correct row {texts[odd[0]]}, drop the episode, or choose other columns "
            "(--state-columns)"
        )


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _is_aside(name: str) -> bool:
    """Whether a column of numbers has a name of another use, so that it is not part of the states.

    A table may have several columns for one use, such as "terminated" and "done". The reader uses only one of them.
    """
    name = name.lower()
    others = (each for role, each in ROLES_OF_COLUMNS.items() if role != "goal")
    return name in (*RESULTS, *EPISODE, *STEP) or any(name in each for each in others) or bool(INDEX.fullmatch(name))


def _is_next(name: str, names: Sequence[str]) -> bool:
    """Whether a column such as `next_x` holds the values that a column `x` has in the next state."""
    found = re.fullmatch(r"next[._ ](.+)", name, re.IGNORECASE)
    return found is not None and found[1].lower() in (each.lower() for each in names)


def _is_flag(column: NDArray[Any]) -> bool:
    if column.dtype.kind == "f":
        return bool(np.isin(column[~np.isnan(column)], (0, 1)).all())
    return column.dtype.kind == "b" or (column.dtype.kind in "iu" and bool(np.isin(column, (0, 1)).all()))


def _flags(column: NDArray[Any], where: str) -> NDArray[np.bool_]:
    """The entries of a column as flags. `where` names the column in messages.

    Raises:
        InputError: a text that is no flag.
    """
    if column.dtype.kind in "biuf":
        return np.asarray(np.nan_to_num(column), np.bool_)
    texts = [str("" if each is None else each).strip().lower() for each in column.tolist()]
    for text in texts:
        if text not in TRUE and text not in FALSE:
            raise InputError(f"{where} holds {text[:40]!r}; expected true or false (or 1 or 0) in each row")
    return np.array([text in TRUE for text in texts])


def _missing(column: NDArray[Any]) -> int:
    """The number of rows without an entry."""
    if column.dtype.kind in "OU":
        return sum(each is None or str(each).strip() in ("", "nan", "<NA>", "NaT") for each in column.tolist())
    return int(np.isnan(column).sum()) if column.dtype.kind == "f" else 0


def _texts(column: NDArray[Any]) -> NDArray[np.object_]:
    return np.array(["" if each is None else str(each) for each in column.tolist()], object)


def _first_of(known: Sequence[str], names: Mapping[str, Any] | Sequence[str]) -> str | None:
    """The first known name that a table has, as spelled in the table; None if there is none. Case does not matter."""
    own = {name.strip().lower(): name for name in reversed(list(names))}
    return next((own[name] for name in known if name in own), None)


def _listed(names: Sequence[str], most: int = 12) -> str:
    return ", ".join(map(repr, names[:most])) + (f" and {len(names) - most} more" if len(names) > most else "")
