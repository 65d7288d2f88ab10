"""Files that `grace-irl demos convert` and `demos scramble` find at their place: kept, unless `--force` is given."""

from __future__ import annotations

from pathlib import Path

import pytest

from grace_irl.cli import main
from grace_irl.demos import load


@pytest.fixture
def sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder `vec` of tables in the working directory."""
    monkeypatch.chdir(tmp_path)
    for name in ("expert", "negative"):
        Path("vec").mkdir(exist_ok=True)
        Path(f"vec/{name}.csv").write_text("episode,x,y\n0,1,2\n0,2,3\n1,3,4\n1,4,6\n")
    return Path("vec")


@pytest.mark.usefixtures("sources")
@pytest.mark.parametrize(
    ("arguments", "kept"),
    [
        (["convert", "vec", "dst"], "dst/negative.parquet"),
        (["convert", "vec", "dst", "--format", "npz"], "dst/negative.npz"),
        (["convert", "vec/expert.csv", "dst"], "dst/expert.parquet"),
        (["scramble", "vec", "dst"], "dst/negative.parquet"),
        (["scramble", "vec", "dst"], "dst/scramble.json"),
        (["scramble", "vec/expert.csv", "dst"], "dst/expert.parquet"),
        (["scramble", "vec/expert.csv", "./one.parquet"], "one.parquet"),
        (["scramble", "vec/expert.csv", "./one.parquet"], "one.scramble.json"),
    ],
)
def test_a_file_that_exists_is_kept_and_no_other_is_written(
    arguments: list[str], kept: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("dst").mkdir()
    Path(kept).write_text("PRECIOUS")
    before = sorted(tmp_path.rglob("*"))
    assert main(["demos", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"grace-irl: {kept}: exists already")
    assert "--force" in err
    assert err.count("\n") == 1
    assert Path(kept).read_text() == "PRECIOUS"
    assert sorted(tmp_path.rglob("*")) == before
    assert main(["demos", *arguments, "--force"]) == 0
    assert Path(kept).read_bytes() != b"PRECIOUS"


@pytest.mark.usefixtures("sources")
def test_a_map_goes_on_with_further_files_at_its_own_place(capsys: pytest.CaptureFixture[str]) -> None:
    Path("dst").mkdir()
    assert main(["demos", "scramble", "vec/expert.csv", "dst", "--seed", "1"]) == 0
    assert main(["demos", "scramble", "vec/negative.csv", "dst"]) == 2
    said = capsys.readouterr().err
    assert "dst/scramble.json: exists already, the map of earlier copies" in said
    assert "use it again with --map" in said
    assert main(["demos", "scramble", "vec/negative.csv", "dst", "--map", "dst/scramble.json"]) == 0
    one, other = (load([f"dst/{name}.parquet"]) for name in ("expert", "negative"))
    assert [each.trajectory.digest for each in one] == [each.trajectory.digest for each in other]


@pytest.mark.usefixtures("sources")
def test_a_source_is_never_the_target(capsys: pytest.CaptureFixture[str]) -> None:
    Path("vec/negative.csv").unlink()
    assert main(["demos", "convert", "vec", "both"]) == 0
    assert main(["demos", "convert", "both", "both", "--force"]) == 2
    assert "source and target are the same" in capsys.readouterr().err
