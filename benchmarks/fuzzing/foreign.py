"""Files of other programs that are nearly right: tables, arrays, and the folders of imitation, LeRobot and RLDS."""

from __future__ import annotations

import csv
import gzip
import io
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from fuzzing import mutations as m
from fuzzing.datasets import UNFIT, change_columns, change_inside
from fuzzing.draw import Draw
from fuzzing.screens import written

_NAMES = (
    "episode",
    "episode_id",
    "step",
    "t",
    "x",
    "y",
    "action",
    "reward",
    "done",
    "label",
    "role",
    "instruction",
    "",
)
_ROWS: list[dict[str, Any]] = [
    {
        "episode": row // 2,
        "step": row % 2,
        "x": row / 2,
        "y": 1 - row,
        "action": row % 3,
        "reward": 0.5,
        "done": row % 2 == 1,
        "label": ("expert", "negative")[row // 2],
    }
    for row in range(4)
]
_ODD = (float("nan"), float("inf"), -1, 255, 1e308)


def table(rng: Draw, folder: Path) -> Path:
    """A table with a row for each state, as CSV, as JSON Lines or as wide Parquet."""
    rows: Any = [dict(row) for row in _ROWS]
    for name in tuple(_ROWS[0]):
        if name not in ("x", "episode") and rng.random() < 0.3:
            rows = [{key: value for key, value in row.items() if key != name} for row in rows]
    for _ in rng.rounds():
        if rng.random() < 0.3:
            old, new = rng.choice(list(_ROWS[0])), rng.choice(_NAMES)
            rng.changed()
            rows = [
                {new if key == old else key: value for key, value in row.items()} if isinstance(row, dict) else row
                for row in rows
            ]
        else:
            rows = m.in_value(rng, rows)
            rows = rows if isinstance(rows, list) else [rows]
    whole = [row for row in rows if isinstance(row, dict)]
    sort = rng.choice((".csv", ".tsv", ".csv.gz", ".jsonl", ".ndjson.gz", ".parquet"))
    if sort == ".parquet":
        data = _parquet(whole)
    elif "json" in sort:
        data = b"\n".join(written(rng, row) for row in rows) + b"\n" * rng.randrange(2)
    else:
        text = io.StringIO()
        names = dict.fromkeys(str(name) for row in whole for name in row)
        writer = csv.DictWriter(text, list(names), delimiter="\t" if "tsv" in sort else rng.choice((",", ",", ";")))
        writer.writeheader()
        writer.writerows({str(name): _cell(value) for name, value in row.items()} for row in whole)
        data = text.getvalue().encode("utf-8", "surrogatepass")
    data = gzip.compress(data, mtime=0) if sort.endswith(".gz") else data
    path = folder / f"expert{sort}"
    path.write_bytes(m.in_bytes(rng, data) if rng.may(0.2) else data)
    return path


def _cell(value: Any) -> Any:
    """A value that a line of CSV can hold."""
    return "a list" if isinstance(value, list | dict) else value


def _parquet(rows: list[dict[str, Any]]) -> bytes:
    stream = io.BytesIO()
    try:
        pq.write_table(pa.Table.from_pylist(rows), stream)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):  # values of several types
        texts = [{str(name).encode("utf-8", "replace").decode(): 1.0 for name in row} for row in rows]
        pq.write_table(pa.Table.from_pylist(texts), stream)
    return stream.getvalue()


def arrays(rng: Draw, folder: Path) -> Path:
    """Arrays as npy, as D4RL's npz and HDF5, and as robomimic's groups."""
    sort = rng.choice((".npy", ".npz", ".hdf5", ".h5"))
    path = folder / f"expert{sort}"
    flat: dict[str, Any] = {
        "observations": np.arange(12.0).reshape(6, 2),
        "actions": np.zeros((6, 1)),
        "rewards": np.ones(6),
        "terminals": np.array([0, 0, 1, 0, 0, 1], bool),
        "timeouts": np.zeros(6, bool),
    }
    if rng.random() < 0.5:
        flat["next_observations"] = flat["observations"] + 1
    if sort == ".npy":
        array: Any = rng.choice((np.zeros((2, 3, 4)), np.zeros((2, 3, 4, 4, 3), np.uint8), np.array([{}], object)))
        np.save(path, _changed(rng, array))
    elif sort == ".npz":
        for _ in rng.rounds():
            name = rng.choice(list(flat))
            flat[name] = _changed(rng, flat[name])
            if rng.random() < 0.3:
                flat[rng.choice((*flat, "infos", "states"))] = flat.pop(name)
        np.savez(path, **flat)
    else:
        _groups(rng, path, flat, robomimic=sort == ".h5")
    if rng.may(0.15):
        path.write_bytes(m.in_bytes(rng, path.read_bytes()))
    return path


def _groups(rng: Draw, path: Path, flat: dict[str, Any], robomimic: bool) -> None:
    import h5py

    with h5py.File(path, "w") as file:
        for number in range(2) if robomimic else ():
            group = file.create_group(f"data/demo_{number}")
            group["obs/joints"], group["obs/grip"] = np.zeros((3, 2)), np.arange(3.0)
            group["actions"], group["rewards"], group["dones"] = np.zeros((3, 1)), np.ones(3), np.array([0, 0, 1])
            if rng.random() < 0.5:
                group["next_obs/joints"], group["next_obs/grip"] = np.ones((3, 2)), np.arange(3.0)
        for name, array in {} if robomimic else flat.items():
            file[name] = array
    if changes := len(rng.rounds()):
        change_inside(rng, path, changes)


def _changed(rng: Draw, array: Any) -> Any:
    """The array with other rows, another shape or type, or an odd number."""
    if not rng.changed(0.6):
        return array
    try:
        kind = rng.randrange(5)
        if kind == 0:
            return array[: rng.choice((0, 1, len(array) - 1))]
        if kind == 1:
            return rng.choice((array.T, array[..., None], array.reshape(-1), array[0]))
        if kind == 2:
            return array.astype(rng.choice(("f2", ">f8", "i1", "u8", "?", "U3", "c16", "M8[s]")))
        array = array.copy()
        array.flat[rng.randrange(array.size)] = rng.choice(_ODD)
    except (ValueError, TypeError, IndexError, OverflowError):
        return array
    return array


def imitation(rng: Draw, folder: Path) -> Path:
    """A folder of imitation's `serialize.save`."""
    place = folder / "expert"
    features: Any = {"features": {name: {"_type": "Sequence"} for name in ("obs", "acts", "infos", "terminal", "rews")}}
    states = [np.arange(6.0).reshape(3, 2).tolist()] * 2
    whole = pa.table(
        {
            "obs": states,
            "acts": [[0, 1]] * 2,
            "infos": [["{}", "{}"]] * 2,
            "terminal": [True, False],
            "rews": [[0.5, 1.0]] * 2,
        }
    )
    for _ in rng.rounds():
        if rng.random() < 0.25:
            features = m.in_value(rng, features)
        else:
            whole = _table(rng, whole)
    stream = io.BytesIO()
    with pa.ipc.new_stream(stream, whole.schema) as out:
        out.write_table(whole)
    return _folder(rng, place, {"dataset_info.json": written(rng, features), "data-0.arrow": stream.getvalue()})


def lerobot(rng: Draw, folder: Path) -> Path:
    """A folder of LeRobot."""
    about: Any = {
        "codebase_version": "v2.1",
        "features": {
            "observation.state": {"dtype": "float32", "shape": [2], "names": {"motors": ["a", "b"]}},
            "observation.mode": {"dtype": "int64", "shape": [1], "names": None},
            "observation.image": {"dtype": "video", "shape": [8, 8, 3]},
            "action": {"dtype": "float32", "shape": [1], "names": None},
        },
    }
    if rng.random() < 0.5:
        del about["features"]["observation.mode"]
    steps = pa.table(
        {
            "observation.state": np.arange(8.0).reshape(4, 2).tolist(),
            "observation.mode": [0, 1, 0, 1],
            "action": [[0.0], [1.0]] * 2,
            "next.reward": [0.5, 1.0] * 2,
            "next.done": [False, True] * 2,
            "episode_index": [0, 0, 1, 1],
            "task_index": [0, 0, 1, 1],
        }
    )
    tasks: Any = [{"task_index": 0, "task": "lift"}, {"task_index": 1, "task": "push"}]
    for _ in rng.rounds():
        kind = rng.randrange(4)
        if kind == 0:
            about = m.in_value(rng, about)
        elif kind == 1:
            tasks = m.in_value(rng, tasks)
        else:
            steps = _table(rng, steps)
    stream = io.BytesIO()
    pq.write_table(steps, stream)
    lines = tasks if isinstance(tasks, list) else [tasks]
    files = {
        "meta/info.json": written(rng, about),
        "meta/tasks.jsonl": b"\n".join(written(rng, line) for line in lines),
        "data/chunk-000/file-000.parquet": stream.getvalue(),
    }
    return _folder(rng, folder / "expert", files)


def rlds(rng: Draw, folder: Path) -> Path:
    """A folder of TensorFlow Datasets with episodes."""
    from grace_irl.demos.tfrecord import write_record
    from grace_irl.demos.ui.androidcontrol_pb2 import Example

    def tensor(dtype: str, *shape: int) -> dict[str, Any]:
        return {"tensor": {"dtype": dtype, "shape": {"dimensions": [str(each) for each in shape]} if shape else {}}}

    steps: dict[str, Any] = {
        "observation/joints": ([0.0, 1.0] * 3, tensor("float32", 2)),
        "observation/mode": ([b"idle", b"on", b"idle"], {"text": {}}),
        "observation/image": ([b"png"] * 3, {"image": {"dtype": "uint8", "shape": {"dimensions": ["8", "8", "3"]}}}),
        "action": ([1, 0, 1], tensor("int64")),
        "reward": ([0.5] * 3, tensor("float32")),
        "is_terminal": ([0, 0, 1], tensor("bool")),
        "is_last": ([0, 0, 1], tensor("bool")),
        "language_instruction": ([b"lift"] * 3, {"text": {}}),
    }
    for name in ("observation/mode", "observation/image", "reward", "language_instruction"):
        if rng.random() < 0.3:
            del steps[name]
    observed = {name.split("/")[1]: each for name, (_, each) in steps.items() if "/" in name}
    features: Any = {name: each for name, (_, each) in steps.items() if "/" not in name}
    features["observation"] = {"featuresDict": {"features": observed}}
    features = {"steps": {"sequence": {"feature": {"featuresDict": {"features": features}}, "length": "-1"}}}
    features = {"featuresDict": {"features": features}}
    values = {f"steps/{name}": list(each) for name, (each, _) in steps.items()}
    for _ in rng.rounds():
        kind = rng.randrange(4)
        name = rng.choice(list(values))
        if kind == 0:
            features = m.in_value(rng, features)
        elif kind == 1:
            rng.changed()
            values[name] = rng.choice((values[name][:-1], values[name] * 2, [], [b"\xff"] * 3, [2**62] * 3))
        elif kind == 2 and len(values) > 1:
            rng.changed()
            del values[name]
        elif all(isinstance(each, int | float) for each in values[name]):
            rng.changed()
            values[name] = [rng.choice((*_ODD, 0.5)) for _ in values[name]]
    example = Example()
    for name, numbers in values.items():
        feature = example.features.feature[name]
        if all(isinstance(each, bytes) for each in numbers):
            feature.bytes_list.value.extend(numbers)
        elif all(isinstance(each, int) for each in numbers):
            feature.int64_list.value.extend(numbers)
        else:
            feature.float_list.value.extend(np.clip(numbers, -3e38, 3e38))
    stream = io.BytesIO()
    for _ in range(rng.choice((1, 2))):
        data = example.SerializeToString()
        write_record(stream, m.in_bytes(rng, data) if rng.may(0.1) else data)
    files = {"features.json": written(rng, features), "arm-train.tfrecord-00000-of-00001": stream.getvalue()}
    return _folder(rng, folder / "expert", files)


def _table(rng: Draw, whole: pa.Table) -> pa.Table:
    try:
        return pa.Table.from_batches([change_columns(rng, whole)])
    except UNFIT:
        return whole


def _folder(rng: Draw, place: Path, files: dict[str, bytes]) -> Path:
    """Write a folder, at times with a damaged or missing file."""
    for name, data in files.items():
        if rng.may(0.03):
            rng.changed()
            continue
        path = place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(m.in_bytes(rng, data) if rng.may(0.06) else data)
    place.mkdir(exist_ok=True)
    return place
