"""Demonstrations in Parquet that are nearly right: screens, vectors and grids, with every column."""

from __future__ import annotations

import hashlib
import io
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from fuzzing import mutations as m
from fuzzing.draw import Draw, change
from fuzzing.screens import DUMP, PNG, dump, written

COMMON: dict[str, list[Any]] = {
    "episode": [0, 0, 1, 1],
    "instruction": ["set", "set", "b", "b"],
    "role": ["expert", "expert", "negative", "negative"],
    "task": ["a", "a", "b", "b"],
    "split": ["train", "train", None, None],
    "reward": [1.0, None, 0.5, None],
    "log_prob": [-1.0, None, -0.5, None],
    "action": [3, None, 1, None],
    "terminated": [False, True, False, True],
    "truncated": [False, False, False, True],
    "goal": [False, True, None, None],
}
NAMES = (*COMMON, "state", "height", "width", "action_text", "step_instruction", "screenshot", "", "a.b")
_PATHS = (None, "b.png", "a.parquet", "gone.png", "../a.png", "/dev/zero", "/etc/hostname", "http://a/b.png", "", "\0")
_TYPES = (
    *(pa.string(), pa.large_string(), pa.binary(), pa.float16(), pa.float32(), pa.float64(), pa.int8(), pa.int16()),
    *(pa.int32(), pa.uint8(), pa.uint64(), pa.bool_(), pa.null(), pa.date32(), pa.timestamp("ns"), pa.decimal128(9, 2)),
    *(pa.list_(pa.float64()), pa.list_(pa.float32(), 2), pa.large_list(pa.int64()), pa.list_(pa.list_(pa.int8()))),
    *(pa.string_view(), pa.binary_view(), pa.month_day_nano_interval()),
    *(pa.list_view(pa.int32()), pa.list_(pa.float64(), 0), pa.list_(pa.bool_()), pa.struct([("a", pa.int8())])),
)


def numbers(rng: Draw, folder: Path) -> Path:
    """A table of vectors or of grids."""
    columns = dict(COMMON)
    about: Any = {"format": 1, "role": "mixed", "tasks": ["a", "b"], "view": "", "environment": "", "label": "all"}
    if rng.random() < 0.5:
        width = rng.choice((1, 2, 3))
        columns["state"] = [[float(i + j) for j in range(width)] for i in range(4)]
        about |= {"kind": "vector", "dtype": "float64", "shape": [width], "fields": [f"x{i}" for i in range(width)]}
        states: Any = rng.choice((pa.list_(pa.float64()), pa.list_(pa.float32(), width), pa.large_list(pa.int16())))
    else:
        columns |= {"height": [1] * 4, "width": [2] * 4, "state": [[i % 3] * 6 for i in range(4)]}
        about |= {"kind": "grid", "dtype": "uint8", "shape": [1, 2, 3], "fields": []}
        states = rng.choice((pa.list_(pa.uint8()), pa.list_(pa.int64(), 6), pa.list_(pa.uint16())))
    if rng.random() < 0.3:
        columns["action"] = [[0.5, 1.0], None, [0.0, -1.0], None]
        about["action_shape"] = rng.choice(([2], None))
    for name in COMMON:
        if name != "episode" and rng.random() < 0.2:
            del columns[name]
    return _file(rng, folder, columns, about, {"state": states})


def screens(rng: Draw, folder: Path) -> Path:
    """A table of screens, at times with screenshots."""
    rng.calm = rng.random() < 0.25
    shown = [dump(rng).decode("utf-8", "replace") if rng.may(0.1) else DUMP, DUMP, "<hierarchy/>", DUMP]
    columns: dict[str, list[Any]] = {
        **COMMON,
        "state": shown,
        "action_text": ['{"action_type": "click"}', None, "b", None],
        "step_instruction": ["tap", None, "tap", None],
    }
    about: Any = {"kind": "ui", "view": "uiautomator", "format": 1, "role": "mixed", "tasks": ["a"], "shape": []}
    pictures: dict[str, Any] = {}
    (folder / "b.png").write_bytes(PNG)
    if rng.random() < 0.5:
        columns["screenshot"] = [_screenshot(rng) for _ in shown]
        numbers = ("start", "length", "record", "step")
        kinds = {"bytes": pa.binary(), "path": pa.string(), "sha256": pa.string(), **dict.fromkeys(numbers, pa.int64())}
        if rng.changed(0.2):
            name = rng.choice(list(kinds))
            del kinds[name]
            if rng.random() < 0.5:
                kinds[name] = rng.choice((pa.null(), pa.binary(), pa.string(), pa.float64(), pa.list_(pa.int8())))
        pictures["screenshot"] = pa.struct(list(kinds.items()))
    return _file(rng, folder, columns, about, pictures)


def _file(rng: Draw, folder: Path, columns: dict[str, list[Any]], about: Any, types: dict[str, Any]) -> Path:
    for _ in rng.rounds():
        kind = rng.randrange(12)
        if kind < 6:
            _change_column(rng, columns, types)
        elif kind < 8:
            about = m.in_value(rng, about)
        elif kind == 8:
            rng.changed()
            if isinstance(about, dict) and about:
                about = {**about}
                odd = (*m.KEYS, "grid", "vector", "ui", "last", ["a", "b"], [2, 3], 9)
                about[rng.choice(list(about))] = rng.choice(odd)
        elif kind == 9:  # the sides of a grid, or the rows of an episode
            rng.changed()
            at, name = rng.randrange(4), rng.choice(("height", "width", "episode"))
            columns[name] = list(columns.get(name, [2] * 4))
            if columns[name]:
                columns[name][at % len(columns[name])] = rng.choice((0, 1, 2, 3, -1, 2**31, 2**62))
        elif kind == 10:
            rng.changed()
            turned = rng.choice((0, 1, 3))  # rows cut, doubled or in another order
            columns = {k: (v[:turned], v * 2, v[::-1], v[2:])[turned] for k, v in columns.items()}
        else:
            rng.changed()
            types[rng.choice(list(columns))] = rng.choice(_TYPES)
    rows = min(map(len, columns.values()))
    table = pa.table({name: _array(rng, values[:rows], types.get(name)) for name, values in columns.items()})
    if rng.random() < 0.8:
        table = table.replace_schema_metadata({"grace_irl": written(rng, about)})
    stream = io.BytesIO()
    options: dict[str, Any] = {"row_group_size": rng.choice((1, 2, 100)), "compression": rng.choice(("snappy", "none"))}
    try:
        pq.write_table(table, stream, write_page_checksum=rng.random() < 0.7, **options)
    except (pa.ArrowException, TypeError):  # a type that Parquet has not
        pq.write_table(pa.table({"episode": [0], "state": ["a"]}), stream)
    data = stream.getvalue()
    path = folder / "expert_a.parquet"
    path.write_bytes(m.in_bytes(rng, data) if rng.may(0.15) else data)
    return path


@change
def _change_column(rng: Draw, columns: dict[str, list[Any]], types: dict[str, Any]) -> None:
    """Drops, renames, empties or changes one column, or one of its values."""
    name = rng.choice(list(columns))
    values = columns[name]
    kind = rng.randrange(7)
    if kind == 0 and len(columns) > 1:
        del columns[name]
    elif kind == 1:
        columns[rng.choice(NAMES)] = values
    elif kind == 2:
        columns[name] = [m.scalar(rng) if rng.random() < 0.4 else old for old in values]
        types.pop(name, None)
    elif kind == 3:
        columns[name] = [rng.choice(([], [1.0, 2.0], [None], "a", 0, None))] * len(values)
        types.pop(name, None)
    elif kind == 4:
        columns[name] = [None if rng.random() < 0.4 else old for old in values]
    elif kind == 5:  # one of them longer, shorter, or of other numbers
        at = rng.randrange(len(values) or 1)
        columns[name] = [_other(rng, old) if place == at else old for place, old in enumerate(values)]
    else:
        columns[name] = [_other(rng, old) for old in values]


def _other(rng: Draw, value: Any) -> Any:
    """A value that may still be of its type."""
    if isinstance(value, list):
        kind = rng.randrange(4)
        odd = rng.choice((float("nan"), float("inf"), -1, 0, 255, 1e308, None))
        return (value[:-1], [*value, 1], [*value[:-1], odd], [odd] * len(value))[kind]
    if isinstance(value, str):
        return rng.choice((*m.TEXTS, "held_out", "negative", "expert", "train"))
    return rng.choice((float("nan"), float("inf"), -1, 0, 1, 7, 2**40, True, None))


def _screenshot(rng: Draw) -> Any:
    """A row's entry about its screenshot: a picture, or its place."""
    cell: dict[str, Any] = {"bytes": PNG if rng.random() < 0.5 else None, "path": "b.png"}
    if rng.changed(0.2):
        cell["path"] = rng.choice(_PATHS)
    if rng.random() < 0.3:  # where a picture lies in its file
        cell |= {"bytes": None, "start": 0, "length": len(PNG), "sha256": hashlib.sha256(PNG).hexdigest()}
    elif rng.changed(0.2):
        cell |= {name: rng.choice((0, 1, 7, -1, 2**62, None)) for name in ("start", "length", "record", "step")}
        cell["sha256"] = rng.choice((None, "", "0" * 64, hashlib.sha256(PNG).hexdigest()))
    return rng.choice((cell, cell, cell, None))


def _array(rng: Draw, values: list[Any], kind: Any) -> pa.Array:
    """The values as a column: of this type where that can be, else of any."""
    array = None
    for wanted in (kind, None if any(value is not None for value in values) else pa.string()):
        try:
            array = pa.array(values, wanted) if array is None else array
        except (pa.ArrowException, ValueError, TypeError, OverflowError):
            continue
    if array is None:
        array = pa.array([str(value).encode("utf-8", "replace").decode() for value in values])
    try:
        if rng.changed(0.01):
            array = array.cast(rng.choice(_TYPES[:17]))
        if rng.changed(0.01) and pa.types.is_string(array.type):  # text that is none
            array = pa.array(
                [b"\xff\xfe" if v is None else v.encode() + b"\xff" for v in array.to_pylist()], pa.binary()
            )
            array = pa.Array.from_buffers(pa.string(), len(array), array.buffers())
        return array.dictionary_encode() if rng.random() < 0.02 else array
    except (pa.ArrowException, ValueError, OverflowError):
        return array
