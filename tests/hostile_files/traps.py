"""Traps that hostile files point to: code that leaves a mark when it runs, and a user who made nothing here."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from grace_irl.cli import main
from grace_irl.demos import load, save
from grace_irl.demos.trajectory import Demonstrations
from grace_irl.runs.config import resolve
from tests.fakes.data import vector_set

ADAPTER = """
from pathlib import Path
Path({mark!r}).write_text("the file's code ran")
def make():
    raise RuntimeError("made")
"""
ANSWER = """class Reward:
    def __init__(self, extra_info=None):
        pass

    def reward_fn(self, state):
        return float(state[1] > 0.25)
"""


@dataclass(frozen=True)
class Trap:
    """Code in a file.

    Attributes:
        mark: exists once the code has run.
        name: of an environment that runs it.
    """

    mark: Path
    name: str

    @property
    def sprung(self) -> bool:
        """Whether the code has run."""
        return self.mark.exists()


def trap(folder: Path) -> Trap:
    """A file whose code leaves a mark."""
    mark, path = folder / "mark", folder / "evil.py"
    path.write_text(ADAPTER.format(mark=str(mark)))
    return Trap(mark, f"{path}:make")


def demos(folder: Path, name: str = "set.parquet") -> Path:
    """A small set of vectors in a file."""
    path = folder / name
    save(vector_set(noise=0.05), path)
    return path


def run(folder: Path, data: Path, *more: str, code: int = 0) -> Path:
    """A small run of the synthesiser."""
    out = folder / "run"
    assert main(["fit", "--demos", str(data), "--out", str(out), *SMALL, *more]) == code
    return out


SMALL = ("--population", "2", "--elite", "1", "--generations", "1", "--workers", "1", "--max-calls", "4")


def recording(path: Path, settings: Mapping[str, Mapping[str, Any]], sources: tuple[str, ...] = (ANSWER,)) -> Path:
    """A recording as a stranger writes one: any settings, any answers."""
    config = resolve().model_dump(mode="json")
    for section, values in settings.items():
        config[section] |= values
    header = {"format": "grace-irl recording 1", "calls": len(sources), "config": config}
    rows = [{"index": index, "attempt": 0, "source": source, "failure": ""} for index, source in enumerate(sources)]
    path.write_text("\n".join(json.dumps(row) for row in (header, *rows)) + "\n")
    return path


def stranger(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """From here on the user is one who made nothing on this machine yet."""
    state = folder / "another-users-state"
    shutil.rmtree(state, ignore_errors=True)
    monkeypatch.setenv("XDG_STATE_HOME", str(state))


def changed(run: Path, **settings: object) -> Path:
    """The configuration of a run, with lines changed as an editor does it."""
    path = run / "config.toml"
    lines, section = [], ""
    for line in path.read_text().splitlines():
        if line.startswith("["):
            section = line.strip("[]") + "."
        name = (section + line.partition(" = ")[0]).replace(".", "__")
        lines.append(f"{line.partition(' = ')[0]} = {json.dumps(settings.pop(name))}" if name in settings else line)
    assert not settings, f"no such setting: {settings}"
    path.write_text("\n".join(lines) + "\n")
    return run


def line(capsys: pytest.CaptureFixture[str]) -> str:
    """The last line of what a command said, alone on its line and printable."""
    said = capsys.readouterr().err.strip().splitlines()
    assert said
    assert said[-1].isprintable()
    assert "a defect of grace-irl" not in said[-1]
    return said[-1]


def loaded(path: Path) -> Demonstrations:
    """The set of a file."""
    return load([str(path)])
