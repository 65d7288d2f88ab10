"""The temperature of parents, from the flag to the programs that are mutated."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from grace_irl.cli import main
from grace_irl.demos import save
from grace_irl.runs.recording import recorded_config
from tests.fakes.data import vector_set

RECORDINGS = Path(__file__).parents[1] / "recordings"
Capture = pytest.CaptureFixture[str]


def rows(folder: Path, sql: str) -> list[tuple[str, ...]]:
    with closing(sqlite3.connect(folder / "run.db")) as database:
        return database.execute(sql).fetchall()


def parents(folder: Path) -> list[tuple[str, ...]]:
    return rows(folder, "SELECT parents FROM requests WHERE operator = 'mutate' ORDER BY idx")


@pytest.fixture(scope="module")
def cold(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that mutates the fittest program of its population alone, and its demonstrations."""
    folder = tmp_path_factory.mktemp("cold")
    save(vector_set(noise=0.1), folder / "set.parquet")
    small = [
        "--population",
        "6",
        "--elite",
        "1",
        "--generations",
        "3",
        "--workers",
        "1",
        "--parent-temperature",
        "1e-9",
    ]
    never = ["--set", "stop.plateau=none", "--set", "stop.target_accuracy=none"]
    demos = ["--demos", str(folder / "set.parquet"), "--out", str(folder / "run")]
    assert main(["fit", *demos, *small, *never, "--json"]) == 0
    return folder


def test_a_cold_search_mutates_the_fittest_of_its_population(cold: Path) -> None:
    """The population is the six programs of highest merit, which counts the prior; the parent is drawn by fitness."""
    known = {}
    for name, index, text, prior in rows(cold / "run", "SELECT id, idx, evaluation, prior FROM programs"):
        evaluation = json.loads(text)
        known[name] = (
            int(index),
            evaluation["score"] + float(prior) / evaluation["metrics"]["positives"],
            evaluation["score"],
        )
    asked = rows(cold / "run", "SELECT generation, parents FROM requests WHERE operator = 'mutate'")
    assert asked
    begins = dict(rows(cold / "run", "SELECT generation, MIN(idx) FROM requests GROUP BY generation"))
    for generation, named in asked:
        members = sorted((each[1:] for each in known.values() if each[0] < int(begins[generation])), reverse=True)[:6]
        assert known[json.loads(named)[0]][2] == max(score for _, score in members)


def test_a_recording_keeps_its_temperature(cold: Path, capsys: Capture) -> None:
    recording = cold / "answers.jsonl"
    assert main(["export", str(cold / "run"), "--recording", str(recording)]) == 0
    again = ["--demos", str(cold / "set.parquet"), "--out", str(cold / "again"), "--workers", "1"]
    assert main(["fit", "--replay", str(recording), *again]) == 0
    assert parents(cold / "again") == parents(cold / "run")
    assert "parent_temperature = 1e-09" in (cold / "again" / "config.toml").read_text()


def test_a_recording_made_before_there_was_one_has_the_papers(tmp_path: Path) -> None:
    for path in (
        RECORDINGS / "large_model" / "base-GoToObj-plain.jsonl",
        RECORDINGS / "large_model_mujoco/Hopper.jsonl",
    ):
        assert "parent_temperature" not in path.read_text(encoding="utf-8").splitlines()[0]
        assert recorded_config(path).search.parent_temperature == 1.0


@pytest.mark.parametrize("value", ["0", "-1", "nan", "inf"])
def test_what_is_no_temperature(value: str, tmp_path: Path, capsys: Capture) -> None:
    save(vector_set(), tmp_path / "set.parquet")
    out = ["--out", str(tmp_path / "run")]
    assert main(["fit", "--demos", str(tmp_path / "set.parquet"), *out, f"--parent-temperature={value}"]) == 2
    said = capsys.readouterr().err
    assert "search.parent_temperature" in said
    assert said.count("\n") == 1
    assert not (tmp_path / "run").exists()
