"""Sets of demonstrations whose files of kilobytes stand for gigabytes."""

from __future__ import annotations

import gzip
import json
import string
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from grace_irl.demos import save
from tests.fakes.data import vector_set

MEGABYTE = 1 << 20
ROWS = 3000
LONG = "x" * MEGABYTE
SCREEN = '<hierarchy rotation="0"><node text="OK"/></hierarchy>'


def screens(**columns: Any) -> pa.Table:
    """Screens of 30 trajectories, with other columns."""
    plain = {"episode": np.repeat(np.arange(ROWS // 100), 100), "state": [SCREEN] * ROWS, "role": ["expert"] * ROWS}
    return pa.table({**plain, **columns})


def repeated(text: str) -> pa.DictionaryArray:
    """One text in all rows: in the file once, as the entry of a dictionary."""
    return pa.DictionaryArray.from_arrays(np.zeros(ROWS, np.int32), [text])


def parquet(table: pa.Table, path: Path, **options: Any) -> Path:
    pq.write_table(table, path, compression="zstd", row_group_size=ROWS, dictionary_pagesize_limit=1 << 30, **options)
    return path


def screens_of_a_megabyte(folder: Path) -> Path:
    screen = SCREEN.replace("OK", LONG)
    return parquet(screens(state=repeated(screen)), folder / "expert.parquet")


def paths_of_a_megabyte(folder: Path) -> Path:
    paths = pa.StructArray.from_arrays([pa.array([LONG[: MEGABYTE // 4]] * ROWS)], ["path"])
    return parquet(screens(screenshot=paths), folder / "expert.parquet")


def texts_with_one_beginning(folder: Path) -> Path:
    texts = pa.array([LONG[: MEGABYTE // 4] + str(number) for number in range(ROWS)])
    encoding = {"action_text": "DELTA_BYTE_ARRAY"}
    path = folder / "expert.parquet"
    pq.write_table(
        screens(action_text=texts), path, compression="zstd", use_dictionary=["state"], column_encoding=encoding
    )
    return path


def a_page_of_two_gigabytes(folder: Path) -> Path:
    """One dictionary page, of a text that is no screen."""
    path = folder / "expert.parquet"
    text = pa.array(["x" * 300 * MEGABYTE])
    table = pa.table({"episode": [0], "state": [SCREEN], "role": ["expert"], "instruction": text})
    pq.write_table(table, path, compression="zstd", dictionary_pagesize_limit=1 << 30, store_schema=False)
    return path


def numbers_of_a_dictionary(folder: Path) -> Path:
    """One number, a hundred million times."""
    count = 100_000
    states = pa.FixedSizeListArray.from_arrays(np.zeros(count * 1000), 1000)
    path = folder / "expert.parquet"
    table = pa.table({"episode": np.zeros(count, np.int64), "state": states})
    pq.write_table(table, path, compression="zstd", row_group_size=count)
    return path


def zeros(folder: Path) -> Path:
    np.savez_compressed(
        folder / "expert.npz", observations=np.zeros((1 << 22, 96), np.uint8), episode_lengths=np.array([1 << 22])
    )
    return folder / "expert.npz"


def many_episodes(folder: Path) -> Path:
    count = 2_000_000
    np.savez_compressed(
        folder / "expert.npz", observations=np.zeros((count, 1), np.uint8), episode_lengths=np.ones(count, np.int64)
    )
    return folder / "expert.npz"


def wide_rewards(folder: Path) -> Path:
    """A byte for each reward becomes eight."""
    rows = 1 << 26
    arrays = {"observations": np.zeros((rows, 1), np.uint8), "rewards": np.zeros(rows, np.uint8)}
    np.savez_compressed(folder / "expert.npz", **arrays, episode_lengths=np.array([rows]))
    return folder / "expert.npz"


def several_files(folder: Path) -> Path:
    """Each of them would do."""
    inside = folder / "several"
    inside.mkdir()
    for number in range(3):
        rows = 1 << 20
        np.savez_compressed(
            inside / f"expert-{number}.npz", observations=np.zeros((rows, 120), np.uint8), episode_lengths=[rows]
        )
    return inside


def minari(folder: Path, change: Callable[[Any], None]) -> Path:
    h5py = pytest.importorskip("h5py")
    pytest.importorskip("minari")
    save(vector_set(actions=True), folder / "expert-v0", "minari")
    with h5py.File(folder / "expert-v0" / "data" / "main_data.hdf5", "a") as file:
        change(file["episode_0"])
    return folder / "expert-v0"


def states_that_nobody_wrote(folder: Path) -> Path:
    """Chunks that are not there are zeros."""

    def change(group: Any) -> None:
        del group["rewards"]
        group.create_dataset("rewards", (1 << 36,), np.float64, chunks=(1 << 16,))

    return minari(folder, change)


def a_chunk_that_goes_on(folder: Path) -> Path:
    """HDF5 unpacks a chunk to its end, and not to the size that it has."""
    import zlib

    def change(group: Any) -> None:
        value = group["rewards"][()]
        del group["rewards"]
        made = group.create_dataset("rewards", value.shape, value.dtype, chunks=value.shape, compression="gzip")
        made.id.write_direct_chunk((0,), zlib.compress(bytes(700 * MEGABYTE), 9))

    return minari(folder, change)


def arrow_that_unpacks(folder: Path) -> Path:
    pytest.importorskip("minari")
    save(vector_set(), folder / "expert-v0", "minari-arrow")
    (file,) = (folder / "expert-v0" / "data" / "0").glob("*.arrow")
    table = pa.ipc.open_file(file.read_bytes()).read_all()
    more = pa.table({**{n: table[n] for n in table.column_names}, "infos": pa.array([LONG * 60] * len(table))})
    with pa.ipc.new_file(file, more.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as out:
        out.write(more)
    return folder / "expert-v0"


def a_screen_of_attributes(folder: Path) -> Path:
    """Empty attributes take most of the bytes that they are written in."""
    node = "<node " + " ".join(f'{letter}=""' for letter in string.ascii_lowercase) + "/>"
    (folder / "expert.xml").write_text(f"<hierarchy>{node * 99_000}</hierarchy>")
    return folder / "expert.xml"


def a_history_of_letters(folder: Path) -> Path:
    """Texts of one letter, packed."""
    with gzip.open(folder / "expert.json.gz", "wt", encoding="utf-8") as file:
        file.write("[" + '"\u0101",' * 6_000_000 + "0]")
    return folder / "expert.json.gz"


def a_tree_of_nodes(folder: Path) -> Path:
    """Three bytes for each, which has all attributes as XML."""
    (folder / "expert.json").write_text(json.dumps({"children": [{}] * 60_000}))
    return folder / "expert.json"


def a_record_of_elements(folder: Path) -> Path:
    pytest.importorskip("yaml")
    state = "<p id=1></p>" * 60_000
    (folder / "expert.yaml").write_text(f"records: [{{State: '{state}'}}]\n")
    return folder / "expert.yaml"


HUGE: dict[str, Callable[[Path], Path]] = {
    function.__name__.replace("_", " "): function
    for function in (
        screens_of_a_megabyte,
        paths_of_a_megabyte,
        texts_with_one_beginning,
        a_page_of_two_gigabytes,
        numbers_of_a_dictionary,
        zeros,
        many_episodes,
        wide_rewards,
        several_files,
        states_that_nobody_wrote,
        a_chunk_that_goes_on,
        arrow_that_unpacks,
        a_screen_of_attributes,
        a_history_of_letters,
        a_tree_of_nodes,
        a_record_of_elements,
    )
}
