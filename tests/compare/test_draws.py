"""A draw of demonstrations for each seed of a comparison: the same for its methods, kept, and refused in time."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("imitation", reason="not installed: pip install --no-deps imitation==1.0.1")

from grace_irl.cli import main
from grace_irl.compare.contest import Contest, require_cleanable, require_searchable
from grace_irl.compare.settings import Settings, comparison_of, digest_of, read_settings
from grace_irl.demos import load, save
from grace_irl.demos.goals import save_goals
from grace_irl.demos.memory import EPISODE_BYTES
from grace_irl.runs.config import resolve
from grace_irl.runs.run import opened
from tests.cli import corridor
from tests.compare.corridor import MAKE, SEARCH, write_demonstrations
from tests.propose.client.server import ChatServer

Capture = pytest.CaptureFixture[str]
QUICK = ["--steps", "30", "--episodes", "2", "--looks", "1", "--trust-reward", "--tune", "bc.updates=2"]
EPISODES = ["--set", "expand.episodes=2"]
pytestmark = pytest.mark.usefixtures("in_process")


def begun(tmp_path: Path, *words: str) -> list[str]:
    demos = write_demonstrations(tmp_path / "demos", 8)
    out = ["--out", str(tmp_path / "out"), "--json"]
    return ["compare", "--demos", str(demos), "--env", MAKE, *QUICK, *SEARCH, *EPISODES, *words, *out]


def compared(words: Sequence[str], capsys: Capture) -> dict[str, Any]:
    capsys.readouterr()
    assert main([*words]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out.strip().splitlines()[-1])
    assert [each["failure"] for each in found["results"]] == [""] * len(found["results"])
    return found


@pytest.mark.slow
def test_each_seed_has_a_draw_that_all_its_methods_share(tmp_path: Path, capsys: Capture) -> None:
    words = ["--methods", "grace,bc", "--seeds", "2", "--draw-demos", "3", "--expand", "1", "--held-out", "0.3"]
    found = compared(begun(tmp_path, *words), capsys)
    data = {(each["method"], each["seed"]): each["data"] for each in found["results"]}
    assert data["grace", 0] == data["bc", 0] != data["grace", 1] == data["bc", 1]
    assert read_settings(tmp_path / "out").comparison.draw_demos == 3
    contest = Contest.of(read_settings(tmp_path / "out"))
    drawn = contest.drawn(1).demonstrations
    assert (len(drawn), digest_of(drawn)) == (6, data["grace", 1])
    assert len(contest.drawn(1).problem(1).demonstrations.select(role="expert", split="train")) == 2
    table = (tmp_path / "out" / "table.md").read_text()
    assert "for each seed, 3 trajectories of each task and role are drawn, which all methods get" in table
    run = tmp_path / "out" / "jobs" / "grace-1" / "fit" / "rounds" / "0" / "run"
    assert main(["show", str(run), "--json"]) == 0
    again = compared(["compare", "--resume", str(tmp_path / "out"), "--seeds", "3", "--json"], capsys)
    assert {(each["method"], each["seed"]): each["data"] for each in again["results"]}.items() > data.items()
    assert main(["compare", "--resume", str(tmp_path / "out"), "--draw-demos", "2"]) == 2
    assert "--resume with draw_demos; expected none of them" in capsys.readouterr().err


@pytest.mark.slow
def test_each_draw_begins_with_the_given_program(tmp_path: Path, capsys: Capture) -> None:
    given = tmp_path / "given.py"
    given.write_text("class Reward:\n    def reward_fn(self, state):\n        return float(state[1])\n")
    words = ["--seeds", "2", "--draw-demos", "3", "--expand", "1", "--start-from", str(given)]
    found = compared(begun(tmp_path, "--methods", "grace,bc", *words), capsys)
    assert len({each["data"] for each in found["results"]}) == 2
    for seed in range(2):
        with opened(tmp_path / "out" / "jobs" / f"grace-{seed}" / "fit" / "rounds" / "0" / "run") as (store, _):
            first = store.proposal(0)
            assert first is not None
            assert first.reasoning == f"given: {given}"
            assert store.told()[0].program_id in store.records()


def test_without_a_draw_all_seeds_have_all(tmp_path: Path, capsys: Capture) -> None:
    found = compared(begun(tmp_path, "--methods", "bc", "--seeds", "2"), capsys)
    assert {each["data"] for each in found["results"]} == {digest_of(load([str(tmp_path / "demos")]))}
    assert "all seeds have the same demonstrations" in (tmp_path / "out" / "table.md").read_text()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--draw-demos", "9"], "--draw-demos 9: task 'default' has 8 expert trajectories; expected at least 9"),
        (["--draw-demos", "1", "--held-out", "0.5"], "which cannot be split; expected at least two that differ"),
        (["--draw-demos", "-1"], "comparison setting 'draw_demos' is -1"),
    ],
)
def test_a_draw_that_cannot_be_is_refused_before_anything_is_written(
    words: list[str], said: str, tmp_path: Path, capsys: Capture
) -> None:
    assert main(begun(tmp_path, "--methods", "bc", *words)) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


ENDS = f"{corridor.__file__}:ends"


def goals_file(place: Path) -> str:
    """Goal states of all experts, as a person would give them."""
    experts = [item for item in corridor.demonstrations() if item.role == "expert"]
    save_goals(place, {item.trajectory.digest: (corridor.goal_of(item),) for item in experts}, experts)
    return str(place)


def test_goal_states_of_experts_that_the_first_seed_does_not_draw_are_no_reason_to_refuse(tmp_path: Path) -> None:
    demos, place = corridor.saved(tmp_path), tmp_path / "mine.toml"
    comparison = comparison_of({"env": ENDS, "methods": ("grace", "bc"), "draw_demos": 1})
    flags = {"data.demos": (demos,), "data.label": "goal", "data.goals": str(place), "proposer.name": "manual"}
    contest = Contest.of(Settings(comparison, resolve(flags={**flags, "data.held_out": 0.0})), new=True)
    drawn = {item.trajectory.digest for item in contest.drawn(0).demonstrations}
    experts = contest.demonstrations.select(role="expert")
    left = next(item for item in experts if item.trajectory.digest not in drawn)
    place.write_text(f"{left.trajectory.digest} = [{corridor.goal_of(left)}]\n")
    checked = require_cleanable(contest.labels, contest.demonstrations, print)
    require_searchable(contest.drawn(0), comparison.methods, print, checked)


@pytest.mark.slow
@pytest.mark.parametrize("by", ["file", "server"])
def test_goal_states_are_settled_once_for_all_draws(by: str, tmp_path: Path, capsys: Capture) -> None:
    """Also those of trajectories that a seed does not draw: the next seed may."""
    folder, model = tmp_path / "out", corridor.Model(wrong=0)
    words = ["--demos", corridor.saved(tmp_path), "--env", ENDS, "--methods", "grace,bc", "--seeds", "2", *QUICK]
    words += ["--draw-demos", "2", "--label", "goal", *SEARCH, "--set", "search.samples=1"]
    words += ["--set", "model.answer_format=code", "--out", str(folder), "--json"]
    with ChatServer(answer=model) as server:
        named = ["--goals", goals_file(tmp_path / "mine.toml")] if by == "file" else []
        found = compared(["compare", *words, *named, "--llm-url", server.url], capsys)
        (tmp_path / "mine.toml").unlink(missing_ok=True)  # read once
        again = compared(["compare", "--resume", str(folder), "--seeds", "3", "--json"], capsys)
    assert len(model.cleaning) == (0 if by == "file" else 6)
    data = {(each["method"], each["seed"]): each["data"] for each in again["results"]}
    assert data.items() > {(each["method"], each["seed"]): each["data"] for each in found["results"]}.items()
    assert all(data["grace", seed] == data["bc", seed] for seed in range(3))
    assert len(set(data.values())) > 1
    contest = Contest.of(read_settings(folder)).marked(folder)
    for seed in range(3):
        drawn = contest.drawn(seed).demonstrations.select(role="expert")
        assert {item.goals for item in drawn} <= {(goal,) for goal in range(1, 8)}
        goals = {item.trajectory.digest: (corridor.goal_of(item) - 1,) for item in drawn}
        assert {item.trajectory.digest: item.goals for item in drawn} == goals
        with opened(folder / "jobs" / f"grace-{seed}" / "fit") as (store, config):
            rows = [row for row in store.trajectories() if row.role == "expert"]
            assert [row.positives for row in rows] == [1] * 4  # two of each task
            assert {row.digest for row in rows} == set(goals)
            assert config.data.label == "goal"


@pytest.mark.slow
def test_experts_alone_are_enough_for_a_comparison(tmp_path: Path, capsys: Capture) -> None:
    """Where their other states are negative; a set without a rule says in one line which it takes."""
    save(load([corridor.saved(tmp_path, marked=True)]).select(role="expert"), tmp_path / "expert.parquet")
    words = ["compare", "--demos", str(tmp_path / "expert.parquet"), "--env", ENDS, "--methods", "grace,bc", *QUICK]
    words += [*SEARCH, "--seeds", "1", "--draw-demos", "2", "--json"]
    assert main([*words, "--label", "all", "--out", str(tmp_path / "none")]) == 2
    assert "no negative trajectory, and label rule all" in capsys.readouterr().err
    with ChatServer(answer=corridor.Model(wrong=0)) as server:
        words += ["--llm-url", server.url, "--set", "model.answer_format=code"]
        found = compared([*words, "--out", str(tmp_path / "out")], capsys)
    assert [each["method"] for each in found["results"]] == ["grace", "bc"]
    settled = read_settings(tmp_path / "out")
    assert settled.fit.data.label == "goal"  # a later version keeps it
    assert (
        "for each seed, 2 trajectories of each task and role are drawn" in (tmp_path / "out" / "table.md").read_text()
    )


def test_all_methods_and_seeds_share_a_sample(tmp_path: Path, capsys: Capture) -> None:
    words = begun(tmp_path, "--methods", "bc", "--seeds", "2")
    demos = str(tmp_path / "demos")
    size = sum(item.trajectory.states.nbytes + EPISODE_BYTES for item in load([demos])) // 2
    found = compared([*words, "--sample", str(size)], capsys)
    sample = load([demos], sample=str(size))
    assert sample.sampled is not None
    assert {each["data"] for each in found["results"]} == {digest_of(sample)} != {digest_of(load([demos]))}
    assert read_settings(tmp_path / "out").fit.data.sample == str(size)
