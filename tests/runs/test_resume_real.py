"""Killed with its real parts: the command, the shipped demonstrations, the synthesiser, the sandbox."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.runs.test_resume import memory

ROOT = Path(__file__).parents[2]
NEW = [
    "--demos",
    "datasets/babyai-go-to-obj",
    "--population",
    "8",
    "--generations",
    "3",
    "--set",
    "stop.target_accuracy=none",
    "--set",
    "stop.plateau=none",
]


def spawn(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "cli.py", "fit", *arguments],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def go_on(folder: Path) -> subprocess.Popen[str]:
    """What a user would type next, whatever the kill left."""
    return spawn("--resume", str(folder)) if folder.exists() else spawn(*NEW, "--out", str(folder))


@pytest.mark.slow
def test_killed_at_any_moment_it_ends_the_same(tmp_path: Path) -> None:
    whole, folder = tmp_path / "whole", tmp_path / "run"
    started = time.monotonic()
    process = go_on(whole)
    _, err = process.communicate(timeout=120)
    seconds = time.monotonic() - started
    assert process.returncode == 0, err
    draw, kills = random.Random(11), 0
    for share in (0.2, 0.45, 0.6, 0.8, 0.95):  # while loading, creating, searching, and near the end
        process = go_on(folder)
        try:
            process.wait(timeout=seconds * share * draw.uniform(0.9, 1.1))
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            kills += 1
        process.communicate()
    # One more, at the moment when the best program is being written.
    process = go_on(folder)
    reward = folder / "reward.py"
    before = reward.stat().st_mtime_ns if reward.exists() else 0
    while process.poll() is None and (not reward.exists() or reward.stat().st_mtime_ns == before):
        time.sleep(0.001)
    process.kill()
    process.communicate()
    assert kills >= 3
    process = go_on(folder)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert memory(folder) == memory(whole)
    assert reward.read_text() == (whole / "reward.py").read_text()
