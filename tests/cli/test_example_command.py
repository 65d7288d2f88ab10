"""`grace-irl example` as a user calls it: a folder that fits, and never one over another."""

from __future__ import annotations

import errno
import json
import os
import shlex
from pathlib import Path

import pytest

from grace_irl.cli import example, main

SHIPPED = Path(__file__).parents[2] / "datasets" / "babyai-go-to-obj"


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_the_folder_holds_what_ships_and_the_line_fits_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["example"]) == 0
    assert contents(tmp_path / "babyai-go-to-obj") == contents(SHIPPED)
    *_, last = capsys.readouterr().out.splitlines()
    command = last.partition(": grace-irl ")[2]
    assert main([*shlex.split(command), "--out", "run"]) == 0
    assert (tmp_path / "run" / "reward.py").is_file()


def test_a_folder_of_the_users_own_choice(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = tmp_path / "a new" / "place"
    assert main(["example", str(place), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["folder"] == str(place)
    assert said["files"] == sorted(contents(place))
    assert shlex.split(said["command"]) == ["grace-irl", "fit", "--demos", str(place)]
    assert [path.name for path in place.parent.iterdir()] == ["place"]


def test_nothing_is_written_over(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for place in ("empty", "file", "link"):
        {
            "empty": (tmp_path / place).mkdir,
            "file": (tmp_path / place).touch,
            "link": lambda: (tmp_path / "link").symlink_to("nowhere"),
        }[place]()
        assert main(["example", str(tmp_path / place)]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert "exists already; expected a new folder" in line
    assert not list((tmp_path / "empty").iterdir())


def test_what_cannot_be_written_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    assert main(["example", str(tmp_path / "file" / "inside")]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "cannot be written" in line


def test_a_full_disk_is_one_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("shutil.copyfile", full)
    assert main(["example", str(tmp_path / "new")]) == 2
    reason = "cannot be written (No space left on device); free some space or choose another place"
    assert capsys.readouterr().err == f"grace-irl: {tmp_path / 'new'}: {reason}\n"
    assert list(tmp_path.iterdir()) == []


def test_an_installation_without_them_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(example, "PLACES", (tmp_path / "none",))
    assert main(["example", str(tmp_path / "new")]) == 2
    assert "install grace-irl again" in capsys.readouterr().err
    assert not (tmp_path / "new").exists()
