"""`grace-irl demos inspect` shows screens as outlines and writes states as pictures."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pytest

from grace_irl.cli import main
from grace_irl.demos import save
from grace_irl.demos.trajectory import Demonstration, Demonstrations, Metadata, Trajectory
from tests.propose.screens import asking, things

Image = pytest.importorskip("PIL.Image")

SHIPPED = Path(__file__).parents[2] / "datasets" / "babyai-go-to-obj"


@pytest.fixture
def episode(tmp_path: Path) -> Path:
    """A folder of three dumps, one of them with a screenshot."""
    folder = tmp_path / "expert"
    (folder / "screenshots").mkdir(parents=True)
    for number, screen in enumerate([things({"a": (1, False)}), asking("a", "7"), things({"a": (7, True)})]):
        (folder / f"step_{number}.xml").write_text(screen)
    (folder / "task.json").write_text(json.dumps({"task": "warm a to 7"}))
    Image.new("RGB", (60, 90), "#123456").save(folder / "screenshots" / "step_0.png")
    return folder


def test_screens_are_outlines_in_a_terminal(episode: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demos", "inspect", str(episode)]) == 0
    out = capsys.readouterr().out
    assert "expert: 'warm a to 7', state 0 of 2" in out
    assert "TextView '1\\u200a°' #value desc '1 degrees'" in out
    assert "TextView '7\\u200a°' #value desc '7 degrees'" in out
    assert "How warm" not in out  # between the first and the last
    assert main(["demos", "inspect", str(episode), "--no-picture"]) == 0
    assert "#value" not in capsys.readouterr().out


def test_screens_are_written_as_files(episode: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "new" / "pictures"
    assert main(["demos", "inspect", str(episode), "--images", str(folder), "--json"]) == 0
    about = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert about["images"] == [str(folder / f"expert-{step}.png") for step in range(3)]
    shot, *drawn = (Image.open(io.BytesIO(Path(path).read_bytes())) for path in about["images"])
    assert (shot.size, shot.getpixel((30, 45))) == ((60, 90), (18, 52, 86))
    assert all(image.size == (100, 40) for image in drawn)
    assert main(["demos", "inspect", str(episode), "--images", str(folder)]) == 0  # again
    assert f"picture: {folder / 'expert-2.png'}" in capsys.readouterr().out.replace("\n", "")


def test_grids_are_written_as_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demos", "inspect", str(SHIPPED), "--no-picture", "--images", str(tmp_path)]) == 0
    written = sorted(path.name for path in tmp_path.glob("*.png"))
    assert len(written) == 6
    assert {name.partition("-")[0] for name in written} == {"expert", "negative"}


def test_what_has_no_picture_is_one_line(tmp_path: Path, episode: Path, capsys: pytest.CaptureFixture[str]) -> None:
    items = (Demonstration(Trajectory(np.zeros((3, 2))), "expert"),)
    save(Demonstrations(Metadata("vector"), items), tmp_path / "set.parquet")
    (episode / "screenshots" / "step_0.png").write_bytes(b"no picture")
    for arguments, message in (
        ((tmp_path / "set.parquet", tmp_path / "out"), "--images: vector states have no picture"),
        ((episode, tmp_path / "out"), "expected a screenshot in PNG, JPEG or WebP"),
        ((SHIPPED, tmp_path / "set.parquet"), "cannot be written"),
    ):
        assert main(["demos", "inspect", str(arguments[0]), "--images", str(arguments[1])]) == 2
        err = capsys.readouterr().err
        assert message in err
        assert len(err.splitlines()) == 1
        assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("command", ["select", "convert"])
@pytest.mark.parametrize("keep", ["embed", "refer", "none"])
def test_a_set_shows_the_screenshots_that_it_keeps(
    episode: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str, keep: str
) -> None:
    path = tmp_path / "set.parquet"
    places = [str(episode), str(path)] if command == "convert" else ["--from", str(episode), "--out", str(path)]
    arguments = ["demos", command, *places, "--role", "expert"]
    assert main(arguments if keep == "embed" else [*arguments, "--screenshots", keep]) == 0
    capsys.readouterr()
    assert main(["demos", "inspect", str(path), "--images", str(tmp_path / "out"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["has"]["screenshots"] == (keep != "none")
    shown = Image.open(tmp_path / "out" / "expert-0.png")
    assert shown.size == ((100, 40) if keep == "none" else (60, 90))
    assert (shown.getpixel((30, 30)) == (18, 52, 86)) is (keep != "none")
    (episode / "screenshots" / "step_0.png").unlink()
    code = main(["demos", "inspect", str(path), "--images", str(tmp_path / "out")])
    if keep != "refer":
        assert code == 0
        return
    assert code == 2
    err = capsys.readouterr().err
    assert "row 0: no screenshot at" in err
    assert len(err.splitlines()) == 1
    assert main(["demos", "inspect", str(path)]) == 0


@pytest.mark.parametrize("command", ["select", "convert"])
def test_screenshots_are_kept_in_one_of_three_ways(
    episode: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    places = [str(episode), "x.parquet"] if command == "convert" else ["--from", str(episode), "--out", "x.parquet"]
    assert main(["demos", command, *places, "--screenshots", "some"]) == 2
    assert "--screenshots some; expected one of embed, refer, none" in capsys.readouterr().err
