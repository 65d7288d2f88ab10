"""Comparisons in the environment of a task: methods that trained policies judge, the score, and what a search used."""

from __future__ import annotations

import json
import re
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
from grace_irl.compare.fitted import used_by
from grace_irl.compare.folder import ComparisonFolder, Milestone
from grace_irl.compare.plot import Line, plot
from grace_irl.rewards.file import load_reward
from grace_irl.rl.curve import Point, from_json, to_json
from tests.compare.short import HEAVY, LIMIT, QUICK, ROOT, rows
from tests.compare.short import TASK_STEPS as STEPS
from tests.propose.client.server import ChatServer

Capture = pytest.CaptureFixture[str]
SMALL = ["--set", "eureka.rounds=2", "--set", "eureka.samples=2", "--set", "random.programs=1"]
FEW = ["--set", "search.population=4", "--set", "search.elite=2", "--set", "search.generations=0"]
EUREKA, TRAINED = 4 * 128, 128
"""Environment steps of a search of `SMALL`, and of one program's training."""


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
    assert "Each training keeps 4 policies, which play 1 episodes each." in table
    assert "## What each method used" in table
    assert "## What ran\n\n- programs by: synthesis\n- learner in CartPole-v1: PPO with n_envs 2, n_steps" in table
    assert re.search(r"^- versions: grace-irl \S+, Python .*stable-baselines3 \d", table, re.MULTILINE)
    assert f"| eureka | 1 | 4 | 4 | 0 | 0 | 0 | {EUREKA} | {STEPS} | {EUREKA + STEPS} |" in table
    assert f"| ppo-true | 1 | 0 | 0 | 0 | 0 | 0 | 0 | {STEPS} | {STEPS} | 0 |" in table
    assert f"| method | runs | programs asked: 1 | steps of the search: {TRAINED} |\n" in table
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
    whole_again = resume(killed, workers=1).results
    assert all(not each.failure for each in whole_again)
    assert [each.used.milestones for each in whole_again if each.used] == [
        tuple(Milestone(**one) for one in told[each.method]["milestones"]) for each in whole_again
    ]
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
    words = ["--demos", cart_pole, "--task", task, "--methods", "grace,gail,airl,bc,random,ppo-true"]
    words += [*QUICK, *FEW, "--draw-demos", "2", "--set", "random.programs=1", "--tune", "bc.updates=5"]
    words += ["--trust-reward", "--out", folder]
    found = compared(words, capsys)
    assert len({each["data"] for each in found["results"]}) == 1
    outcomes = {each["method"]: each["outcomes"][0] for each in found["results"]}
    assert {name: each["steps"] for name, each in outcomes.items()} == {
        **dict.fromkeys(("grace", "gail", "airl", "random", "ppo-true"), STEPS),
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
