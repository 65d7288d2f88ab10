"""`grace-irl show --follow` beside real processes: runs that end, are killed, or are not worked on any more."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest

from grace_irl.cli import follow, main
from grace_irl.runs.expand.round import Round, write_round
from grace_irl.runs.folder import RunLock, RunPaths
from grace_irl.runs.run import opened
from grace_irl.runs.store import Store

FOLLOWING = "following a process that works on it; Ctrl-C ends only the following\n"
SHIPPED = Path(__file__).parents[2] / "datasets" / "babyai-go-to-obj"


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that has ended, which tests copy."""
    folder = tmp_path_factory.mktemp("ended") / "run"
    assert main(["fit", "--demos", str(SHIPPED), "--out", str(folder), "--workers", "1"]) == 0
    return folder


@pytest.fixture
def run(ended: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(ended, tmp_path / "run"))


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follow, "POLL", 0.02)
    monkeypatch.setattr(follow, "QUIET", 0.1)


@pytest.fixture
def waiting(tmp_path: Path) -> Iterator[tuple[Path, subprocess.Popen[str]]]:
    """A run that waits for a person's answers, and its process."""
    folder = tmp_path / "waiting"
    words = ["fit", "--demos", SHIPPED, "--proposer", "manual", "--out", folder, "--workers", "1"]
    process = started(*words)
    try:
        end = time.monotonic() + 60
        while not list(RunPaths(folder).manual.glob("*.prompt.md")) and time.monotonic() < end:
            assert process.poll() is None
            time.sleep(0.05)
        yield folder, process
    finally:
        process.kill()
        process.communicate()


def started(*words: str | Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "grace_irl", *map(str, words)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def events(folder: Path, *kinds: tuple[str, str]) -> None:
    """Add events to a run, as a process that works on it does."""
    with closing(Store(RunPaths(folder).database)) as store:
        for kind, detail in kinds:
            store.add_event(kind, detail)


def test_a_run_that_has_ended_is_shown_at_once(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", str(run)]) == 0
    shown = capsys.readouterr().out
    assert main(["show", str(run), "--follow"]) == 0
    said = capsys.readouterr()
    assert said.out == shown
    assert "the run has ended by target_accuracy" in said.err


@pytest.mark.parametrize("kind", ["interrupted", "failed"])
def test_another_end_is_named_with_the_way_on(kind: str, run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    events(run, ("resumed", ""), (kind, "after 3 proposals"))
    assert main(["show", str(run), "--follow"]) == 0
    said = capsys.readouterr()
    assert f"the run was {kind} (after 3 proposals); go on with: grace-irl fit --resume {run}" in said.err
    assert "best programs" in said.out


@pytest.mark.usefixtures("quick")
def test_a_run_is_followed_as_long_as_its_process_lives(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The lock is held much longer than a quiet time."""
    import threading

    events(run, ("resumed", ""))
    lock = RunLock(RunPaths(run).lock)
    threading.Timer(0.6, lock.release).start()
    began = time.monotonic()
    assert main(["show", str(run), "--follow"]) == 0
    assert time.monotonic() - began > 0.6
    assert "no process works on the run any more, and it did not end" in capsys.readouterr().err


@pytest.mark.slow
def test_a_killed_process_is_noticed(waiting: tuple[Path, subprocess.Popen[str]]) -> None:
    folder, process = waiting
    following = started("show", folder, "--follow")
    assert following.stderr is not None
    assert following.stderr.readline() == FOLLOWING
    process.kill()
    out, err = following.communicate(timeout=60)
    assert following.returncode == 0, err
    assert f"killed, or another machine's; go on with: grace-irl fit --resume {folder}" in err
    assert "best programs" in out


def test_ctrl_c_ends_the_following_alone(waiting: tuple[Path, subprocess.Popen[str]]) -> None:
    folder, process = waiting
    following = started("show", folder, "--follow")
    assert following.stderr is not None
    assert following.stderr.readline() == FOLLOWING
    following.send_signal(signal.SIGINT)
    _, err = following.communicate(timeout=60)
    assert following.returncode == 130
    assert err.splitlines()[-1] == f"grace-irl: interrupted; {folder} itself goes on"
    assert "Traceback" not in err
    assert process.poll() is None


@pytest.fixture
def expansion(ended: Path, tmp_path: Path) -> Path:
    """An expansion whose only round is complete."""
    folder = tmp_path / "expansion"
    shutil.copytree(ended, folder / "rounds" / "0" / "run")
    done = Round(0, run="rounds/0/run", program="abc", accuracy=1.0, reward="rounds/0/run/reward.py")
    write_round(folder / "rounds" / "0" / "round.json", done)
    return folder


@pytest.mark.usefixtures("quick")
def test_an_expansion_is_followed_round_by_round(expansion: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", str(expansion), "--follow"]) == 0
    said = capsys.readouterr()
    assert said.err.splitlines() == [
        "round 0: searched, accuracy 1.0000",
        FOLLOWING.strip(),
        "the expansion has ended after round 0",
    ]
    assert "accuracy" in said.out


@pytest.mark.usefixtures("quick")
def test_an_expansion_that_was_killed_says_where(expansion: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (expansion / "rounds" / "1").mkdir()
    assert main(["show", str(expansion), "--follow"]) == 0
    assert "it did not end before round 1 was complete" in capsys.readouterr().err


def test_what_is_no_run_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", str(tmp_path / "none"), "--follow"]) == 2
    (said,) = capsys.readouterr().err.splitlines()
    assert "no such folder" in said


def test_the_time_of_a_followed_run_goes_on_without_a_result(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each answer changes the folder, but the search time in the store is that of the last result."""
    now, shown = time.monotonic(), []
    monkeypatch.setattr(follow.time, "monotonic", lambda: now)
    progress = SimpleNamespace(show=lambda stand, ended: shown.append(stand.seconds))
    with opened(run) as (store, config):
        watch = follow.RunWatch(run, store, config)
        for _ in range(3):
            watch.look(progress)  # type: ignore[arg-type]
            now += 30.0
            os.utime(RunPaths(run).database)
    assert [later - shown[0] for later in shown] == pytest.approx([0.0, 30.0, 60.0])
