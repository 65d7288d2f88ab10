"""Functions that list the text files of an episode of screens, and read text files within the memory limit."""

from __future__ import annotations

import gzip
import json
import os
import re
import zlib
from pathlib import Path
from typing import Any

from grace_irl.demos.memory import Memory
from grace_irl.errors import InputError

TASK = "task.json"
"""Name of the file with facts about an episode, in the folder of the episode."""


DUMPS = "hierarchy"
"""Name of the optional subfolder with the dumps of an episode. A dump is uiautomator's XML of one screen."""


def steps(folder: Path) -> list[Path]:
    """The dump files (.xml) of an episode, sorted by `natural`, from the subfolder `DUMPS` or else from `folder`."""
    inner = folder / DUMPS
    dumps = (inner if inner.is_dir() else folder).glob("*.xml")
    return sorted((dump for dump in dumps if not dump.name.startswith(".")), key=natural)


def natural(path: Path) -> list[tuple[int, int | str]]:
    """A sort key under which step_2 comes before step_10."""
    parts = re.split(r"(\d+)", path.name)
    return [(0, int(part)) if part.isdecimal() else (1, part) for part in parts]


MAX_BYTES = 32 * 1024 * 1024
"""Maximum size of a text file in bytes after unpacking. Real files, such as AndroidWorld's, have up to 10 MB."""


MAX_PARTS = 1_000_000
"""Maximum number of lists and objects in a JSON file. Lists and objects take 30 times as many bytes in memory as
in the file."""


PARSED = 50
"""Maximum number of bytes in memory per byte of parsed text. The worst cases, measured by hand, are 47 for XML with
only empty attributes, and 32 for JSON."""


def read_bytes(path: Path, memory: Memory, limit: int = MAX_BYTES) -> bytes:
    """Read a whole file, and check that enough memory is left to parse the file. A `.gz` file is unpacked.

    Args:
        path: the file.
        memory: memory limit of the set.
        limit: maximum number of bytes after unpacking.

    Raises:
        InputError: an unreadable or damaged file, more than `limit` bytes, or too little memory to parse the file.
    """
    most = min(limit, memory.left // PARSED)
    if path.exists() and not path.is_file():  # opening a pipe would block until something writes
        raise InputError(f"{path}: not a file; expected one: remove it")
    try:
        with gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb") as file:
            data = bytes(file.read(most + 1))
            size = max(len(data), os.fstat(file.fileno()).st_size)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path}: not readable ({error}); expected a whole file: write or copy it again") from None
    if len(data) > most:
        if size > limit:
            raise InputError(f"{path}: longer than {limit:,} bytes; expected at most that: split it")
        memory.require(PARSED * size, f"{path}: a text of {size:,} bytes or more")
    return data


def read_text(path: Path, memory: Memory, limit: int = MAX_BYTES) -> str:
    """Read a whole file as text. A `.gz` file is unpacked.

    Args:
        path: the file.
        memory: memory limit of the set.
        limit: maximum number of bytes after unpacking.

    Raises:
        InputError: the errors of `read_bytes`, or not UTF-8.
    """
    try:
        return read_bytes(path, memory, limit).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: byte {error.start} is not UTF-8 ({error.reason}); expected text in UTF-8") from None


def read_json(path: Path, memory: Memory) -> Any:
    """Read the content of a JSON file.

    Raises:
        InputError: the errors of `read_text`, invalid JSON, more than `MAX_PARTS` lists and objects, or too deep
            nesting.
    """
    text = read_text(path, memory)
    parts = text.count("{") + text.count("[")
    if parts > MAX_PARTS:
        raise InputError(f"{path}: {parts:,} lists and objects; expected at most {MAX_PARTS:,}: split it")
    try:
        return json.loads(text)
    except RecursionError:
        raise InputError(f"{path}: JSON nested too deep; expected at most some hundred levels") from None
    except ValueError as error:
        raise InputError(f"{path}: not JSON ({str(error)[:160]}); expected a whole file: write it again") from None
