"""The episodes of a Minari dataset in arrow or Parquet: one folder each, with the columns of `Episodes`.

Arrow believes what a file says of its sizes. So compressed columns are refused in arrow files (Minari writes none), the
pages of a Parquet file are read first (`parquet_pages.py`), and every batch is validated before it is looked at.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from grace_irl.contents import require_inside
from grace_irl.demos.memory import Memory
from grace_irl.demos.parquet.pages import Pages
from grace_irl.demos.parquet.schema import is_text, numbers_of
from grace_irl.demos.ui.texts import read_json
from grace_irl.errors import InputError
from grace_irl.states import kind_named, kinds_of_parts
from grace_irl.states.kind import PartLayout, StateKind
from grace_irl.states.record import MOST_PARTS, RECORD
from grace_irl.states.vector import VECTOR

MAGIC = b"ARROW1\0\0"

COLUMNS = ("observations", "actions", "rewards", "terminations", "truncations", "infos.log_prob")
"""The parts that are read of a Parquet file; of an arrow file, nothing is unpacked."""


class ArrowEpisodes:
    """The folders of a dataset (see `Episodes`).

    Args:
        folder: of the dataset, which has one for each episode.
        memory: of the set.
        parquet: the files are Parquet.
    """

    def __init__(self, folder: Path, memory: Memory, *, parquet: bool) -> None:
        self._folder = folder
        self._memory = memory
        self._parquet = parquet
        self._read: tuple[int, list[pa.RecordBatch]] | None = None

    def about(self, index: int, where: str) -> Mapping[str, Any]:
        """See `Episodes.about`."""
        file = self._folder / str(index) / "metadata.json"
        require_inside(file, self._folder)
        about = read_json(file, self._memory)
        if not isinstance(about, Mapping):
            raise InputError(f"{where}: {file} is no object; expected what Minari writes: write it again")
        return about

    def array(self, index: int, names: tuple[str, ...], shape: tuple[int, ...] | None, where: str) -> NDArray[Any]:
        """See `Episodes.array`."""
        parts = [self._numbers(column, shape, where) for column in self._columns(index, names, where)]
        self._memory.require(sum(part.nbytes for part in parts), f"{where}: {'/'.join(names)}")
        whole = np.concatenate(parts)
        return whole if names[0] == "observations" else whole[:-1]  # the others are as long, and one is filled in

    def texts(self, index: int, names: tuple[str, ...], where: str, most: int | None = None) -> list[str]:
        """See `Episodes.texts`."""
        found: list[str] = []
        for column in self._columns(index, names, where):
            column = column[: None if most is None else most - len(found)]
            if not is_text(column.type) or column.null_count:
                raise InputError(f"{where}: {'/'.join(names)} is {column.type}; expected texts without nulls")
            self._memory.require(column.nbytes + TEXT_BYTES * len(column), f"{where}: {'/'.join(names)}")
            found += column.to_pylist()
        return found

    def holds(self, index: int, names: tuple[str, ...], where: str) -> bool:
        """See `Episodes.holds`."""
        kind: pa.DataType = pa.struct(list(self._batches(index, where)[0].schema))
        for name in names:
            place = kind.get_field_index(name) if pa.types.is_struct(kind) else -1
            if place < 0:
                return False
            kind = kind.field(place).type
        return not pa.types.is_struct(kind)

    def _columns(self, index: int, names: tuple[str, ...], where: str) -> Iterator[pa.Array]:
        if not self.holds(index, names, where):
            raise InputError(
                f"{where}: no column {'.'.join(names)[:80]!r}; expected what Minari writes: write it again"
            )
        for batch in self._batches(index, where):
            column = batch.column(names[0])
            for name in names[1:]:
                column = column.field(name)
            yield column

    def _numbers(self, column: pa.Array, shape: tuple[int, ...] | None, where: str) -> NDArray[Any]:
        if not pa.types.is_fixed_size_list(column.type):
            return _plain(column, where)
        width = column.type.list_size
        if shape is not None and int(np.prod(shape)) != width:
            raise InputError(f"{where}: lists of {width} numbers; expected arrays of shape {shape}")
        return _plain(column.flatten(), where).reshape(len(column), *((width,) if shape is None else shape))

    def _batches(self, index: int, where: str) -> list[pa.RecordBatch]:
        if self._read is None or self._read[0] != index:
            self._read = None
            self._read = index, self._opened(index, where)
        return self._read[1]

    def _opened(self, index: int, where: str) -> list[pa.RecordBatch]:
        folder = self._folder / str(index)
        require_inside(folder, self._folder)
        names = sorted(file for file in folder.iterdir() if file.name != "metadata.json" and file.name[0] not in "_.")
        batches: list[pa.RecordBatch] = []
        for file in names:
            require_inside(file, self._folder)
            if not file.is_file():
                raise InputError(f"{file}: not a file; expected the files of one episode")
            for batch in self._parquet_batches(file) if self._parquet else self._arrow_batches(file):
                batch.validate(full=True)
                batches.append(batch)
        if not sum(map(len, batches)):
            raise InputError(f"{where}: no rows; expected at least one state")
        return batches

    def _parquet_batches(self, file: Path) -> Iterator[pa.RecordBatch]:
        opened = pq.ParquetFile(file, pre_buffer=False, page_checksum_verification=True)
        self._memory.require(
            Pages(file, opened, self._memory).batch_bytes(COLUMNS, opened.metadata.num_rows), str(file)
        )
        yield from opened.iter_batches(max(opened.metadata.num_rows, 1), columns=list(COLUMNS), use_threads=False)

    def _arrow_batches(self, file: Path) -> Iterator[pa.RecordBatch]:
        """The batches of a file, message by message: its footer may point to others."""
        self._memory.require(file.stat().st_size, str(file))
        data = file.read_bytes()
        if not data.startswith(MAGIC) or not data.endswith(MAGIC[:6]):
            raise InputError(f"{file}: no arrow file, or damaged; expected what Minari writes: write it again")
        messages = pa.ipc.MessageReader.open_stream(pa.BufferReader(pa.py_buffer(data).slice(len(MAGIC))))
        schema = pa.ipc.read_schema(next(messages))
        for message in messages:
            if message.type != "record batch" or is_compressed(bytes(message.metadata)):
                raise InputError(
                    f"{file}: a compressed column or a dictionary, which may unpack to any size; expected plain "
                    "columns, as Minari writes them: write it again"
                )
            yield pa.ipc.read_record_batch(message, schema)


def is_compressed(metadata: bytes) -> bool:
    """Whether the body of a record batch is compressed, by its message (arrow/format/Message.fbs, a FlatBuffer)."""
    header = _field(metadata, struct.unpack_from("<I", metadata)[0], 2)
    batch = header + struct.unpack_from("<I", metadata, header)[0]
    return _field(metadata, batch, 3) != 0


def _field(data: bytes, table: int, number: int) -> int:
    """Offset of a field of a FlatBuffer's table; 0 if it has none."""
    fields = table - struct.unpack_from("<i", data, table)[0]
    size = struct.unpack_from("<H", data, fields)[0]
    place = 4 + 2 * number
    offset = struct.unpack_from("<H", data, fields + place)[0] if place < size else 0
    return table + offset if offset else 0


def _plain(column: pa.Array, where: str) -> NDArray[Any]:
    kind = column.type
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
        raise InputError(f"{where}: a column of {str(kind)[:80]}; expected numbers")
    return numbers_of(column)


TEXT_BYTES = 64
"""Of a text in a list, besides its characters."""

TEXT_KEYS = ("mission", "instruction", "goal_text")
PICTURE = "image"
"""Name of the part of MiniGrid's observations that is the state: codes of cells, or pixels."""

_EXPECTED = "expected a Box of one dimension, a Box (h, w, 3) of integers, or a Dict of them"


@dataclass(frozen=True)
class Box:
    """A Box of a dataset.

    Attributes:
        shape: of one observation.
        dtype: of its numbers, as stated; those that are stored may be wider.
        image: Minari may store it as JPEG.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    image: bool = False

    @property
    def size(self) -> int:
        """Numbers of one observation."""
        return math.prod(self.shape)


class Layout:
    """Layout of states in the observations of a dataset.

    Args:
        serialised: the observation space, as Minari writes it.
        where: the name of the dataset, for messages.

    Raises:
        InputError: no such space, or one whose observations are no states.

    Attributes:
        kind: of the states.
        fields: their names, if several boxes are joined to one vector.
        boxes: the parts of numbers by name; "" is the observation itself.
        texts: names of the parts that are texts.
        text: the name of the part that is the instruction, or None.
        joined: the boxes are joined to one vector.
        kinds: names of the kinds that the states may be of, if their form leaves several; else ().
    """

    def __init__(self, serialised: object, where: str, kind: str = "") -> None:
        space = described(serialised, "observation_space", where)
        self.text: str | None = None
        self.boxes: dict[str, Box] = {}
        self.fields: tuple[str, ...] = ()
        self.texts: tuple[str, ...] = ()
        self.kinds: tuple[str, ...] = ()
        if space.get("type") == "Dict":
            leaves = dict(_leaves(space, where))
            self.text = next((key for key in TEXT_KEYS if leaves.get(key, {}).get("type") == "Text"), None)
            boxes = {name: box_of(part, where) for name, part in leaves.items() if part.get("type") == "Box"}
            vectors = {name: boxes[name] for name in sorted(boxes) if len(boxes[name].shape) == 1}
            others = set(leaves) - {self.text}
            alone = set(boxes) == {PICTURE} or (set(vectors) == others and len(vectors) == 1)
            self.kind = RECORD if not kind and not alone else kind_named(kind or VECTOR.name)
            if self.kind.has_parts:
                others = others or set(leaves)
                self.text = self.text if self.text not in others else None
                self.kind.require_names(sorted(others), where)
                self.texts = tuple(sorted(name for name in others if leaves[name].get("type") == "Text"))
                numbers = sorted(others - {*self.texts})
                self.boxes = {name: numbers_of_space(name, leaves[name], where) for name in numbers}
                return
            fitting = {name: boxes[name] for name in sorted(boxes) if _fits(self.kind, boxes[name])}
            self.boxes = {PICTURE: boxes[PICTURE]} if PICTURE in boxes and not kind else fitting
            if PICTURE in fitting:
                self.boxes = {PICTURE: fitting[PICTURE]}
            if len(self.boxes) > 1 and self.boxes != vectors:
                raise InputError(
                    f"{where}: {len(self.boxes)} parts of the observations are {self.kind.plural}; expected one: read "
                    f"them as {RECORD.plural} (--kind {RECORD.name})"
                )
        elif space.get("type") == "Box":
            self.boxes = {"": box_of(space, where)}
        shapes = [box.shape for box in self.boxes.values()]
        if not shapes:
            raise InputError(f"{where}: observations of type {str(space.get('type'))[:40]!r}; {_EXPECTED}")
        if len(shapes) == 1 and len(shapes[0]) not in (1, 3):
            raise InputError(f"{where}: observations of shape {shapes[0]}; expected (n,) or (h, w, 3)")
        first = next(iter(self.boxes.values()))
        found = kinds_of_parts([PartLayout("", first.dtype.str, first.shape)])
        self.kind = found[-1]  # there is one for one or three dimensions
        self.kinds = tuple(each.name for each in found) if len(found) > 1 else ()
        if len(self.boxes) > 1:
            self.fields = tuple(f"{name}_{i}" for name, box in self.boxes.items() for i in range(box.size))

    def whole(self, parts: Mapping[str, NDArray[Any]]) -> Any:
        """The states of the stored parts, as their kind has them."""
        if self.kind.has_parts:
            return self.kind.whole(parts)
        arrays = list(parts.values())
        return self.kind.whole({"": arrays[0] if len(arrays) == 1 else np.concatenate(arrays, axis=1)})


def _fits(kind: StateKind, box: Box) -> bool:
    """Whether a box alone is a state of a kind."""
    return kind.recognises_parts([PartLayout("", box.dtype.str, box.shape)])


def _leaves(space: Mapping[str, Any], where: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The parts of a `Dict` that are no `Dict`s themselves, with nested names joined by "/"."""
    stack: list[tuple[str, object]] = [("", space)]
    count = 0
    while stack:
        name, part = stack.pop()
        if not isinstance(part, Mapping):
            raise InputError(f"{where}: part {name[:80]!a} of the observations is no space; {_EXPECTED}")
        if part.get("type") != "Dict":
            yield name, part
            continue
        inner = part.get("subspaces")
        named = inner.items() if isinstance(inner, Mapping) else ()
        stack += [(f"{name}/{key}" if name else str(key), each) for key, each in named]
        count += len(named)
        if count > MOST_PARTS:
            raise InputError(f"{where}: observations of over {MOST_PARTS:,} parts; expected fewer")


def numbers_of_space(name: str, space: Mapping[str, Any], where: str) -> Box:
    """The numbers of a part of a record: a `Box`, or a `Discrete`, `MultiDiscrete` or `MultiBinary` as int64.

    Raises:
        InputError: another space: a part is never left out.
    """
    kind = space.get("type")
    if kind == "Box":
        return box_of(space, where)
    if kind == "Discrete":
        return Box((), np.dtype(np.int64))
    if kind in ("MultiDiscrete", "MultiBinary"):
        counts: Any = space.get("nvec") if kind == "MultiDiscrete" else space.get("n")
        shape = counts if isinstance(counts, list) else [counts]
        if kind == "MultiDiscrete":
            shape = [len(shape)] if isinstance(counts, list) else [None]
        if all(type(side) is int and 0 <= side < 1 << 31 for side in shape):
            return Box(tuple(shape), np.dtype(np.int64))
    raise InputError(
        f"{where}: part {name[:80]!a} of the observations is a {str(kind)[:40]}; expected Box, Discrete, "
        "MultiDiscrete, MultiBinary or Text: create the dataset without it"
    )


def described(serialised: object, name: str, where: str) -> Mapping[str, Any]:
    """The JSON object of a space.

    Raises:
        InputError: it is missing, or none.
    """
    if serialised is None:
        raise InputError(
            f"{where}: no {name} in metadata.json; expected one: Minari would make the environment that the file "
            "names, which runs its code"
        )
    try:
        space = json.loads(serialised) if isinstance(serialised, str) else None
    except (ValueError, RecursionError):
        space = None
    if not isinstance(space, dict) or not isinstance(space.get("subspaces", {}), dict | list):
        raise InputError(f"{where}: {name} in metadata.json is no space; expected what Minari writes: write it again")
    return space


def box_of(space: Mapping[str, Any], where: str) -> Box:
    """The Box that an object describes.

    Raises:
        InputError: sides that are no counts, or a dtype that is no number's.
    """
    sides, name = space.get("shape"), str(space.get("dtype"))[:40]
    try:
        dtype = np.dtype(name)
    except (TypeError, ValueError):
        dtype = np.dtype(object)
    counts = isinstance(sides, list) and len(sides) <= 32 and all(type(side) is int and side >= 0 for side in sides)
    if not counts or dtype.kind not in "biuf":
        raise InputError(f"{where}: a Box of {name} and shape {str(sides)[:80]}; expected numbers and their counts")
    shape = tuple(sides or ())
    # As Minari tells images: at least 32 by 32 bytes from 0 to 255.
    image = len(shape) in (2, 3) and min(shape[:2]) >= 32 and dtype == np.uint8
    image = image and set(_numbers(space.get("low"))) == {0} and set(_numbers(space.get("high"))) == {255}
    return Box(shape, dtype, image)


def _numbers(nested: object) -> Iterator[object]:
    stack = [nested]
    while stack:
        part = stack.pop()
        if isinstance(part, list):
            stack.extend(part)
        else:
            yield part if isinstance(part, int | float) else None
