"""Files that appear whole or not at all: made beside their place, then moved there."""

from __future__ import annotations

import os
from pathlib import Path

from grace_irl.errors import InputError


def part_of(path: Path) -> Path:
    """Where a file is made before it is moved to `path`: beside it, so that moving is atomic; readers pass it over."""
    return path.with_name(f".{path.name}.{os.getpid()}.part")


def write_text(path: Path, text: str) -> None:
    """Writes a text in UTF-8, and makes its folder.

    Raises:
        InputError: it cannot be written there.
    """
    part = part_of(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            part.write_text(text, encoding="utf-8")
            os.replace(part, path)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror}); choose another place") from None
