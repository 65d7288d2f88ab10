"""One process at a time works on a run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from grace_irl.errors import InputError
from grace_irl.runs.folder import RunLock, claimed

HOLD = """
import sys, time
from pathlib import Path
from grace_irl.runs.folder import RunLock
lock = RunLock(Path(sys.argv[1]))
print("held", flush=True)
time.sleep(60)
"""


def test_a_live_holder_is_named_and_a_dead_one_holds_nothing(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    holder = subprocess.Popen([sys.executable, "-c", HOLD, str(path)], stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(InputError, match=f"process {holder.pid}"):
            RunLock(path)
    finally:
        os.kill(holder.pid, signal.SIGKILL)
        holder.communicate()
    with RunLock(path):
        assert path.read_text() == f"{os.getpid()}\n"


def test_it_can_be_taken_again_after_release(tmp_path: Path) -> None:
    for _ in range(2):
        RunLock(tmp_path / "lock").release()


def test_a_new_folder_is_locked_and_goes_if_nothing_is_written(tmp_path: Path) -> None:
    folder = tmp_path / "runs" / "new"
    with claimed(folder):
        with pytest.raises(InputError, match=f"process {os.getpid()}"):
            RunLock(folder / "lock")
        with pytest.raises(InputError, match=f"worked on by process {os.getpid()}"), claimed(folder):
            pass
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "killed").mkdir()
    (tmp_path / "killed" / "lock").touch()
    with claimed(tmp_path / "killed"):
        (tmp_path / "killed" / "rounds" / "0").mkdir(parents=True)
    assert list((tmp_path / "killed").iterdir()) == []
    with claimed(folder):
        (folder / "run.db").touch()
    assert sorted(each.name for each in folder.iterdir()) == ["lock", "run.db"]


def test_a_folder_that_another_process_fills_meanwhile_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Late(RunLock):
        def __init__(self, path: Path) -> None:
            (path.parent / "run.db").touch()
            super().__init__(path)

    monkeypatch.setattr("grace_irl.runs.folder.RunLock", Late)
    with pytest.raises(InputError, match=r"exists already; .*, or go on with --resume"), claimed(tmp_path / "new"):
        pass
    assert (tmp_path / "new" / "run.db").exists()
