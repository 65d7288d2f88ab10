"""Atomic writing of files: a temporary file is written in the same folder, then renamed."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from grace_irl.errors import InputError


def part_of(path: Path) -> Path:
    """A path for the temporary file of `path`. Code that reads the folder ignores temporary files.

    The temporary file is in the same folder, so that renaming is atomic. Its name is random, so that two writers never
    use the same file, and nobody can create the file beforehand.
    """
    return path.with_name(f".{path.name}.{secrets.token_hex(8)}.part")


def write_atomically(path: Path, content: str | bytes) -> None:
    """Write a file atomically, and make its folder if missing. Text is UTF-8.

    Raises:
        InputError: the file cannot be written.
    """
    data = content.encode() if isinstance(content, str) else content
    part = part_of(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with part.open("xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(part, path)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror}); choose another place") from None


def require_new(path: Path, *, force: bool) -> None:
    """Require that no file exists at this path, unless `force` is set.

    Raises:
        InputError: the file exists, and `force` is not set.
    """
    if path.is_file() and not force:
        raise InputError(f"{path}: exists already; expected a new file: choose another, or overwrite it with --force")
