"""Whole runs of the methods that train policies, with the writer that needs no model, and what they meet."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

pytest.importorskip("stable_baselines3", reason="grace-irl[rl] is not installed")

import grace_irl
from grace_irl.cli import main
from grace_irl.demos import save
from grace_irl.evaluate.evaluation import Evaluation
from grace_irl.methods.search_panels import depth_panel, tree_panel
from grace_irl.programs.export import reads_of
from grace_irl.programs.program import Program
from grace_irl.propose import manual
from grace_irl.rl.collect import collect
from grace_irl.runs.config import resolve
from grace_irl.runs.folder import RunPaths, create
from grace_irl.runs.loading import new_labelling
from grace_irl.runs.provenance import export_record
from grace_irl.runs.record import Record
from grace_irl.runs.run import opened
from grace_irl.runs.store import Store
from grace_irl.search.ranks import Scored
from tests.fakes.person import Person
from tests.propose.client.server import ChatServer
from tests.runs.test_resume_real import results

TASK = """
env = "CartPole-v1"
text = "A cart shall keep a pole upright."
score = "tests.tasks.scores:length"
scored = "steps until the pole falls"
fields = ["x", "velocity", "angle", "angular velocity"]
[training]
steps = 128
evaluations = 2
episodes = 2
[ppo]
n_envs = 2
n_steps = 32
"""
SMALL = {
    "random": ["--programs", "3"],
    "eureka": ["--rounds", "2", "--round-programs", "2"],
    "revolve": ["--programs", "5", "--islands", "1", "--island-programs", "4"],
    "rf-agent": ["--programs", "5", "--first-programs", "2", "--actions", "1,1,1,0,0"],
    "forge": ["--first-programs", "2", "--rounds", "1", "--pairs", "2", "--pool-programs", "2"],
    "policy-evolution": ["--population", "2", "--elite", "1", "--generations", "1"],
}
Capture = pytest.CaptureFixture[str]


@pytest.fixture
def task(tmp_path: Path) -> Path:
    path = tmp_path / "pole.toml"
    path.write_text(TASK)
    return path


def stored(folder: Path) -> tuple[list[tuple[str, float]], str]:
    """The programs with their scores, in order, and the best one."""
    with opened(folder) as (store, _):
        records = store.records()
        return [(name, each.evaluation.score) for name, each in records.items()], store.meta("best")


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL)
def test_a_method_runs_whole_without_a_model(name: str, task: Path, tmp_path: Path, capsys: Capture) -> None:
    folder = tmp_path / "run"
    assert main(["fit", "--method", name, "--task", str(task), *SMALL[name], "--out", str(folder)]) == 0
    err = capsys.readouterr().err
    assert "tests.tasks.scores:length" in err  # the terminal names the code of the task
    assert "A reward designed for a task" in (folder / "reward.py").read_text()
    programs, best = stored(folder)
    assert len(programs) >= 2
    assert dict(programs)[best] == max(score for _, score in programs)
    page = (folder / "report.html").read_text()
    assert "Components" in page
    assert "Training" in page
    assert "<h1>Reward for task pole</h1>" in page
    for absent in ("label rule", "log pi", "States are not all shown", "<caption>Data"):
        assert absent not in page
    assert ("Tree" in page, "Depth" in page) == (name == "rf-agent", name == "forge")
    assert main(["show", str(folder), "--json"]) == 0
    assert json.loads(capsys.readouterr().out.strip().splitlines()[-1])["best"] == best


@pytest.mark.slow
def test_killed_at_any_moment_it_ends_the_same(task: Path, tmp_path: Path) -> None:
    arguments = ["--method", "rf-agent", "--task", str(task), *SMALL["rf-agent"], "--trainings", "1"]
    whole, folder = tmp_path / "whole", tmp_path / "killed"
    assert main(["fit", *arguments, "--out", str(whole)]) == 0
    command = [sys.executable, "-m", "grace_irl", "fit"]
    process = subprocess.Popen([*command, *arguments, "--out", str(folder)], stderr=subprocess.DEVNULL)
    kills = 0
    for least in (1, 3):  # a moment after a result, while the next program is trained
        while process.poll() is None and results(folder) < least:
            time.sleep(0.02)
        time.sleep(0.1)
        kills += process.poll() is None
        process.kill()
        process.wait()
        begun = (folder / "run.db").exists()
        if not begun:
            shutil.rmtree(folder, ignore_errors=True)
        more = ["--resume", str(folder)] if begun else [*arguments, "--out", str(folder)]
        process = subprocess.Popen([*command, *more], stderr=subprocess.DEVNULL)
    assert process.wait(timeout=300) == 0
    assert kills == 2
    assert stored(folder) == stored(whole)


def test_a_run_without_a_task_is_refused(tmp_path: Path, capsys: Capture) -> None:
    assert main(["fit", "--method", "eureka", "--out", str(tmp_path / "run")]) == 2
    assert "or --task FILE, or --task with one of acrobot" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_without_a_model_only_transitions_are_rewarded(task: Path, tmp_path: Path, capsys: Capture) -> None:
    task.write_text(TASK.replace("[training]", 'sees = "state"\n[training]'))
    assert main(["fit", "--method", "random", "--task", str(task), "--out", str(tmp_path / "run")]) == 2
    assert "expected sees = 'transition', or a model" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("flag", [["--elite", "2"], ["--label", "last"], ["--expand", "1"], ["--held-out", "0.2"]])
def test_settings_without_effect_are_refused(flag: list[str], task: Path, tmp_path: Path, capsys: Capture) -> None:
    arguments = ["fit", "--method", "forge", "--task", str(task), *flag, "--out", str(tmp_path / "run")]
    assert main(arguments) == 2
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


PROGRAM = """class Reward:
    def reward_fn(self, state, action, next_state):
        self.up = {weight} * (1.0 - abs(float(next_state[2])))
        return self.up

    def terms_fn(self, state):
        return {{"up": self.up}}
"""


@pytest.mark.slow
def test_a_model_reads_the_task_and_the_course_of_components(task: Path, tmp_path: Path) -> None:
    prompts: list[str] = []

    def answer(prompt: str) -> str:
        prompts.append(prompt)
        if "Describe in at most three sentences" in prompt:
            return "It pays for an upright pole."
        if "square brackets" in prompt:
            return "Likely. [0.5]"
        return f"Upright.\n\n```python\n{PROGRAM.format(weight=len(prompts))}```\n"

    with ChatServer(answer=answer) as server:
        run = grace_irl.fit(
            out=tmp_path / "run",
            method="rf-agent",
            llm_url=server.url,
            answer_format="code",
            sets=(
                f"policy.task={task}",
                "tree.programs=3",
                "tree.first=1",
                'tree.actions="1,1,0,0,0"',
                "search.lag=1",
            ),
        )
    assert run.programs == 3
    designs = [
        each for each in prompts if "# Your task\nDesign" in each or "# Your task\nC" in each or "Keep the" in each
    ]
    assert all("A cart shall keep a pole upright." in each and "steps until the pole falls" in each for each in prompts)
    assert "velocity, angle" in prompts[0]
    later = next(each for each in designs if "up: " in each)
    assert "Design idea: It pays for an upright pole." in later
    assert "score along training:" in later
    verify = next(each for each in prompts if "square brackets" in each)
    assert "class Reward" in verify
    assert "score along training" not in verify
    assert not any("recover them from demonstrations" in each for each in prompts)
    with opened(run.folder) as (store, _):
        assert all(each.evaluation.valid for each in store.records().values())


@pytest.mark.slow
def test_a_model_repairs_a_failing_program_by_the_words_of_the_task(task: Path, tmp_path: Path) -> None:
    prompts: list[str] = []

    def answer(prompt: str) -> str:
        prompts.append(prompt)
        source = PROGRAM.format(weight=2) if len(prompts) > 1 else PROGRAM.format(weight="(")
        return f"```python\n{source}```\n"

    with ChatServer(answer=answer) as server:
        run = grace_irl.fit(
            out=tmp_path / "run",
            method="random",
            llm_url=server.url,
            answer_format="code",
            sets=(f"policy.task={task}", "random.programs=1"),
        )
    first, repair = prompts
    assert "A cart shall keep a pole upright." in first
    assert all(part in repair for part in ("A cart shall keep a pole upright.", "self.up = ( *", "line 3"))
    assert "demonstrations" not in repair
    assert run.best.evaluation.valid
    assert "self.up = 2 *" in run.best.source
    with opened(run.folder) as (store, _):
        assert "repaired" in {row.fate.verdict for row in store.fates()}
    recording, again = tmp_path / "answers.jsonl", tmp_path / "again"
    assert main(["export", str(run.folder), "--recording", str(recording)]) == 0
    assert main(["fit", "--replay", str(recording), "--task", str(task), "--out", str(again)]) == 0
    assert stored(again) == stored(run.folder)


@pytest.mark.slow
def test_a_person_repairs_a_failing_program_of_a_task(
    task: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(manual, "LOOK", 0.02)

    def write(before: int) -> str:
        return f"```python\n{PROGRAM.format(weight=2 if before else '(')}```\n"

    with Person(tmp_path / "run" / "manual", write=write) as person:
        run = grace_irl.fit(
            out=tmp_path / "run",
            method="random",
            proposer="manual",
            sets=(f"policy.task={task}", "random.programs=1"),
        )
    assert person.answered == ["0000", "0000-repair"]
    assert all(part in person.prompts[1] for part in ("A cart shall keep a pole upright.", "self.up = ( *", "line 3"))
    assert "self.up = 2 *" in run.best.source
    with opened(run.folder) as (store, _):
        assert [row.fate.verdict for row in store.fates()] == ["repaired", "kept"]


@pytest.mark.slow
def test_a_search_starts_from_the_exported_reward_of_a_task(task: Path, tmp_path: Path) -> None:
    """A model sees the program, and nothing of the file's header."""
    prompts: list[str] = []

    def answer(prompt: str) -> str:
        prompts.append(prompt)
        return f"```python\n{PROGRAM.format(weight=7)}```\n"

    shared = (f"policy.task={task}", "model.repair=false")
    first = grace_irl.fit(out=tmp_path / "first", method="random", sets=(shared[0], "random.programs=1"))
    with ChatServer(answer=answer) as server:
        run = grace_irl.fit(
            out=tmp_path / "second",
            method="policy-evolution",
            llm_url=server.url,
            answer_format="code",
            start_from=[str(first.reward_path)],
            population=2,
            elite=1,
            generations=1,
            sets=(*shared, "search.lag=1"),
        )
    assert stored(run.folder)[0][0] == stored(first.folder)[0][0]
    shown = [each for each in prompts if first.best.source.strip().splitlines()[-1] in each]
    assert shown
    assert not any("grace-irl" in each or str(tmp_path) in each for each in prompts)


@pytest.mark.slow
def test_a_recording_knows_its_method(task: Path, tmp_path: Path, capsys: Capture) -> None:
    folder, recording = tmp_path / "run", tmp_path / "answers.jsonl"
    assert main(["fit", "--method", "random", "--task", str(task), "--programs", "2", "--out", str(folder)]) == 0
    assert main(["export", str(folder), "--recording", str(recording)]) == 0
    assert str(task) not in recording.read_text()
    for number, source in enumerate((recording, folder)):
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


def scored(name: str, operator: str, parents: tuple[str, ...], score: float, index: int) -> Scored:
    return Scored(Program(name, "", 1, operator, parents), Evaluation("ok", score=score), index)


FAMILY = [
    scored("a", "initialise", (), 0.1, 0),
    scored("b", "initialise", (), 0.2, 1),
    scored("c", "crossover", ("a", "b"), 0.5, 2),
    scored("d", "weights", ("c",), 0.00004, 3),
]


def test_the_tree_stands_each_program_below_its_first_parent() -> None:
    rows = tree_panel(FAMILY[2], FAMILY).parts[1].rows  # type: ignore[union-attr]
    assert [row[0] for row in rows] == ["a", "· c *", "· · d", "b"]
    assert rows[2] == ("· · d", "weights", "3", "4e-05", "0", "-")
    assert [row[4:] for row in rows] == [("2", "0.5"), ("1", "4e-05"), ("0", "-"), ("0", "-")]


def test_a_large_tree_shows_its_best_programs_and_those_above_them() -> None:
    chain = [
        Scored(Program(f"{n:016x}", "", 1, parents=(f"{n - 1:016x}",) if n else ()), Evaluation("ok", score=n), n)
        for n in range(3_000)
    ]
    leaves = [
        Scored(Program(f"{n:016x}", "", 1, parents=(f"{0:016x}",)), Evaluation("ok", score=-1.0), n)
        for n in range(3_000, 5_000)
    ]
    text, figures = tree_panel(chain[-1], [*chain, *leaves]).parts
    assert "The best 100 of 5,000 programs" in str(text)
    assert len(figures.rows) == 3_000  # type: ignore[union-attr]
    assert figures.rows[0][4:] == ("4999", "2999")  # type: ignore[union-attr]


def test_depths_are_one_more_than_the_deepest_parents() -> None:
    rows = depth_panel(FAMILY).parts[1].rows  # type: ignore[union-attr]
    assert rows == (("0", "2", "0.2", "0.15"), ("1", "1", "0.5", "0.5"), ("2", "1", "4e-05", "4e-05"))


def test_a_score_of_zero_but_for_rounding_is_zero() -> None:
    assert depth_panel([scored("a", "initialise", (), -1.87e-13, 0)]).parts[1].rows == (("0", "1", "0", "0"),)  # type: ignore[union-attr]


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
def test_records_are_states_of_a_task(task: Path, tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(RECORDS)
    kept = [line for line in TASK.splitlines() if not line.startswith("fields")]
    task.write_text("\n".join(kept).replace('"CartPole-v1"', '"own.py:make"'))
    folder = tmp_path / "run"
    assert main(["fit", "--method", "forge", "--task", str(task), *SMALL["forge"], "--out", str(folder)]) == 0
    source = (folder / "reward.py").read_text()
    assert 'state["place"]' in source or 'state["tilt"]' in source
    assert len(stored(folder)[0]) >= 2


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
        assert store.meta("actions") == "()"
        assert reads_of(export_record(record, store, config)).actions is None
