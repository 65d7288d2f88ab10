"""The files of a run."""

from __future__ import annotations

import re
import shlex
import time
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class RunPaths:
    """Where a run keeps what (docs/runs.md)."""

    folder: Path

    @property
    def resume(self) -> str:
        """What to add to `grace-irl fit` to go on with this run, as a shell reads it."""
        return f"--resume {shlex.quote(str(self.folder))}"

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
    def report(self) -> Path:
        """What the run did and found, as a page for a browser."""
        return self.folder / "report.html"

    @property
    def goals(self) -> Path:
        """Goal states of the expert trajectories, for a person to read and correct (label rule "goal")."""
        return self.folder / "goals.toml"

    @property
    def manual(self) -> Path:
        """Prompts that wait for a person, and the answers (`--proposer manual`)."""
        return self.folder / "manual"

    @property
    def lock(self) -> Path:
        """Held by the process that works on the run."""
        return self.folder / "lock"


def default_folder(demos: str) -> Path:
    """`runs/<name of the set>-<time>`, not yet made."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", Path(demos).stem if demos else "demos").strip("-.") or "demos"
    stem = Path("runs") / f"{name}-{time.strftime('%Y%m%d-%H%M%S')}"
    folder, number = stem, 2
    while folder.exists():
        folder, number = stem.with_name(f"{stem.name}-{number}"), number + 1
    return folder
