"""Comparisons of goal states: asked for once, the same for all methods and seeds."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("imitation", reason="not installed: pip install --no-deps imitation==1.0.1")

from grace_irl.cli import main
from grace_irl.compare.contest import Contest
from grace_irl.compare.folder import ComparisonFolder
from grace_irl.demos import load
from grace_irl.demos.goals import save_goals
from grace_irl.rl.episodes import expert_episodes
from grace_irl.rl.learning import one_thread
from grace_irl.runs.run import opened
from tests.cli import corridor
from tests.compare.short import settings
from tests.propose.client.server import ChatServer

STEPS = 2048
ENV = f"{corridor.__file__}:ends"
QUICK = [
    *("--env", ENV, "--steps", str(STEPS), "--episodes", "4", "--looks", "1", "--workers", "2", "--trust-reward"),
    *("--set", "search.population=1", "--set", "search.elite=0", "--set", "search.generations=1"),
    *("--set", "model.answer_format=code", "--set", "model.concurrency=1", "--set", "expand.episodes=16"),
    *("--set", "search.samples=1"),
]


@pytest.mark.slow
def test_grace_expands_on_cleaned_demonstrations_beside_its_opponents(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, folder, place = corridor.Model(), tmp_path / "out", ComparisonFolder(tmp_path / "out")
    asked = ["compare", "--demos", corridor.saved(tmp_path), "--label", "goal", "--expand", "1", *QUICK]
    named = ["--methods", "grace,gail,airl,ppo-true", "--seeds", "1", "--out", str(folder), "--json"]
    with ChatServer(answer=model) as server:
        assert main([*asked, *named, "--llm-url", server.url, "--images"]) == 0, capsys.readouterr().err
        said = capsys.readouterr()
        found = json.loads(said.out.strip().splitlines()[-1])
        assert [each["failure"] for each in found["results"]] == [""] * 4
        assert len(model.cleaning) == len(set(model.cleaning)) == 6
        assert "goal states: 6 of 6 different expert trajectories have some" in said.err
        assert any("at column" in prompt for prompt in model.writing)  # debug functions
        assert corridor.OWN_END in place.job("grace", 0).program.read_text()
        assert (place.job("grace", 0).fit / "rounds" / "1" / "run").exists()
        # Another seed asks for programs, and for no goal state; nor does a job that is done again.
        shutil.rmtree(place.job("gail", 0).path)
        (place.goals / "goals.toml").write_text((place.goals / "goals.toml").read_text().replace(" = [", " = [1, "))
        assert main(["compare", "--resume", str(folder), "--seeds", "2", "--methods", "grace,gail", "--json"]) == 0
        said = capsys.readouterr()
        assert f"{place.goals / 'goals.toml'} was edited" in said.err
    found = json.loads(said.out.strip().splitlines()[-1])
    assert [(each["method"], each["seed"], each["failure"]) for each in found["results"]] == [
        (name, seed, "") for seed in (0, 1) for name in ("grace", "gail")
    ]
    assert len(model.cleaning) == 6
    for seed in (0, 1):
        with opened(place.job("grace", seed).fit / "rounds" / "0" / "run") as (store, _):
            assert [row.positives for row in store.trajectories() if row.role == "expert"] == [1] * 6


@pytest.mark.slow
def test_goal_states_that_are_missing_are_corrected_in_the_comparisons_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, place = tmp_path / "out", ComparisonFolder(tmp_path / "out")
    asked = [
        "compare",
        "--demos",
        corridor.saved(tmp_path),
        "--label",
        "goal",
        *QUICK,
        "--methods",
        "bc",
        "--tune",
        "bc.updates=20",
    ]
    with ChatServer(answer=corridor.Model(lambda _: "trajectory 1: none")) as server:
        assert main([*asked, "--seeds", "1", "--llm-url", server.url, "--out", str(folder)]) == 2
        line = capsys.readouterr().err.strip().splitlines()[-1]
        assert f"correct {place.goals / 'goals.toml'}, and go on with --resume {folder}" in line
        goals = place.goals / "goals.toml"
        goals.write_text(goals.read_text().replace("[]\n", "[3]\n"))
        assert main(["compare", "--resume", str(folder)]) == 0, capsys.readouterr().err
    assert (place.job("bc", 0).result).exists()


def test_lines_about_the_server_appear_before_goal_states_are_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    demos = corridor.saved(tmp_path)
    with ChatServer(answer=corridor.Model(lambda _: "trajectory 1: none")) as server:
        asked = ["compare", "--demos", demos, "--label", "goal", *QUICK, "--methods", "bc", "--seeds", "1"]
        named = ["--llm-url", server.url, "--model", "another", "--out", str(tmp_path / "out")]
        assert main([*asked, *named]) == 2
    said = capsys.readouterr().err
    address, unlisted = said.index(server.url), said.index("does not list the model 'another'")
    assert address < unlisted < said.index("asking about 6 expert trajectories")


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["compare", *arguments]) == 2
    line: str = capsys.readouterr().err.strip().splitlines()[-1]
    return line


def test_what_is_said_of_goal_states_is_looked_at_before_anything_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    demos, out = corridor.saved(tmp_path), tmp_path / "out"
    asked = ["--demos", demos, *QUICK, "--methods", "gail", "--out", str(out)]
    said = refused(capsys, *asked, "--label", "goal")
    assert "no goal states are marked (nor of 5 others)" in said
    assert "--goals FILE" in said
    goals = tmp_path / "mine.toml"
    goals.write_text(f"{'0' * 16} = [1]\n")
    assert "none of its 1 entries" in refused(capsys, *asked, "--label", "goal", "--goals", str(goals))
    assert "which does not use it" in refused(capsys, *asked, "--label", "last", "--goals", str(goals))
    assert not out.exists()


def cleaned(tmp_path: Path, rule: str, goals: dict[int, tuple[int, ...]]) -> Contest:
    """A contest whose experts, by their place, have these goal states."""
    demos, file = corridor.saved(tmp_path), tmp_path / "mine.toml"
    experts = [item for item in load([demos]) if item.role == "expert"]
    save_goals(file, {experts[place].trajectory.digest: marks for place, marks in goals.items()}, experts)
    fit: dict[str, object] = {"data.label": rule, "data.goals": str(file) if goals else ""}
    contest = Contest.of(settings(Path(demos), "grace", "gail", env=ENV, fit=fit))
    return contest.cleaned(tmp_path / "out", lambda _: None) if goals else contest


def test_opponents_follow_experts_as_far_as_their_goal(tmp_path: Path) -> None:
    """Who turns back at the goal is no example in that; who reached none is none at all."""
    goals: dict[int, tuple[int, ...]] = {0: (3,), 1: (1, 2), 2: (), 3: (5,), 4: (5,), 5: (4,)}
    problem = cleaned(tmp_path, "goal", goals).problem(0)
    episodes = expert_episodes(problem, "gail")
    assert [len(each.actions) for each in episodes] == [2, 1, 4, 4, 3]
    whole = expert_episodes(cleaned(tmp_path, "last", {}).problem(0), "gail")
    assert [len(each.actions) for each in whole] == [3, 4, 5, 5, 4, 3]
    np.testing.assert_array_equal(episodes[0].observations, whole[0].observations[:3])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rule", "pays"), [("", "positive"), ("all", "positive"), ("last", "centred"), ("goal", "centred")]
)
@pytest.mark.parametrize("name", ["gail", "airl"])
def test_the_rule_that_the_user_names_says_what_opponents_are_paid(
    name: str, rule: str, pays: str, tmp_path: Path
) -> None:
    """Also where the data name none, or another one."""
    goals = dict.fromkeys(range(6), (2,)) if rule == "goal" else {}
    contest = cleaned(tmp_path, rule, goals)
    with one_thread():
        trained = contest.method(name, tmp_path / "fit").train(contest.problem(0), 0)
    assert trained.paid == ("reward" if (name, pays) == ("gail", "positive") else pays)
