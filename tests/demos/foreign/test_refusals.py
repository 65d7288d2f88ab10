"""Files of other programs that cannot be read: each is refused in one line."""

import gzip
import io
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from grace_irl.demos import load
from grace_irl.errors import InputError
from tests.demos.foreign.writing import (
    NAMES,
    described,
    flat,
    plain,
    rlds,
    table,
    tensor,
    to_csv,
    to_hdf5,
    to_imitation,
    to_lerobot,
)


def write_bytes(name: str, data: bytes) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        (folder / name).write_bytes(data)
        return folder / name

    return write


def linked(folder: Path) -> Path:
    to_hdf5(plain(), folder / "there.hdf5")
    with h5py.File(folder / "set.hdf5", "w") as file:
        file["observations"] = h5py.ExternalLink("there.hdf5", "/observations")
        file["terminals"] = np.zeros(6)
    return folder / "set.hdf5"


def lerobot(change: Callable[[Path], object]) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        to_lerobot(plain(NAMES), folder / "robot")
        change(folder / "robot")
        return folder / "robot"

    return write


def imitation(column: str, values: list[Any]) -> Callable[[Path], Path]:
    """imitation's folder with another column."""

    def write(folder: Path) -> Path:
        to_imitation(plain(), folder / "set")
        file = folder / "set" / "data-00000-of-00001.arrow"
        whole = pa.ipc.open_stream(file.read_bytes()).read_all()
        whole = whole.set_column(whole.column_names.index(column), column, pa.array(values))
        with pa.OSFile(str(file), "wb") as stream, pa.ipc.new_stream(stream, whole.schema) as out:
            out.write_table(whole)
        return folder / "set"

    return write


def group(name: str) -> Callable[[Path], Path]:
    """An HDF5 file with an empty group."""

    def write(folder: Path) -> Path:
        with h5py.File(folder / "set.hdf5", "w") as file:
            file.create_group(name)
        return folder / "set.hdf5"

    return write


def compressed(folder: Path) -> Path:
    """imitation's folder with a compressed column, which may unpack to any size."""
    path = imitation("terminal", [True, False])(folder)
    file = path / "data-00000-of-00001.arrow"
    whole = pa.ipc.open_stream(file.read_bytes()).read_all()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.OSFile(str(file), "wb") as stream, pa.ipc.new_stream(stream, whole.schema, options=options) as out:
        out.write_table(whole)
    return path


def offsets_behind_the_end(folder: Path) -> Path:
    """imitation's folder whose lists say that they end behind the file, which a map of the file would follow."""
    path = imitation("terminal", [True, False])(folder)
    file = path / "data-00000-of-00001.arrow"
    data = file.read_bytes()
    ends = np.array([0, 4, 6], np.int32).tobytes()  # of the actions: four in the first episode, two in the second
    assert ends in data
    file.write_bytes(data.replace(ends, np.array([0, 4, 2**30], np.int32).tobytes()))
    return path


def steps_of_lerobot(column: str, values: list[Any]) -> Callable[[Path], Path]:
    """LeRobot's folder with another column in the rows of its first file, of five states."""

    def change(folder: Path) -> None:
        file = folder / "data" / "chunk-000" / "episode_000000.parquet"
        whole = pq.read_table(file)
        pq.write_table(whole.set_column(whole.column_names.index(column), column, pa.array(values)), file)

    return lerobot(change)


def shards(data: bytes | None) -> Callable[[Path], Path]:
    """RLDS with other bytes in its shard; None for no shard."""

    def change(folder: Path) -> None:
        (shard,) = folder.glob("*.tfrecord*")
        shard.unlink()
        if data is not None:
            shard.write_bytes(data)

    return rlds(change)


def next_states(folder: Path) -> Path:
    """D4RL's next states with another number of components."""
    np.savez(folder / "set.npz", **flat(plain()) | {"next_observations": np.zeros((6, 2))})
    return folder / "set.npz"


def empty_arrays(folder: Path) -> Path:
    np.savez(folder / "set.npz", observations=np.zeros((0, 3)), terminals=np.zeros(0, bool))
    return folder / "set.npz"


def next_without_a_part(folder: Path) -> Path:
    """HDF5 whose next states lack a part that the states have."""
    with h5py.File(folder / "set.hdf5", "w") as file:
        file["observations/a"], file["observations/b"] = np.zeros((4, 2)), np.zeros((4, 1))
        file["next_observations/a"], file["terminals"] = np.zeros((4, 2)), np.array([0, 1, 0, 1])
    return folder / "set.hdf5"


def flags_in_a_group(folder: Path) -> Path:
    with h5py.File(folder / "set.hdf5", "w") as file:
        file["observations"], file["terminals/a"] = np.zeros((4, 2)), np.array([0, 1, 0, 1])
    return folder / "set.hdf5"


def twice(folder: Path) -> Path:
    """imitation's folder with two columns of one name."""
    path = imitation("terminal", [True, False])(folder)
    file = path / "data-00000-of-00001.arrow"
    whole = pa.ipc.open_stream(file.read_bytes()).read_all()
    whole = whole.rename_columns([{"rews": "obs"}.get(name, name) for name in whole.column_names])
    with pa.OSFile(str(file), "wb") as stream, pa.ipc.new_stream(stream, whole.schema) as out:
        out.write_table(whole)
    return path


def npy_header(shape: tuple[int, ...]) -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": "<f8", "fortran_order": False, "shape": shape})
    return stream.getvalue()


def pickled(folder: Path) -> Path:
    np.save(folder / "set.npy", np.array([{}, []], object))
    return folder / "set.npy"


BAD: dict[str, tuple[Callable[[Path], Path], str]] = {
    "uneven lines": (write_bytes("set.csv", b"episode,x\n0,1\n0\n"), "not readable as CSV"),
    "no lines": (write_bytes("set.csv", b"episode,x\n"), "an empty table"),
    "not UTF-8": (write_bytes("set.csv", b"episode,x\n0,\xff\xfe\n"), "expected"),
    "two columns of a name": (write_bytes("set.csv", b"episode,x,x\n0,1,2\n"), "'x'"),
    "a hole": (write_bytes("set.csv", b"episode,x\n0,1\n0,\n"), "step 1, field 'x'"),
    "damaged gzip": (write_bytes("set.csv.gz", b"\x1f\x8b\x08 nothing"), "not readable"),
    "damaged lines": (write_bytes("set.jsonl.gz", gzip.compress(b'{"episode": 0, "x": 1}')[:-9]), "not readable"),
    "no object": (write_bytes("set.jsonl", b'{"episode": 0, "x": 1}\n[1]\n'), "line 2: list; expected a JSON object"),
    "no JSON": (write_bytes("set.jsonl", b'{"episode": 0\n'), "line 1"),
    "deep JSON": (write_bytes("set.jsonl", b"[" * 100_000), "line 1"),
    "other keys": (
        write_bytes("set.jsonl", b'{"episode": 0, "x": 1}\n{"episode": 0, "y": 1}\n'),
        "row 1 differs from row 0 in 'x'",
    ),
    "a label in between": (
        lambda folder: (to_csv(table(label=[1, 0, 1, 1]), folder / "set.csv"), folder / "set.csv")[1],
        "column 'label' holds '0', '1'; expected one value in all rows of an episode",
    ),
    "a pickle": (pickled, "which is a pickle"),
    "half an array": (write_bytes("set.npy", b"\x93NUMPY\x01\x00"), "not readable as npy"),
    "no hdf5": (write_bytes("set.hdf5", b"\x89HDF\r\n\x1a\n and then nothing"), "not readable as hdf5"),
    "a link": (linked, "is a link to"),
    "another layout": (
        lambda folder: (h5py.File(folder / "set.hdf5", "w").create_group("here"), folder / "set.hdf5")[1],
        "here at its root; expected D4RL's observations",
    ),
    "an empty group of episodes": (group("data"), "nothing in its group data; expected D4RL's observations"),
    "an empty episode": (group("data/demo_0"), "demo_0: nothing; expected observations in a group"),
    "empty observations": (group("data/demo_0/obs"), "demo_0: no arrays in the group 'obs'; expected at least one"),
    "arrays of unknown names": (
        lambda folder: (np.savez(folder / "set.npz", a=np.zeros((5, 3)), b=np.zeros(5)), folder / "set.npz")[1],
        "arrays a of shape (5, 3), b of shape (5,); expected 'observations' with 'terminals' or",
    ),
    "names that are not UTF-8": (
        write_bytes("set.csv", b"episode,x\xff\n0,1\n"),
        "names of columns that are not UTF-8",
    ),
    "a header without end": (write_bytes("set.npy", b"\x93NUMPY\x01\x00\x06\x00{'a':("), "not readable as npy"),
    "more numbers than bytes": (write_bytes("set.npy", npy_header((2, 2**40, 3)) + bytes(96)), "not readable as npy"),
    "next states of another shape": (next_states, "next ones of shape (2,); expected one shape"),
    "rewards that are texts": (imitation("rews", [list("abcd"), ["e", "f"]]), "rews: <U1 of shape (4,)"),
    "a compressed Arrow stream": (compressed, "a compressed column or a dictionary"),
    "lists behind the end": (offsets_behind_the_end, "not readable"),
    "an empty Arrow stream": (
        lambda folder: (
            (imitation("terminal", [True, False])(folder) / "data-00000-of-00001.arrow").write_bytes(b""),
            folder / "set",
        )[1],
        "an empty Arrow stream",
    ),
    "a dict of nothing": (write_bytes("set.jsonl", b'{"observations": {}}\n'), "a dict without parts"),
    "texts for states": (write_bytes("set.jsonl", b'{"episode": 0, "state": "here"}\n'), "not well-formed XML"),
    "LeRobot's infinite task": (
        lerobot(lambda folder: (folder / "meta" / "tasks.jsonl").write_text('{"task_index": Infinity, "task": "a"}')),
        "the tasks in meta are not readable",
    ),
    "LeRobot's episodes without numbers": (steps_of_lerobot("episode_index", ["a"] * 5), "episode_index"),
    "LeRobot's episodes with halves": (steps_of_lerobot("episode_index", [0.5] * 5), "numbers that are not whole"),
    "LeRobot's rewards in lists": (steps_of_lerobot("next.reward", [[0.5, 1.0]] * 5), "one number for each row"),
    "RLDS without shards": (shards(None), "no TFRecord file"),
    "RLDS with a part of its shards": (
        rlds(lambda folder: next(folder.glob("*.tfrecord*")).rename(folder / "robot-train.tfrecord-00001-of-00003")),
        "1 of 3 shards of robot-train",
    ),
    "RLDS in another file format": (
        rlds(
            lambda folder: next(folder.glob("*.tfrecord*")).rename(folder / "robot-train.array_record-00000-of-00001")
        ),
        "prepare it in the file format tfrecord",
    ),
    "RLDS with two flags a step": (described(is_terminal=tensor("bool", 2)), "is_terminal"),
    "RLDS with an infinite shape": (described(observation=tensor("float32", math.inf)), "a shape of ['inf']"),
    "D4RL without rows": (empty_arrays, "no episodes"),
    "D4RL with flags in a group": (flags_in_a_group, "terminals has parts; expected one array"),
    "next states without a part": (next_without_a_part, "expected the same parts"),
    "an Arrow stream of nulls": (imitation("obs", pa.nulls(2)), "a column of null"),
    "an Arrow stream of lists of nothing": (
        imitation("obs", pa.array([[], []], pa.list_(pa.int64(), 0))),
        "a column of fixed",
    ),
    "imitation's columns twice": (twice, "two columns"),
    "RLDS with half a shard": (shards(b"\x09\0\0\0"), "bytes of a header"),
    "RLDS without observations": (
        described(observation=None),
        "no observations of numbers or texts among steps/action",
    ),
    "RLDS of pictures alone": (described(observation={"image": {"dtype": "uint8"}}), "no observations of numbers"),
    "RLDS with a feature of another sort": (described(observation={"sequence": {}}), "a feature 'sequence'"),
    "RLDS with a shape that varies": (described(observation=tensor("float32", -1)), "a shape of ['-1']"),
    "RLDS with another shape": (described(observation=tensor("float32", 4)), "15 numbers; expected a multiple of 4"),
    "RLDS with another type": (described(observation=tensor("int64", 3)), "holds floats; expected int64"),
    "RLDS with texts for numbers": (described(observation={"text": {}}), "steps/observation holds no texts"),
    "RLDS with another number of steps": (described(action=tensor("float64")), "features of [5, 10] steps"),
    "RLDS without a feature": (
        described(observation={"featuresDict": {"features": {"a": tensor("int64")}}}),
        "no feature 'steps/observation/a'",
    ),
    "LeRobot without data": (lerobot(lambda folder: (folder / "data").rename(folder / "other")), "no Parquet file"),
    "LeRobot's damaged tasks": (
        lerobot(lambda folder: (folder / "meta" / "tasks.jsonl").write_text("{")),
        "the tasks in meta are not readable",
    ),
    "LeRobot of pictures alone": (
        lerobot(
            lambda folder: (folder / "meta" / "info.json").write_text(
                json.dumps({"codebase_version": "v2.1", "features": {"observation.image": {"dtype": "image"}}})
            )
        ),
        "no observations of numbers among observation.image",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_refused_in_one_line(name: str, tmp_path: Path) -> None:
    make, said = BAD[name]
    with pytest.raises(InputError) as error:
        load([make(tmp_path)], role="expert")
    message = str(error.value)
    assert said in message
    assert "expected" in message
    assert "\n" not in message
