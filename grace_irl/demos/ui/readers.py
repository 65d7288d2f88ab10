"""Readers of screens by how a file's name ends; each is imported when such a file is met."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from grace_irl.demos.memory import Memory
from grace_irl.demos.source import Source

TASK = "task.json"
"""What an episode that is a folder says of itself."""

DUMPS = "hierarchy"
"""Where its dumps may be."""

_OTHERS = (".parquet", ".npz", ".tfrecord", ".json", ".json.gz", ".yaml", ".yml")


def is_episode(folder: Path) -> bool:
    """Whether a folder has the dumps of one episode: a task file beside them, or nothing else that may be data."""
    if not folder.is_dir() or not steps(folder):
        return False
    return (folder / TASK).is_file() or not any(file.name.endswith(_OTHERS) for file in folder.iterdir())


def steps(folder: Path) -> list[Path]:
    """The dumps of an episode, in order."""
    inner = folder / DUMPS
    dumps = (inner if inner.is_dir() else folder).glob("*.xml")
    return sorted((dump for dump in dumps if not dump.name.startswith(".")), key=natural)


def natural(path: Path) -> list[tuple[int, int | str]]:
    """A sort key under which step_2 comes before step_10."""
    parts = re.split(r"(\d+)", path.name)
    return [(0, int(part)) if part.isdecimal() else (1, part) for part in parts]


def _dump(path: Path, memory: Memory) -> Source:
    from grace_irl.demos.ui.folder import open_dump

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
    from grace_irl.demos.ui.folder import open_folder

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
"""Names that stand for demonstrations in a folder where nothing else does: recipes and cards end in the like."""
