"""Files that nobody ever sees half of: made beside their place, then moved there."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from grace_irl.errors import InputError


def part_of(path: Path) -> Path:
    """The place of a file before it is moved to `path`: beside it, so that moving is atomic; readers pass it over.

    Nobody can guess its name, and put a link there that leads elsewhere.
    """
    return path.with_name(f".{path.name}.{secrets.token_hex(8)}.part")


def write_atomically(path: Path, content: str | bytes) -> None:
    """Writes a file whole or not at all, and makes its folder. Text is UTF-8.

    Raises:
        InputError: it cannot be written there.
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
