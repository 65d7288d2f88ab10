"""Texts of screens: the files of an episode, and how one is read whole."""

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
"""The file with the facts about an episode that is a folder."""


DUMPS = "hierarchy"
"""The folder that may hold its dumps."""


def steps(folder: Path) -> list[Path]:
    """The dumps of an episode, in order."""
    inner = folder / DUMPS
    dumps = (inner if inner.is_dir() else folder).glob("*.xml")
    return sorted((dump for dump in dumps if not dump.name.startswith(".")), key=natural)


def natural(path: Path) -> list[tuple[int, int | str]]:
    """A sort key under which step_2 comes before step_10."""
    parts = re.split(r"(\d+)", path.name)
    return [(0, int(part)) if part.isdecimal() else (1, part) for part in parts]


MAX_BYTES = 32 * 1024 * 1024
"""Longest text that is read whole, once unpacked. Real histories have up to 10 MB."""


MAX_PARTS = 1_000_000
"""Most lists and objects of a JSON file, which take 30 times the bytes that they are written in."""


PARSED = 50
"""Bytes that a byte of a text may become: by hand, 47 of XML that has nothing but empty attributes, 32 of JSON."""


def read_bytes(path: Path, memory: Memory, limit: int = MAX_BYTES) -> bytes:
    """The whole file, unpacked if its name ends in `.gz`; there is memory to parse it.

    Args:
        path: of it.
        memory: of the set.
        limit: most bytes.

    Raises:
        InputError: not readable, damaged, longer than `limit` once unpacked, or larger than the memory once parsed.
    """
    most = min(limit, memory.left // PARSED)
    if path.exists() and not path.is_file():  # to open a pipe would wait for who writes to it
        raise InputError(f"{path}: not a file; expected one: remove it")
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
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
    """The whole file as text.

    Raises:
        InputError: see `read_bytes`; or not UTF-8.
    """
    try:
        return read_bytes(path, memory, limit).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: byte {error.start} is not UTF-8 ({error.reason}); expected text in UTF-8") from None


def read_json(path: Path, memory: Memory) -> Any:
    """The content of a JSON file.

    Raises:
        InputError: see `read_text`; or not JSON, of too many parts, or nested too deep to be read.
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
