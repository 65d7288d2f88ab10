"""Whole runs of the methods that train policies, with the writer that needs no model, and what they meet."""

from __future__ import annotations

import csv
import json
import re
import shutil
from contextlib import closing
from pathlib import Path

import gymnasium
import pytest

pytest.importorskip("stable_baselines3", reason="grace-irl[rl] is not installed")

import grace_irl
from grace_irl.cli import main
from grace_irl.demos import save
from grace_irl.errors import InputError
from grace_irl.evaluate.evaluation import Evaluation, shown
from grace_irl.programs.export import reads_of
from grace_irl.programs.program import Program
from grace_irl.rl.collect import collect
from grace_irl.runs.config import resolve
from grace_irl.runs.folder import RunPaths, create
from grace_irl.runs.loading import new_labelling
from grace_irl.runs.provenance import export_record
from grace_irl.runs.record import Record
from grace_irl.runs.run import opened
from grace_irl.runs.store import Store
from tests.methods.panels import PANELS, panels_in
from tests.tasks.poles import SMALL, TASK, stored

Capture = pytest.CaptureFixture[str]


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL)
def test_a_method_runs_whole_without_a_model(name: str, task: Path, tmp_path: Path, capsys: Capture) -> None:
    folder = tmp_path / "run"
    assert main(["fit", "--method", name, "--task", str(task), *SMALL[name], "--out", str(folder)]) == 0
    err = capsys.readouterr().err
    assert "tests.tasks.scores:length" in err  # the terminal names the code of the task
    assert "best evaluation " in err or name in ("random", "map-elites")  # these tell of every tenth program or so
    assert "A reward designed for a task" in (folder / "reward.py").read_text()
    programs, best = stored(folder)
    assert len(programs) >= 2
    assert dict(programs)[best] == max(score for _, score in programs)
    with opened(folder) as (store, _):
        assert not any(told.notes for told in store.told().values())  # no description, and no opinion but 0
    page = (folder / "report.html").read_text()
    assert "Components" in page
    assert "Training" in page
    assert "<h1>Reward for task pole</h1>" in page
    for fact in (
        "CartPole-v1",
        "tests.tasks.scores:length (steps until the pole falls)",
        "1 of 128 steps for each pro",
    ):
        assert fact in page
    for absent in ("label rule", "log pi", "States are not all shown", "<caption>Data"):
        assert absent not in page
    assert panels_in(page) == PANELS.get(name, [])
    assert "Score along the training, by seed" in page
    assert "<svg" in page[page.index('">Training<') : page.index('">Components<')]
    assert main(["show", str(folder), "--json"]) == 0
    assert json.loads(capsys.readouterr().out.strip().splitlines()[-1])["best"] == best
    assert main(["export", str(folder), "--best", "2", "--out", str(tmp_path / "best")]) == 0
    rows = list(csv.DictReader((tmp_path / "best" / "scores.csv").open()))
    assert len(rows) == min(2, len(programs))
    assert (rows[0]["program"], float(rows[0]["score"])) == (best, dict(programs)[best])
    with opened(folder) as (store, _):
        crossed = [each.program for each in store.records().values() if each.program.operator == "crossover"]
    for each in crossed[:1]:
        capsys.readouterr()
        assert main(["show", str(folder), "--program", each.id]) == 0
        assert f"lineage: {each.id} (crossover with {', '.join(each.parents[1:])})" in capsys.readouterr().out
    assert crossed or name not in ("forge", "revolve")
    for row in rows:
        assert float(row["score"]) == dict(programs)[row["program"]]
        text = " ".join((tmp_path / "best" / row["file"]).read_text().split())
        assert f"score: {shown(float(row['score']))} (best evaluation" in text


def test_a_run_without_a_task_is_refused(tmp_path: Path, capsys: Capture) -> None:
    assert main(["fit", "--method", "eureka", "--out", str(tmp_path / "run")]) == 2
    assert "or --task FILE, or --task with one of acrobot" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_without_a_model_only_transitions_are_rewarded(task: Path, tmp_path: Path, capsys: Capture) -> None:
    task.write_text(TASK.replace("[training]", 'sees = "state"\n[training]'))
    assert main(["fit", "--method", "random", "--task", str(task), "--out", str(tmp_path / "run")]) == 2
    assert "expected sees = 'transition', or a model" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("flag", "said"),
    [
        (["--elite", "2"], "--elite has no effect with this method; expected it with --method grace"),
        (["--label", "last"], "--label: no effect with a task; expected no --task, or this setting left out"),
        (["--expand", "1"], "--expand has no effect with this method; expected it with --method grace, or left out"),
        (["--held-out", "0.2"], "--held-out: no effect with a task; expected no --task"),
        (["--sample", "2K", "--swaps"], "--sample, --swaps: no effect with a task; expected no --task, or these sett"),
    ],
)
def test_settings_without_effect_are_refused(
    flag: list[str], said: str, task: Path, tmp_path: Path, capsys: Capture
) -> None:
    arguments = ["fit", "--method", "forge", "--task", str(task), *flag, "--out", str(tmp_path / "run")]
    assert main(arguments) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_a_changed_task_is_not_gone_on_with(task: Path, tmp_path: Path, capsys: Capture) -> None:
    folder = tmp_path / "run"
    assert main(["fit", "--method", "random", "--task", str(task), "--programs", "1", "--out", str(folder)]) == 0
    task.write_text(TASK.replace("steps = 128", "steps = 64"))
    assert main(["fit", "--resume", str(folder)]) == 2
    assert "is not as it was when the run began" in capsys.readouterr().err
    with opened(folder) as (store, _):
        assert [kind for _, kind, _ in store.events()][-1] == "stopped"  # a refused command changes nothing
    task.write_text(TASK)
    assert main(["fit", "--resume", str(folder), "--trainings", "1"]) == 0


@pytest.mark.slow
def test_a_strangers_run_names_its_task_again(
    task: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "run"
    assert main(["fit", "--method", "random", "--task", str(task), "--programs", "1", "--out", str(folder)]) == 0
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "nobody"))
    monkeypatch.setenv("HOME", str(tmp_path / "nobody"))
    moved = shutil.copytree(folder, tmp_path / "theirs")
    capsys.readouterr()
    assert main(["fit", "--resume", str(moved)]) == 2
    assert f"--task {task}" in capsys.readouterr().err
    assert main(["fit", "--resume", str(moved), "--task", str(task), "--trainings", "2"]) == 0
    assert stored(moved) == stored(folder)


@pytest.mark.slow
def test_a_recording_knows_its_method(task: Path, tmp_path: Path, capsys: Capture) -> None:
    folder, recording = tmp_path / "run", tmp_path / "answers.jsonl"
    assert main(["fit", "--method", "random", "--task", str(task), "--programs", "2", "--out", str(folder)]) == 0
    assert main(["export", str(folder), "--recording", str(recording)]) == 0
    assert str(task) not in recording.read_text()
    other = shutil.copy(recording, tmp_path / "answers.json")  # whatever the file is called
    for number, source in enumerate((recording, other, folder)):
        again = tmp_path / f"again-{number}"
        assert main(["fit", "--replay", str(source), "--task", str(task), "--out", str(again)]) == 0
        assert stored(again) == stored(folder)


def cart_pole(folder: Path, name: str = "CartPole-v1") -> Path:
    path = folder / "experts.parquet"
    save(collect(name, "random", 4, "expert", 0), path)
    return path


@pytest.mark.slow
def test_experts_alone_may_stand_beside_a_task(task: Path, tmp_path: Path) -> None:
    arguments = ["--method", "random", "--task", str(task), "--programs", "1", "--out", str(tmp_path / "run")]
    assert main(["fit", *arguments, "--demos", str(cart_pole(tmp_path))]) == 0
    with opened(tmp_path / "run") as (store, _):
        assert {row.split for row in store.trajectories()} == {"train"}


def test_demonstrations_of_another_environment_are_refused(task: Path, tmp_path: Path, capsys: Capture) -> None:
    demos = cart_pole(tmp_path, "Acrobot-v1")
    arguments = ["--method", "random", "--task", str(task), "--out", str(tmp_path / "run")]
    assert main(["fit", *arguments, "--demos", str(demos)]) == 2
    assert "the same: leave --demos out" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("name", SMALL)
def test_an_estimate_counts_the_programs(name: str, task: Path, tmp_path: Path, capsys: Capture) -> None:
    arguments = ["fit", "--method", name, "--task", str(task), *SMALL[name], "--proposer", "manual", "--estimate"]
    assert main([*arguments, "--json"]) == 0
    assert "target accuracy" not in capsys.readouterr().out


@pytest.mark.parametrize("programs", [7, 10, 80])
def test_an_estimate_counts_the_trainings(programs: int, task: Path, capsys: Capture) -> None:
    """The last expansion of a tree may be cut."""
    words = ["fit", "--method", "rf-agent", "--task", str(task), "--programs", str(programs), "--proposer", "manual"]
    task.write_text(TASK.replace("steps = 128", "steps = 100"))  # PPO takes whole rollouts, of 64
    assert main([*words, "--train-seeds", "2", "--estimate", "--json"]) == 0
    found = json.loads(capsys.readouterr().out.strip().splitlines()[-1])
    assert found["most"]["programs"] == found["typical"]["programs"] == programs
    trained = f"{programs} programs with 256 environment steps each, {256 * programs:,} in all"
    assert any(trained in note for note in found["notes"])
    assert main([*words[:-2], "--train-seeds", "2", "--estimate"]) == 0  # no model to ask: what is left are trainings
    printed = capsys.readouterr().out
    assert f"- no model is asked: no tokens, no cost; {trained}\n" in printed
    assert "- typical: " in printed
    assert printed.startswith("proposer synthesis\n")
    assert "calls" not in printed


@pytest.mark.slow
def test_a_training_that_ppo_rounds_up_is_said(task: Path, tmp_path: Path, capsys: Capture) -> None:
    task.write_text(TASK.replace("n_steps = 32", "n_steps = 100"))
    words = ["fit", "--method", "random", "--task", str(task), "--programs", "1", "--out"]
    assert main([*words, str(tmp_path / "run")]) == 0
    assert "a training of 128 steps has 200, and is evaluated once: PPO learns from 200" in capsys.readouterr().err
    assert main([*words, str(tmp_path / "one"), "--train-steps", "200"]) == 0
    assert "a training is evaluated once: PPO learns from 200" in capsys.readouterr().err
    task.write_text(TASK)
    assert main([*words, str(tmp_path / "even")]) == 0
    assert "PPO learns from" not in capsys.readouterr().err


RECORDS = """
import gymnasium, numpy as np
from gymnasium.spaces import Box, Dict

PLANE = Box(-np.inf, np.inf, (2,), np.float64)


class Named(gymnasium.ObservationWrapper):
    observation_space = Dict({"place": PLANE, "tilt": PLANE})

    def observation(self, state):
        return {"place": np.array(state[:2], float), "tilt": np.array(state[2:], float)}


def make():
    return Named(gymnasium.make("CartPole-v1"))
"""


@pytest.mark.slow
@pytest.mark.parametrize("method", sorted(SMALL))
def test_records_are_states_of_a_task(method: str, task: Path, tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(RECORDS)
    kept = [line for line in TASK.splitlines() if not line.startswith("fields")]
    task.write_text("\n".join(kept).replace('"CartPole-v1"', '"own.py:make"'))
    folder = tmp_path / "run"
    assert main(["fit", "--method", method, "--task", str(task), *SMALL[method], "--out", str(folder)]) == 0
    source = (folder / "reward.py").read_text()
    assert 'state["place"]' in source or 'state["tilt"]' in source
    assert len(stored(folder)[0]) >= 2
    facts = source.partition('"""\n\n')[0]
    assert re.search(r"^states: +record$", facts, re.MULTILINE)
    assert re.search(r"^parts: +\{'place': \(2,\), 'tilt': \(2,\)\}$", facts, re.MULTILINE)
    assert re.search(r"^actions: +\(\)$", facts, re.MULTILINE)
    assert re.search(r"^random: +random actions score \d+", facts, re.MULTILINE)


def test_a_reward_refuses_another_environment_than_its_tasks(task: Path, tmp_path: Path) -> None:
    """The file says which states and actions the task's environment has, as one of demonstrations does."""
    run = grace_irl.fit(method="random", programs=1, task=task, out=tmp_path / "run")
    reward = grace_irl.load_reward(run.reward_path)
    with closing(reward.wrap(gymnasium.make("CartPole-v1"))) as pole:
        pole.reset(seed=0)
        pole.step(0)
    made_for = "observations of 3 numbers; expected the 4 numbers .*: choose the environment that it was made for"
    with closing(gymnasium.make("Pendulum-v1")) as other, pytest.raises(InputError, match=made_for):
        reward.wrap(other)


@pytest.mark.slow
def test_a_run_is_begun_again_from_its_settings(task: Path, tmp_path: Path, capsys: Capture) -> None:
    first, again = tmp_path / "first", tmp_path / "again"
    assert main(["fit", "--method", "random", "--task", str(task), "--programs", "2", "--out", str(first)]) == 0
    assert "set aside" not in capsys.readouterr().err
    config = str(first / "config.toml")
    assert main(["fit", "--config", config, "--task", str(task), "--out", str(again)]) == 0
    assert stored(again) == stored(first)


def test_an_estimate_counts_descriptions_and_opinions(task: Path, capsys: Capture) -> None:
    words = ["fit", "--method", "rf-agent", "--task", str(task), *SMALL["rf-agent"], "--proposer", "manual"]
    found = []
    for more in ([], ["--no-thoughts"]):
        assert main([*words, *more, "--estimate", "--json"]) == 0
        found.append(json.loads(capsys.readouterr().out.strip().splitlines()[-1]))
    whole, less = (each["most"] for each in found)
    assert whole["calls"] - less["calls"] == 2 * whole["programs"]
    assert {"align", "verify"} == found[0]["prompts"].keys() - found[1]["prompts"].keys()
    assert whole["tokens_in"] > less["tokens_in"]
    assert whole["tokens_out"] > less["tokens_out"]


def test_a_program_of_a_task_takes_the_actions_of_its_environment(tmp_path: Path) -> None:
    """Demonstrations may lie in a table, which has single numbers where the environment has vectors of one."""
    path = tmp_path / "slope.toml"
    path.write_text(
        TASK.replace("CartPole-v1", "MountainCarContinuous-v0").replace(', "angle", "angular velocity"', "")
    )
    rows = "".join(f"{number},0.{number},0.{step},0.5,expert\n" for number in range(2) for step in range(4))
    (tmp_path / "demos.csv").write_text(f"episode,x,velocity,action,role\n{rows}")
    flags = {"method": "random", "policy.task": str(path), "data.demos": (str(tmp_path / "demos.csv"),)}
    config = resolve(flags=flags)
    create(tmp_path / "run", config, new_labelling(config).problem(), ())
    source = "class Reward:\n    def reward_fn(self, state, action, next_state):\n        return float(action[0])\n"
    record = Record(
        Program("0" * 16, source, 9, takes_action=True), Evaluation("ok", score=1.0, metrics={"best": 1.0}), 0
    )
    with closing(Store(RunPaths(tmp_path / "run").database)) as store:
        assert reads_of(export_record(record, store, config)).actions == (1,)


def test_a_short_training_is_shorter_than_a_full_one(task: Path, tmp_path: Path, capsys: Capture) -> None:
    task.write_text(TASK + "\n[short]\nsteps = 64\nfloor = 1.0\n")
    words = ["fit", "--method", "random", "--task", str(task), "--train-steps", "64", "--out", str(tmp_path / "run")]
    assert main(words) == 2
    assert "--train-steps 64, and the short training of task pole has 64 steps; expected" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def rounds_of_forge(task: Path, folder: Path, *words: str) -> int:
    """The number of rounds of crossover in a run of FORGE with three rounds of one pair at most."""
    sizes = ["--first-programs", "2", "--rounds", "3", "--pairs", "1"]
    assert main(["fit", "--method", "forge", "--task", str(task), *sizes, *words, "--out", str(folder)]) == 0
    with opened(folder) as (store, _):
        return sum(operator == "crossover" for _, operator in store.requests().values())


@pytest.mark.slow
def test_forge_ends_early_if_deeper_programs_bring_nothing(task: Path, tmp_path: Path) -> None:
    """A policy of this task gets the same score whatever its reward, so the first program stays the best."""
    task.write_text(TASK.replace("tests.tasks.scores:length", "tests.tasks.scores:constant"))
    assert rounds_of_forge(task, tmp_path / "all") == 3
    assert rounds_of_forge(task, tmp_path / "deeper", "--deeper", "1") == 1
    assert rounds_of_forge(task, tmp_path / "patience", "--patience", "2") == 2


@pytest.mark.slow
@pytest.mark.parametrize("trainings", [1, 2])
def test_trainings_at_once_are_as_many_as_asked(trainings: int, task: Path, tmp_path: Path) -> None:
    task.write_text(TASK.replace("steps = 128", "steps = 4096"))  # some seconds: the second one begins in this time
    run = grace_irl.fit(method="random", programs=2, task=task, workers=1, trainings=trainings, out=tmp_path / "run")
    begun = [path.stat().st_mtime for path in run.folder.glob("trainings/*/*/log.txt")]
    ended = [path.stat().st_mtime for path in run.folder.glob("trainings/*/*/result.json")]
    assert len(begun) == len(ended) == 2
    assert (max(begun) < min(ended)) == (trainings == 2)
