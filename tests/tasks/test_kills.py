"""Runs with a task that are killed, and go on."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("stable_baselines3", reason="grace-irl[rl] is not installed")

from grace_irl.cli import main
from tests.runs.test_resume import memory
from tests.runs.test_resume_real import results
from tests.tasks.poles import SMALL

COMMAND = [sys.executable, "-m", "grace_irl", "fit"]


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL)
def test_killed_at_random_moments_it_ends_the_same(name: str, task: Path, tmp_path: Path) -> None:
    """The same tree, pool, islands or archive: requests with parents, programs with scores, fates, and the winner.

    The run that is not killed trains one policy at a time, the other one two at once, which end in any order.
    """
    arguments = ["--method", name, "--task", str(task), *SMALL[name], "--trainings", "2"]
    whole, folder = tmp_path / "whole", tmp_path / "killed"
    assert main(["fit", *arguments[:-1], "1", "--out", str(whole)]) == 0
    count, chance = results(whole), random.Random(name)
    kills = 0
    for least in sorted(chance.sample(range(1, count - 1), 2)):  # the last two trainings may end together
        kills += killed(folder, arguments, least, chance.uniform(0.0, 0.3)) and least <= results(folder) < count
    process = subprocess.Popen([*COMMAND, *words(folder, arguments)], stderr=subprocess.DEVNULL)
    assert process.wait(timeout=300) == 0
    assert kills >= 1  # the last training may end before the kill
    assert memory(folder) == memory(whole)
    assert (folder / "reward.py").read_text() == (whole / "reward.py").read_text()


def words(folder: Path, arguments: list[str]) -> list[str]:
    """What a user would type next, whatever the kill left."""
    if (folder / "run.db").exists():
        return ["--resume", str(folder)]
    shutil.rmtree(folder, ignore_errors=True)
    return [*arguments, "--out", str(folder)]


def killed(folder: Path, arguments: list[str], least: int, later: float) -> bool:
    """Go on with a run, and kill it some seconds after it has a number of results. Return whether it was at work."""
    process = subprocess.Popen([*COMMAND, *words(folder, arguments)], stderr=subprocess.DEVNULL)
    while process.poll() is None and results(folder) < least:
        time.sleep(0.02)
    time.sleep(later)
    at_work = process.poll() is None
    process.kill()
    process.wait()
    return at_work
