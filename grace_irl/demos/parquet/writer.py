"""Writer for demonstrations in Parquet, in the schema of `schema.py`."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from grace_irl.demos.header import KEY
from grace_irl.demos.parquet.schema import (
    PART,
    PICTURE,
    SCREENSHOT,
    WORD_COLUMNS,
    dtype_of,
    is_list,
    part_columns,
    value_type,
)
from grace_irl.demos.parquet.screenshots import Cell, ScreenshotColumn
from grace_irl.demos.parquet.source import BATCH_ROWS
from grace_irl.demos.screenshots import Keep
from grace_irl.demos.source import SetWriter
from grace_irl.demos.trajectory import Demonstration, Metadata, Trajectory
from grace_irl.errors import InputError
from grace_irl.states.kind import PartLayout, StateKind

TEXT = pa.dictionary(pa.int32(), pa.string())

GROUP_BYTES = 64 << 20
"""Size of states and pictures in bytes at which a row group ends, even if it has fewer than `BATCH_ROWS` rows. A
row group stores each distinct screen once, so a few large groups store fewer screens than many small groups."""

NUMBERS = 8 << 20
"""Limit in bytes that replaces `GROUP_BYTES` for kinds such as images, whose states have thousands of numbers. This
limit is smaller, because Arrow needs a dozen extra bytes of memory for each number."""

PICTURES_OF_A_PAGE = 4
"""Number of pictures in one data page of a Parquet file. It is small, because a reader that needs one picture decodes
the whole page."""


@dataclass(frozen=True)
class _Piece:
    """Consecutive rows of an episode that wait until their row group is complete.

    Attributes:
        demonstration: the episode.
        episode: number of the episode in the file.
        start, stop: range of the rows. It covers the whole episode, unless the episode is too large for a row group.
        cells: screenshot cells of these rows.
    """

    demonstration: Demonstration
    episode: int
    start: int
    stop: int
    cells: tuple[Cell, ...]


class ParquetWriter(SetWriter):
    """A writer of Parquet files. One row group is in memory at a time.

    The demonstrations of the first row group determine the schema.

    Args:
        path: the file.
        metadata: metadata of the set.
        screenshots: whether the set embeds screenshots, refers to them or leaves them out.
    """

    def __init__(self, path: Path, metadata: Metadata, screenshots: Keep = "embed") -> None:
        super().__init__(path, metadata)
        self._kind = metadata.state_kind
        self._screenshots = ScreenshotColumn(screenshots, path)
        self._pending: list[_Piece] = []
        self._pending_rows = self._pending_bytes = 0
        self._schema: pa.Schema | None = None
        self._writer: pq.ParquetWriter | None = None

    def _append(self, demonstration: Demonstration, where: str) -> None:
        trajectory = demonstration.trajectory
        rows, start = len(trajectory.states), 0
        self._pending_bytes += trajectory.state_kind.nbytes(trajectory.states)
        cells: list[Cell] = []
        for step, screenshot in enumerate(trajectory.screenshots if self._kind.annotated else ()):
            cell, size = self._screenshots.cell(screenshot, f"{where}, step {step}")
            cells.append(cell)
            self._pending_bytes += size
            if self._pending_bytes >= GROUP_BYTES and step < rows - 1:  # one episode may have many pictures
                self._pending.append(_Piece(demonstration, self._count, start, step + 1, tuple(cells)))
                self._flush()
                start, cells = step + 1, []
        for stop in range(start + self._most_rows(trajectory), rows, self._most_rows(trajectory)):
            self._pending.append(_Piece(demonstration, self._count, start, stop, ()))
            self._flush()
            start = stop
        self._pending.append(_Piece(demonstration, self._count, start, rows, tuple(cells)))
        self._pending_rows += rows - start
        if self._pending_rows >= BATCH_ROWS or self._pending_bytes >= (NUMBERS if self._is_pixels else GROUP_BYTES):
            self._flush()

    @property
    def _is_pixels(self) -> bool:
        """Whether a state consists of thousands of numbers."""
        return self._kind.heavy and not self._kind.parsed

    def _most_rows(self, trajectory: Trajectory) -> int:
        """Maximum number of an episode's rows in one row group."""
        states = trajectory.states
        return max(NUMBERS * len(states) // self._kind.nbytes(states), 1) if self._is_pixels else len(states)

    def _finish(self, header: str) -> None:
        self._flush()
        assert self._writer is not None
        self._writer.add_key_value_metadata({KEY: header})
        self._writer.close()
        self._writer = None

    def _discard(self) -> None:
        if self._writer is not None:
            with suppress(OSError):
                self._writer.close()
        super()._discard()

    def _flush(self) -> None:
        if not self._pending:
            return
        if self._schema is None:
            first = [piece.demonstration for piece in self._pending]
            self._schema = _schema(first, self._metadata, self._screenshots.type)
        if self._writer is None:
            self._place.parent.mkdir(parents=True, exist_ok=True)
            # Dictionaries save space for integers and texts, which repeat. Most floats are distinct, so float columns
            # have no dictionary.
            repeated = [field for field in self._schema if not pa.types.is_floating(value_type(field.type))]
            leaves = [f"{one.name}.list.element" if is_list(one.type) else one.name for one in repeated]
            leaves += [f"{SCREENSHOT}.{field.name}" for field in self._screenshots.type or () if field.name != PICTURE]
            embeds = SCREENSHOT in self._schema.names and self._screenshots.embeds
            self._writer = pq.ParquetWriter(
                self._part,
                self._schema,
                compression="zstd",
                write_page_checksum=True,
                use_dictionary=leaves or False,
                write_batch_size=PICTURES_OF_A_PAGE if embeds else None,
            )
        batches = [self._batch(piece, self._schema) for piece in self._pending]
        table = pa.Table.from_batches(batches).unify_dictionaries()
        if _text_parts(self._schema):  # after the first chunk, Arrow writes texts one by one, so join all chunks
            table = table.combine_chunks()
        self._writer.write_table(table, row_group_size=2 * BATCH_ROWS)
        self._pending.clear()
        self._pending_rows = self._pending_bytes = 0

    def _batch(self, piece: _Piece, schema: pa.Schema) -> pa.RecordBatch:
        demonstration, trajectory = piece.demonstration, piece.demonstration.trajectory
        where = trajectory.source or f"episode {piece.episode}"
        rows, steps = slice(piece.start, piece.stop), np.arange(piece.start, piece.stop)
        count, last = len(steps), steps == trajectory.num_steps
        columns: dict[str, Any] = {
            "episode": np.full(count, piece.episode, np.int32),
            "terminated": last & trajectory.terminated,
            "truncated": last & trajectory.truncated,
        }
        values = {"action": trajectory.actions, "reward": trajectory.rewards, "log_prob": trajectory.log_probs}
        for name, array in values.items():
            if name in schema.names:
                kind = schema.field(name).type
                columns[name] = pa.nulls(count, kind) if array is None else _padded(array, kind, where)[rows]
            elif array is not None:
                raise InputError(
                    f"{where}: has {name}s, and the first trajectories have none; expected the same in all: "
                    f"put trajectories with {name}s first, or write them to a file of their own"
                )
        goals = demonstration.goals
        columns["goal"] = [None] * count if goals is None else np.isin(steps, goals)
        texts = {
            "role": demonstration.role,
            "task": demonstration.task,
            "split": demonstration.split,
            "instruction": trajectory.extra_info,
        }
        for name, text in texts.items():
            repeated = pa.array(np.zeros(count, np.int32), mask=np.full(count, text is None))
            columns[name] = pa.DictionaryArray.from_arrays(repeated, pa.array([text or ""]))
        layout = {part.name: part for part in self._kind.layout(trajectory.states)}
        parts = self._kind.parts(trajectory.states)
        for name, column in part_columns(schema.names).items():
            if layout[name].is_text:
                columns[column] = _texts(parts[name][rows], where)
            else:
                columns |= _numbers(parts[name][rows], column, self._kind, schema, where)
        if self._kind.annotated:
            columns |= {name: _words(trajectory, name, where)[rows] for name in WORD_COLUMNS}
            if self._screenshots.type is not None:
                columns[SCREENSHOT] = self._screenshots.array(piece.cells or (None,) * count)
        arrays = [pa.array(columns[f.name], type=f.type) for f in schema]
        return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _schema(demonstrations: list[Demonstration], metadata: Metadata, screenshot: pa.DataType | None) -> pa.Schema:
    """The schema with all columns that these demonstrations need.

    Every set gets the column for goals. A set of screens also gets the columns for action texts and step instructions.
    Later demonstrations may need these columns.

    Args:
        demonstrations: demonstrations of the first row group.
        metadata: metadata of the set.
        screenshot: type of the screenshot column, or None to leave it out.
    """
    trajectories = [demonstration.trajectory for demonstration in demonstrations]
    kind, first = metadata.state_kind, trajectories[0]
    fields = [pa.field("episode", pa.int32(), nullable=False)]
    for part in kind.layout(first.states):
        column = f"{PART}{part.name}" if part.name else "state"
        fields.append(pa.field(column, _part_type(kind, part), nullable=False))
    fields += [pa.field(name, pa.int32(), nullable=False) for name in kind.sides]
    actions = next((t.actions for t in trajectories if t.actions is not None), None)
    if actions is not None:
        number = pa.from_numpy_dtype(actions.dtype)
        size = int(np.prod(actions.shape[1:]))
        fields.append(pa.field("action", pa.list_(number, size) if actions.ndim > 1 else number))
    if any(t.rewards is not None for t in trajectories):
        fields.append(pa.field("reward", pa.float64()))
    if any(t.log_probs is not None for t in trajectories):
        fields.append(pa.field("log_prob", pa.float64()))
    fields.append(pa.field("goal", pa.bool_()))
    fields += [pa.field(name, pa.bool_(), nullable=False) for name in ("terminated", "truncated")]
    texts = {"role": False, "task": False, "split": True, "instruction": False}  # null means that no split is stated
    fields += [pa.field(name, TEXT, nullable=nullable) for name, nullable in texts.items()]
    if kind.annotated:
        fields += [pa.field(name, pa.string()) for name in WORD_COLUMNS]
        fields += [pa.field(SCREENSHOT, screenshot)] if screenshot is not None else []
    return pa.schema(fields)


def _part_type(kind: StateKind, part: PartLayout) -> pa.DataType:
    """The column type of a part. A list has a variable size if states of this kind may vary in height or width."""
    if part.is_text:
        return TEXT
    number = pa.from_numpy_dtype(np.dtype(part.dtype))
    if not part.shape:
        return number
    return pa.list_(number) if kind.sides else pa.list_(number, math.prod(part.shape))


def _text_parts(schema: pa.Schema) -> bool:
    """Whether at least one part of the states is text."""
    return any(schema.field(column).type == TEXT for column in part_columns(schema.names).values())


def _numbers(array: NDArray[Any], column: str, kind: StateKind, schema: pa.Schema, where: str) -> dict[str, Any]:
    """The columns of a numeric part, by name: the numbers and, for grids and images, height and width."""
    rows = len(array)
    flat = array.reshape(rows, -1)
    stored = schema.field(column).type
    wanted = dtype_of(value_type(stored))
    if not np.can_cast(flat.dtype, wanted, "safe"):
        raise InputError(f"{where}: states are {flat.dtype} after {wanted} ones; expected one dtype: convert them")
    if pa.types.is_fixed_size_list(stored) and flat.shape[1] != stored.list_size:
        raise InputError(
            f"{where}: states of {flat.shape[1]} numbers after states of {stored.list_size}; expected one "
            "width: write them to files of their own"
        )
    values = pa.array(np.ascontiguousarray(flat, wanted).reshape(-1))
    if not is_list(stored):
        return {column: values}
    if pa.types.is_fixed_size_list(stored):
        return {column: pa.FixedSizeListArray.from_arrays(values, stored.list_size)}
    offsets = np.arange(rows + 1, dtype=np.int32) * flat.shape[1]
    sides = {name: np.full(rows, array.shape[1 + place], np.int32) for place, name in enumerate(kind.sides)}
    return {column: pa.ListArray.from_arrays(pa.array(offsets), values), **sides}


def _texts(array: NDArray[Any], where: str) -> pa.Array:
    """The column of a text part. It is a dictionary, which holds each distinct text once."""
    codes: dict[bytes, int] = {}
    indices = [codes.setdefault(value, len(codes)) for value in array.tolist()]
    try:
        texts = pa.array([value.decode() for value in codes], pa.string())
    except UnicodeDecodeError as error:
        raise InputError(f"{where}: a text that is not UTF-8 ({error.reason}); expected UTF-8") from None
    return pa.DictionaryArray.from_arrays(pa.array(indices, pa.int32()), texts)


def _words(trajectory: Trajectory, name: str, where: str) -> pa.Array:
    """The column `action_text` or `step_instruction`. Its last row is null. Without such texts, all rows are null."""
    rows, words = len(trajectory.states), getattr(trajectory, f"{name}s")
    if words and len(words) != rows - 1:
        raise InputError(f"{where}: {len(words)} of {name} for {rows} states; expected {rows - 1}, or none")
    try:
        return pa.array([*words, None] if words else [None] * rows, pa.string())
    except UnicodeEncodeError:
        raise InputError(f"{where}: {name} is not Unicode text; expected letters: correct it") from None


def _padded(values: NDArray[Any], kind: pa.DataType, where: str) -> pa.Array:
    """A column of T+1 entries from T values. The last entry is null."""
    try:
        if not pa.types.is_fixed_size_list(kind):
            return pa.concat_arrays([pa.array(values, kind), pa.nulls(1, kind)])
        if math.prod(values.shape[1:]) != kind.list_size:
            raise pa.ArrowInvalid(f"{values.shape[1:]} beside {kind.list_size}")
        inner = pa.array(values.reshape(-1)).cast(kind.value_type)
        return pa.concat_arrays([pa.FixedSizeListArray.from_arrays(inner, type=kind), pa.nulls(1, kind)])
    except (pa.ArrowException, ValueError, TypeError) as error:
        raise InputError(
            f"{where}: actions of shape {values.shape[1:]} and {values.dtype} do not fit {kind} ({error}); "
            "expected one kind of action in a set: convert them apart"
        ) from None
