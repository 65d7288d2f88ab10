"""Comparisons in the environment of a task: methods that trained policies judge, the score, and what a search used."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("imitation", reason="not installed: pip install --no-deps imitation==1.0.1")

from grace_irl.cli import main
from grace_irl.compare.comparison import resume
from grace_irl.compare.contest import Contest
from grace_irl.compare.fitted import Fitted, used_by
from grace_irl.compare.folder import ComparisonFolder
from grace_irl.compare.plot import Line, plot
from grace_irl.compare.settings import Settings, comparison_of, read_settings, told_apart
from grace_irl.errors import InputError
from grace_irl.methods.eureka import EurekaConfig
from grace_irl.rewards.file import load_reward
from grace_irl.rl.curve import Point, from_json, to_json
from grace_irl.runs.config import resolve
from tests.compare.short import HEAVY, ROOT, rows
from tests.hostile_files.traps import stranger, trap
from tests.propose.client.server import ChatServer
from tests.tasks.poles import TASK as CART_POLE

Capture = pytest.CaptureFixture[str]
LIMIT = 30
TASK = CART_POLE.replace("episodes = 2", f"episodes = 2\nmax_steps = {LIMIT}")
STEPS = 128
QUICK = ["--seeds", "1", "--steps", str(STEPS), "--episodes", "3", "--looks", "1", "--look-episodes", "2"]
QUICK += ["--choice-episodes", "1"]
SMALL = ["--set", "eureka.rounds=2", "--set", "eureka.samples=2", "--set", "random.programs=1"]
FEW = ["--set", "search.population=4", "--set", "search.elite=2", "--set", "search.generations=0"]
EUREKA, TRAINED = 4 * 128, 128
"""Environment steps of a search of `SMALL`, and of one program's training."""


@pytest.fixture
def task(tmp_path: Path) -> Path:
    path = tmp_path / "pole.toml"
    path.write_text(TASK)
    return path


def compared(words: Sequence[object], capsys: Capture) -> dict[str, Any]:
    capsys.readouterr()
    assert main(["compare", *map(str, words), "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out.strip().splitlines()[-1])
    assert [each["failure"] for each in found["results"]] == [""] * len(found["results"])
    return found


def used(found: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {each["method"]: each["used"] for each in found["results"]}


def whole(task: Path, folder: Path) -> list[object]:
    return ["--task", task, "--methods", "eureka,random,ppo-true", *QUICK, *SMALL, "--workers", "1", "--out", folder]


@pytest.mark.slow
def test_searches_and_the_true_reward_without_demonstrations(task: Path, tmp_path: Path, capsys: Capture) -> None:
    folder = tmp_path / "out"
    found = compared(whole(task, folder), capsys)
    told = used(found)
    counts = {name: (each["asked"], each["trained"], each["steps"]) for name, each in told.items()}
    assert counts == {"eureka": (4, 4, EUREKA), "random": (1, 1, TRAINED), "ppo-true": (0, 0, 0)}
    assert {each["calls"] + each["tokens_in"] + each["tokens_out"] for each in told.values()} == {0}
    assert told["eureka"]["seconds"] > 0 == told["ppo-true"]["seconds"]
    for each in found["results"]:
        (outcome,) = each["outcomes"]
        for played in (outcome, outcome["favourite"]):
            assert 0 < played["score"] <= LIMIT  # the task's
            assert played["score"] == played["length"] == played["mean"]  # CartPole pays for each step
        (point,) = from_json(ComparisonFolder(folder).job(each["method"], 0).curve("CartPole-v1").read_text())
        assert (point.steps, point.score) == (STEPS, point.length)
    table = (folder / "table.md").read_text()
    assert (
        "| method | runs | return, last policy | return, favourite | score, last policy | score, favourite |" in table
    )
    assert re.search(r"^- random actions score \d+\.\d+ \(mean of 100 episodes\)$", table, re.MULTILINE)
    assert "| random ahead of | common seeds | score, last policies | score, favourites |" in table
    assert "; episodes as the task ends them." in table
    assert "## What each method used" in table
    assert "## What ran\n\n- programs by: synthesis\n- learner in CartPole-v1: PPO with n_envs 2, n_steps" in table
    assert re.search(r"^- versions: grace-irl \S+, Python .*stable-baselines3 \d", table, re.MULTILINE)
    assert f"| eureka | 1 | 4 | 4 | 0 | 0 | 0 | {EUREKA} | {STEPS} | {EUREKA + STEPS} |" in table
    assert f"| ppo-true | 1 | 0 | 0 | 0 | 0 | 0 | 0 | {STEPS} | {STEPS} | 0 |" in table
    assert (
        f"| method | runs | programs: 1 | environment steps: {TRAINED} |\n| --- | --- | --- | --- |\n| eureka | 1 |"
        in table
    )
    assert {each["measure"] for name, each in told.items() if name != "ppo-true"} == {"score"}
    assert str(tmp_path) not in table
    told_rows = {row["method"]: row for row in rows(folder)}
    assert told_rows["eureka"]["search_steps"] == str(EUREKA)
    assert told_rows["eureka"]["score"] == told_rows["eureka"]["return"]
    assert told_rows["eureka"]["favourite_score"] == told_rows["eureka"]["favourite_return"]
    assert "designed for a task" in load_reward(ComparisonFolder(folder).job("eureka", 0).fit / "reward.py").source
    assert compared(["--resume", folder], capsys)["results"] == found["results"]

    killed = tmp_path / "killed"
    place = ComparisonFolder(killed).job("eureka", 0)
    command = [sys.executable, str(ROOT / "cli.py"), "compare"]
    process = subprocess.Popen([*command, *map(str, whole(task, killed))], stderr=subprocess.DEVNULL)
    limit = time.monotonic() + 200
    while not list((place.fit / "trainings").glob("*/*/result.json")):
        assert process.poll() is None
        assert time.monotonic() < limit
        time.sleep(0.02)
    process.kill()
    process.wait()
    assert not place.result.exists()
    first = {path.parent: path.stat().st_mtime_ns for path in place.fit.glob("trainings/*/*/result.json")}
    assert all(not each.failure for each in resume(killed, workers=1).results)
    assert rows(killed) == rows(folder)
    again = {path.parent: path.stat().st_mtime_ns for path in place.fit.glob("trainings/*/*/result.json")}
    assert len(again) == 4
    assert first.items() <= again.items()  # what was trained before the kill is not trained again


@pytest.mark.slow
@pytest.mark.usefixtures("in_process")
def test_all_methods_with_demonstrations_in_the_environment_of_a_task(
    task: Path, cart_pole: Path, tmp_path: Path, capsys: Capture
) -> None:
    folder = tmp_path / "out"
    words = ["--demos", cart_pole, "--task", task, "--methods", "grace,gail,bc,random,ppo-true", "--draw-demos", "2"]
    words += [*QUICK, *FEW, "--set", "random.programs=1", "--tune", "bc.updates=5", "--trust-reward", "--out", folder]
    found = compared(words, capsys)
    assert len({each["data"] for each in found["results"]}) == 1
    outcomes = {each["method"]: each["outcomes"][0] for each in found["results"]}
    assert {name: each["steps"] for name, each in outcomes.items()} == {
        **dict.fromkeys(("grace", "gail", "random", "ppo-true"), STEPS),
        "bc": 0,
    }
    assert all(each["score"] == each["mean"] for each in outcomes.values())
    told = used(found)
    assert told["grace"]["asked"] >= 1
    assert (told["grace"]["trained"], told["grace"]["steps"]) == (0, 0)  # nothing is trained in its search
    assert (told["random"]["trained"], told["random"]["steps"]) == (1, TRAINED)
    assert {each["form"] for each in found["results"] if each["method"] == "random"} == {"raw"}
    assert {each["form"] for each in found["results"] if each["method"] == "grace"} == {"soft"}
    assert "for each seed, 2 trajectories" in (folder / "table.md").read_text()
    more = compared(["--resume", folder, "--methods", "eureka,bc", *SMALL[:4]], capsys)
    assert {each["method"]: each["used"]["steps"] for each in more["results"]} == {"eureka": EUREKA, "bc": 0}


EACH = {
    "random": ("random.programs=2",),
    "eureka": ("eureka.rounds=1", "eureka.samples=2"),
    "revolve": ("revolve.programs=2", "revolve.islands=1", "revolve.size=2"),
    "rf-agent": ("tree.programs=2", "tree.first=2"),
    "forge": ("forge.first=2", "forge.rounds=0"),
    "map-elites": ("map_elites.programs=2", "map_elites.first=2"),
    "policy-evolution": ("policy_evolution.population=2", "policy_evolution.generations=0"),
}
"""Settings by which each search writes two programs."""


@pytest.mark.slow
def test_one_table_for_every_search_that_policies_judge(task: Path, tmp_path: Path, capsys: Capture) -> None:
    folder = tmp_path / "out"
    sets = [word for settings in EACH.values() for each in settings for word in ("--set", each)]
    found = compared(
        ["--task", task, "--methods", ",".join([*EACH, "ppo-true"]), *QUICK, *sets, "--out", folder], capsys
    )
    told = used(found)
    for name in EACH:
        assert (told[name]["asked"], told[name]["calls"]) == (2, 0), name
        assert told[name]["steps"] == told[name]["trained"] * TRAINED, name
        assert 1 <= told[name]["trained"] <= 2, name
    table = (folder / "table.md").read_text()
    head, _, rest = table.partition("## What each method used")
    for name in [*EACH, "ppo-true"]:
        assert f"\n| {name} | 1 |" in head, name
        assert f"\n| {name} | 1 | " in rest, name


PROGRAM = """class Reward:
    def reward_fn(self, state, action, next_state):
        return {weight} * (1.0 - abs(float(next_state[2])))
"""


@pytest.mark.slow
@pytest.mark.usefixtures("in_process")
def test_calls_and_tokens_of_a_served_model_are_counted(task: Path, tmp_path: Path, capsys: Capture) -> None:
    prompts: list[str] = []

    def answer(prompt: str) -> str:
        prompts.append(prompt)
        return f"```python\n{PROGRAM.format(weight=len(prompts))}```\n"

    folder = tmp_path / "out"
    words = ["--task", task, "--methods", "random,ppo-true", *QUICK, "--set", "random.programs=2"]
    words += ["--set", "model.answer_format=code", "--transfer-env", HEAVY]
    with ChatServer(answer=answer) as server:
        found = compared([*words, "--llm-url", server.url, "--out", folder], capsys)
        told = used(found)["random"]
        assert (told["asked"], told["calls"], told["trained"]) == (2, 2, 2)
        assert (told["tokens_in"], told["tokens_out"]) == (server.tokens_in, server.tokens_out)
    assert told["tokens_in"] > 0
    assert used(found)["ppo-true"]["calls"] == 0
    for each in found["results"]:
        here, there = each["outcomes"]
        assert here["score"] is not None
        assert (there["environment"], there["score"]) == ("rewards.py:heavy", None)
    assert [row["search_steps"] for row in rows(folder) if row["transfer"] == "1"] == ["", ""]


REFUSED: list[tuple[list[str], str]] = [
    (["--methods", "grace,eureka"], "method 'grace' needs demonstrations; expected --demos PATH…, or only methods"),
    (["--methods", "bc"], "method 'bc' needs demonstrations"),
    (["--methods", "random", "--env", "CartPole-v1"], "--env with --task; expected --task alone"),
    (["--methods", "random", "--horizon", "9"], "--horizon with --task"),
    (["--methods", "ppo-true", "--expand", "2"], "--expand with --task"),
    (["--methods", "ppo-true", "--draw-demos", "2"], "--draw-demos without demonstrations; expected --demos"),
    (["--methods", "random", "--transfer-env", "Acrobot-v1"], "Acrobot-v1: states of 6 numbers"),
    (
        ["--methods", "random", "--set", "policy.task=snake"],
        "--set policy.task has no effect in a comparison; expected",
    ),
    (["--methods", "random", "--set", "eureka.rounds=2"], "no effect with the methods random; expected eureka among"),
    (["--methods", "random", "--set", "search.population=4"], "--set search.population: no effect with the methods"),
    (["--methods", "random", "--set", "fitness.none=4"], "setting 'fitness.none' is unknown"),
    (["--methods", "eureka", "--set", "eureka.sample=4"], "'eureka.sample' is unknown; did you mean eureka.samples?"),
    (["--methods", "random", "--set", "random.programs=0"], "setting 'random.programs' is 0"),
    (["--methods", "random", "--set", "model.temperature=0.1"], "no effect, since this run has no model"),
    (["--methods", "random", "--held-out", "0.3"], "--held-out: no effect with method 'random'"),
    (["--methods", "random", "--tune", "random.programs=1"], "expected --set or --config for how it searches"),
]


@pytest.mark.parametrize(("words", "said"), REFUSED, ids=[" ".join(words[1:]) for words, _ in REFUSED])
def test_what_cannot_be_compared_is_refused_before_anything_is_written(
    words: list[str], said: str, task: Path, tmp_path: Path, capsys: Capture
) -> None:
    assert main(["compare", "--task", str(task), *words, "--out", str(tmp_path / "out")]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_a_search_that_cannot_write_for_a_task_says_so(tmp_path: Path, capsys: Capture) -> None:
    """Without a model no programs are written for grids. That is no lack of demonstrations."""
    words = ["--task", "doorkey", "--methods", "ppo-true,random", "--out", str(tmp_path / "out")]
    assert main(["compare", *words]) == 2
    error = capsys.readouterr().err
    assert "task doorkey" in error
    assert "needs demonstrations" not in error


def test_a_task_may_lie_in_the_home_folder(task: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(task.parent))
    found = comparison_of({"task": f"~/{task.name}", "reward": "~/r.py", "transfer": ("~/own.py:make", "Hopper-v5")})
    assert (found.task, found.reward) == (str(task), str(task.parent / "r.py"))
    assert found.transfer == (f"{task.parent / 'own.py'}:make", "Hopper-v5")


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("[training]", 'sees = "state"\n[training]', "expected sees = 'transition', or a model"),
        (":length", ":absent", "score"),
        ("n_envs", "envs", "[ppo] envs; expected one of"),
    ],
)
def test_a_task_that_cannot_be_trained_on_is_refused(
    before: str, after: str, said: str, task: Path, tmp_path: Path, capsys: Capture
) -> None:
    task.write_text(TASK.replace(before, after))
    words = ["--methods", "random,ppo-true", "--out", str(tmp_path / "out")]
    assert main(["compare", "--task", str(task), *words]) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_demonstrations_of_another_environment_are_refused(cart_pole: Path, tmp_path: Path, capsys: Capture) -> None:
    words = ["--demos", str(cart_pole), "--task", "acrobot", "--methods", "bc,random"]
    assert main(["compare", *words, "--out", str(tmp_path / "out")]) == 2
    assert "task acrobot: states of 6 numbers beside the demonstrations with 4" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_file_of_settings_names_no_task(task: Path, tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "settings.toml"
    for method, said in (("grace", "setting 'policy' has no effect"), ("random", "policy.task = ")):
        file.write_text(f'method = "{method}"\n[policy]\ntask = "{task}"\n')
        words = ["--methods", "random", "--config", str(file), "--out", str(tmp_path / "out")]
        assert main(["compare", "--task", str(task), *words]) == 2
        assert said in capsys.readouterr().err
        assert not (tmp_path / "out").exists()


def begun(task: Path, folder: Path) -> Path:
    """A comparison that ends at once, since its only job failed."""
    words = ["--methods", "random", *QUICK, "--set", "random.programs=1", "--out", str(folder)]
    assert main(["compare", "--task", str(task), *words]) == 1
    return folder


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch, in_process: None) -> None:
    """Jobs that fail at once."""
    del in_process

    def train(self: Fitted, *_: object) -> None:
        raise InputError("not today")

    monkeypatch.setattr(Fitted, "train", train)


@pytest.mark.usefixtures("failing")
def test_a_strangers_comparison_names_its_task_again(
    task: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, evil = begun(task, tmp_path / "out"), trap(tmp_path)
    stranger(monkeypatch, tmp_path)
    theirs = shutil.copytree(folder, tmp_path / "theirs")
    written = theirs / "compare.toml"
    capsys.readouterr()
    assert main(["compare", "--resume", str(theirs)]) == 2
    assert f"expected on the command line: --task {task}" in capsys.readouterr().err
    bad = tmp_path / "bad.toml"
    bad.write_text(TASK.replace('"CartPole-v1"', f'"{evil.name}"'))
    text = written.read_text()
    for changed in (
        text.replace(str(task), str(bad)),
        text.replace('"random.programs=1"', f'"policy.task={bad}", "model.url=http://192.0.2.1"'),
    ):
        written.write_text(changed)
        assert main(["compare", "--resume", str(theirs)]) == 2
        assert "expected on the command line: --task" in capsys.readouterr().err
    settings = read_settings(theirs)  # the second one
    found = Settings(settings.comparison, settings.fit).search("random")
    assert (found.model.url, found.policy.task) == ("", str(task))
    assert not evil.sprung
    written.write_text(text)
    assert main(["compare", "--resume", str(theirs), "--task", str(task)]) == 1
    capsys.readouterr()
    assert main(["compare", "--resume", str(theirs)]) == 1  # from then on it is this user's
    assert "tests.tasks.scores:length" in capsys.readouterr().err  # the terminal names the code of the task


@pytest.mark.usefixtures("failing")
def test_a_comparison_goes_on_with_its_own_task_and_settings(task: Path, tmp_path: Path, capsys: Capture) -> None:
    folder = begun(task, tmp_path / "out")
    again = ["compare", "--resume", str(folder)]

    def said(*words: str) -> str:
        capsys.readouterr()
        assert main([*again, *words]) == 2
        return capsys.readouterr().err

    assert "is not the one that the comparison began with" in said("--task", "snake")
    assert "random.programs = 2 on --resume, and it began with 1" in said("--set", "random.programs=2")
    assert "expected forge among --methods" in said("--set", "forge.rounds=1")
    task.write_text(TASK.replace("n_steps = 32", "n_steps = 64"))
    assert "is not the one that the comparison began with" in said()
    moved = tmp_path / "moved" / "pole.toml"
    moved.parent.mkdir()
    moved.write_text(TASK)
    words = ["--task", str(moved), "--methods", "random,eureka", "--set", "random.programs=1"]
    assert main([*again, *words, "--set", "eureka.rounds=3"]) == 1
    found = read_settings(folder)
    assert found.comparison.task == str(moved)
    assert found.search("eureka").own(EurekaConfig).rounds == 3


def test_settings_go_to_the_searches_that_have_them() -> None:
    sets = ("eureka.rounds=2", "search.population=7", "policy.train_steps=64", "model.temperature=0.5")
    shared, own = told_apart(("grace", "eureka", "random", "bc"), sets)
    assert (shared, own) == (sets[1::2], sets[::2])
    fit = resolve(sets=shared, flags={"expand.rounds": 3, "expand.trust": True, "stop.max_seconds": 9})
    comparison = comparison_of({"methods": ("grace", "eureka", "random", "bc"), "searches": own})
    searches = Settings(comparison, fit).searches
    assert [*searches] == ["grace", "eureka", "random"]
    assert searches["grace"] == fit
    eureka, chance = searches["eureka"], searches["random"]
    assert (eureka.method, eureka.own(EurekaConfig).rounds, chance.policy.train_steps) == ("eureka", 2, 64)
    assert (eureka.model.temperature, eureka.expand.rounds, eureka.expand.trust) == (0.5, 0, True)
    assert (eureka.stop.max_seconds, eureka.stop.plateau, fit.stop.plateau) == (9, None, 15)


def test_a_search_in_the_place_of_graces_shares_its_settings() -> None:
    fit = resolve(flags={"method": "random", "policy.train_steps": 64, "stop.max_calls": 3})
    eureka = Settings(comparison_of({"methods": ("grace", "eureka")}), fit).search("eureka")
    assert (eureka.method, eureka.stop.max_calls, eureka.policy.train_steps) == ("eureka", 3, 64)


def test_a_search_has_no_more_processes_than_its_job(task: Path, tmp_path: Path) -> None:
    settings = Settings(comparison_of({"methods": ("random",), "task": str(task), "steps": 64}), resolve())
    made = Contest.of(settings, 3).method("random", tmp_path / "fit")
    assert isinstance(made, Fitted)
    assert (made.config.sandbox.workers, made.config.policy.trainings) == (3, 3)


def test_a_plot_of_a_task_shows_its_score() -> None:
    points = [{"steps": 64, "mean": 0.0, "success": None, "score": 0.3}]
    assert ">score<" in plot("title", [Line("eureka", [points])])
    assert ">return<" in plot("title", [Line("eureka", [points]), Line("bc", [[{**points[0], "score": None}]])])


def test_flags_of_searches_lead_to_their_settings(capsys: Capture) -> None:
    assert main(["compare", "--task", "reacher", "--methods", "random", "--train-steps", "300"]) == 2
    assert "--train-steps is a setting of the searches of a comparison; expected --set policy.train_steps=" in (
        capsys.readouterr().err
    )


def test_trainings_that_failed_are_counted_as_far_as_they_came(tmp_path: Path) -> None:
    for program, steps in (("fails-at-once", ()), ("fails-later", (64,)), ("whole", (64, 128))):
        for seed in (0, 1):
            place = tmp_path / "trainings" / program / f"full-{seed}"
            place.mkdir(parents=True)
            if steps:
                points = [Point(each, 1, 0.0, 0.0, None, 1.0, {}) for each in steps]
                (place / "curve.json").write_text(to_json(points))
    found = used_by(tmp_path, 2.0)
    assert (found.trained, found.steps, found.asked, found.seconds) == (3, 2 * (64 + 128), 0, 2.0)


@pytest.mark.slow
@pytest.mark.usefixtures("in_process")
def test_a_search_over_demonstrations_without_a_task(cart_pole: Path, tmp_path: Path, capsys: Capture) -> None:
    """The other form of the same methods: demonstrations judge, the run is for the demonstrations' environment."""
    folder = tmp_path / "out"
    words = ["--demos", cart_pole, "--methods", "forge,grace", *QUICK, *FEW, "--trust-reward", "--out", folder]
    own = ["--set", "forge.first=3", "--set", "forge.rounds=1", "--set", "forge.pairs=2", "--set", "forge.size=3"]
    found = compared([*words, *own], capsys)
    told = used(found)
    assert 1 <= told["forge"]["asked"] <= 5
    assert (told["forge"]["trained"], told["forge"]["steps"]) == (0, 0)
    reward = load_reward(ComparisonFolder(folder).job("forge", 0).fit / "reward.py")
    assert "fitted" in reward.source or "discriminator" in reward.source
    assert {each["method"] for each in found["results"]} == {"forge", "grace"}
    assert "## Fitness of searches at equal budgets" in (folder / "table.md").read_text()
    for each in told.values():
        assert each["milestones"][-1]["asked"] <= each["asked"]
        assert [one["score"] for one in each["milestones"]] == sorted({one["score"] for one in each["milestones"]})
