"""The names of a table's columns, and what they say about the use of a column.

The constants list the known names. The user's own choice (`Columns`) takes precedence.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

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
    return first_of(EPISODE, names)


def is_text_role(name: str) -> bool:
    """Whether a column has a name in `ROLES_OF_COLUMNS`. The texts of such a column are not converted to numbers."""
    return any(name.lower() in known for known in ROLES_OF_COLUMNS.values())


def is_aside(name: str) -> bool:
    """Whether a column of numbers has a name of another use, so that it is not part of the states.

    A table may have several columns for one use, such as "terminated" and "done". The reader uses only one of them.
    """
    name = name.lower()
    others = (each for role, each in ROLES_OF_COLUMNS.items() if role != "goal")
    return name in (*RESULTS, *EPISODE, *STEP) or any(name in each for each in others) or bool(INDEX.fullmatch(name))


def is_next(name: str, names: Sequence[str]) -> bool:
    """Whether a column such as `next_x` holds the values that a column `x` has in the next state."""
    found = re.fullmatch(r"next[._ ](.+)", name, re.IGNORECASE)
    return found is not None and found[1].lower() in (each.lower() for each in names)


def first_of(known: Sequence[str], names: Mapping[str, Any] | Sequence[str]) -> str | None:
    """The first known name that a table has, as spelled in the table; None if there is none. Case does not matter."""
    own = {name.strip().lower(): name for name in reversed(list(names))}
    return next((own[name] for name in known if name in own), None)
