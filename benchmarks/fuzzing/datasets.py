"""Minari datasets that are nearly right, in hdf5 and in arrow; and folders with demonstrations of several formats."""

from __future__ import annotations

import io
import json
import os
import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from fuzzing import archives, screens, tables
from fuzzing import mutations as m
from fuzzing.draw import Draw, change

_VALUES: tuple[Any, ...] = (
    *(0, 1.5, True, "a", "é", b"\xff", [], [1, 2, 3], [[1.0, 2.0]] * 4, [["a"]], [float("nan")] * 4, [1, 2], 2**63),
    *([True, False], ["a", "b", "c"], np.zeros((3, 2, 3), np.uint8), np.zeros((3, 0)), np.array([1 + 2j]), -1),
)
_CLAIMS: tuple[Any, ...] = (
    *(0, 1, 3, -1, 2**70, 1.5, float("nan"), "arrow", "hdf5", "parquet", None, True, {}, '{"id": "a"}', "[]"),
)
_DTYPES = ("f2", "f4", ">f8", "i1", "u8", "?", "S3", "c16")
_SPACES: tuple[Any, ...] = (
    {"type": "Discrete", "dtype": "int64", "start": 0, "n": 3},
    {"type": "Discrete", "dtype": "int64", "start": 0, "n": -3},
    {"type": "Text", "max_length": 4, "min_length": 0, "charset": "ab"},
    {"type": "Tuple", "subspaces": [{"type": "Discrete", "dtype": "int64", "start": 0, "n": 3}]},
    {"type": "Box", "dtype": "uint8", "shape": [1, 2, 3], "low": [[[0] * 3] * 2], "high": [[[255] * 3] * 2]},
    {"type": "Box", "dtype": "float32", "shape": [], "low": 0, "high": 1},
    {"type": "MultiDiscrete", "dtype": "int64", "nvec": [2, 3], "start": [0, 0]},
    {"type": "MultiBinary", "n": 3},
    {"type": "Dict", "subspaces": {}},
    {"type": "Nothing"},
)


@cache
def _dataset(kind: str, form: str) -> dict[str, bytes]:
    """The files of a small dataset as this project writes it: two episodes of two steps."""
    from grace_irl.demos import save
    from grace_irl.demos.trajectory import Demonstration, Demonstrations, Metadata, Trajectory

    states: Any = np.arange(6.0).reshape(3, 2) if kind != "grid" else np.arange(18, dtype=np.uint8).reshape(3, 1, 2, 3)
    actions: Any = np.array([0, 1]) if kind != "plain" else np.ones((2, 2))
    text = "" if kind == "plain" else "set an alarm"
    items = [
        Demonstration(Trajectory(states, actions, text, rewards=np.ones(2), log_probs=-np.ones(2)), "expert", "a"),
        Demonstration(Trajectory(states, actions, text, rewards=np.ones(2), log_probs=-np.ones(2)), "negative", "a"),
    ]
    metadata = Metadata("grid" if kind == "grid" else "vector", label="all")
    with tempfile.TemporaryDirectory() as folder:
        save(Demonstrations(metadata, tuple(items)), f"{folder}/set-v0", "minari" if form == "hdf5" else "minari-arrow")
        root = Path(folder) / "set-v0"
        return {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def hdf5(rng: Draw, folder: Path) -> Path:
    """A dataset in hdf5, changed in its metadata and in its groups, arrays and attributes, seldom in its bytes."""
    files = dict(_dataset(rng.choice(("plain", "vector", "grid")), "hdf5"))
    inside = 0
    for _ in rng.rounds():
        if rng.random() < 0.35:
            _change_metadata(rng, files, "data/metadata.json")
        else:
            inside += 1
    path = _written(folder, files)
    if inside:
        change_inside(rng, path / "data" / "main_data.hdf5", inside)
    if rng.random() < 0.05:
        main = path / "data" / "main_data.hdf5"
        main.write_bytes(m.in_bytes(rng, main.read_bytes()))
    return path


def arrow(rng: Draw, folder: Path) -> Path:
    """A dataset in arrow, changed in its metadata and in its tables, at times in its bytes."""
    files = dict(_dataset(rng.choice(("plain", "vector", "grid")), "arrow"))
    for _ in rng.rounds():
        name = rng.choice(list(files))
        kind = rng.randrange(10)
        if name.endswith(".json"):
            _change_metadata(rng, files, name)
        elif kind == 0:
            rng.changed()
            del files[name]
        elif kind == 1:
            files[name] = m.in_bytes(rng, files[name])
        else:
            files[name] = _change_table(rng, files[name])
    return _written(folder, files)


def mixed(rng: Draw, folder: Path) -> Path:
    """A folder with files of several formats, names that are unusual, and what is no demonstration beside them."""
    place = folder / "set"
    place.mkdir()
    made = 0
    for make in (archives.npz, tables.numbers, tables.screens, screens.xml, arrow):
        if rng.random() < 0.4:
            inner = folder / f"of-{made}"
            inner.mkdir()
            rng.calm = rng.random() < 0.8
            found = make(rng, inner)
            rng.calm = False
            name = (
                found.name if rng.random() < 0.9 else rng.choice(("negative.npz", "a.parquet", "\udcff.npz", "b\n.npz"))
            )
            if not (place / name).exists():
                shutil.move(found, place / name)
            made += 1
    for _ in rng.rounds() if rng.random() < 0.5 else ():
        rng.changed()
        name = rng.choice(("a.pkl", "a.npz", "README.md", "card.txt", ".hidden", "a.npy", "b.parquet", "metadata.json"))
        target = place / name
        kind = rng.randrange(4)
        if target.exists() or target.is_symlink():
            continue
        if kind == 0:
            target.mkdir()
        elif kind == 1:
            target.write_bytes(rng.randbytes(rng.choice((0, 1, 40))))
        elif kind == 2:
            os.symlink(rng.choice(("nothing", ".", name, "/dev/null")), target)
        else:
            target.write_bytes(screens.written(rng, {"data_format": "hdf5", "total_episodes": 1}))
    return place


def _written(folder: Path, files: dict[str, bytes]) -> Path:
    path = folder / "expert-v0"
    for name, data in files.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(data)
    (path / "data").mkdir(parents=True, exist_ok=True)
    return path


@change
def _change_metadata(rng: Draw, files: dict[str, bytes], name: str) -> None:
    """Something else in a JSON file, or in the JSON that stands in one of its texts."""
    try:
        about = json.loads(files[name])
        texts = [key for key, value in about.items() if isinstance(value, str) and value[:1] == "{"]
        key = rng.choice(texts) if texts else ""
        inner = json.loads(about[key]) if texts else None
    except (KeyError, ValueError, RecursionError, AttributeError):  # damaged before
        files[name] = m.in_bytes(rng, files.get(name, b""))
        return
    kind = rng.randrange(8)
    if texts and kind < 4:
        inner = rng.choice(_SPACES) if key.endswith("_space") and rng.random() < 0.4 else m.in_value(rng, inner)
        about[key] = screens.written(rng, inner).decode("utf-8", "replace")
    elif kind == 4 and about:
        about[rng.choice(list(about))] = m.scalar(rng)
    elif kind == 5:
        key = rng.choice(("data_format", "total_episodes", "total_steps", "jpeg_encoding", "env_spec", "id"))
        about[key] = rng.choice(_CLAIMS)
    else:
        about = m.in_value(rng, about)
    files[name] = screens.written(rng, about)


def change_inside(rng: Draw, path: Path, changes: int) -> None:
    """Changes what an hdf5 file holds."""
    import h5py

    with h5py.File(path, "r+") as file:
        for _ in range(changes):
            rng.changed()
            names: list[str] = []
            file.visit(names.append)
            name = rng.choice(names or ["episode_0"])
            kind = rng.randrange(9)
            try:
                item = file[name]
                if kind == 0:
                    del file[name]
                elif kind == 1:
                    file.move(name, rng.choice(("episode_7", "episode_0/infos", "episode_1/observations", f"{name}x")))
                elif kind < 4 and isinstance(item, h5py.Dataset):
                    data = item[()]
                    del file[name]
                    file[name] = rng.choice((data[:-1], data[:0], data.T, data[..., None], np.concatenate([data] * 2)))
                elif kind == 4 and isinstance(item, h5py.Dataset):
                    data = item[()].astype(rng.choice(_DTYPES))
                    del file[name]
                    file[name] = data
                elif kind == 5 and isinstance(item, h5py.Dataset) and item.dtype.kind in "fiu" and item.size:
                    data = item[()]
                    data.flat[rng.randrange(data.size)] = rng.choice((float("nan"), float("inf"), -1, 255, 1e308))
                    item[...] = data
                elif kind == 6:
                    target = name.partition("/")[0]
                    about = json.loads(file[target].attrs["grace_irl"])
                    file[target].attrs["grace_irl"] = json.dumps(m.in_value(rng, about))
                elif kind == 7:
                    target = name.partition("/")[0]
                    key = rng.choice(("total_steps", "grace_irl", "id", "seed", "a/b", "total_steps/a"))
                    file[target].attrs[key] = rng.choice((*_VALUES, "[]", "null", "{", '{"role": 3}', '{"goals": 3}'))
                else:
                    del file[name]
                    link = h5py.SoftLink(rng.choice((f"/{name}", "/nothing", "/", "/episode_1")))
                    file[name] = link if rng.random() < 0.3 else rng.choice(_VALUES)
            except (ValueError, TypeError, LookupError, OverflowError, OSError, RuntimeError, AttributeError):
                continue  # what this item cannot be


@change
def _change_table(rng: Draw, data: bytes) -> bytes:
    """Another column, another value, other rows, in a file of arrow."""
    try:
        batch = change_columns(rng, pa.ipc.open_file(io.BytesIO(data)).read_all())
    except UNFIT:  # damaged before, or what this column cannot be
        return m.in_bytes(rng, data)
    stream = io.BytesIO()
    with pa.ipc.new_file(stream, batch.schema) as writer:
        writer.write_batch(batch)
        if rng.random() < 0.05:
            writer.write_batch(batch)
    return stream.getvalue()


UNFIT = (pa.ArrowException, OSError, ValueError, IndexError, TypeError, KeyError)
"""Errors of a change that does not fit what it changes."""


@change
def change_columns(rng: Draw, table: pa.Table) -> pa.RecordBatch:
    """Another column, another value, or other rows.

    Raises:
        UNFIT: what this column cannot be.
    """
    columns = {name: table.column(name).combine_chunks() for name in table.column_names}
    name = rng.choice(list(columns))
    column = columns[name]
    kind = rng.randrange(7)
    if kind == 0:
        del columns[name]
    elif kind == 1:
        columns[rng.choice((*columns, "infos", "actions", "x"))] = column
    elif kind == 2:
        columns = {key: values[: rng.choice((0, 1, 2, len(values)))] for key, values in columns.items()}
    elif kind == 3:
        columns[name] = pa.array([rng.choice((None, 1.5, 7))] * len(column))
    elif kind == 4:
        columns[name] = pa.array([rng.choice(([], [1.0], "a", None, {"a": 1}))] * len(column))
    elif kind == 5:
        values = column.to_pylist()
        values[rng.randrange(len(values))] = None
        columns[name] = pa.array(values, column.type)
    else:
        columns[name] = column.cast(rng.choice((pa.string(), pa.float32(), pa.int8(), pa.bool_())))
    rows = min(map(len, columns.values()), default=0)
    return pa.record_batch({key: values[:rows] for key, values in columns.items()})
