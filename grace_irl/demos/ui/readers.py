"""Readers of screens by how a file's name ends; each is imported when such a file is met."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from grace_irl.demos.memory import Memory
from grace_irl.demos.source import Source
from grace_irl.demos.ui.texts import TASK, steps

_OTHERS = (".parquet", ".npz", ".tfrecord", ".json", ".json.gz", ".yaml", ".yml")


def is_episode(folder: Path) -> bool:
    """Whether a folder has the dumps of one episode: a task file beside them, or nothing else that may be data."""
    if not folder.is_dir() or not steps(folder):
        return False
    return (folder / TASK).is_file() or not any(file.name.endswith(_OTHERS) for file in folder.iterdir())


def _dump(path: Path, memory: Memory) -> Source:
    from grace_irl.demos.ui.episode import open_dump

    return open_dump(path, memory)


def _json(path: Path, memory: Memory) -> Source:
    from grace_irl.demos.ui.trees import open_json

    return open_json(path, memory)


def _elements(path: Path, memory: Memory) -> Source:
    from grace_irl.demos.ui.androidworld import open_elements

    return open_elements(path, memory)


def _records(path: Path, memory: Memory) -> Source:
    from grace_irl.demos.ui.autodroid import open_records

    return open_records(path, memory)


def open_episode(folder: Path, memory: Memory) -> Source:
    """An episode that is a folder (`is_episode`).

    Args:
        folder: of it.
        memory: of the set.

    Raises:
        InputError: it cannot be used.
    """
    from grace_irl.demos.ui.episode import open_folder

    return open_folder(folder, memory)


READERS: dict[str, Callable[[Path, Memory], Source]] = {
    ".xml": _dump,
    ".json": _json,
    ".json.gz": _json,
    "ui_element.txt": _elements,
    ".yaml": _records,
    ".yml": _records,
}

TEXTS = (".json", ".json.gz", "ui_element.txt", "utg.yaml")
"""Names that stand for demonstrations in a folder if nothing else does: recipes and cards end in the like."""
