"""Accuracy is at the threshold that is best on training data, wherever it is printed; without one it says so."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from grace_irl import load_reward
from grace_irl.cli import main
from grace_irl.demos import save
from grace_irl.demos.trajectory import Demonstration, Demonstrations, Metadata, Trajectory
from tests.runs.older import made_older

BODY = "class Reward:\n    def reward_fn(self, state):\n        return state[0]\n"
BEST_HERE = "best threshold on these data"

Capture = pytest.CaptureFixture[str]


def sets(*tasks: tuple[str, float]) -> tuple[Demonstrations, Demonstrations]:
    """Training data that the first number parts at `middle`, and held-out data that it parts 0.4 below."""
    items = []
    for split, low in (("train", 0.0), ("held_out", -0.4)):
        for name, middle in tasks:
            for role, side in (("expert", 0.5), ("negative", -0.5)):
                states = np.array([[middle + low + side * more, len(items)] for more in (0.5, 0.75, 1.0)])
                items.append(Demonstration(Trajectory(states), role, name, split))  # type: ignore[arg-type]
    whole = Demonstrations(Metadata("vector", label="all"), tuple(items))
    rest = tuple(replace(item, split=None) for item in items if item.split == "held_out")
    return whole, replace(whole, items=rest)


def fitted(folder: Path, *tasks: tuple[str, float], more: tuple[str, ...] = ()) -> list[str]:
    """Arguments of a fit whose only program pays the first number."""
    whole, rest = sets(*tasks)
    save(whole, folder / "set.parquet")
    save(rest, folder / "rest.parquet")
    (folder / "given.py").write_text(BODY)
    only = ["--max-calls", "1", "--workers", "1", "--out", str(folder / "run"), *more]
    return ["fit", "--demos", str(folder / "set.parquet"), "--start-from", str(folder / "given.py"), *only]


def last_object(capture: Capture) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(capture.readouterr().out.strip().splitlines()[-1])
    return found


@pytest.fixture
def run(tmp_path: Path, capsys: Capture) -> Path:
    assert main(fitted(tmp_path, ("default", 0.5))) == 0
    capsys.readouterr()
    return tmp_path / "run"


def of_an_older_version(run: Path) -> None:
    """As the version before thresholds left it, but for the accuracies."""
    made_older(run / "run.db", 1)


def test_fit_takes_the_threshold_from_training_data(tmp_path: Path, capsys: Capture) -> None:
    assert main(fitted(tmp_path, ("default", 0.5), more=("--json",))) == 0
    found = last_object(capsys)
    assert found["threshold"] == 0.5
    assert found["train"]["accuracy"] == 1.0
    assert found["held_out"]["separated"]
    assert found["held_out"]["accuracy"] == pytest.approx((1 / 3 + 1) / 2)  # of 0.35, 0.475 and 0.6 one is above 0.5
    assert load_reward(found["reward_path"]).threshold == 0.5
    assert main(["show", found["run"], "--json"]) == 0
    assert last_object(capsys)["population"][0]["threshold"] == 0.5


def test_fit_and_show_say_which_threshold(tmp_path: Path, capsys: Capture) -> None:
    said = "accuracy: a reward > 0.5 counts as an expert's, the best threshold on training data"
    assert main(fitted(tmp_path, ("default", 0.5))) == 0
    out = capsys.readouterr().out
    assert said in out
    assert "threshold: 0.5, best on training data (accuracies are measured at it)" in " ".join(out.split())
    assert main(["show", str(tmp_path / "run"), "--json"]) == 0
    best = last_object(capsys)["best"]
    assert main(["show", str(tmp_path / "run"), "--program", best]) == 0
    assert said in capsys.readouterr().out


def test_score_takes_the_threshold_of_the_file(run: Path, capsys: Capture) -> None:
    rest = ["--demos", str(run.parent / "rest.parquet")]
    for calibration in ("file", "fitted", "none"):
        assert main(["score", str(run / "reward.py"), *rest, "--calibration", calibration, "--json"]) == 0
        found = last_object(capsys)
        assert (found["threshold"], found["threshold_from"]) == (0.5, "file")
        assert found["accuracy"] == pytest.approx(2 / 3)
        assert found["tasks"]["default"]["accuracy"] == pytest.approx(2 / 3)
    assert main(["score", str(run / "reward.py"), *rest]) == 0
    out = capsys.readouterr().out
    assert "accuracy: at the file's threshold, reward > 0.5" in out
    assert BEST_HERE not in out


@pytest.mark.parametrize("kind", ["program", "old export"])
def test_score_without_a_threshold_says_so(kind: str, run: Path, capsys: Capture) -> None:
    file = run.parent / "given.py"
    if kind == "old export":
        file = run.parent / "old.py"
        of_an_older_version(run)
        assert main(["export", str(run), "--out", str(file)]) == 0
        assert "THRESHOLD" not in file.read_text()
        assert "SCALE" in file.read_text()
        assert BEST_HERE in file.read_text()
        capsys.readouterr()
    demos = ["--demos", str(run.parent / "rest.parquet")]
    assert main(["score", str(file), *demos]) == 0
    assert f"accuracy: {BEST_HERE}, reward > 0.1 (the file carries none)" in capsys.readouterr().out
    assert main(["score", str(file), *demos, "--json"]) == 0
    found = last_object(capsys)
    assert found["calibration"] == ("file" if kind == "old export" else "fitted")
    assert (found["accuracy"], found["threshold_from"]) == (1.0, "these data")
    assert found["threshold"] == pytest.approx(0.1)
    assert load_reward(file).threshold is None


def test_one_threshold_serves_all_tasks(tmp_path: Path, capsys: Capture) -> None:
    """Each task is parted, at 0.5 and at 2.5: together they are not."""
    assert main(fitted(tmp_path, ("low", 0.5), ("high", 2.5), more=("--json",))) == 0
    found = last_object(capsys)
    (low, low_held_out), (high, high_held_out) = found["tasks"]["low"], found["tasks"]["high"]
    assert found["threshold"] == 0.5
    assert (low["accuracy"], high["accuracy"]) == (1.0, 0.5)
    assert low["separated"]
    assert high["separated"]
    assert (low_held_out["accuracy"], high_held_out["accuracy"]) == (pytest.approx(2 / 3), 0.5)
    assert found["train"]["accuracy"] == 0.75
    capsys.readouterr()
    assert (
        main(["score", str(tmp_path / "run" / "reward.py"), "--demos", str(tmp_path / "rest.parquet"), "--json"]) == 0
    )
    assert last_object(capsys)["tasks"]["high"]["accuracy"] == 0.5


def test_the_report_does_not_praise_what_the_threshold_misses(run: Path, capsys: Capture) -> None:
    page = (run / "report.html").read_text()
    assert "At the threshold that is best on training data its balanced accuracy is 0.6667" in page
    assert "accuracy is at the threshold 0.5, the best on training data" in page
    assert "older version" not in page
    of_an_older_version(run)
    assert main(["report", str(run)]) == 0
    capsys.readouterr()
    page = (run / "report.html").read_text()
    assert f"The accuracy on held-out data is too good, because its threshold is the {BEST_HERE}" in page
    assert "accuracy is at the threshold" not in page


def test_a_run_of_an_older_version_is_shown_and_not_gone_on_with(run: Path, tmp_path: Path, capsys: Capture) -> None:
    of_an_older_version(run)
    assert main(["show", str(run), "--json"]) == 0
    best = last_object(capsys)["best"]
    for arguments in ([], ["--program", best]):
        assert main(["show", str(run), *arguments]) == 0
        assert f"accuracy: {BEST_HERE}" in capsys.readouterr().out
    assert main(["fit", "--resume", str(run)]) == 2
    said = capsys.readouterr().err
    assert "a run of format 1" in said
    assert f"--start-from {run}" in said
    assert said.count("\n") == 1
    new = ["--demos", str(tmp_path / "set.parquet"), "--out", str(tmp_path / "new"), "--max-calls", "1", "--json"]
    assert main(["fit", *new, "--start-from", str(run)]) == 0
    assert last_object(capsys)["threshold"] == 0.5


def test_a_threshold_that_is_no_number_is_not_exported(run: Path, capsys: Capture) -> None:
    with closing(sqlite3.connect(run / "run.db")) as database:
        database.execute(
            "UPDATE programs SET evaluation = replace(evaluation, '\"threshold\":0.5', '\"threshold\":1e999')"
        )
        database.commit()
    assert main(["export", str(run), "--out", str(run.parent / "out.py")]) == 1
    assert "threshold: inf; expected a finite number" in capsys.readouterr().err
    assert not (run.parent / "out.py").exists()


@pytest.mark.parametrize("version", [2, 3, 4])
def test_a_run_of_a_format_before_is_shown_and_replayed(
    version: int, run: Path, tmp_path: Path, capsys: Capture
) -> None:
    made_older(run / "run.db", version)
    assert main(["show", str(run), "--json"]) == 0
    assert last_object(capsys)["population"][0]["threshold"] == 0.5
    assert main(["report", str(run), "--out", str(tmp_path / "page.html")]) == 0
    assert main(["fit", "--resume", str(run)]) == 2
    err = capsys.readouterr().err
    said = f"a run of format {version}; expected format 5 to go on with: give its answers again with --replay {run}"
    assert said in err
    before = (run / "reward.py").read_text()
    assert main(["fit", "--replay", str(run), "--out", str(tmp_path / "again")]) == 0
    assert (tmp_path / "again" / "reward.py").read_text().partition("class ")[2] == before.partition("class ")[2]
