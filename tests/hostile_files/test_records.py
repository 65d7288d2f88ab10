"""Files of runs and comparisons, one change from right: one line with exit code 2, or as if it were not there."""

from __future__ import annotations

import json
import sqlite3
import zipfile
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from grace_irl import load_reward
from grace_irl.cli import main
from grace_irl.compare.folder import Favourite, JobResult, TrainingOutcome, read_curve, read_result, write_result
from grace_irl.errors import InputError
from grace_irl.programs.export import export_source, program_of
from grace_irl.rl.curve import Point
from grace_irl.runs.expand.round import Round
from grace_irl.runs.recording import WITH_TRAININGS, recorded_trainings
from tests.hostile_files.test_nearly_right import DEEP, SHIPPED, refused
from tests.runs.test_damage import full

BIG = "1" + "0" * 400
DONE = asdict(Round(0, "rounds/0/run", "p", -0.5, 0.9))


@pytest.mark.parametrize(
    "text",
    [
        DEEP,
        "[]",
        json.dumps({**DONE, "steps": []}),
        json.dumps({**DONE, "components": {"a": "b"}}),
        json.dumps({**DONE, "mean": "high"}),
        json.dumps({**DONE, "reward": None}),
        json.dumps({**DONE, "unknown": 1}),
    ],
)
def test_rounds(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = tmp_path / "rounds" / "0" / "round.json"
    place.parent.mkdir(parents=True)
    place.write_text(text)
    assert "delete it to do the round's end again" in refused(capsys, "show", tmp_path)


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The lines of a recording."""
    folder = tmp_path_factory.mktemp("recorded")
    fit = ["fit", "--demos", str(SHIPPED), "--out", str(folder / "run"), "--generations", "1", "--population", "2"]
    assert main(fit) == 0
    assert main(["export", str(folder / "run"), "--recording", str(folder / "a.jsonl")]) == 0
    return (folder / "a.jsonl").read_text().splitlines()


@pytest.mark.parametrize(
    ("line", "change"),
    [
        (1, {"source": 3}),
        (1, {"source": {"a": 1}}),
        (1, {"raw": False, "source": "x"}),
        (1, {"tokens_in": "many"}),
        (1, {"tokens_out": 2**70}),
        (1, {"index": 2**70}),
        (1, {"index": "0"}),
        (1, {"seconds": [1]}),
        (0, {"calls": "1"}),
        (0, {"calls": 1.5}),
    ],
)
def test_recordings(
    line: int, change: dict[str, Any], recording: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [*recording]
    lines[line] = json.dumps(json.loads(lines[line]) | change)
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join(lines) + "\n")
    said = refused(capsys, "fit", "--demos", SHIPPED, "--replay", path, "--out", tmp_path / "run")
    assert f"line {line + 1}: not a recording" in said
    assert not (tmp_path / "run").exists()


POINT = asdict(Point(64, 2, 9.5, 0.5, None, 9.5, {"forward": 1.0}, 3.0, 0.5, 9.5, {"up": 0.9}))
TRAINING = {"program": "a" * 16, "name": "full-0", "seed": 5, "steps": 64, "curve": [POINT]}
GOALS = {"digest": "c" * 16, "attempt": 0, "origin": "model", "indices": [3]}
FAILURE = {"program": "b" * 16, "status": "timeout", "message": "it took too long"}


def with_trainings(recording: list[str], path: Path, *lines: str) -> Path:
    """A recording of format 4, with these lines at its end."""
    head = json.dumps(json.loads(recording[0]) | {"format": WITH_TRAININGS, "task": {"env": "0" * 16}})
    path.write_text("\n".join([head, *recording[1:], *lines]) + "\n")
    return path


def test_a_recording_with_trainings_is_read(recording: list[str], tmp_path: Path) -> None:
    lines = json.dumps({"training": TRAINING}), json.dumps({"failed": FAILURE})
    found = recorded_trainings(with_trainings(recording, tmp_path / "a.jsonl", *lines))
    assert [asdict(each) for each in found.trainings] == [TRAINING | {"curve": (POINT,)}]
    assert [asdict(each) for each in found.failures] == [FAILURE]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        *((json.dumps({"training": TRAINING | change}), said) for change, said in [
            ({"program": "../../../etc/passwd"}, "no id of a program"),
            ({"program": "a" * 16 + "\n"}, "no id of a program"),
            ({"program": 3}, "training.program"),
            ({"name": "full-0/../.."}, "without a name"),
            ({"name": None}, "training.name"),
            ({"seed": "5"}, "training.seed"),
            ({"seed": 2**70}, "a number that no training has"),
            ({"seed": -1}, "a number that no training has"),
            ({"steps": 64.5}, "training.steps"),
            ({"steps": True}, "training.steps"),
            ({"curve": []}, "without an evaluation"),
            ({"curve": {}}, "training.curve"),
            ({"curve": [3]}, "training.curve.0"),
            ({"curve": None}, "training.curve"),
        ]),
        *((json.dumps({"training": TRAINING | {"curve": [POINT | change]}}), said) for change, said in [
            ({"score": None}, "without a score"),
            ({"score": "9"}, "curve.0.score"),
            ({"score": float("nan")}, "not finite"),
            ({"score": float("-inf")}, "not finite"),
            ({"score": 1e300}, "too large"),
            ({"mean": 1e101}, "too large"),
            ({"length": float("nan")}, "not finite"),
            ({"success": float("nan")}, "not finite"),
            ({"paid": float("inf")}, "not finite"),
            ({"terms": {"up": float("nan")}}, "not finite"),
            ({"terms": {"up": "0"}}, "curve.0.terms.up"),
            ({"terms": {"\ud800": 0.5}}, "surrogates not allowed"),
            ({"components": [1]}, "curve.0.components"),
            ({"steps": 2**70}, "a number that no training has"),
            ({"episodes": -3}, "a number that no training has"),
        ]),
        *((json.dumps({"failed": FAILURE | change}), said) for change, said in [
            ({"status": "ok"}, "without a status"),
            ({"status": "fine"}, "without a status"),
            ({"status": []}, "failed.status"),
            ({"message": "x" * 3000}, "more than 2000 characters"),
            ({"program": ""}, "no id of a program"),
        ]),
        (json.dumps({"training": {"program": "a" * 16}}), "training.name"),
        (json.dumps({"failed": {}}), "failed.program"),
        ('{"training": ' + DEEP + "}", "not a recording"),
        ('{"training": 1' + "0" * 10_000 + "}", "not a recording"),
        (json.dumps({"training": TRAINING})[:-9], "not a recording"),
        (json.dumps({"training": TRAINING}) + "\n" + json.dumps({"training": TRAINING}), "an earlier line holds"),
        (json.dumps({"failed": FAILURE}) + "\n" + json.dumps({"failed": FAILURE}), "an earlier line holds"),
        (json.dumps({"goals": GOALS}) + "\n" + json.dumps({"goals": GOALS}), "goal states that an earlier line holds"),
    ],
)  # fmt: skip
def test_goals_and_trainings_of_recordings(
    line: str, said: str, recording: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = with_trainings(recording, tmp_path / "a.jsonl", line)
    told = refused(capsys, "fit", "--demos", SHIPPED, "--replay", path, "--out", tmp_path / "run")
    assert said in told
    assert f"line {len(recording) + line.count(chr(10)) + 1}: not a recording" in told
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("task", [3, [], {"env": 3}, None])
def test_a_recording_whose_task_is_something_else(
    task: object, recording: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = with_trainings(recording, tmp_path / "a.jsonl")
    head, *lines = path.read_text().splitlines()
    path.write_text("\n".join([json.dumps(json.loads(head) | {"task": task}), *lines]) + "\n")
    told = refused(capsys, "fit", "--demos", SHIPPED, "--replay", path, "--out", tmp_path / "run")
    assert "line 1: not a recording (task" in told


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("DELETE FROM requests", "a idx that is not in 'requests'"),
        ("DELETE FROM programs", "that is not in 'programs'"),
        ("DROP TABLE fates", "'fates' is not as this version makes it"),
        ("ALTER TABLE fates RENAME COLUMN verdict TO other", "'fates' is not as this version makes it"),
        ("UPDATE goals SET origin = 'nobody'", "'nobody' is none of file, data, model"),
        ("""UPDATE goals SET indices = '["a"]'""", "a row of 'goals' is damaged"),
        ("UPDATE programs SET parents = '[1]'", "a row of 'programs' is damaged"),
        ("UPDATE programs SET evaluation = json_set(evaluation, '$.metrics', '3')", "a row of 'programs' is damaged"),
        (
            f"UPDATE programs SET evaluation = json_set(evaluation, '$.score', json('{BIG}'))",
            "a row of 'programs' is",
        ),
        ("UPDATE programs SET prior = -1e999", "a row of 'programs' is damaged"),
        ("UPDATE meta SET value = 'x' || hex(zeroblob(5000)) WHERE key = 'format'", "a run of format x0"),
    ],
)
def test_databases(sql: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = full(tmp_path / "run.db")
    (tmp_path / "config.toml").write_text("seed = 0\n")
    with closing(sqlite3.connect(path)) as database, database:
        database.execute(sql)
    assert said in refused(capsys, "show", tmp_path)


def test_rewards_that_unpack_to_more_than_any_have(tmp_path: Path) -> None:
    from grace_irl.evaluate import rewards

    bomb = rewards.zlib.compress(bytes(256 << 20), 9)
    with pytest.raises(ValueError, match="other than 10 values"):
        rewards.unpack(bomb, 10)


FAVOURITE = Favourite(50, (1.0, 0.5), 40, 1.0, 0.5, None, 8.0)
OUTCOME = TrainingOutcome("A-v0", False, 3, 1.5, 0.5, None, 9.0, favourite=FAVOURITE)


@pytest.mark.parametrize(
    "change",
    [
        {"outcomes": 3},
        {"outcomes": [{"environment": 3}]},
        {"seed": "0"},
        {"notes": [1]},
        {"failure": None},
        {"form": "x"},
        {"data": 3},
        {"outcomes": [{**asdict(OUTCOME), "favourite": {"trained": 1}}]},
        {"outcomes": [{**asdict(OUTCOME), "favourite": {**asdict(FAVOURITE), "paid": ["x"]}}]},
    ],
)
def test_a_result_of_other_types_is_none(change: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "grace-0" / "result.json"
    result = JobResult("grace", 0, (OUTCOME,), ("a",), carried=("A-v0",))
    write_result(path, result)
    assert read_result(path) == result
    path.write_text(json.dumps({**asdict(result), **change}))
    assert read_result(path) is None
    path.write_text(DEEP)
    assert read_result(path) is None


@pytest.mark.parametrize(
    "text", ["[3]", '[{"steps": 1}]', '[{"steps": "a", "mean": 1}]', '[{"steps": 1, "mean": NaN}]', DEEP]
)
def test_a_curve_of_other_points_is_empty(text: str, tmp_path: Path) -> None:
    path = tmp_path / "curve.json"
    points = [{"steps": 5, "mean": 0.5, "success": None, "paid": 2.0}]
    path.write_text(json.dumps(points))
    assert read_curve(path) == points
    path.write_text(text)
    assert read_curve(path) == []


@pytest.mark.parametrize("scale", ["1e999", "1e-400", "-1e999", "0", "1.2.3", "9" * 400])
def test_a_calibration_that_is_no_number_is_none(scale: str, tmp_path: Path) -> None:
    path = tmp_path / "reward.py"
    path.write_text(f"SCALE = {scale}\nOFFSET = 0.5\n")
    assert (load_reward(path).scale, load_reward(path).offset) == (1.0, 0.0)
    path.write_text("SCALE = 2.0\nOFFSET = 1e999\n")
    assert (load_reward(path).scale, load_reward(path).offset) == (1.0, 0.0)


@pytest.mark.parametrize("docstring", ['"\\N{nothing}"', '"\\x0"', '"a\\d"', '"\\777"', '"a\0"'])
def test_a_docstring_of_no_characters_is_the_program_s(docstring: str, recwarn: pytest.WarningsRecorder) -> None:
    source = f"{docstring}\n\n\nclass Reward:\n    pass\n"
    exported = export_source(source, title="t", facts=[("a", "b")], scale=1.0, offset=0.0)
    assert "class Reward:" in program_of(exported)
    exported.encode()
    program_of(exported).encode()
    assert not recwarn.list


@pytest.mark.parametrize("data", ["[]", "3", DEEP, '{"policy_class": []}'])
def test_checkpoints_of_stable_baselines(data: str, tmp_path: Path) -> None:
    pytest.importorskip("stable_baselines3")
    from grace_irl.rl.checkpoint import CheckpointPolicy

    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("data", data)
    with pytest.raises(InputError, match="expected"):
        CheckpointPolicy(tmp_path / "a.zip")


def test_a_comparison_of_steps_without_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "comparison"
    folder.mkdir()
    (folder / "compare.toml").write_text(f"steps = {BIG}\n")
    (folder / "fit.toml").write_text("seed = 0\n")
    assert "setting 'steps' is 1000" in refused(capsys, "compare", "--resume", folder)
