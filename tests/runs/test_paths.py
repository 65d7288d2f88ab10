"""Files that nobody sees half of."""

from __future__ import annotations

from pathlib import Path

import pytest

from grace_irl.atomic import write_atomically
from grace_irl.demos.labels import label
from grace_irl.errors import InputError
from grace_irl.runs.config import resolve
from grace_irl.runs.folder import RunPaths, create, default_folder
from tests.fakes.data import vector_set


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


def test_a_run_is_made_where_a_link_leads(tmp_path: Path) -> None:
    """To an empty folder, or to none yet. A link in a circle is refused with its own name."""
    (tmp_path / "real").mkdir()
    for name, target in (("one", "real"), ("two", "later"), ("circle", "circle")):
        (tmp_path / name).symlink_to(target)
    problem = label(vector_set(), "all")
    for name in ("one", "two"):
        create(tmp_path / name, resolve(), problem)
    assert all((tmp_path / name / "run.db").is_file() for name in ("real", "later", "one", "two"))
    with pytest.raises(InputError, match=r"/circle: no folder can be made there"):
        create(tmp_path / "circle", resolve(), problem)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["circle", "later", "one", "real", "two"]
