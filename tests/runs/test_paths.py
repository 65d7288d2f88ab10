"""Files that nobody sees half of."""

from __future__ import annotations

from pathlib import Path

import pytest

from grace_irl.atomic import write_atomically
from grace_irl.runs.folder import RunPaths, default_folder


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    file = tmp_path / "reward.py"
    write_atomically(file, "one")
    write_atomically(file, "two")
    assert file.read_text() == "two"
    assert [entry.name for entry in tmp_path.iterdir()] == ["reward.py"]


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    file = tmp_path / "reward.py"
    write_atomically(file, "one")
    with pytest.raises(UnicodeEncodeError):
        write_atomically(file, "\ud800")
    assert file.read_text() == "one"
    assert [entry.name for entry in tmp_path.iterdir()] == ["reward.py"]


def test_the_default_folder_carries_the_sets_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    first = default_folder("datasets/babyai-go-to-obj")
    assert first.parent == Path("runs")
    assert first.name.startswith("babyai-go-to-obj-")
    first.mkdir(parents=True)
    assert default_folder("datasets/babyai-go-to-obj") != first
    assert default_folder("D4RL/door/human-v2").name.startswith("human-v2-")


def test_the_advice_to_resume_can_be_pasted_into_a_shell() -> None:
    assert RunPaths(Path("runs/my run; 2")).resume == "--resume 'runs/my run; 2'"
    assert RunPaths(Path("runs/one")).resume == "--resume runs/one"
