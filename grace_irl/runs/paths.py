"""The files of a run, and writing files so that nobody ever sees half of one."""

from __future__ import annotations

import os
import re
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class RunPaths:
    """Where a run keeps what (docs/runs.md)."""

    folder: Path

    @property
    def config(self) -> Path:
        """The resolved configuration."""
        return self.folder / "config.toml"

    @property
    def database(self) -> Path:
        """All that the run remembers."""
        return self.folder / "run.db"

    @property
    def reward(self) -> Path:
        """The best program so far, as exported."""
        return self.folder / "reward.py"

    @property
    def lock(self) -> Path:
        """Held by the process that works on the run."""
        return self.folder / "lock"


def write_atomically(path: Path, text: str) -> None:
    """Writes a file whole or not at all: a temporary file beside it, then a rename."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def default_folder(demos: str) -> Path:
    """`runs/<name of the set>-<time>`, not yet made."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", Path(demos).stem if demos else "demos").strip("-.") or "demos"
    stem = Path("runs") / f"{name}-{time.strftime('%Y%m%d-%H%M%S')}"
    folder, number = stem, 2
    while folder.exists():
        folder, number = stem.with_name(f"{stem.name}-{number}"), number + 1
    return folder
