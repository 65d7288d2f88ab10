"""Readers for the formats of demonstration files. The name of a file, or else its first bytes, select the reader.

A reader is a function `(file, memory)` that returns an open `Source`; a reader of tables also takes the user's choice
of columns. Other Python distributions add readers through the entry-point group `grace_irl.formats`. The name of an
entry point is the ending of a file name, such as `.bag`. The object of the entry point is the reader.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, cast

from grace_irl.demos import tfrecord
from grace_irl.demos.foreign.columns import Columns
from grace_irl.demos.memory import Memory, enough_memory
from grace_irl.demos.minari.source import MinariSource, dataset_folder, datasets_root
from grace_irl.demos.source import Source
from grace_irl.demos.ui.episode import is_episode, open_folder
from grace_irl.errors import InputError, NoSuchFileError
from grace_irl.pages import page

GROUP = "grace_irl.formats"
"""Entry-point group for readers of other distributions."""

PICKLES = (".pkl", ".pickle", ".pt", ".pth", ".joblib")
PICKLE_REASON = (
    "a pickle runs whatever code its author put in it when it is opened, so this format is never read: "
    f"write the arrays as Parquet or npz instead ({page('demonstrations')})"
)

ARRAYS = {
    ".parquet": "parquet.source:open_parquet",
    ".npz": "npz.source:open_npz",
    ".npy": "foreign.arrays:open_npy",
    ".hdf5": "foreign.hdf5:open_hdf5",
    ".h5": "foreign.hdf5:open_hdf5",
}
TABLES = {
    **dict.fromkeys((".csv", ".tsv", ".csv.gz", ".tsv.gz"), "foreign.tables:open_csv"),
    **dict.fromkeys((".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz"), "foreign.tables:open_json_lines"),
}
SCREENS = {
    ".xml": "ui.episode:open_dump",
    ".json": "ui.trees:open_json",
    ".json.gz": "ui.trees:open_json",
    "ui_element.txt": "ui.androidworld:open_elements",
    ".yaml": "ui.autodroid:open_records",
    ".yml": "ui.autodroid:open_records",
}
SHARDS = "ui.androidcontrol:AndroidControlSource"
READERS = {**ARRAYS, **TABLES, **SCREENS}
"""Map from the ending of a file name to the reader of such files, as `module:name` in the package `grace_irl.demos`.
The module is imported when the first such file is opened."""

TEXTS = (*TABLES, ".json", ".json.gz", "ui_element.txt", "utg.yaml")
"""Endings of text files. Beside other demonstrations in a folder, a text file is read only if its name begins with a
role. Otherwise it probably describes the data set."""

CARDS = (".json", ".yaml", ".yml")
"""Endings of files that describe a data set, if they lie beside its demonstrations."""

MAGIC = {b"PAR1": ".parquet", b"PK\3\4": ".npz", b"\x93NUMPY": ".npy", b"\x89HDF\r\n\x1a\n": ".hdf5"}
"""Map from the first bytes of a file to an ending. It is used for files whose names have no known ending."""

PARTITIONS = "foreign.partitions:open_dataset"
CHOOSING = (".parquet", *TABLES, PARTITIONS)
"""Formats of tables. The user may choose the columns of their states."""

FOLDERS = (
    ("foreign.lerobot:is_dataset", "foreign.lerobot:open_dataset"),
    ("foreign.imitation_folder:is_dataset", "foreign.imitation_folder:open_dataset"),
    ("foreign.rlds:is_dataset", "foreign.rlds:open_dataset"),
    ("foreign.partitions:is_dataset", PARTITIONS),
)
"""Names of two functions for each layout of a folder with one data set. The first function recognises such a folder,
and the second function opens the folder."""

Opens = Callable[..., Source]


def open_source(path: str | Path, memory: Memory | None = None, kind: str = "", columns: Columns = Columns()) -> Source:
    """Open one demo file, Minari folder or Minari id.

    Args:
        path: file, folder or Minari id.
        memory: memory limit that all files of a set share; None gives this file its own limit.
        kind: kind of the states, such as "grid", for a Minari dataset without a stated kind. With "", the caller
            chooses the kind later, by the values of the states (`choose_kind`).
        columns: the user's choice of columns, for tables.

    Raises:
        InputError: a file that is missing, of an unknown format, a pickle, damaged, or too large for the memory limit.
    """
    require_utf8(path)
    with enough_memory(path):
        return _open(path, Memory() if memory is None else memory, kind, columns)


def require_readable(file: Path) -> None:
    """Check that this user may read a file or folder.

    Raises:
        InputError: this user may not read it.
    """
    if not os.access(file, os.R_OK | (os.X_OK if file.is_dir() else 0)):
        what = "folder" if file.is_dir() else "file"
        raise InputError(
            f"{file}: this user may not read it; expected a readable {what}: change its permissions, or copy it"
        )


def _open(path: str | Path, memory: Memory, kind: str, columns: Columns) -> Source:
    folder = dataset_folder(path)
    if folder is not None:
        return MinariSource(Path(path), folder, memory, kind)
    file = Path(path)
    if not file.exists():
        raise NoSuchFileError(
            f"{path}: no such file or folder, and no Minari dataset under {datasets_root()}; check the path"
        )
    require_readable(file)
    if file.suffix.lower() in PICKLES:
        raise InputError(f"{path}: a {file.suffix} file; {PICKLE_REASON}")
    end, folder_reader = ending(file), reader_of_folder(file)
    chosen = (columns,) if (folder_reader or end) in CHOOSING else ()
    if columns != Columns() and not chosen:
        raise InputError(
            f"{path}: columns were chosen, and this is no table; expected a CSV, JSON Lines or Parquet file: leave "
            "--state-columns and --episode-column out"
        )
    if folder_reader:
        return cast(Opens, _named(folder_reader))(file, memory, *chosen)
    if is_episode(file):
        return open_folder(file, memory)
    if not file.is_file() or not (end or tfrecord.is_tfrecord(file)):
        raise InputError(
            f"{path}: unknown format {file.suffix or '(no suffix)'!r}; expected {', '.join(endings())}, a Minari "
            "dataset, a shard of AndroidControl, or a folder of screens"
        )
    if not end and reader_of_folder(file.parent):
        raise InputError(f"{path}: a shard of the data set {file.parent}; expected the folder: name it")
    if file.stat().st_size == 0:
        raise InputError(f"{path}: an empty file; expected demonstrations: write or copy it again")
    return _reader(end)(file, memory, *chosen)


def endings() -> tuple[str, ...]:
    """The endings of file names that have a reader. Endings from other distributions come last."""
    return (*READERS, *others())


def others() -> tuple[str, ...]:
    """The endings of file names that have a reader only in other distributions."""
    return tuple(sorted(set(_entries()) - set(READERS)))


def ending(file: Path) -> str:
    """The ending of a file, from its name or else its first bytes.

    The result is "" if neither the name nor the first bytes belong to an ending in `endings()`, as for TFRecord files.
    """
    found = next((end for end in endings() if file.name.lower().endswith(end)), "")
    if found or not file.is_file() or tfrecord.is_tfrecord(file):
        return found
    with file.open("rb") as stream:
        head = stream.read(max(map(len, MAGIC)))
    return next((end for magic, end in MAGIC.items() if head.startswith(magic)), "")


def reader_of_folder(folder: Path) -> str:
    """The name of the reader of a folder with one data set of another library; "" for any other folder."""
    if not folder.is_dir():
        return ""
    return next((opens for recognises, opens in FOLDERS if _named(recognises)(folder)), "")


def require_utf8(path: str | Path) -> None:
    """Check that a file name is UTF-8. Other names cannot be written to a run's database or a report.

    Raises:
        InputError: a name that is not UTF-8.
    """
    try:
        str(path).encode()
    except UnicodeEncodeError:
        raise InputError(f"{str(path)!a}: a name that is not UTF-8; expected one that is: rename it") from None


def _reader(end: str) -> Opens:
    if end and end not in READERS:
        return cast(Opens, _entries()[end].load())
    return cast(Opens, _named(READERS.get(end, SHARDS)))


def _named(place: str) -> Any:
    module, name = place.split(":")
    return getattr(import_module(f"grace_irl.demos.{module}"), name)


@cache
def _entries() -> dict[str, EntryPoint]:
    return {each.name: each for each in entry_points(group=GROUP)}
