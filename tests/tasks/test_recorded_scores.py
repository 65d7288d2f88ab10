"""Replays that take recorded learning curves in place of training: the same tree in seconds, and only on demand."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("stable_baselines3", reason="grace-irl[rl] is not installed")

import grace_irl
from grace_irl.cli import main
from grace_irl.demos.labels import Problem
from grace_irl.errors import InputError
from grace_irl.evaluate.rewards import MemoryCache
from grace_irl.propose.material import Workbench
from grace_irl.runs.recording import WITH_TRAININGS, recorded_config, recorded_trainings
from grace_irl.runs.run import opened
from grace_irl.sandbox import open_sandbox
from grace_irl.tasks import policy_evaluator
from grace_irl.tasks.policy_evaluator import PolicyEvaluator, PolicySettings, plan
from grace_irl.tasks.random_episodes import random_episodes
from grace_irl.tasks.recorded import RecordedFailure, RecordedTrainings, TakesRecorded
from grace_irl.testing.evaluators import program
from grace_irl.work import workplace
from tests.hostile_files.test_nearly_right import refused
from tests.hostile_files.traps import stranger
from tests.propose.client.server import ChatServer
from tests.runs.test_resume import memory
from tests.tasks.poles import PROGRAM, TASK
from tests.tasks.test_methods import RECORDS
from tests.tasks.test_policy_evaluator import TASK as TINY
from tests.tasks.test_policy_evaluator import UP

pytestmark = pytest.mark.slow
Capture = pytest.CaptureFixture[str]
FLAG = "--recorded-scores"


def requests(run: Path) -> list[tuple[Any, ...]]:
    """All that the search asked for, but when."""
    with closing(sqlite3.connect(run / "run.db")) as database:
        return list(database.execute("SELECT idx, generation, operator, parents, seed, context FROM requests"))


def notes(run: Path) -> list[str]:
    with opened(run) as (store, _):
        return [detail for _, kind, detail in store.events() if kind == "note"]


@pytest.fixture
def untrained(monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs of trainings are refused from here on, so that no process of one begins."""

    class Refusing(workplace.LocalExecutor):
        def submit(self, *_: object) -> Any:
            raise AssertionError("a training was submitted")

    monkeypatch.setattr(workplace, "LocalExecutor", Refusing)


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a task, a run of RF-Agent with a model, follow-ups, a repair and two seeds, and its recording."""
    folder = tmp_path_factory.mktemp("tree")
    (folder / "pole.toml").write_text(TASK)
    asked = 0

    def answer(prompt: str) -> str:
        nonlocal asked
        asked += 1
        if "Describe in at most three sentences" in prompt:
            return "It pays for an upright pole."
        if "square brackets" in prompt:
            return f"Likely. [0.{asked % 10}]"
        wrong = "1 / 0 * " if asked == 1 else ""
        return f"Upright.\n\n```python\n{PROGRAM.format(weight=f'{wrong}{asked}')}```\n"

    with ChatServer(answer=answer) as server:
        run = grace_irl.fit(
            out=folder / "run",
            method="rf-agent",
            llm_url=server.url,
            answer_format="code",
            train_seeds=2,
            programs=4,
            first_programs=2,
            actions="1,1,0,0,0",
            lag=1,
            task=folder / "pole.toml",
        )
    assert run.programs >= 4
    with opened(run.folder) as (store, _):
        assert {attempt for _, attempt, _ in store.proposals()} >= {0, 1, 2}
    assert main(["export", str(run.folder), "--recording", str(folder / "a.jsonl")]) == 0
    return folder


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a task with code of its own, a run of two programs, and its recording."""
    folder = tmp_path_factory.mktemp("small")
    (folder / "own.py").write_text(RECORDS)
    kept = [line for line in TASK.splitlines() if not line.startswith("fields")]
    text = "\n".join(kept).replace('"CartPole-v1"', '"own.py:make"')
    (folder / "pole.toml").write_text(text)
    words = ["--method", "random", "--task", str(folder / "pole.toml"), "--programs", "2"]
    assert main(["fit", *words, "--out", str(folder / "run")]) == 0
    assert main(["export", str(folder / "run"), "--recording", str(folder / "a.jsonl")]) == 0
    return folder


def replay(place: Path, out: Path, *more: str, source: str = "a.jsonl", task: Path | None = None) -> list[str]:
    """The words that replay what lies in a folder."""
    named = ["--replay", str(place / source), "--task", str(task or place / "pole.toml")]
    return ["fit", *named, "--out", str(out), *more]


@pytest.mark.usefixtures("untrained")
@pytest.mark.parametrize("source", ["a.jsonl", "run"])
def test_a_replay_with_recorded_scores_has_the_same_tree(
    source: str, tree: Path, tmp_path: Path, capsys: Capture
) -> None:
    again = tmp_path / "again"
    assert main(replay(tree, again, FLAG, source=source)) == 0
    said = capsys.readouterr()
    assert memory(again) == memory(tree / "run")
    assert requests(again) == requests(tree / "run")
    assert not (again / "trainings").exists()
    with opened(again) as (store, _), opened(tree / "run") as (trained, _):
        for name, record in trained.records().items():
            found = store.records()[name].evaluation
            policy = dict(found.evidence.get("policy", {}))
            assert policy.pop("recorded", None) is (True if found.valid else None)
            evidence = {**found.evidence, "policy": policy} if policy else found.evidence
            assert replace(found, seconds=0.0, evidence=evidence) == replace(record.evaluation, seconds=0.0)
    remark = "The scores were taken from a recording, and not trained here."
    assert any(f"taken from the recording {tree / source}" in each for each in notes(again))
    assert "not trained here (--recorded-scores)" in said.err
    assert "searches otherwise" not in said.err
    assert remark in said.out
    assert f"trained: not here: scores of recording {source}" in (again / "reward.py").read_text()
    page = (again / "report.html").read_text()
    assert page.count(remark) == 2
    assert main(["show", str(again)]) == 0
    shown = capsys.readouterr()
    assert remark in shown.out
    assert "not trained here (--recorded-scores)" in shown.out
    assert "recording" not in (tree / "run" / "reward.py").read_text()


@pytest.mark.usefixtures("untrained")
def test_it_is_gone_on_with_and_not_switched(tree: Path, tmp_path: Path, capsys: Capture) -> None:
    again = tmp_path / "again"
    assert main(replay(tree, again, FLAG, "--max-calls", "2")) == 0
    assert memory(again) != memory(tree / "run")
    assert "'policy.recorded_scores' was True" in refused(capsys, "fit", "--resume", again, "--no-recorded-scores")
    assert main(["fit", "--resume", str(again), "--max-calls", "4"]) == 0
    assert memory(again) == memory(tree / "run")
    assert "'policy.recorded_scores' was False" in refused(capsys, "fit", "--resume", tree / "run", FLAG)


def test_without_the_flag_policies_are_trained(small: Path, tmp_path: Path) -> None:
    again = tmp_path / "again"
    assert main(replay(small, again)) == 0
    assert len(list((again / "trainings").glob("*/full-0/result.json"))) == 2
    assert memory(again) == memory(small / "run")
    assert not any("recording" in each for each in notes(again))


@pytest.mark.usefixtures("untrained")
def test_nothing_but_the_users_word_takes_scores(
    small: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    again = tmp_path / "again"
    assert main(replay(small, again, FLAG)) == 0
    header, *lines = (small / "a.jsonl").read_text().splitlines()
    about = json.loads(header)
    about["config"]["policy"]["recorded_scores"] = True
    (tmp_path / "gift.jsonl").write_text("\n".join([json.dumps(about), *lines]) + "\n")
    for source in (tmp_path / "gift.jsonl", again):
        config: Any = recorded_config(source)
        assert config.policy.recorded_scores is False
    settings = f'[proposer]\nname = "replay"\nrecording = "{small / "a.jsonl"}"\n[policy]\nrecorded_scores = true\n'
    (tmp_path / "mine.toml").write_text(f'method = "random"\n{settings}[random]\nprograms = 2\n')
    words = ["--config", tmp_path / "mine.toml", "--task", small / "pole.toml", "--out", tmp_path / "x"]
    assert "expected --recorded-scores on the command line" in refused(capsys, "fit", *words)
    assert main([*map(str, ["fit", *words]), FLAG]) == 0
    alone = ["--method", "random", "--task", small / "pole.toml", FLAG, "--out", tmp_path / "y"]
    assert "--recorded-scores: no effect, since this run has no recording" in refused(capsys, "fit", *alone)
    stranger(monkeypatch, tmp_path)
    moved = shutil.copytree(again, tmp_path / "theirs")
    assert FLAG in refused(capsys, "fit", "--resume", moved, "--task", small / "pole.toml")


@pytest.mark.parametrize("source", ["a.jsonl", "run"])
def test_a_replay_without_its_task_asks_for_it(source: str, small: Path, tmp_path: Path, capsys: Capture) -> None:
    said = refused(capsys, "fit", "--replay", small / source, "--out", tmp_path / "x")
    assert f"{source} is of a run with a task; expected --task with the task's name or file" in said
    assert not (tmp_path / "x").exists()


@pytest.mark.usefixtures("untrained")
def test_fewer_trainings_than_recorded_are_another_search(tree: Path, tmp_path: Path, capsys: Capture) -> None:
    """Scores are means over other trainings, so that another program may be the best one."""
    assert main(replay(tree, tmp_path / "x", FLAG, "--train-seeds", "1")) == 0
    assert "searches otherwise than the recorded run (policy.train_seeds was 2 and is 1)" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--train-steps", "64"], "has 128 steps, and 64 in this run; expected the same --train-steps"),
        (["--seed", "7"], "in this run; expected the recorded run's --seed"),
        (["--train-seeds", "2"], "no training full-1 of program"),
    ],
)
@pytest.mark.parametrize("source", ["a.jsonl", "run"])
def test_other_trainings_are_refused_before_anything_is_written(
    words: list[str], said: str, source: str, small: Path, tmp_path: Path, capsys: Capture
) -> None:
    assert said in refused(capsys, *replay(small, tmp_path / "x", FLAG, *words, source=source))
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        ("pole.toml", ("episodes = 2", "episodes = 3"), "different in episodes; expected the same task"),
        ("pole.toml", ("n_envs = 2", "n_envs = 1"), "different in ppo"),
        ("pole.toml", ("steps = 128", "steps = 256"), "different in steps"),
        ("pole.toml", ("keep a pole upright", "hold a pole"), ""),  # prompts alone contain it
        ("pole.toml", ("steps until the pole falls", "steps"), ""),
        ("own.py", ("make", "make"), ""),
        ("own.py", ("class Named", "# another\nclass Named"), "different in code"),
    ],
)
@pytest.mark.usefixtures("untrained")
@pytest.mark.parametrize("source", ["a.jsonl", "run"])
def test_the_task_is_the_same_wherever_it_lies(
    name: str, change: tuple[str, str], said: str, source: str, small: Path, tmp_path: Path, capsys: Capture
) -> None:
    for each in ("pole.toml", "own.py"):
        shutil.copy(small / each, tmp_path / each)
    path = tmp_path / name
    assert change[0] in path.read_text()
    path.write_text(path.read_text().replace(*change))
    words = replay(small, tmp_path / "x", FLAG, source=source, task=tmp_path / "pole.toml")
    if said:
        assert said in refused(capsys, *words)
        assert not (tmp_path / "x").exists()
    else:
        assert main(words) == 0


@pytest.mark.usefixtures("untrained")
def test_the_file_of_the_task_may_have_another_name(small: Path, tmp_path: Path) -> None:
    shutil.copy(small / "own.py", tmp_path / "own.py")
    task = Path(shutil.copy(small / "pole.toml", tmp_path / "other.toml"))
    assert main(replay(small, tmp_path / "x", FLAG, source="a.jsonl", task=task)) == 0


def changed(small: Path, path: Path, change: Callable[[dict[str, Any]], dict[str, Any] | None]) -> Path:
    """The small recording with changed lines about trainings; None leaves a line out."""
    lines = []
    for text in (small / "a.jsonl").read_text().splitlines():
        entry = json.loads(text)
        found = change(entry["training"]) if "training" in entry else entry
        if found is not None:
            lines.append(json.dumps({"training": found} if "training" in entry else entry))
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda training: {**training, "curve": training["curve"][:1]}, "has 1 evaluations, at steps 64, and 2 at"),
        (
            lambda training: {**training, "curve": [{**each, "episodes": 5} for each in training["curve"]]},
            "has not 2 episodes in each evaluation",
        ),
        (
            lambda training: {**training, "curve": [{**each, "steps": 7} for each in training["curve"]]},
            "at steps 7, 7, and 2 at 64, 128",
        ),
        (lambda _: None, "no trainings in it; expected a recording that grace-irl export made"),
    ],
)
def test_other_curves_are_refused(
    change: Callable[[dict[str, Any]], dict[str, Any]], said: str, small: Path, tmp_path: Path, capsys: Capture
) -> None:
    changed(small, tmp_path / "a.jsonl", change)
    words = replay(tmp_path, tmp_path / "x", FLAG, task=small / "pole.toml")
    assert said in refused(capsys, *words)
    assert not (tmp_path / "x").exists()


@pytest.mark.usefixtures("untrained")
def test_a_program_without_a_training_ends_the_replay(small: Path, tmp_path: Path, capsys: Capture) -> None:
    first = recorded_trainings(small / "a.jsonl").trainings[0].program
    changed(small, tmp_path / "a.jsonl", lambda each: None if each["program"] == first else each)
    again = tmp_path / "again"
    assert main(replay(tmp_path, again, FLAG, task=small / "pole.toml")) == 2
    said = capsys.readouterr().err.splitlines()[-1]
    assert f"no training full-0 of program {first} in it" in said
    assert "or a new run without this flag, which trains" in said
    assert "go on with" not in said
    assert not (again / "trainings").exists()


def test_recordings_of_earlier_formats_have_no_trainings(small: Path, tmp_path: Path, capsys: Capture) -> None:
    header, *lines = (small / "a.jsonl").read_text().splitlines()
    assert json.loads(header)["format"] == WITH_TRAININGS
    assert str(small) not in (small / "a.jsonl").read_text()
    answers = [line for line in lines if "training" not in json.loads(line)]
    for version in (1, 2, 3):
        about = json.loads(header) | {"format": f"grace-irl recording {version}"}
        (tmp_path / "a.jsonl").write_text("\n".join([json.dumps(about), *answers]) + "\n")
        assert len(recorded_trainings(tmp_path / "a.jsonl")) == 0
        words = replay(tmp_path, tmp_path / "x", FLAG, task=small / "pole.toml")
        assert "a.jsonl: no trainings in it" in refused(capsys, *words)
        (tmp_path / "a.jsonl").write_text("\n".join([json.dumps(about), *lines]) + "\n")
        assert "not a recording" in refused(capsys, *words)


@pytest.mark.usefixtures("untrained")
def test_a_replay_has_no_trainings_of_its_own(small: Path, tmp_path: Path, capsys: Capture) -> None:
    assert main(replay(small, tmp_path / "again", FLAG)) == 0
    assert main(["export", str(tmp_path / "again"), "--recording", str(tmp_path / "b.jsonl"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["trainings"] == 0
    for source in ("again", "b.jsonl"):
        words = replay(tmp_path, tmp_path / "x", FLAG, source=source, task=small / "pole.toml")
        assert "no trainings in it" in refused(capsys, *words)


def test_a_recording_of_seeds_without_end_is_refused(small: Path, tmp_path: Path, capsys: Capture) -> None:
    header, *lines = (small / "a.jsonl").read_text().splitlines()
    about = json.loads(header)
    about["config"]["policy"]["train_seeds"] = 10**15
    (tmp_path / "a.jsonl").write_text("\n".join([json.dumps(about), *lines]) + "\n")
    words = replay(tmp_path, tmp_path / "x", FLAG, task=small / "pole.toml")
    assert "setting 'policy.train_seeds' is 1000000000000000" in refused(capsys, *words)


def _damaged(folder: Path, text: str) -> None:
    for path in folder.glob("trainings/*/full-0/result.json"):
        path.write_text(text)


def _curve(folder: Path, **change: object) -> None:
    for path in folder.glob("trainings/*/full-0/result.json"):
        path.write_text(json.dumps([each | change for each in json.loads(path.read_text())]))


def _linked(folder: Path) -> None:
    (folder / "trainings").rename(folder.parent / "elsewhere")
    (folder / "trainings").symlink_to(folder.parent / "elsewhere")


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda folder: _damaged(folder, "[" * 100_000), "damaged"),
        (lambda folder: _damaged(folder, "[]"), "a training without an evaluation"),
        (lambda folder: _curve(folder, score=float("nan")), "not finite"),
        (lambda folder: _curve(folder, score=1e300), "too large"),
        (lambda folder: _curve(folder, score=None), "without a score"),
        (lambda folder: _curve(folder, steps="64"), "damaged"),
        (lambda folder: (folder / "task.json").write_text("[" * 100_000), "task.json: damaged"),
        (lambda folder: (folder / "task.json").write_text('{"steps": "9"}'), "task.json: damaged"),
        (lambda folder: (folder / "task.json").write_bytes(b"\xff\xfe"), "task.json: damaged"),
        (_linked, "a symbolic link"),
        (lambda folder: shutil.rmtree(folder / "trainings"), "no trainings in it"),
    ],
)
def test_damaged_folders_are_refused(
    damage: Callable[[Path], object], said: str, small: Path, tmp_path: Path, capsys: Capture
) -> None:
    folder = shutil.copytree(small / "run", tmp_path / "run")
    damage(folder)
    words = replay(tmp_path, tmp_path / "x", FLAG, source="run", task=small / "pole.toml")
    assert said in refused(capsys, *words)
    assert not (tmp_path / "x").exists()


def test_an_id_that_is_a_path_is_refused(small: Path, tmp_path: Path, capsys: Capture) -> None:
    folder = shutil.copytree(small / "run", tmp_path / "run")
    with closing(sqlite3.connect(folder / "run.db")) as database, database:
        (name,) = database.execute("SELECT id FROM programs LIMIT 1").fetchone()
        for table, column in (("programs", "id"), ("results", "program"), ("definitions", "program")):
            database.execute(f"UPDATE {table} SET {column} = '../../x' WHERE {column} = ?", (name,))
        database.execute("UPDATE functions SET program = '../../x' WHERE program = ?", (name,))
    words = replay(tmp_path, tmp_path / "x", FLAG, source="run", task=small / "pole.toml")
    assert "a program without a valid id" in refused(capsys, *words)


def test_failed_trainings_are_recorded(small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A limit that no training meets: the recording holds failures alone, and the replay has the same ones."""
    words = ["--method", "random", "--task", str(small / "pole.toml"), "--programs", "1", "--train-limit", "0.01"]
    assert main(["fit", *words, "--out", str(tmp_path / "run")]) == 1
    assert main(["export", str(tmp_path / "run"), "--recording", str(tmp_path / "a.jsonl")]) == 0
    found = recorded_trainings(tmp_path / "a.jsonl")
    assert [each.status for each in found.failures] == ["timeout"]
    assert recorded_trainings(tmp_path / "run") == replace(found, source=str(tmp_path / "run"))
    monkeypatch.setattr(policy_evaluator, "job", None)
    assert main(replay(tmp_path, tmp_path / "again", FLAG, task=small / "pole.toml")) == 1
    assert not (tmp_path / "again" / "trainings").exists()
    assert memory(tmp_path / "again") == memory(tmp_path / "run")


def test_programs_still_have_their_dry_runs(tmp_path: Path) -> None:
    bad = "class Reward:\n    def reward_fn(self, state, action, next_state):\n        return 1 / 0\n"
    recorded = RecordedTrainings("a.jsonl", failures=[RecordedFailure(program(UP).id, "killed", "it ended")])
    with open_sandbox(workers=1) as sandbox:
        bench = Workbench(Problem(TINY.metadata, "all", ()), sandbox, folder=tmp_path, rewards=MemoryCache())
        evaluator = PolicyEvaluator(TINY, bench, PolicySettings(), random_episodes(TINY, 2), 20.0)
        assert isinstance(evaluator, TakesRecorded)
        evaluator.take(recorded)
        try:
            failed, known = evaluator.evaluate([program(bad), program(UP)])
            with pytest.raises(InputError, match="no training full-0"):
                evaluator.evaluate([program(UP.replace("1.0", "2.0"))])
        finally:
            evaluator.close()
    assert (failed.status, "ZeroDivisionError" in failed.traceback) == ("runtime", True)
    assert (known.status, known.message) == ("killed", "it ended")


def test_a_short_training_is_planned_before_the_full_ones() -> None:
    found = plan(replace(TINY, short_steps=100), PolicySettings(seeds=2, steps=300)).trainings
    assert [*found] == ["short-0", "full-0", "full-1"]
    assert found["short-0"].seed == found["full-0"].seed != found["full-1"].seed
    assert (found["short-0"].steps, found["short-0"].evaluated_at) == (100, (128,))
    assert (found["full-1"].steps, found["full-1"].evaluated_at) == (300, (192, 320))


@pytest.mark.parametrize("floor", ["400.0", "1.0"])
def test_short_trainings_are_recorded(floor: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pole.toml").write_text(TASK.replace("[ppo]", f"[short]\nsteps = 64\nfloor = {floor}\n[ppo]"))
    words = ["--method", "random", "--task", str(tmp_path / "pole.toml"), "--programs", "1"]
    assert main(["fit", *words, "--out", str(tmp_path / "run")]) == 0
    assert main(["export", str(tmp_path / "run"), "--recording", str(tmp_path / "a.jsonl")]) == 0
    kinds = [each.name for each in recorded_trainings(tmp_path / "a.jsonl").trainings]
    assert kinds == (["short-0"] if floor == "400.0" else ["short-0", "full-0"])
    monkeypatch.setattr(policy_evaluator, "job", None)
    for source in ("a.jsonl", "run"):
        assert main(replay(tmp_path, tmp_path / f"again-{source}", FLAG, source=source)) == 0
        assert memory(tmp_path / f"again-{source}") == memory(tmp_path / "run")
        assert "The scores were taken" in (tmp_path / f"again-{source}" / "report.html").read_text()
