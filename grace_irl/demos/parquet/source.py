"""Reader for demonstrations in Parquet: one row per state, and metadata for the whole file.

A trajectory of T steps is T+1 consecutive rows with the same number in the column `episode`. The columns `action`,
`reward` and `log_prob` are null in the last of these rows. The column `state` holds a text, or a list of numbers of
fixed or variable size. A record has one column `state/NAME` per part instead. With the columns `height` and `width`,
grids and images may differ in size from trajectory to trajectory. docs/demonstrations.md describes the whole schema.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from grace_irl.demos.foreign.columns import ACTION, ROLES_OF_COLUMNS, STATE, STEP, Columns, is_table
from grace_irl.demos.header import KEY, Header, Span
from grace_irl.demos.memory import Memory
from grace_irl.demos.parquet.lengths import EPISODE_ROWS, episode_lengths
from grace_irl.demos.parquet.pages import Pages
from grace_irl.demos.parquet.rows import EpisodeRows
from grace_irl.demos.parquet.schema import (
    COLUMNS,
    PART,
    SCREENSHOT,
    STATE_COLUMNS,
    STEP_COLUMNS,
    TEXT_COLUMNS,
    WORD_COLUMNS,
    WORDED_COLUMNS,
    first_line,
    is_list,
    is_number,
    is_text,
    part_columns,
    part_of,
    text_columns,
)
from grace_irl.demos.parquet.screenshots import SetPictures
from grace_irl.demos.screenshots import Screenshot
from grace_irl.demos.source import Source, build, ended, stated_words
from grace_irl.demos.spelling import Spelling
from grace_irl.demos.trajectory import Demonstration, Metadata, Role, stated_role, stated_split, step_rewards
from grace_irl.errors import InputError
from grace_irl.pages import page
from grace_irl.states import KINDS
from grace_irl.states.kind import Allocate, StateKind
from grace_irl.states.record import RECORD
from grace_irl.states.texts import pack
from grace_irl.states.vector import VECTOR

BATCH_ROWS = 16_384
"""Number of rows per decoded batch and per row group. More rows take more memory; fewer rows take more time per row."""

UNEVEN = "columns with different numbers of rows"

HEAVY_ROWS = 512
"""Maximum number of rows per batch for kinds with large states (`StateKind.heavy`)."""

HEAVY_NUMBERS = 1 << 22
"""Target for the number of numeric values in all states of a batch, for kinds with large states."""

FOREIGN = {"episode": "episode_index", "reward": "next.reward", "terminated": "next.done"}
"""Map from the names of columns in grace-irl's schema to their names in LeRobot's data sets for robots."""

SHARED_TEXTS = 1024
"""Maximum number of texts in memory that later episodes can share (`ParquetSource._shared`)."""

ROW_BYTES = 8 * len(STEP_COLUMNS) + len(STATE_COLUMNS)
"""Size in bytes of the numbers in one row, without the state."""


class ParquetSource:
    """An open Parquet file of demonstrations (see `Source`).

    Arrow reads texts as a dictionary, so a text that many rows share is in memory once.

    Args:
        path: the file.
        memory: memory limit of the demonstration set.

    Raises:
        InputError: a file that is truncated, empty, larger than the memory, of another schema, or not Parquet at all.
    """

    def __init__(self, path: Path, memory: Memory) -> None:
        self.path = path
        self._memory = memory
        try:
            # With pre_buffer, pyarrow would keep a whole row group in memory, compressed and decoded. Row groups are
            # large in files from other programs.
            schema = pq.read_schema(path)
            self._file = pq.ParquetFile(
                path, read_dictionary=text_columns(schema), pre_buffer=False, page_checksum_verification=True
            )
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:  # UnicodeDecodeError: column names
            raise InputError(
                f"{path}: not readable as Parquet ({first_line(error)}); expected a whole file: "
                "it may be truncated, write or copy it again"
            ) from None
        self._schema: pa.Schema = self._file.schema_arrow
        raw = (self._file.metadata.metadata or {}).get(KEY.encode())
        self.header = _guess(self._schema) if raw is None else Header.from_json(raw, str(path))
        if raw is None and (left := self._left_out()):
            said = f"{path}: left out: {', '.join(left[:12])}{', …' if len(left) > 12 else ''}"
            self.header = replace(self.header, notes=(*self.header.notes, said))
        if self.header.role is None and "role" in self._schema.names:
            self.header = replace(self.header, role="mixed")
        self.pictures = SetPictures(path, self._schema)
        self._parts = part_columns(self._schema.names)
        self._kind.require_names(list(self._parts), str(path))
        foreign = "episode" not in self._schema.names
        self._names = {name: theirs for name, theirs in FOREIGN.items() if foreign and theirs in self._schema.names}
        self._check_columns()
        self._batch_rows = self._rows_at_once()
        self._columns = self._wanted()
        pages = Pages(path, self._file, memory)
        memory.require(pages.batch_bytes([self._name("episode")], EPISODE_ROWS), f"{path}: column 'episode'")
        step = next((name for name in STEP if name in self._schema.names and is_number(self._column(name))), None)
        self._lengths, first, last = episode_lengths(path, self._file, self._name("episode"), step, memory)
        if raw is None:
            self.header = replace(self.header, span=Span(first, last, len(self._lengths)))
        # A trajectory may begin in the middle of one batch and end in another. Then both whole batches are in memory.
        rows = max(self._lengths) + 2 * self._batch_rows
        memory.require(pages.batch_bytes(self._columns, rows), f"{path}: a batch of rows")
        self._known: dict[str, str] = {}
        self._spelling = Spelling(self._kind, memory)

    @property
    def nbytes(self) -> int:
        """Size in bytes of all numbers in states and actions, from the file's metadata. Texts do not count."""
        about, total = self._file.metadata, 0
        columns = {*self._parts.values(), self._name("action")} & {*self._schema.names}
        for leaf in range(about.num_columns):
            name = about.schema.column(leaf).path.split(".")[0]
            if name in columns and not is_text(found := self._column(name)):
                number = found.value_type if is_list(found) else found
                groups = (about.row_group(group) for group in range(about.num_row_groups))
                values = sum(group.column(leaf).num_values for group in groups)
                total += values * max(number.bit_width // 8, 1)
        return total

    @property
    def _kind(self) -> StateKind:
        return self.header.metadata.state_kind

    def _rows_at_once(self) -> int:
        """Number of rows per batch. It is smaller if states are large."""
        if not self._kind.heavy:
            return BATCH_ROWS
        about, columns = self._file.metadata, {*self._parts.values()}
        leaves = [n for n in range(about.num_columns) if about.schema.column(n).path.split(".")[0] in columns]
        groups = range(about.num_row_groups)
        numbers = sum(int(about.row_group(group).column(leaf).num_values) for group in groups for leaf in leaves)
        return min(max(HEAVY_NUMBERS * int(about.num_rows) // max(numbers, 1), 1), HEAVY_ROWS)

    def demonstrations(self, role: Role | None, allocate: Allocate) -> Iterator[Demonstration]:
        """See `Source.demonstrations`."""
        ours = {theirs: name for name, theirs in self._names.items()}
        index = before = 0
        rows = EpisodeRows(f"{self.path}: episode 0")
        try:
            for batch in self._file.iter_batches(self._batch_rows, columns=self._columns, use_threads=False):
                columns = {ours.get(name, name): batch.column(at) for at, name in enumerate(batch.schema.names)}
                start = 0
                while start < len(batch):
                    if index == len(self._lengths):
                        raise pa.ArrowInvalid(UNEVEN)
                    stop = min(len(batch), start + self._lengths[index] - len(rows))
                    rows.add(columns, start, stop)
                    start = stop
                    if len(rows) == self._lengths[index]:
                        yield self._demonstration(rows, before, role, allocate)
                        before, index = before + len(rows), index + 1
                        rows = EpisodeRows(f"{self.path}: episode {index}")
            if index < len(self._lengths):
                raise pa.ArrowInvalid(UNEVEN)
        except (pa.ArrowException, OSError) as error:
            raise InputError(
                f"{self.path}: episode {index} is damaged ({first_line(error)}); expected a whole Parquet "
                "file: write or copy it again"
            ) from None

    def _demonstration(self, rows: EpisodeRows, before: int, role: Role | None, allocate: Allocate) -> Demonstration:
        """Build a demonstration from its rows.

        Args:
            rows: rows of the trajectory.
            before: number of rows in the file before these rows.
            role: role of the demonstration; None for the role in the file.
            allocate: function that returns the arrays for states and actions.
        """
        where, count = rows.where, len(rows)
        self._memory.require(count * ROW_BYTES, where)
        texts = {name: text and self._shared(text) for name in TEXT_COLUMNS for text in [rows.text(name)]}
        parts = {name: self._part(rows, name, column, allocate) for name, column in self._parts.items()}
        flags = {name: rows.numbers(name, count, missing=False) for name in STATE_COLUMNS}
        goal = flags.pop("goal")
        ends = {name: each is not None and ended(each, self._name(name), where) for name, each in flags.items()}
        rewards = rows.numbers("reward", count, missing=math.nan)  # `step_rewards` accepts NaN in the last row
        rewards = rows.numbers("reward", count - 1) if rewards is None else rewards
        log_probs = rows.numbers("log_prob", count - 1)
        screenshots: list[Screenshot | None] = []
        for piece in rows.column(SCREENSHOT, count):
            screenshots += self.pictures.screenshots(piece, before + len(screenshots))
        trajectory = build(
            self._kind.whole(parts),
            where,
            self.header.metadata.fields,
            kind=self.header.metadata.kind,
            actions=self._actions(rows, allocate),
            extra_info=texts["instruction"] or "",
            rewards=None if rewards is None else step_rewards(rewards, count - 1),
            log_probs=None if log_probs is None else log_probs.astype(np.float64),
            **ends,
            screenshots=tuple(screenshots) if any(screenshots) else (),
            action_texts=self._words(rows, "action_text"),
            step_instructions=self._words(rows, "step_instruction"),
        )
        return Demonstration(
            trajectory,
            stated_role(role or texts["role"] or self.header.role, where),
            texts["task"] or "default",
            stated_split(texts["split"], where),
            None if goal is None else tuple(np.flatnonzero(goal).tolist()),
        )

    def _part(self, rows: EpisodeRows, name: str, column: str, allocate: Allocate) -> NDArray[Any]:
        """One part of the states.

        Args:
            rows: rows of the trajectory.
            name: name of the part; "" for the only part of a state.
            column: column of the part.
            allocate: function that returns the array.

        Raises:
            ArrowInvalid: a state is null.
            InputError: texts that are not states, or lists whose length does not fit the shape.
        """
        count = len(rows)
        if any(piece.null_count for piece in rows.column(column, count)):
            raise pa.ArrowInvalid("a state is null")
        if is_text(self._column(column)):
            texts = [text or "" for text in rows.texts(column, count)]
            return pack(self._spelling.texts(texts, rows.where), allocate)
        size = rows.size(column, count)
        shape = next((part.shape for part in self.header.parts if part.name == name), None)
        if shape is None:
            found = [rows.numbers(side, 1) for side in self._kind.sides]
            sides = [0 if side is None else int(side[0]) for side in found]
            shape = self._kind.stored_shape(size[0], sides) if size else ()
        if math.prod(shape) != math.prod(size):
            expected = " * ".join((*self._kind.sides, *map(str, shape[len(self._kind.sides) :])))
            raise InputError(
                f"{rows.where}: {math.prod(size)} numbers in a state of shape {shape}; expected {expected}"
            )
        states = rows.numbers(column, count, allocate, shape)
        assert states is not None  # no state is null
        return states

    def _actions(self, rows: EpisodeRows, allocate: Allocate) -> NDArray[Any] | None:
        """The actions, in the shape from the file's metadata; None if there are no actions."""
        actions, shape = rows.numbers("action", len(rows) - 1, allocate), self.header.action_shape
        if actions is None or shape is None:
            return actions
        if math.prod(shape) != math.prod(actions.shape[1:]):
            found = f"{rows.where}: actions of shape {actions.shape[1:]}, and {shape} in the metadata"
            raise InputError(f"{found}; expected one shape: write the file again")
        return actions.reshape(len(actions), *shape)

    def _words(self, rows: EpisodeRows, name: str) -> tuple[str, ...]:
        """The texts of a column, one per step; () if there are none. See `stated_words`."""
        found = stated_words(rows.texts(name, len(rows) - 1), name, rows.where)
        return tuple(map(self._shared, found))

    def _shared(self, text: str) -> str:
        """Return the equal text of an earlier episode if there is one, so that equal texts share memory."""
        if len(self._known) >= SHARED_TEXTS:
            self._known.clear()
        return self._known.setdefault(text, text)

    def _left_out(self) -> list[str]:
        """The columns of a file from another program that this reader does not use."""
        used = {*COLUMNS, *WORDED_COLUMNS, *FOREIGN.values(), *part_columns(self._schema.names).values()}
        return [name for name in self._schema.names if name not in used and name not in STEP]

    def _wanted(self) -> list[str]:
        """The columns to read for trajectories."""
        columns = (*self._parts.values(), *TEXT_COLUMNS, *STEP_COLUMNS, *STATE_COLUMNS, *self._kind.sides)
        wanted = [name for name in map(self._name, columns) if name in self._schema.names]
        if self._kind.annotated:
            wanted += [name for name in WORD_COLUMNS if name in self._schema.names]
            wanted += self.pictures.columns  # where each picture is stored, without the picture
        return wanted

    def _name(self, name: str) -> str:
        """The name that a column of the schema has in this file."""
        return self._names.get(name, name)

    def _check_columns(self) -> None:
        names, kind = self._schema.names, self._kind
        stated = [f"{PART}{part.name}" for part in self.header.parts] or list(self._parts.values()) or ["state"]
        needed = ["episode", *stated, *kind.sides]
        missing = [name for name in needed if self._name(name) not in names]
        if missing:
            raise InputError(
                f"{self.path}: no column {missing[0]!r} among {', '.join(names)[:200] or 'none'}; expected one row per "
                f"state with the columns of {page('demonstrations')}"
            )
        for part_name, column in self._parts.items():
            found = self._column(column)
            part = part_of(part_name, found)
            if part is None or not kind.stores(part):
                raise InputError(f"{self.path}: column {column!r} is {str(found)[:80]}; expected {kind.stored_as}")
        for name, (fits, expected) in (COLUMNS | (WORDED_COLUMNS if kind.annotated else {})).items():
            found = self._column(self._name(name)) if self._name(name) in names else None
            if found is not None and not fits(found):
                raise InputError(f"{self.path}: column {name!r} is {found}; expected {expected}")
        if self._file.metadata.num_rows == 0:
            raise InputError(f"{self.path}: no rows; expected at least one trajectory")

    def _column(self, name: str) -> pa.DataType:
        return self._schema.field(name).type


def open_parquet(file: Path, memory: Memory, columns: Columns = Columns()) -> Source:
    """Open a Parquet file that has this module's schema, or that is a table with one column per number of a state.

    Args:
        file: the file.
        memory: memory limit of the demonstration set.
        columns: the user's choice of columns. If the user chose columns, the file is read as a table.
    """
    try:
        schema = pq.read_schema(file)
        ours = KEY.encode() in (schema.metadata or {})
        wide = columns != Columns() or (not ours and (_is_wide(schema) or _has_more(schema)))
    except (pa.ArrowException, OSError, UnicodeDecodeError):
        wide = False  # `ParquetSource` reports the error
    if wide:
        from grace_irl.demos.foreign.tables import open_wide_parquet

        return open_wide_parquet(file, memory, columns)
    return ParquetSource(file, memory)


def _is_wide(schema: pa.Schema) -> bool:
    """Whether a file is a table of episodes in which `part_columns` finds no states.

    For example, such a table has one column per number of a state.
    """
    return not part_columns(schema.names) and is_table(schema.names) and _has_states(schema)


def _has_more(schema: pa.Schema) -> bool:
    """Whether a file of vectors has further columns that the reader of tables uses, such as `step` and `done`.

    The result is also True if the column `state` holds single numbers, as one component of a table's vectors.
    """
    names = set(schema.names)
    if "height" in names or "state" not in names or is_text(schema.field("state").type):
        return False
    if is_number(schema.field("state").type):
        return True
    used = {*STEP, *(each for role, known in ROLES_OF_COLUMNS.items() if role not in names for each in known)}
    others = names - COLUMNS.keys() - {"log_prob"}
    return any(name.lower() in used or ACTION.fullmatch(name) for name in others) and "log_prob" not in names


def _has_states(schema: pa.Schema) -> bool:
    """Whether a column of texts holds whole states, or a column outside `COLUMNS` holds numbers or lists."""
    if any(is_text(schema.field(name).type) for name in STATE if name in schema.names):
        return True
    kinds = {name: schema.field(name).type for name in schema.names if name not in COLUMNS}
    return any(is_number(kind) or is_list(kind) or pa.types.is_decimal(kind) for kind in kinds.values())


def _guess(schema: pa.Schema) -> Header:
    """The header of a file from another program. The columns show the kind of states, or several possible kinds."""
    found = part_columns(schema.names)
    parts = [part_of(name, schema.field(column).type) for name, column in list(found.items())[:1]]
    fitting = [kind for kind in KINDS.values() if parts and all(part and kind.stores(part) for part in parts)]
    fitting = [kind for kind in fitting if set(kind.sides) <= set(schema.names)]
    most = max((len(kind.sides) for kind in fitting), default=0)
    fitting = [kind for kind in fitting if len(kind.sides) == most]
    kind = fitting[-1] if fitting else RECORD if found and "" not in found else VECTOR
    names = tuple(kind.name for kind in fitting)
    return Header(Metadata(kind.name, view=kind.view), kinds=names if len(names) > 1 else ())
