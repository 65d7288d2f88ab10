"""`grace-irl demos select`, as a user calls it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from grace_irl.cli import main
from grace_irl.demos import load

SHIPPED = Path(__file__).parents[2] / "datasets" / "babyai-go-to-obj"

RECIPE = """
[[file]]
out = "expert.parquet"
goal = "red"
success = true
sample = 50
held_out = 0.25
[[file]]
out = "negative.parquet"
from_role = "negative"
sample = 10
task = "red"
"""


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    code = main(["demos", "select", *(str(argument) for argument in arguments)])
    out, err = capsys.readouterr()
    return code, out, err


def test_choosing(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    target = tmp_path / "red.parquet"
    asked = ("--from", SHIPPED / "negative.parquet", SHIPPED / "expert.parquet", "--goal", "RED", "--success")
    code, out, err = run(capsys, *asked, "--role", "expert", "--task", "red", "--out", target)
    assert (code, err) == (0, "")
    rows = [line.split() for line in out.splitlines()]
    assert ["trajectories", "read", "60"] in rows
    assert ["success", "30"] in rows
    assert ["goal", "'RED'", "4"] in rows
    assert "4 trajectories, 21 states written; role expert, task red" in out
    items = load([target])
    assert {item.task for item in items} == {"red"}
    assert all("red" in item.trajectory.extra_info for item in items)


def test_a_recipe_says_it_for_several_files(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    recipe, target = tmp_path / "recipe.toml", tmp_path / "set"
    recipe.write_text(RECIPE)
    asked = ("--recipe", recipe, "--from", SHIPPED, "--out", target)
    code, out, err = run(capsys, *asked, "--dry-run", "--json")
    assert code == 0
    assert not target.exists()
    answer = json.loads(out.splitlines()[-1])
    assert answer["written"] is False
    assert [file["trajectories"] for file in answer["files"]] == [4, 10]
    assert answer["files"][0]["left"] == {"success": 30, "goal 'red'": 4}
    assert err.strip() == f"{target / 'expert.parquet'}: 4 of the 50 that were asked for"
    code, out, _ = run(capsys, *asked)
    assert code == 0
    assert "4 trajectories, 21 states written, 1 held out; role as they state" in out
    items = load([target])
    assert sorted((item.role, item.split) for item in items if item.role == "expert") == [
        ("expert", "held_out"),
        *[("expert", "train")] * 3,
    ]
    code, _, err = run(capsys, *asked)
    assert code == 2
    assert "exists already" in err
    assert run(capsys, *asked, "--force")[0] == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "no --from; expected files"),
        (("--from", SHIPPED), "no --out; expected the file to write"),
        (
            ("--from", SHIPPED, "--out", "x.parquet", "--goal", "no such"),
            "goal 'no such': met by none of the 60 demonstrations)",
        ),
        (("--from", SHIPPED, "--out", "x.parquet", "--role", "boss"), "--role boss; expected one of expert, negative"),
        (("--from", SHIPPED, "--out", "x.parquet", "--from-role", "boss"), "--from-role boss; expected one of"),
        (("--from", SHIPPED, "--out", "x.parquet", "--package", "a"), "grid states show no app"),
        (("--from", "nowhere", "--out", "x.parquet"), "nowhere: no such file or folder"),
        (("--from", SHIPPED, "--out", "x.csv"), "x.csv: unknown format"),
        (("--from", SHIPPED, "--out", "x", "--recipe", "r.toml", "--min-states", "2"), "--recipe beside --min-states"),
    ],
)
def test_bad_usage(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: object, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert isinstance(arguments, tuple)
    code, _, err = run(capsys, *arguments)
    assert code == 2
    assert said in err
    assert len(err.splitlines()) == 1
    assert not list(tmp_path.iterdir())
