"""Killed with its real parts: the command, the shipped demonstrations, a writer without a model, the sandbox."""

from __future__ import annotations

import contextlib
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from tests.runs.test_resume import memory

ROOT = Path(__file__).parents[2]
NEW = ["--demos", "datasets/babyai-go-to-obj", "--set", "stop.target_accuracy=none", "--set", "stop.plateau=none"]
SEARCHES = {
    "grace": ["--population", "8", "--generations", "3"],
    "rf-agent": ["--proposer", "drafts", "--programs", "200"],
    "forge": ["--proposer", "drafts", "--rounds", "12"],
}
"""Settings of a search that takes some seconds."""


def spawn(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "cli.py", "fit", *arguments],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def go_on(folder: Path, method: str) -> subprocess.Popen[str]:
    """What a user would type next, whatever the kill left."""
    if folder.exists():
        return spawn("--resume", str(folder))
    return spawn(*NEW, "--method", method, *SEARCHES[method], "--out", str(folder))


def results(folder: Path) -> int:
    """Number of results that a run has stored; 0 if it has no store."""
    with (
        contextlib.suppress(sqlite3.Error),
        closing(sqlite3.connect(f"file:{folder}/run.db?mode=ro", uri=True)) as found,
    ):
        return int(found.execute("SELECT count(*) FROM results").fetchone()[0])
    return 0


@pytest.mark.slow
@pytest.mark.parametrize("method", SEARCHES)
def test_killed_at_any_moment_it_ends_the_same(method: str, tmp_path: Path) -> None:
    """The same generations, tree or pool: requests with parents, programs with scores, fates, and the winner."""
    whole, folder = tmp_path / "whole", tmp_path / "run"
    process = go_on(whole, method)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    reward, kills = folder / "reward.py", 0
    written = {"before": 0}

    def writes() -> bool:
        return reward.exists() and reward.stat().st_mtime_ns != written["before"]

    # While it loads, creates its folder, searches, and writes its best program.
    stages = [results(whole) * share for share in (0.05, 0.4, 0.8)]
    searched = [lambda least=least: results(folder) > least for least in stages]  # type: ignore[misc]
    begun = time.monotonic()
    for reached in (lambda: time.monotonic() > begun + 0.3, folder.exists, *searched, writes):
        process = go_on(folder, method)
        written["before"] = reward.stat().st_mtime_ns if reward.exists() else 0
        while process.poll() is None and not reached():
            time.sleep(0.005)  # each look opens the database, on a core that the run needs
        kills += process.poll() is None
        process.kill()
        process.communicate()
    assert kills >= 5
    process = go_on(folder, method)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert memory(folder) == memory(whole)
    assert reward.read_text() == (whole / "reward.py").read_text()
