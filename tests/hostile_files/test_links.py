"""Links, pipes and folders in a run that somebody else made: nothing is written, or read, past them."""

from __future__ import annotations

import os
import shutil
import socket
import sqlite3
import stat
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from grace_irl.atomic import part_of, write_atomically
from grace_irl.cli import main
from grace_irl.contents import require_no_links
from grace_irl.demos import save
from grace_irl.errors import InputError
from grace_irl.runs.folder import RunLock
from tests.fakes.data import vector_set

PRECIOUS = "what the user keeps\n"
Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("links")
    save(vector_set(10, 10, 20), folder / "set.parquet")
    quick = ["--set", "search.generations=0", "--max-calls", "2", "--workers", "1"]
    assert main(["fit", "--demos", str(folder / "set.parquet"), "--out", str(folder / "run"), *quick, "--json"]) == 0
    return folder / "run"


@pytest.fixture
def run(made: Path, tmp_path: Path) -> Path:
    """A run of the test's own."""
    return Path(shutil.copytree(made, tmp_path / "run"))


@pytest.fixture
def precious(tmp_path: Path) -> Iterator[Path]:
    """A file that nothing may change."""
    path = tmp_path / "precious"
    path.write_text(PRECIOUS)
    yield path
    assert path.read_text() == PRECIOUS


def refused(arguments: list[str], capsys: Capture, *words: str) -> None:
    """A command ends with code 2 and one line."""
    capsys.readouterr()
    assert main(arguments) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1, said
    for word in words:
        assert word in said


def test_a_lock_that_is_a_link_is_refused(run: Path, precious: Path, capsys: Capture) -> None:
    (run / "lock").unlink()
    (run / "lock").symlink_to(precious)
    refused(["fit", "--resume", str(run)], capsys, "a symbolic link", str(run / "lock"))


def test_the_lock_itself_follows_no_link(tmp_path: Path, precious: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even one that appears when the folder has been looked at."""
    (tmp_path / "lock").symlink_to(precious)
    monkeypatch.setattr("grace_irl.runs.folder.require_no_links", lambda folder: None)
    with pytest.raises(InputError, match="cannot be opened"):
        RunLock(tmp_path / "lock")
    (tmp_path / "lock").unlink()
    (tmp_path / "lock").symlink_to(tmp_path / "absent")
    with pytest.raises(InputError, match="cannot be opened"):
        RunLock(tmp_path / "lock")
    assert not (tmp_path / "absent").exists()


def fifo(path: Path) -> None:
    os.mkfifo(path)


def folder(path: Path) -> None:
    path.mkdir()


def unix_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(os.path.relpath(path))


@pytest.mark.parametrize("make", [fifo, folder, unix_socket])
def test_a_lock_is_a_file(make: Callable[[Path], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pipe would be waited for, for ever."""
    monkeypatch.chdir(tmp_path)
    make(tmp_path / "lock")
    with pytest.raises(InputError):
        RunLock(tmp_path / "lock")


@pytest.mark.parametrize("place", ["manual", "manual/0000.prompt.md", "report.html", "deep/er/link", "training"])
def test_work_goes_on_in_no_folder_that_leads_out_of_itself(
    place: str, run: Path, precious: Path, capsys: Capture
) -> None:
    (run / place).parent.mkdir(parents=True, exist_ok=True)
    (run / place).unlink(missing_ok=True)
    (run / place).symlink_to(precious.parent if place in ("manual", "training") else precious)
    refused(["fit", "--resume", str(run)], capsys, "a symbolic link", place)


def test_an_expansion_and_a_comparison_are_looked_through_as_well(
    tmp_path: Path, precious: Path, capsys: Capture
) -> None:
    (tmp_path / "expansion" / "rounds" / "0").mkdir(parents=True)
    (tmp_path / "expansion" / "rounds" / "0" / "run").symlink_to(precious)
    refused(["fit", "--resume", str(tmp_path / "expansion")], capsys, "a symbolic link")
    (tmp_path / "comparison" / "jobs" / "grace-0").mkdir(parents=True)
    (tmp_path / "comparison" / "jobs" / "grace-0" / "log.txt").symlink_to(precious)
    refused(["compare", "--resume", str(tmp_path / "comparison")], capsys, "a symbolic link")


def test_a_file_that_vanishes_hides_no_link(tmp_path: Path, precious: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As SQLite's extra files vanish while a run ends."""
    folder, scandir = tmp_path / "run", os.scandir
    folder.mkdir()
    (folder / "a").touch()
    (folder / "b").symlink_to(precious)

    @contextmanager
    def listed(path: str) -> Iterator[list[os.DirEntry[str]]]:
        with scandir(path) as entries:
            found = sorted(entries, key=lambda each: each.name)
        (folder / "a").unlink()
        yield found

    monkeypatch.setattr(os, "scandir", listed)
    with pytest.raises(InputError, match="a symbolic link"):
        require_no_links(folder)


@pytest.mark.parametrize("end", ["", "-wal", "-shm"])
@pytest.mark.parametrize("command", [["show"], ["report"], ["fit", "--resume"]], ids=lambda words: words[0])
def test_a_database_elsewhere_is_not_opened(
    command: list[str], end: str, run: Path, tmp_path: Path, capsys: Capture
) -> None:
    """SQLite writes to what it opens, even where it only reads."""
    other = tmp_path / "other.db"
    with closing(sqlite3.connect(other)) as database:
        database.execute("CREATE TABLE t (a)")
        database.commit()
    before = other.read_bytes()
    (run / f"run.db{end}").unlink(missing_ok=True)
    (run / f"run.db{end}").symlink_to(other)
    refused([*command, str(run)], capsys, "a symbolic link", f"run.db{end}")
    assert other.read_bytes() == before
    assert [each.name for each in tmp_path.glob("other.db*")] == ["other.db"]


def test_a_database_that_is_a_pipe_is_not_waited_for(run: Path, capsys: Capture) -> None:
    (run / "run.db").unlink()
    os.mkfifo(run / "run.db")
    refused(["show", str(run)], capsys, "neither a file nor a folder")


@pytest.mark.parametrize("make", [fifo, lambda path: path.symlink_to("/etc/passwd")], ids=["pipe", "link"])
@pytest.mark.parametrize("command", [["show"], ["report"], ["fit", "--resume"], ["fit", "--replay"]], ids=" ".join)
def test_settings_are_a_file(command: list[str], make: Callable[[Path], None], run: Path, capsys: Capture) -> None:
    (run / "config.toml").unlink()
    make(run / "config.toml")
    refused([*command, str(run)], capsys, "config.toml", "expected files and folders alone")


def test_a_file_takes_the_place_of_a_link(tmp_path: Path, precious: Path) -> None:
    (tmp_path / "reward.py").symlink_to(precious)
    write_atomically(tmp_path / "reward.py", "x = 1\n")
    assert not (tmp_path / "reward.py").is_symlink()


def test_a_file_is_made_where_no_link_can_wait(tmp_path: Path, precious: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "reward.py"
    assert part_of(place) != part_of(place)
    waiting = part_of(place)
    waiting.symlink_to(precious)
    monkeypatch.setattr("grace_irl.atomic.part_of", lambda path: waiting)
    with pytest.raises(InputError, match="cannot be written"):
        write_atomically(place, "x = 1\n")


def test_files_keep_the_permissions_that_the_user_gives(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_atomically(tmp_path / "reward.py", "x = 1\n")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "reward.py").stat().st_mode) == 0o640


def test_a_run_is_resumed_in_a_folder_that_a_link_leads_to(run: Path, made: Path, tmp_path: Path) -> None:
    """The user's own link, outside of the run."""
    (tmp_path / "link").symlink_to(run)
    data = next(made.parent.glob("set.parquet"))
    assert main(["fit", "--resume", str(tmp_path / "link"), "--demos", str(data), "--json"]) == 0


def test_hard_links_are_links(run: Path, precious: Path, capsys: Capture) -> None:
    """An archive may hold them, too: another name for a file of the user's, inside of the run."""
    for name in ("run.db-shm", "lock", "report.html", "deep/er/file"):
        place = run / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.unlink(missing_ok=True)
        os.link(precious, place)
        commands = [["fit", "--resume", str(run)], ["show", str(run)], ["report", str(run)]]
        for command in commands:
            refused(command, capsys, "a hard link", name)
        place.unlink()
        if name == "lock":
            os.link(precious, place)
            with pytest.raises(InputError):
                RunLock(place)
            place.unlink()


def test_an_expansion_holds_its_runs_itself(made: Path, tmp_path: Path, capsys: Capture) -> None:
    """A report would write the states of the run that a link leads to into somebody's folder."""
    folder = tmp_path / "expansion"
    (folder / "rounds" / "0").mkdir(parents=True)
    (folder / "rounds" / "0" / "run").symlink_to(made)
    for command in (["report", str(folder)], ["show", str(folder)], ["fit", "--resume", str(folder)]):
        refused(command, capsys, "a symbolic link")
    (folder / "rounds" / "0" / "run").unlink()
    os.mkfifo(folder / "rounds" / "0" / "round.json")
    for command in (["report", str(folder)], ["show", str(folder)]):
        refused(command, capsys, "neither a file nor a folder")
