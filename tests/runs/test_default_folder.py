"""Folders of the tool's own choice: runs and comparisons that begin in the same second do not meet."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NoReturn

import pytest

from grace_irl.cli import main
from grace_irl.demos import save
from grace_irl.errors import InputError
from grace_irl.runs import fit as fits
from tests.fakes.data import vector_set

SECOND = "20260101-000000"
COMPARE = ["compare", "--demos", "set.parquet", "--methods", "bc", "--env", "CartPole-v1"]


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with demonstrations, in which all happens in one second."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("time.strftime", lambda *_: SECOND)
    save(vector_set(10, 10, 20), tmp_path / "set.parquet")
    return tmp_path


def test_a_run_that_is_made_while_another_one_reads_its_data(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    read, fit = fits.new_labelling, ["fit", "--demos", "set.parquet", "--set", "search.generations=0"]

    def slow(*arguments: Any) -> Any:
        monkeypatch.setattr(fits, "new_labelling", read)
        assert main(fit) == 0
        return read(*arguments)

    monkeypatch.setattr(fits, "new_labelling", slow)
    assert main(fit) == 0
    made = [f"runs/set-{SECOND}", f"runs/set-{SECOND}-2"]
    assert sorted(map(str, Path("runs").iterdir())) == made
    out = capsys.readouterr().out
    assert all(f"reward: {each}/reward.py\n" in out for each in made)


def test_a_link_that_leads_nowhere_is_refused(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "runs").symlink_to("nowhere")
    assert main(["fit", "--demos", "set.parquet", "--set", "search.generations=0"]) == 2
    assert "no folder can be made there" in capsys.readouterr().err


def test_a_run_that_is_refused_leaves_no_folder(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fit", "--demos", "set.parquet", "--set", "search.generations=0", "--start-from", "none.py"]) == 2
    assert "none.py" in capsys.readouterr().err
    assert [each.name for each in place.iterdir()] == ["set.parquet"]


def test_comparisons_of_one_second(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[Path] = []

    def start(_: object, folder: Path, *__: object) -> NoReturn:
        begun.append(folder)
        (folder / "compare.toml").touch()
        if len(begun) == 1:
            assert main(COMPARE) == 2
        raise InputError("that will do")

    monkeypatch.setattr("grace_irl.compare.comparison.start", start)
    assert main(COMPARE) == 2
    assert begun == [Path("comparisons") / SECOND, Path("comparisons") / f"{SECOND}-2"]


def test_a_comparison_that_is_refused_leaves_no_folder(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*COMPARE[:-1], "CartPole-v9"]) == 2
    assert "CartPole-v9" in capsys.readouterr().err
    assert [each.name for each in place.iterdir()] == ["set.parquet"]
